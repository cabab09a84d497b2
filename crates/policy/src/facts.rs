use std::borrow::Cow;

use crate::catalogue::Key;

/// The values that a request has for a condition key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// No value.
    Absent,
    /// A value that depends on the object, which was not read yet.
    Unknown,
    /// One value.
    One(Cow<'a, str>),
    /// The values of a key that may have several, or none.
    Many(Vec<Cow<'a, str>>),
}

impl<'a> Value<'a> {
    /// Makes one borrowed value.
    pub const fn text(text: &'a str) -> Self {
        Self::One(Cow::Borrowed(text))
    }

    /// Returns this value, or that of another source if there is none.
    #[must_use]
    pub fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        if self == Self::Absent { other() } else { self }
    }

    /// Returns the same value with texts of its own.
    pub fn into_owned(self) -> Value<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Absent => Value::Absent,
            Self::Unknown => Value::Unknown,
            Self::One(text) => Value::One(owned(text)),
            Self::Many(texts) => Value::Many(texts.into_iter().map(owned).collect()),
        }
    }

    /// Returns the same value, borrowed.
    pub fn as_borrowed(&self) -> Value<'_> {
        match self {
            Self::Absent => Value::Absent,
            Self::Unknown => Value::Unknown,
            Self::One(text) => Value::text(text),
            Self::Many(texts) => Value::Many(texts.iter().map(|text| Cow::Borrowed(&**text)).collect()),
        }
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(value: Option<&'a str>) -> Self {
        value.map_or(Self::Absent, Self::text)
    }
}

impl<'a> From<Option<Cow<'a, str>>> for Value<'a> {
    fn from(value: Option<Cow<'a, str>>) -> Self {
        value.map_or(Self::Absent, Self::One)
    }
}

/// The values that a request has for condition keys.
pub trait Facts {
    /// Returns the value of a condition key.
    fn value(&self, key: &Key) -> Value<'_>;
}

/// The answer to a yes-or-no question, which may depend on the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// The answer is no.
    No,
    /// The answer depends on the object, which was not read yet.
    Perhaps,
    /// The answer is yes.
    Yes,
}

impl Certainty {
    /// Returns the opposite.
    #[must_use]
    pub const fn inverted(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Perhaps => Self::Perhaps,
            Self::Yes => Self::No,
        }
    }

    /// Returns the answer to whether both are true.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.min(other)
    }

    /// Returns the answer to whether at least one is true; stops at the first `Yes`.
    pub fn any(all: impl IntoIterator<Item = Self>) -> Self {
        let mut most = Self::No;
        for one in all {
            most = most.max(one);
            if most == Self::Yes {
                break;
            }
        }
        most
    }

    /// Returns the answer to whether all are true; stops at the first `No`.
    pub fn all(all: impl IntoIterator<Item = Self>) -> Self {
        let mut least = Self::Yes;
        for one in all {
            least = least.min(one);
            if least == Self::No {
                break;
            }
        }
        least
    }
}

impl From<bool> for Certainty {
    fn from(is_so: bool) -> Self {
        if is_so { Self::Yes } else { Self::No }
    }
}
