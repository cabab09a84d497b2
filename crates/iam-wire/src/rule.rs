//! The constraints of IAM's and STS's API models for members: minimum and maximum length, and a
//! pattern. Where the models have several shapes for the same kind of value, the name says which. A
//! test compares each use with botocore's models (`tests/test_iam_model.py`).

use std::fmt;

use crate::pattern::{self, Pattern};

/// The constraints of a text. Lengths are in characters.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The minimum length; `None` for no minimum.
    pub min: Option<usize>,
    /// The maximum length; `None` for no maximum.
    pub max: Option<usize>,
    /// The pattern.
    pub pattern: Option<Pattern>,
}

impl Rule {
    const fn new(min: usize, max: usize, pattern: Pattern) -> Self {
        Self { min: Some(min), max: Some(max), pattern: Some(pattern) }
    }

    const fn length(min: usize, max: usize) -> Self {
        Self { min: Some(min), max: Some(max), pattern: None }
    }

    /// Returns the constraints that a text breaks, each as the end of IAM's sentence.
    pub(crate) fn broken_by(&self, text: &str) -> Vec<String> {
        let length = text.chars().count();
        let checks = [
            self.max.is_some_and(|max| length > max),
            self.min.is_some_and(|min| length < min),
            self.pattern.is_some_and(|pattern| !pattern.fits(text)),
        ];
        let sentences = [self.max_sentence(), self.min_sentence(), self.pattern_sentence()];
        let broken = checks.into_iter().zip(sentences).filter(|(is_broken, _)| *is_broken);
        broken.filter_map(|(_, sentence)| sentence).collect()
    }

    /// Returns the sentences of all constraints, in the order in which IAM lists them for items of
    /// a list (recorded).
    pub(crate) fn sentences(&self) -> Vec<String> {
        [self.max_sentence(), self.min_sentence(), self.pattern_sentence()].into_iter().flatten().collect()
    }

    fn max_sentence(&self) -> Option<String> {
        self.max.map(|max| format!("Member must have length less than or equal to {max}"))
    }

    fn min_sentence(&self) -> Option<String> {
        self.min.map(|min| format!("Member must have length greater than or equal to {min}"))
    }

    fn pattern_sentence(&self) -> Option<String> {
        self.pattern
            .map(|pattern| format!("Member must satisfy regular expression pattern: {}", pattern.text))
    }
}

/// Writes such as `1..64 [\w]+`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |bound: Option<usize>| bound.map(|n| n.to_string()).unwrap_or_default();
        write!(f, "{}..{}", bound(self.min), bound(self.max))?;
        self.pattern.map_or(Ok(()), |pattern| write!(f, " {}", pattern.text))
    }
}

/// The constraints of a list of texts.
#[derive(Debug, Clone, Copy)]
pub struct ListRule {
    /// The rule of the list's items.
    pub items: Rule,
    /// The maximum number of items.
    pub max: Option<usize>,
    /// True if IAM's sentence says that items must not be null (recorded).
    pub items_not_null: bool,
}

/// The rule for a list of policies that a simulation uses.
pub const POLICIES: ListRule = ListRule { items: DOCUMENT, max: None, items_not_null: false };
/// The rule for a list of names of actions.
pub const ACTION_NAMES: ListRule = ListRule { items: Rule::length(3, 128), max: None, items_not_null: false };
/// The rule for a list of ARNs of resources.
pub const RESOURCES: ListRule = ListRule { items: RESOURCE, max: None, items_not_null: false };
/// The rule for a list of keys of tags that are to be removed.
pub const TAG_KEYS: ListRule = ListRule { items: TAG_KEY, max: Some(TAGS_MAX), items_not_null: true };
/// The rule for a list of ids of a provider's clients.
pub const CLIENT_IDS: ListRule = ListRule { items: CLIENT_ID, max: None, items_not_null: false };
/// The rule for a list of thumbprints of a provider's certificates.
pub const THUMBPRINTS: ListRule = ListRule { items: THUMBPRINT, max: None, items_not_null: false };

