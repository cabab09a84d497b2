//! What all else may use: options, unique names, and things that are said seldom.

pub(crate) mod options;
pub(crate) mod seldom;
pub(crate) mod unique;
