//! Measures the steps of a plan, each with one or several passes.

use super::runner::{Event, Pass, Runner};
use super::{fastest, prepare};
use crate::error::Result;
use crate::load::Job;
use crate::load::work::Work;
use crate::plan::{Step, Test};
use crate::request::Operation;
use crate::units::{Rate, float, show_percent, show_size};

impl Runner<'_> {
    pub(super) fn step(&mut self, step: &Step, index: usize, round: u32) -> Result<()> {
        self.serial += 1;
        let place = format!("step {} of {}", index + 1, self.plan.steps.len());
        let place = if self.plan.repeat > 1 { format!("round {round}, {place}") } else { place };
        let written = format!("{}-{}", step.test.name(), self.serial);
        let outcome = self.perform(step, round, &place, &written);
        // What was written would make the next step another one.
        if !self.plan.keep && !step.test.only_reads() {
            (self.observe)(Event::Progress(format!("{place}: removing its objects")));
            // What can't be removed now is tried again in the end, and told then.
            let _ = self.store.empty(&written);
        }
        outcome
    }

    /// Measures a step, which writes to the group `written`.
    fn perform(&mut self, step: &Step, round: u32, place: &str, written: &str) -> Result<()> {
        let mut pass = Pass {
            step: step.clone(),
            round,
            place: place.to_owned(),
            title: step.title(),
            rate: None,
            until_done: false,
            trials: Vec::new(),
        };
        match step.test {
            Test::Multipart => {
                let key = self.store.key(written, 0, step.size);
                let uploads = prepare::uploads(self.plan, self.store, step, &key);
                return self.take(&pass, Job::Uploads(&uploads)).map(drop);
            }
            Test::Burst => return self.burst(&pass, written),
            _ => {}
        }
        if step.fastest {
            pass.trials = self.trials(&pass, written)?;
            pass.step.concurrency = fastest::best(&pass.trials)
                .ok_or("no request was answered: the fastest concurrency cannot be found")?;
            if self.stop.is_stopped() {
                return Ok(());
            }
        }
        let work = self.work(&pass.step, written)?;
        self.paced(pass, Job::Requests(&work))
    }

    /// Measures a pass in a closed loop, in an open loop, or in both, as the plan's rate says.
    fn paced(&mut self, pass: Pass, job: Job<'_>) -> Result<()> {
        let share = match self.plan.rate {
            None => return self.take(&pass, job).map(drop),
            Some(Rate::PerSecond(rate)) => {
                return self.take(&Pass { rate: Some(float(rate)), ..pass }, job).map(drop);
            }
            Some(Rate::OfPeak(share)) => share,
        };
        let peak = self.take(&pass, job)?;
        if self.stop.is_stopped() {
            return Ok(());
        }
        if peak <= 0.0 {
            return Err("no request was answered: there is no peak for --rate to take a share of".to_owned());
        }
        let title = format!("{} at {} of its peak", pass.title, show_percent(share));
        self.take(&Pass { title, rate: Some(peak * share), ..pass }, job).map(drop)
    }

    /// Puts a number of objects, then reads them, then deletes them.
    fn burst(&mut self, pass: &Pass, written: &str) -> Result<()> {
        let (count, size) = (pass.step.objects(self.plan.objects), pass.step.size);
        for (operation, verb) in [
            (Operation::PutObject, "put"),
            (Operation::GetObject, "get"),
            (Operation::DeleteObject, "delete"),
        ] {
            if self.stop.is_stopped() {
                return Ok(());
            }
            let work = Work::ring(self.store.sets(operation, written, count, size)?, Some(count as u64));
            let title = format!("burst of {count} x {}, {verb}", show_size(size));
            self.take(&Pass { title, until_done: true, ..pass.clone() }, Job::Requests(&work))?;
        }
        Ok(())
    }

    /// Measures a pass once. Returns the number of answers a second.
    fn take(&mut self, pass: &Pass, job: Job<'_>) -> Result<f64> {
        let outcome = self.measure(pass, job)?;
        let round = self.round(pass, outcome);
        (self.observe)(Event::Done(&round));
        let rate = round.per_second();
        self.rounds.push(round);
        Ok(rate)
    }
}
