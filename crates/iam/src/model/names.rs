use std::cmp::Ordering;
use std::fmt;

use super::limits::{DESCRIPTION_CHARS_MAX, DOCUMENT_CHARS_MAX, NAME_CHARS_MAX, PATH_CHARS_MAX};
use crate::text::as_text;

/// The error for a text that has other characters, or another length, than IAM allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidText {
    /// The text is not a name.
    Name,
    /// The text is not a path.
    Path,
    /// The text is not a policy document.
    Document,
    /// The text is not a description.
    Description,
    /// The text is not an account's alias.
    Alias,
}

impl fmt::Display for InvalidText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => {
                write!(f, "a name has 1 to {NAME_CHARS_MAX} characters from A-Z a-z 0-9 _ + = , . @ -")
            }
            Self::Path => write!(
                f,
                "a path is a slash, or begins and ends with one, and has at most {PATH_CHARS_MAX} printable ASCII \
                 characters"
            ),
            Self::Document => {
                write!(f, "a policy document has 1 to {DOCUMENT_CHARS_MAX} characters of Latin-1")
            }
            Self::Description => {
                write!(f, "a description has at most {DESCRIPTION_CHARS_MAX} characters of Latin-1")
            }
            Self::Alias => {
                f.write_str("an alias has 3 to 63 small letters, digits and single hyphens between them")
            }
        }
    }
}

impl std::error::Error for InvalidText {}

/// The name of a user, group, role or policy. Names that differ only in case are equal, but a name
/// is shown as it was given. Names sort in the order of IAM's lists.
#[derive(Debug, Clone)]
pub struct Name(Box<str>);

/// True for a character that names of users, sessions and the like may have.
pub fn is_of_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || "_+=,.@-".contains(char)
}

impl Name {
    /// Checks characters and length.
    pub fn new(text: &str) -> Result<Self, InvalidText> {
        if (1..=NAME_CHARS_MAX).contains(&text.len()) && text.chars().all(is_of_name) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidText::Name)
        }
    }

    /// Returns the name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for Name {}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        let (left, right) = (self.0.bytes(), other.0.bytes());
        left.map(|b| b.to_ascii_lowercase()).cmp(right.map(|b| b.to_ascii_lowercase()))
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident, $error:ident, $is_valid:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(Box<str>);

        impl $name {
            /// Checks characters and length.
            pub fn new(text: &str) -> Result<Self, InvalidText> {
                let is_valid: fn(&str) -> bool = $is_valid;
                if is_valid(text) { Ok(Self(text.into())) } else { Err(InvalidText::$error) }
            }

            /// Returns the text exactly as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        as_text!($name);
    )*};
}

texts! {
    /// The path of a user, group, role or policy: `/`, or `/a/b/`.
    Path, Path, |text| {
        let is_framed = text == "/" || (text.len() >= 3 && text.starts_with('/') && text.ends_with('/'));
        is_framed && text.len() <= PATH_CHARS_MAX && text.bytes().all(|b| (0x21..0x7f).contains(&b))
    };
    /// The text of a policy document, exactly as it was given.
    Document, Document, |text| {
        let allowed = |c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{ff}');
        // Two bytes a character at most.
        !text.is_empty() && text.len() <= 2 * DOCUMENT_CHARS_MAX
            && text.chars().count() <= DOCUMENT_CHARS_MAX && text.chars().all(allowed)
    };
    /// The description of a policy or role.
    Description, Description, |text| {
        let allowed = |c| matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{a1}'..='\u{ff}');
        text.chars().count() <= DESCRIPTION_CHARS_MAX && text.chars().all(allowed)
    };
    /// The alias of an account.
    Alias, Alias, |text| {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        (3..=63).contains(&text.len()) && text.bytes().all(allowed)
            && !text.starts_with('-') && !text.ends_with('-') && !text.contains("--")
    };
}

impl Path {
    /// Returns `/`, the path of things that were given none.
    pub fn root() -> Self {
        Self("/".into())
    }
}

as_text!(Name);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_in_more_than_case() {
        let name = |text| Name::new(text).unwrap();
        assert_eq!(name("Alice"), name("aLICE"));
        assert_eq!(name("Alice").as_str(), "Alice");
        assert!(name("a") < name("B") && name("B") < name("c") && name("_") < name("a"));
        for bad in ["", "a b", "a/b", "a:b", "a*", "ä", "ａ", "a\0", "a\n"] {
            assert_eq!(Name::new(bad), Err(InvalidText::Name), "{bad}");
        }
        assert!(Name::new(&"a".repeat(128)).is_ok() && Name::new(&"a".repeat(129)).is_err());
    }

    #[test]
    fn a_path_begins_and_ends_with_a_slash() {
        for good in ["/", "/a/", "/a/b/", "/a*:?/"] {
            assert!(Path::new(good).is_ok(), "{good}");
        }
        for bad in ["", "//", "a/", "/a", "/a b/", "/ä/", "/\u{7f}/"] {
            assert_eq!(Path::new(bad), Err(InvalidText::Path), "{bad}");
        }
        let long = |length: usize| format!("/{}/", "a".repeat(length - 2));
        assert!(Path::new(&long(512)).is_ok() && Path::new(&long(513)).is_err());
    }

    #[test]
    fn documents_are_latin_1() {
        assert!(Document::new("{\"Sid\": \"ü\"}\r\n\t").is_ok());
        for bad in ["", "\0", "\u{100}", "\u{b}"] {
            assert_eq!(Document::new(bad), Err(InvalidText::Document), "{bad:?}");
        }
        assert!(Document::new(&"ü".repeat(DOCUMENT_CHARS_MAX)).is_ok());
        assert!(Document::new(&"a".repeat(DOCUMENT_CHARS_MAX + 1)).is_err());
        assert!(Description::new("").is_ok() && Description::new("\u{7f}").is_err());
    }

    #[test]
    fn aliases_are_labels() {
        assert!(Alias::new("my-lab-1").is_ok());
        for bad in ["", "ab", "Lab", "-lab", "lab-", "my--lab", "my_lab", &"a".repeat(64)] {
            assert_eq!(Alias::new(bad), Err(InvalidText::Alias), "{bad}");
        }
    }
}
