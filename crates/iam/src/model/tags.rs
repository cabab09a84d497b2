use std::collections::BTreeMap;
use std::fmt;

use super::limits::{TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX};
use crate::text::as_text;

/// The error for a text that is not a tag's key or value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidTag;

impl fmt::Display for InvalidTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a tag has a key of 1 to {TAG_KEY_CHARS_MAX} and a value of at most {TAG_VALUE_CHARS_MAX} characters: \
             letters, numbers, spaces and _ . : / = + - @"
        )
    }
}

impl std::error::Error for InvalidTag {}

/// True for the characters that IAM allows (`[\p{L}\p{Z}\p{N}_.:/=+\-@]`). Combining marks, which
/// the letters of some alphabets need, are allowed besides.
fn is_allowed(c: char) -> bool {
    let is_separator = (c.is_whitespace() && !c.is_control()) || c == '\u{200b}';
    c.is_alphanumeric() || is_separator || "_.:/=+-@".contains(c)
}

/// The key of a tag. Two keys of a user or role must differ in more than case, those of other
/// things need not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TagKey(Box<str>);

impl TagKey {
    /// Checks characters and length. Keys that begin with `aws:` are reserved for AWS, and refused.
    pub fn new(text: &str) -> Result<Self, InvalidTag> {
        let is_short = (1..=TAG_KEY_CHARS_MAX).contains(&text.chars().count());
        let is_reserved = text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("aws:"));
        if is_short && !is_reserved && text.chars().all(is_allowed) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidTag)
        }
    }

    /// Returns the key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the form in which users and roles compare the key: with ASCII letters in lower case,
    /// as conditions find a tag. If other letters were changed, too, a key that no condition finds
    /// could replace one that conditions decide by (the Kelvin sign becomes a `k` in lower case).
    pub fn without_case(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl fmt::Display for TagKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The value of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagValue(Box<str>);

impl TagValue {
    /// Checks characters and length. It may be empty.
    pub fn new(text: &str) -> Result<Self, InvalidTag> {
        let is_short = text.chars().count() <= TAG_VALUE_CHARS_MAX;
        if is_short && text.chars().all(is_allowed) { Ok(Self(text.into())) } else { Err(InvalidTag) }
    }

    /// Returns the value.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TagValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

as_text!(TagKey, TagValue);

/// The tags of one thing, in the order in which IAM lists them.
pub type Tags = BTreeMap<TagKey, TagValue>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_letters_of_all_alphabets() {
        for good in ["a", "Kostenstelle für Ä", "部門", "a_.:/=+-@1"] {
            assert!(TagKey::new(good).is_ok(), "{good}");
        }
        for bad in ["", "a*", "a\n", "a\0", "aws:x", "AWS:x", "a,b", "\u{202e}"] {
            assert_eq!(TagKey::new(bad), Err(InvalidTag), "{bad:?}");
        }
        assert!(TagKey::new(&"ä".repeat(128)).is_ok() && TagKey::new(&"ä".repeat(129)).is_err());
        let (kelvin, kind) = (TagKey::new("\u{212a}ind").unwrap(), TagKey::new("KIND").unwrap());
        assert_ne!(kelvin.without_case(), kind.without_case());
        assert!(TagValue::new("").is_ok() && TagValue::new(&"a".repeat(257)).is_err());
    }
}
