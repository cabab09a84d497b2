use std::collections::BTreeMap;

use crate::load::Stop;
use crate::plan::{Plan, Step};
use crate::report::Round;
use crate::store::Store;

/// What happens while a plan is run.
#[derive(Debug)]
pub enum Event<'a> {
    /// For a line on the terminal.
    Progress(String),
    /// A step is done.
    Done(&'a Round),
    /// The bucket, or the prefix in one, that is worked in; removed in the end, unless it is to
    /// stay.
    Made(String),
    /// What was made stays there, as was asked for.
    Left(String),
}

/// A run in progress.
pub(super) struct Runner<'a> {
    pub plan: &'a Plan,
    pub store: &'a Store<'a>,
    pub stop: &'a Stop,
    pub observe: &'a dyn Fn(Event<'_>),
    /// Objects that are there to be read, by group.
    pub filled: BTreeMap<String, usize>,
    /// Numbers the groups that steps write to.
    pub serial: u32,
    /// What is done.
    pub rounds: Vec<Round>,
}

/// One measurement of a step.
#[derive(Clone)]
pub(super) struct Pass {
    pub step: Step,
    pub round: u32,
    /// Where the run stands, for the terminal.
    pub place: String,
    pub title: String,
    /// Requests a second, in an open loop.
    pub rate: Option<f64>,
    /// It ends when its work is done, whenever that is.
    pub until_done: bool,
    /// How many at once were tried before, and the answers a second.
    pub trials: Vec<(usize, f64)>,
}
