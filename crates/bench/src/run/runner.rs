use std::collections::BTreeMap;

use crate::load::Stop;
use crate::plan::{Plan, Step};
use crate::report::Round;
use crate::store::Store;

/// An event of a run, which the observer of the run gets.
#[derive(Debug)]
pub enum Event<'a> {
    /// The progress has changed: a text for a line on the terminal.
    Progress(String),
    /// A step is done.
    Done(&'a Round),
    /// The run has made its bucket, or uses a prefix in an existing one; the text is its name. It
    /// is removed at the end, unless it is to be kept.
    Made(String),
    /// The bucket or prefix was not removed, as the plan asked.
    Left(String),
}

/// A run in progress.
pub(super) struct Runner<'a> {
    pub plan: &'a Plan,
    pub store: &'a Store<'a>,
    pub stop: &'a Stop,
    pub observe: &'a dyn Fn(Event<'_>),
    /// The number of objects that exist for reading, by group.
    pub filled: BTreeMap<String, usize>,
    /// The number of the current step, which is part of the name of the group that it writes to.
    pub serial: u32,
    /// The results so far.
    pub rounds: Vec<Round>,
}

/// One measurement of a step.
#[derive(Clone)]
pub(super) struct Pass {
    pub step: Step,
    pub round: u32,
    /// The position of this pass in the run, as text for the terminal.
    pub place: String,
    pub title: String,
    /// The rate of an open loop, in requests a second; `None` in a closed loop.
    pub rate: Option<f64>,
    /// True if the pass ends only when its work is done, however long that takes.
    pub until_done: bool,
    /// The numbers of requests at once that were tried before, each with its answers a second.
    pub trials: Vec<(usize, f64)>,
}
