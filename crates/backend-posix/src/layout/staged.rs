//! Names of files that are staged.

use super::keymap::RESERVED;
use super::scattered::id_of_scattered;
use super::{exchanged, given};
use crate::base::unique;

pub(crate) const STAGING: &str = "staging";

/// True for the names of things that are staged in a directory in a bucket; a person is unlikely to
/// choose such a name.
pub(crate) fn is_scattered(name: &str) -> bool {
    id_of_scattered(name).is_some() || (exchanged::id_of(name).is_some() && name.starts_with(RESERVED))
}

/// True for the names that the backend gives in `.slipway/staging`.
pub(crate) fn is_staged_name(name: &str) -> bool {
    unique::is_name(name) || exchanged::is_own_name(name) || given::is_name_of_given(name)
}
