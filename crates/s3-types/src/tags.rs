use std::fmt;

use crate::limits::{TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX};

/// A tag: its key and its value.
pub type Tag = (Box<str>, Box<str>);

/// The tags of an object or a bucket, in the order given. Keys are not empty, and none is there
/// twice; keys and values are not too long. Without tags it takes no memory.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tags(Box<[Tag]>);

/// The error for tags that S3 does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidTags {
    /// There are more tags than allowed.
    TooMany,
    /// The key is there twice.
    Duplicate {
        /// The key.
        key: Box<str>,
    },
    /// The key is empty, too long, or has other characters than S3 allows.
    Key {
        /// The key.
        key: Box<str>,
    },
    /// The value is too long, or has other characters than S3 allows.
    Value {
        /// The key of the tag.
        key: Box<str>,
        /// The value.
        value: Box<str>,
    },
    /// The key begins with `aws:`, which is reserved.
    Reserved {
        /// The key.
        key: Box<str>,
    },
}

impl Tags {
    /// Checks tags that a client sends: at most `max`, with the characters that S3 allows (letters,
    /// numbers, spaces and `+ - = . _ : / @`). The first tag that is wrong is reported.
    pub fn new(tags: Vec<Tag>, max: usize) -> Result<Self, InvalidTags> {
        for (n, (key, value)) in tags.iter().enumerate() {
            if !is_long_enough(key) || !key.chars().all(is_allowed) {
                return Err(InvalidTags::Key { key: key.clone() });
            }
            if !is_short(value, TAG_VALUE_CHARS_MAX) || !value.chars().all(is_allowed) {
                return Err(InvalidTags::Value { key: key.clone(), value: value.clone() });
            }
            if key.starts_with("aws:") {
                return Err(InvalidTags::Reserved { key: key.clone() });
            }
            if tags[..n].iter().any(|(other, _)| other == key) {
                return Err(InvalidTags::Duplicate { key: key.clone() });
            }
        }
        if tags.len() > max { Err(InvalidTags::TooMany) } else { Ok(Self(tags.into())) }
    }

    /// Makes tags of those that a storage has kept, whatever characters they have; `None` if there
    /// are more than `max`, or if they break the rules of the type.
    pub fn kept(tags: Vec<Tag>, max: usize) -> Option<Self> {
        let fits = |(n, (key, value)): (usize, &Tag)| {
            is_long_enough(key)
                && is_short(value, TAG_VALUE_CHARS_MAX)
                && !tags[..n].iter().any(|(other, _)| other == key)
        };
        (tags.len() <= max && tags.iter().enumerate().all(fits)).then(|| Self(tags.into()))
    }

    /// Returns the tags.
    pub fn as_slice(&self) -> &[Tag] {
        &self.0
    }

    /// Returns the value of the tag with this key.
    pub fn get(&self, key: &str) -> Option<&str> {
        value_of(&self.0, key)
    }

    /// True if there are no tags.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of tags.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Returns the value of the tag with this key.
pub fn value_of<'t>(tags: &'t [Tag], key: &str) -> Option<&'t str> {
    tags.iter().find(|(name, _)| **name == *key).map(|(_, value)| &**value)
}

/// True for the characters that S3 allows (`[\p{L}\p{Z}\p{N}_.:/=+\-@]`), and for combining marks,
/// which the letters of some alphabets need.
fn is_allowed(c: char) -> bool {
    let is_separator = (c.is_whitespace() && !c.is_control()) || c == '\u{200b}';
    c.is_alphanumeric() || is_separator || "_.:/=+-@".contains(c)
}

/// S3 counts characters in UTF-16.
fn is_short(text: &str, max: usize) -> bool {
    text.len() <= max || text.encode_utf16().take(max + 1).count() <= max
}

fn is_long_enough(key: &str) -> bool {
    !key.is_empty() && is_short(key, TAG_KEY_CHARS_MAX)
}

impl fmt::Debug for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(key, value)| (key, value))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::OBJECT_TAGS_MAX;

    fn new(tags: &[(&str, &str)]) -> Result<Tags, InvalidTags> {
        let owned = tags.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        Tags::new(owned, OBJECT_TAGS_MAX)
    }

    #[test]
    fn tags_are_what_s3_allows() {
        for good in ["a", "Kostenstelle für Ä", "部門", "a_.:/=+-@1", "AWS:x", &"ä".repeat(128)] {
            assert_eq!(new(&[(good, "")]).unwrap().get(good), Some(""), "{good}");
        }
        for bad in ["", "a*", "a\n", "a\0", "a,b", "\u{202e}", &"ä".repeat(129), &"\u{20000}".repeat(65)] {
            assert_eq!(new(&[(bad, "")]), Err(InvalidTags::Key { key: bad.into() }), "{bad:?}");
        }
        assert!(new(&[("a", &"\u{20000}".repeat(128))]).is_ok());
        let long = "\u{20000}".repeat(129);
        assert_eq!(new(&[("a", &long)]), Err(InvalidTags::Value { key: "a".into(), value: long.into() }));
        assert_eq!(new(&[("aws:a", "")]), Err(InvalidTags::Reserved { key: "aws:a".into() }));
        assert_eq!(new(&[("a", ""), ("a", "b")]), Err(InvalidTags::Duplicate { key: "a".into() }));
        assert_eq!(new(&[("a", ""), ("A", "b")]).unwrap().len(), 2);
    }

    #[test]
    fn there_are_at_most_so_many() {
        let many = |count: usize| (0..count).map(|n| (n.to_string().into(), "".into())).collect::<Vec<Tag>>();
        assert_eq!(Tags::new(many(10), 10).unwrap().len(), 10);
        assert_eq!(Tags::new(many(11), 10), Err(InvalidTags::TooMany));
        assert!(Tags::kept(many(10), 10).is_some() && Tags::kept(many(11), 10).is_none());
    }

    /// Keeps what is on disk, whichever characters a later version allows.
    #[test]
    fn kept_tags_may_have_any_characters() {
        let one = |key: &str, value: &str| Tags::kept(vec![(key.into(), value.into())], 10);
        assert!(one("a,b", "*").is_some() && one("aws:a", "\n").is_some());
        assert!(one("", "a").is_none() && one(&"a".repeat(129), "").is_none());
        assert!(one("a", &"a".repeat(257)).is_none());
        assert!(Tags::kept(vec![("a".into(), "".into()); 2], 10).is_none());
    }
}
