//! Options, quotas of the process, unique names, rate limits for log lines, and whom file calls are
//! made as, which all other modules use.

pub(crate) mod lines;
pub(crate) mod options;
pub(crate) mod quotas;
pub(crate) mod step;
pub(crate) mod turns;
pub(crate) mod unique;
pub(crate) mod who;

pub(crate) use backend::seldom;
