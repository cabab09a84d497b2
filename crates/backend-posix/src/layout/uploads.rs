//! Names of uploads, and of what is left of them.

/// Where uploads are, in `.slipway`.
pub(crate) const UPLOADS: &str = "uploads";

/// Where receipts are, in `.slipway`.
pub(crate) const COMPLETED: &str = "completed";

/// How long an id is.
pub(crate) const ID_LENGTH: usize = 48;

/// True for what could be the id of an upload.
pub(crate) fn is_id(id: &str) -> bool {
    id.len() == ID_LENGTH && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
