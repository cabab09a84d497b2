//! Options, unique names, and log lines that are limited in rate: for all other modules.

pub(crate) mod options;
pub(crate) mod unique;

pub(crate) use backend::seldom;