/// The name of a user that is made, and for some actions of one that exists.
pub const USER_NAME: Rule = Rule::new(1, 64, pattern::NAME);
/// The name of a user that exists.
pub const EXISTING_USER_NAME: Rule = Rule::new(1, 128, pattern::NAME);
/// The name of a group.
pub const GROUP_NAME: Rule = Rule::new(1, 128, pattern::NAME);
/// The name of a role.
pub const ROLE_NAME: Rule = Rule::new(1, 64, pattern::NAME);
/// The name of a policy.
pub const POLICY_NAME: Rule = Rule::new(1, 128, pattern::NAME);
/// The path of a user, group or role.
pub const PATH: Rule = Rule::new(1, 512, pattern::PATH);
/// A prefix of a path.
pub const PATH_PREFIX: Rule = Rule::new(1, 512, pattern::PATH_PREFIX);
/// The path of a policy, or a prefix of one.
pub const POLICY_PATH: Rule = Rule::new(1, 512, pattern::POLICY_PATH);
/// An ARN in IAM.
pub const ARN: Rule = Rule::length(20, 2048);
/// An ARN in STS.
pub const STS_ARN: Rule = Rule::new(20, 2048, pattern::ARN);
/// The ARN of a resource, of its owner, or of a caller.
pub const RESOURCE: Rule = Rule::length(1, 2048);
/// The name of a condition key.
pub const CONTEXT_KEY: Rule = Rule::length(5, 256);
/// The id of an access key, in IAM and STS. The models have 16 characters at least, and letters,
/// digits and `_`: keys that were imported from other servers have fewer and others, and must be
/// disabled and deleted like all. So it is any id that can be kept (`iam::AccessKeyId`).
pub const ACCESS_KEY_ID: Rule = Rule::new(3, 128, pattern::KEY_ID);
/// A policy document.
pub const DOCUMENT: Rule = Rule::new(1, 131_072, pattern::DOCUMENT);
/// A session policy.
pub const SESSION_DOCUMENT: Rule = Rule::new(1, 2048, pattern::DOCUMENT);
/// The session policy of AssumeRole, for which the model has no maximum length.
pub const ROLE_SESSION_DOCUMENT: Rule = Rule { min: Some(1), max: None, pattern: Some(pattern::DOCUMENT) };
/// The description of a policy.
pub const POLICY_DESCRIPTION: Rule = Rule { min: None, max: Some(1000), pattern: None };
/// The description of a role.
pub const ROLE_DESCRIPTION: Rule = Rule { min: None, max: Some(1000), pattern: Some(pattern::DESCRIPTION) };
/// A version of a policy.
pub const VERSION_ID: Rule = Rule { min: None, max: None, pattern: Some(pattern::VERSION) };
/// The key of a tag.
pub const TAG_KEY: Rule = Rule::new(1, 128, pattern::TAG_KEY);
/// The value of a tag.
pub const TAG_VALUE: Rule = Rule::new(0, 256, pattern::TAG_VALUE);
/// The alias of an account.
pub const ALIAS: Rule = Rule::new(3, 63, pattern::ALIAS);
/// The id of an account (not in AWS).
pub const ACCOUNT_ID: Rule = Rule::new(12, 12, pattern::ACCOUNT_ID);
/// The name of a bucket (not in AWS).
pub const BUCKET_NAME: Rule = Rule::length(1, 255);
/// The name that an administrator gives an account (not in AWS).
pub const ACCOUNT_NAME: Rule = Rule::length(1, 512);
/// The POSIX identity of a user or role: `UID:GID`, `UID:GID:GROUP,...` or a name.
pub const POSIX_IDENTITY: Rule = Rule::length(1, 65_536);
/// A time, such as 2027-01-31T12:00:00Z (not in AWS).
pub const TIME: Rule = Rule::length(1, 64);
/// A marker. Ours may be longer than the 320 characters of the model: they contain the last key of
/// a page, and keys of tags have up to 512 bytes.
pub const MARKER: Rule = Rule::new(1, 1024, pattern::MARKER);
/// The URL of an OpenID provider.
pub const PROVIDER_URL: Rule = Rule::length(1, 255);
/// The id of a client of an OpenID provider.
pub const CLIENT_ID: Rule = Rule::length(1, 255);
/// The name of a claim (not in AWS).
pub const CLAIM: Rule = Rule::length(1, 512);
/// The thumbprint of a certificate.
pub const THUMBPRINT: Rule = Rule::length(40, 40);
/// A text without constraints, such as the name of another service.
pub const FREE: Rule = Rule { min: None, max: None, pattern: None };
/// The name of a session.
pub const SESSION_NAME: Rule = Rule::new(2, 64, pattern::NAME_OR_EMPTY);
/// The name of a federated user.
pub const FEDERATED_NAME: Rule = Rule::new(2, 32, pattern::NAME_OR_EMPTY);
/// An external id.
pub const EXTERNAL_ID: Rule = Rule::new(2, 1224, pattern::EXTERNAL_ID);
/// A source identity.
pub const SOURCE_IDENTITY: Rule = Rule::new(2, 256, pattern::NAME_OR_EMPTY);
/// A web identity token.
pub const WEB_IDENTITY_TOKEN: Rule = Rule::length(4, 20_000);
/// The name of a person in the directory (not in AWS).
pub const LDAP_USER_NAME: Rule = Rule::length(1, 2048);
/// A password of the directory (not in AWS).
pub const LDAP_PASSWORD: Rule = Rule::length(1, 2048);
/// The DN of a group of the directory (not in AWS).
pub const DIRECTORY_GROUP: Rule = Rule::length(1, 512);

/// The maximum number of tags, and of keys of tags, in one request.
pub const TAGS_MAX: usize = 50;
/// The minimum and the maximum duration of a session of a role, in seconds.
pub const ROLE_SECONDS: (u32, u32) = (900, 43_200);
/// The minimum and the maximum of the longest session duration that a role can have, in seconds.
pub const MAX_SESSION_SECONDS: (u32, u32) = (3_600, 43_200);
/// The minimum and the maximum duration of a session of a user, in seconds.
pub const USER_SECONDS: (u32, u32) = (900, 129_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_broken_constraint_is_named() {
        assert!(USER_NAME.broken_by("alice").is_empty());
        let broken = USER_NAME.broken_by("");
        let min = "Member must have length greater than or equal to 1";
        assert_eq!(broken, [min, r"Member must satisfy regular expression pattern: [\w+=,.@-]+"]);
        assert_eq!(
            USER_NAME.broken_by(&"a".repeat(65)),
            ["Member must have length less than or equal to 64"]
        );
        assert_eq!(TAG_VALUE.broken_by(&"é".repeat(256)), Vec::<String>::new());
        assert_eq!(USER_NAME.to_string(), r"1..64 [\w+=,.@-]+");
        assert_eq!(VERSION_ID.to_string(), r".. v[1-9][0-9]*(\.[A-Za-z0-9-]*)?");
    }
}
