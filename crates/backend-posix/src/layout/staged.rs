//! Names of what is on its way to another one.

use super::keymap::RESERVED;
use super::scattered::id_of_scattered;
use super::{exchanged, given};
use crate::base::unique;

pub(crate) const STAGING: &str = "staging";

/// True for the name of something staged in a directory of keys, but not for one that a person
/// might think of.
pub(crate) fn is_scattered(name: &str) -> bool {
    id_of_scattered(name).is_some() || (exchanged::id_of(name).is_some() && name.starts_with(RESERVED))
}

/// True for a name that we give in `.slipway/staging`.
pub(crate) fn is_staged_name(name: &str) -> bool {
    unique::is_name(name) || exchanged::is_own_name(name) || given::is_name_of_given(name)
}
