use std::borrow::Cow;

use crate::catalogue::Key;

/// The values that a request has for a condition key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// No value.
    Absent,
    /// A value that depends on the object, which was not looked at yet.
    Unknown,
    /// One value.
    One(Cow<'a, str>),
    /// Several values, or none of a key that may have several.
    Many(Vec<Cow<'a, str>>),
}

impl<'a> Value<'a> {
    /// Returns one value that is borrowed.
    pub const fn text(text: &'a str) -> Self {
        Self::One(Cow::Borrowed(text))
    }
}

impl<'a> From<Option<Cow<'a, str>>> for Value<'a> {
    fn from(value: Option<Cow<'a, str>>) -> Self {
        value.map_or(Self::Absent, Self::One)
    }
}

/// The values of condition keys that a request has.
pub trait Facts {
    /// Returns the value of a key.
    fn value(&self, key: &Key) -> Value<'_>;
}

/// Whether something is so, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// It is not so.
    No,
    /// It depends on the object.
    Perhaps,
    /// It is so.
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

    /// Returns whether both are so.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.min(other)
    }

    /// Returns whether one of all is so; does not ask on after the first that is.
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

    /// Returns whether all are so; does not ask on after the first that is not.
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
