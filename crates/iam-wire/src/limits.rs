//! Limits on what the Query API accepts, each with the error it gives. The limits of members are
//! those of IAM's API model, in `rule.rs`.

/// The largest form, query and body together (`ValidationError`): a policy of 6,144 characters,
/// pretty-printed and percent-encoded, has some 30 KiB.
pub const FORM_BYTES_MAX: usize = 64 << 10;
/// The most parameters of a form (`ValidationError`).
pub const PARAMETERS_MAX: usize = 1_000;
/// The most items of a page, which is also the most that may be asked for (`ValidationError`).
pub const PAGE_ITEMS_MAX: u32 = 1_000;
/// The items of a page if no number is asked for.
pub const PAGE_ITEMS_DEFAULT: u32 = 100;
/// The longest value that an error shows, in characters; the rest is left out.
pub const SHOWN_CHARS_MAX: usize = 1_024;

const _: () = assert!(PAGE_ITEMS_DEFAULT <= PAGE_ITEMS_MAX);
// Names are shorter than 64 bytes and most values are short: a form of that many has room.
const _: () = assert!(PARAMETERS_MAX * 64 <= FORM_BYTES_MAX);
