//! Options, quotas of the process, unique names and rate limits for log lines, which all other
//! modules use.

pub(crate) mod lines;
pub(crate) mod options;
pub(crate) mod quotas;
pub(crate) mod step;
pub(crate) mod turns;
pub(crate) mod unique;

pub(crate) use backend::seldom;
