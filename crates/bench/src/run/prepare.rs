//! Prepares the objects and requests that steps need.

use super::runner::{Event, Runner};
use crate::error::Result;
use crate::load::Moment;
use crate::load::churn::Churn;
use crate::load::multipart::Uploads;
use crate::load::streams::Streams;
use crate::load::work::{Mixed, Work};
use crate::plan::{Plan, STREAM_RANGE, Step, Test};
use crate::request::Operation;
use crate::store::Store;

/// The name of the group of keys that listings list.
const LISTED: &str = "list";

/// Returns the load of uploads for a step.
pub(super) fn uploads<'a>(plan: &'a Plan, store: &'a Store<'_>, step: &Step, key: &'a str) -> Uploads<'a> {
    Uploads {
        credentials: &plan.credentials,
        payload: plan.payload,
        block: &store.block,
        bucket: &store.bucket,
        key,
        size: step.size,
        part_size: step.part_size,
        most: step.most,
        duration: plan.duration,
    }
}

impl Runner<'_> {
    /// Prepares the objects and requests for a step, which writes to the group `written`. Returns
    /// the requests.
    pub(super) fn work(&mut self, step: &Step, written: &str) -> Result<Work> {
        let (count, size) = (step.objects(self.plan.objects), step.size);
        let ring = Work::ring;
        let store = self.store;
        let read = format!("data-{size}");
        Ok(match step.test {
            Test::Put | Test::Multipart | Test::Burst => {
                ring(store.sets(Operation::PutObject, written, count, size)?, step.most)
            }
            Test::Get => {
                self.fill(&read, count, size)?;
                let sets = match step.range {
                    Some(_) => store.range_sets(&read, count, size, &step.ranges(count))?,
                    None => store.sets(Operation::GetObject, &read, count, size)?,
                };
                ring(sets, step.most)
            }
            Test::Head => {
                self.fill(&read, count, size)?;
                ring(store.sets(Operation::HeadObject, &read, count, size)?, step.most)
            }
            Test::List => {
                self.fill(LISTED, count, 0)?;
                ring(store.page_sets(LISTED, count, 0, step.page)?, step.most)
            }
            Test::Delete => {
                self.fill(written, count, size)?;
                let most = step.most.map_or(count as u64, |most| most.min(count as u64));
                ring(store.sets(Operation::DeleteObject, written, count, size)?, Some(most))
            }
            Test::Churn => {
                self.fill(written, count, size)?;
                let keys = step.keys_of_churn(count);
                let sets = |operation| store.sets(operation, written, keys, size);
                let (put, get) = (sets(Operation::PutObject)?, sets(Operation::GetObject)?);
                let churn = Churn::new(put, get, sets(Operation::DeleteObject)?, step.concurrency, count);
                Work::churn(churn, step.most)
            }
            Test::Streams => {
                self.fill(&read, count, size)?;
                let objects = store.sets(Operation::GetObject, &read, count, size)?;
                Work::streams(Streams::new(objects, size, step.range.unwrap_or(STREAM_RANGE)), step.most)
            }
            Test::Mixed => {
                self.fill(&read, count, size)?;
                let keys = step.keys_of_mix(count);
                let mixed = Mixed {
                    mix: step.mix,
                    get: store.sets(Operation::GetObject, &read, count, size)?,
                    head: store.sets(Operation::HeadObject, &read, count, size)?,
                    list: store.page_sets(&read, count, size, step.page)?,
                    put: store.sets(Operation::PutObject, written, keys, size)?,
                    delete: store.sets(Operation::DeleteObject, written, keys, size)?,
                    lanes: step.concurrency,
                };
                Work::mixed(mixed, step.most)
            }
        })
    }

    /// Makes the objects of a group, unless they exist already.
    fn fill(&mut self, group: &str, count: usize, size: u64) -> Result<()> {
        if self.filled.get(group).is_some_and(|there| *there >= count) {
            return Ok(());
        }
        let show = |moment: &Moment| {
            (self.observe)(Event::Progress(format!("preparing: {} of {count} objects", moment.answers)));
        };
        self.store
            .fill(group, count, size, self.stop, show)
            .map_err(|e| format!("the objects of the step could not be created: {e}"))?;
        if self.stop.is_stopped() {
            return Err("interrupted while the objects of the step were created".to_owned());
        }
        self.filled.insert(group.to_owned(), count);
        Ok(())
    }
}
