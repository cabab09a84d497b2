//! Names of directories that replace files ([`exchange`](crate::write::exchange)).

use super::scattered::scattered_name;
use crate::base::unique;

pub(crate) const IN_STAGING: &str = "x";

pub(crate) const BESIDE_FILE: &str = ".slipway,x";

pub(crate) const NOTE: &str = "n";

/// Returns a name for a directory that is prepared in staging.
pub(crate) fn name_in_staging() -> String {
    format!("{IN_STAGING}{}", unique::name())
}

/// Returns a name for a directory that is prepared in the directory of the file.
pub(crate) fn name_beside_file() -> String {
    format!("{BESIDE_FILE}{}", unique::name())
}

/// Returns a name for a directory that has no mark yet; once it has, it gets the name `prepared`.
/// The sweep removes directories with such names.
pub(crate) fn name_of_unmarked(prepared: &str) -> String {
    if prepared.starts_with(BESIDE_FILE) { scattered_name() } else { unique::name() }
}

/// True for the names in staging that belong to exchanges: of a prepared directory, or of a note.
pub(crate) fn is_own_name(name: &str) -> bool {
    [IN_STAGING, NOTE].iter().any(|prefix| name.strip_prefix(prefix).is_some_and(unique::is_name))
}

/// True for a [`name_in_staging`].
pub(crate) fn is_in_staging(name: &str) -> bool {
    name.strip_prefix(IN_STAGING).is_some_and(unique::is_name)
}

/// Returns the id that all names of one exchange share: of the prepared directory, of the file that
/// it replaced, and of the note. `None` for other names.
pub(crate) fn id_of(name: &str) -> Option<&str> {
    let id = [BESIDE_FILE, IN_STAGING, NOTE].into_iter().find_map(|prefix| name.strip_prefix(prefix));
    id.filter(|id| unique::is_name(id))
}
