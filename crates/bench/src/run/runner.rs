use std::collections::BTreeMap;

use crate::load::Stop;
use crate::plan::{Plan, Step};
use crate::report::Round;
use crate::store::Store;

/// An event of a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// The progress, for a line on the terminal.
    Progress(String),
    /// A step is done.
    Done(&'a Round),
    /// The bucket, or the prefix in one, that the run works in. It is removed at the end, unless it
    /// is to be kept.
    Made(String),
    /// The bucket or prefix is kept, as was asked for.
    Left(String),
}

/// A run in progress.
pub(super) struct Runner<'a> {
    pub plan: &'a Plan,
    pub store: &'a Store<'a>,
    pub stop: &'a Stop,
    pub observe: &'a dyn Fn(Event<'_>),
    /// The number of objects that exist to be read, by group.
    pub filled: BTreeMap<String, usize>,
    /// Numbers the groups that steps write to.
    pub serial: u32,
    /// The results so far.
    pub rounds: Vec<Round>,
}

/// One measurement of a step.
#[derive(Clone)]
pub(super) struct Pass {
    pub step: Step,
    pub round: u32,
    /// The place of this pass in the run, for the terminal.
    pub place: String,
    pub title: String,
    /// Requests a second, in an open loop.
    pub rate: Option<f64>,
    /// True if it ends when its work is done, however long that takes.
    pub until_done: bool,
    /// The numbers of requests at once that were tried before, and the answers a second of each.
    pub trials: Vec<(usize, f64)>,
}
