//! Names of notes about files that may be given to other users.

use super::scattered::id_of_scattered;
use crate::base::unique;

/// The prefix of the name of a note about a file that may be given away. The unique part of the
/// file's name follows.
pub(crate) const GIVEN: &str = "g";

/// True for the name of a note about a file that may be given away.
pub(crate) fn is_name_of_given(name: &str) -> bool {
    name.strip_prefix(GIVEN).is_some_and(unique::is_name)
}

pub(crate) fn given_name(scattered: &str) -> Option<String> {
    Some(format!("{GIVEN}{}", id_of_scattered(scattered)?))
}
