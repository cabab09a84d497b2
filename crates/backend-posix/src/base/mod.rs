//! The modules that all others use: options, quotas of the process, unique names, rate limits for
//! log lines, and the identity that file calls are made with.

pub(crate) mod lines;
pub(crate) mod options;
pub(crate) mod quotas;
pub(crate) mod step;
pub(crate) mod turns;
pub(crate) mod unique;
pub(crate) mod who;

pub(crate) use backend::seldom;
