//! Limits on what the Query API accepts, each with the error that it causes. The limits of members
//! are those of IAM's API model, in `rule.rs`.

/// The largest form in bytes, query and body together (`ValidationError`). A policy of 6,144
/// characters, pretty-printed and percent-encoded, has about 30 KiB.
pub const FORM_BYTES_MAX: usize = 64 << 10;
/// The largest number of parameters of a form (`ValidationError`).
pub const PARAMETERS_MAX: usize = 1_000;
/// The largest number of items on a page; a request for more is an error (`ValidationError`).
pub const PAGE_ITEMS_MAX: u32 = 1_000;
/// The number of items on a page if the request does not say one.
pub const PAGE_ITEMS_DEFAULT: u32 = 100;
/// The longest value that an error message shows, in characters; the rest is cut off.
pub const SHOWN_CHARS_MAX: usize = 1_024;

const _: () = assert!(PAGE_ITEMS_DEFAULT <= PAGE_ITEMS_MAX);
// Names are shorter than 64 bytes and most values are short: a form of that many has room.
const _: () = assert!(PARAMETERS_MAX * 64 <= FORM_BYTES_MAX);
