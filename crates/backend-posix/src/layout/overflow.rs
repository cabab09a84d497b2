//! Names of companions, which hold the rest of long records.

/// The directory of companions, in `.slipway`.
pub(crate) const OVERFLOW: &str = "overflow";

/// The id of a companion.
pub(crate) type OverflowId = u128;

/// Returns the path of a companion, relative to its bucket.
pub(crate) fn companion_path(id: OverflowId) -> String {
    format!(".slipway/{OVERFLOW}/{}", companion_name(id))
}

/// Returns the name of a companion's file.
pub(crate) fn companion_name(id: OverflowId) -> String {
    format!("{id:032x}")
}

/// Returns the id of the companion that has this file name.
pub(crate) fn companion_id(name: &str) -> Option<OverflowId> {
    let id = OverflowId::from_str_radix(name, 16).ok()?;
    (name == companion_name(id)).then_some(id)
}
