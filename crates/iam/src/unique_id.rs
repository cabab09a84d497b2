use std::fmt;

use aws_lc_rs::rand;

use crate::credential::AccessKeyId;
use crate::text::as_text;

/// The alphabet of ids: 32 letters, so that each stands for 5 bits.
const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// The number of letters of a unique id after its prefix: 85 random bits.
const LETTERS_UNIQUE: usize = 17;
/// The number of letters of an access key id after its prefix. The whole id has 20 characters, as
/// AWS's.
const LETTERS_ACCESS_KEY: usize = 16;

/// The error when the system gives no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRandomNumbers;

impl fmt::Display for NoRandomNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the system gives no random numbers")
    }
}

impl std::error::Error for NoRandomNumbers {}

/// A source of random bytes.
pub type Fill<'f> = dyn Fn(&mut [u8]) -> Result<(), NoRandomNumbers> + Sync + 'f;

/// Fills `bytes` with random numbers of the system: the [`Fill`] that is used everywhere but in
/// tests.
pub fn system_random(bytes: &mut [u8]) -> Result<(), NoRandomNumbers> {
    rand::fill(bytes).map_err(|_| NoRandomNumbers)
}

/// The kind of a thing that has a unique id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdKind {
    /// A user.
    User,
    /// A group.
    Group,
    /// A role.
    Role,
    /// A managed policy.
    Policy,
    /// An OpenID provider (not in AWS).
    Provider,
}

impl IdKind {
    const ALL: [Self; 5] = [Self::User, Self::Group, Self::Role, Self::Policy, Self::Provider];

    /// Returns the letters with which ids of this kind begin. Those of providers are ours: AWS's
    /// have none.
    ///
    /// Source: "IAM identifiers" in the IAM User Guide.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::User => "AIDA",
            Self::Group => "AGPA",
            Self::Role => "AROA",
            Self::Policy => "ANPA",
            Self::Provider => "OIDC",
        }
    }
}

/// The error for a text that is not a unique id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidUniqueId;

impl fmt::Display for InvalidUniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a unique id is AIDA, AGPA, AROA, ANPA or OIDC, and {LETTERS_UNIQUE} of A-Z and 2-7")
    }
}

impl std::error::Error for InvalidUniqueId {}

/// The unique id of a user, group, role, managed policy or OpenID provider. It is never given a
/// second time: a name that is made again has another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UniqueId(Box<str>);

impl UniqueId {
    /// Checks prefix, length and letters.
    pub fn new(text: &str) -> Result<Self, InvalidUniqueId> {
        let letters = IdKind::ALL.iter().find_map(|kind| text.strip_prefix(kind.prefix()));
        match letters {
            Some(letters) if letters.len() == LETTERS_UNIQUE && letters.bytes().all(is_letter) => {
                Ok(Self(text.into()))
            }
            _ => Err(InvalidUniqueId),
        }
    }

    /// Makes an id of this kind with random letters.
    pub fn random(kind: IdKind, fill: &Fill<'_>) -> Result<Self, NoRandomNumbers> {
        Ok(Self(random_letters::<LETTERS_UNIQUE>(kind.prefix(), fill)?.into()))
    }

    /// Returns the kind of the thing that has the id.
    pub fn kind(&self) -> IdKind {
        // The prefix was checked, so that one is found.
        IdKind::ALL.into_iter().find(|kind| self.0.starts_with(kind.prefix())).unwrap_or(IdKind::User)
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

as_text!(UniqueId);

fn is_letter(byte: u8) -> bool {
    LETTERS.contains(&byte)
}

fn random_letters<const N: usize>(prefix: &str, fill: &Fill<'_>) -> Result<String, NoRandomNumbers> {
    let mut random = [0; N];
    fill(&mut random)?;
    let letters = random.iter().map(|byte| char::from(LETTERS[usize::from(byte & 31)]));
    Ok(prefix.chars().chain(letters).collect())
}

impl AccessKeyId {
    /// Makes the id of a lasting access key: `AKIA` and 16 random letters.
    pub fn random(fill: &Fill<'_>) -> Result<Self, NoRandomNumbers> {
        Self::of_letters("AKIA", fill)
    }

    /// Makes the id of a session's access key: `ASIA` and 16 random letters.
    pub fn random_of_session(fill: &Fill<'_>) -> Result<Self, NoRandomNumbers> {
        Self::of_letters("ASIA", fill)
    }

    fn of_letters(prefix: &str, fill: &Fill<'_>) -> Result<Self, NoRandomNumbers> {
        // Letters and digits, 20 of them: an access key id.
        let text = random_letters::<LETTERS_ACCESS_KEY>(prefix, fill)?;
        Self::new(&text).map_err(|_| NoRandomNumbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ids_are_ids_of_their_kind() {
        for kind in IdKind::ALL {
            let id = UniqueId::random(kind, &system_random).unwrap();
            assert_eq!(UniqueId::new(id.as_str()), Ok(id.clone()));
            assert_eq!(id.kind(), kind);
            assert_eq!(id.as_str().len(), 21);
            assert_ne!(UniqueId::random(kind, &system_random).unwrap(), id);
        }
        let key = AccessKeyId::random(&system_random).unwrap();
        assert!(key.as_str().starts_with("AKIA") && key.as_str().len() == 20, "{key}");
        let key = AccessKeyId::random_of_session(&system_random).unwrap();
        assert!(key.as_str().starts_with("ASIA") && key.as_str().len() == 20, "{key}");
    }

    #[test]
    fn other_texts_are_no_ids() {
        for bad in [
            "",
            "AIDA",
            "AIDAAAAAAAAAAAAAAAAA",
            "AIDAAAAAAAAAAAAAAAAAAA",
            "AKIAAAAAAAAAAAAAAAAAA",
            "AIDAAAAAAAAAAAAAAAAA1",
            "aidaAAAAAAAAAAAAAAAAA",
            "AIDAAAAAAAAAAAAAAAAAÄ",
        ] {
            assert_eq!(UniqueId::new(bad), Err(InvalidUniqueId), "{bad}");
        }
    }

    #[test]
    fn without_random_numbers_there_are_no_ids() {
        let none = |_: &mut [u8]| Err(NoRandomNumbers);
        assert_eq!(UniqueId::random(IdKind::User, &none), Err(NoRandomNumbers));
        assert_eq!(AccessKeyId::random(&none), Err(NoRandomNumbers));
    }
}
