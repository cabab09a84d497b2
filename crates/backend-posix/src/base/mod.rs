//! Options, unique names, and rate limits for log lines: for all other modules.

pub(crate) mod options;
pub(crate) mod step;
pub(crate) mod unique;

pub(crate) use backend::seldom;
