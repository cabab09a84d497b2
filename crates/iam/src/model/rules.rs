//! The rules that an account's document has to fulfil beyond the form of each value.

use std::collections::HashSet;
use std::fmt::Display;

use super::arn::PolicyArn;
use super::document::{AccountDocument, DocumentError};
use super::limits::{
    ACCESS_KEYS_MAX, ATTACHED_MAX, CLIENT_IDS_MAX, GROUPS_MAX, GROUPS_PER_USER_MAX, POLICIES_MAX,
    PROVIDERS_MAX, ROLES_MAX, SERVICE_KEYS_MAX, TAGS_MAX, THUMBPRINTS_MAX, USER_NAME_CHARS_MAX, USERS_MAX,
    VERSIONS_MAX,
};
use super::names::Name;
use super::parts::{Group, Key, ManagedPolicy, Provider, Role, User};
use super::provider_url::ProviderUrl;
use super::tags::Tags;
use crate::unique_id::{IdKind, UniqueId};

/// The range in which the longest time of a role's sessions may be set, in seconds. Source:
/// `MaxSessionDuration` of CreateRole.
pub const MAX_SESSION_SECONDS: std::ops::RangeInclusive<u32> = 3_600..=43_200;
/// The length limit of texts that people and providers choose freely, in characters: names of
/// accounts, DNs, URLs, audiences.
const FREE_CHARS_MAX: usize = 512;

type Checked = Result<(), DocumentError>;

fn rule(holds: bool, place: impl Display, rule: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(DocumentError::Rule { place: place.to_string(), rule }) }
}

/// True if no two of the values are equal.
fn differ<T: std::hash::Hash + Eq>(all: impl IntoIterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    all.into_iter().all(|one| seen.insert(one))
}

/// True for a text that has no control characters, and is no longer than [`FREE_CHARS_MAX`].
pub(super) fn is_free(text: &str) -> bool {
    text.chars().count() <= FREE_CHARS_MAX && !text.chars().any(char::is_control)
}

/// True if no two keys of the tags differ only in case, as users and roles require.
pub(super) fn differ_without_case(tags: &Tags) -> bool {
    differ(tags.keys().map(super::tags::TagKey::without_case))
}

impl AccountDocument {
    /// Reads a document, and checks all its rules.
    pub fn read(json: &[u8]) -> Result<Self, DocumentError> {
        let document = Self::parse(json)?;
        document.check()?;
        Ok(document)
    }

    /// Checks the rules that concern more than one value.
    pub fn check(&self) -> Checked {
        rule(is_free(&self.name), "name", "a name has at most 512 characters, in one line")?;
        for (kind, there, max) in [
            ("users", self.users.len(), USERS_MAX),
            ("groups", self.groups.len(), GROUPS_MAX),
            ("roles", self.roles.len(), ROLES_MAX),
            ("policies", self.policies.len(), POLICIES_MAX),
            ("providers", self.providers.len(), PROVIDERS_MAX),
        ] {
            rule(there <= max, kind, "there are more than an account may have")?;
        }
        self.check_ids()?;
        let of_root = "root_keys";
        rule(self.root_keys.len() <= ACCESS_KEYS_MAX, of_root, "root has at most two access keys")?;
        rule(!self.root_keys.iter().any(Key::is_of_service), of_root, "a key of root has no policy")?;
        self.users.iter().try_for_each(|(name, user)| self.check_user(name, user))?;
        self.groups.iter().try_for_each(|(name, group)| self.check_group(name, group))?;
        self.roles.iter().try_for_each(|(name, role)| self.check_role(name, role))?;
        self.policies.iter().try_for_each(|(name, policy)| check_policy(name, policy))?;
        self.providers.iter().try_for_each(|(url, provider)| check_provider(url, provider))
    }

    fn check_ids(&self) -> Checked {
        let all = self.unique_ids();
        for (kind, name, id) in &all {
            rule(id.kind() == *kind, name, "the unique id is that of another kind of thing")?;
        }
        rule(differ(all.iter().map(|(_, _, id)| id.as_str())), "id", "a unique id is there twice")?;
        rule(differ(self.keys().map(|key| key.id.as_str())), "keys", "an access key is there twice")
    }

    /// Returns all unique ids, with the kind that they have to be of, and whose they are.
    pub(super) fn unique_ids(&self) -> Vec<(IdKind, &str, &UniqueId)> {
        let users = self.users.iter().map(|(name, user)| (IdKind::User, name.as_str(), &user.id));
        let groups = self.groups.iter().map(|(name, group)| (IdKind::Group, name.as_str(), &group.id));
        let roles = self.roles.iter().map(|(name, role)| (IdKind::Role, name.as_str(), &role.id));
        let policies = self.policies.iter().map(|(name, policy)| (IdKind::Policy, name.as_str(), &policy.id));
        let providers = self.providers.iter().map(|(url, provider)| (IdKind::Provider, &**url, &provider.id));
        users.chain(groups).chain(roles).chain(policies).chain(providers).collect()
    }

    fn check_attached(&self, place: &str, attached: &[PolicyArn], boundary: Option<&PolicyArn>) -> Checked {
        rule(attached.len() <= ATTACHED_MAX, place, "more than 10 policies are attached")?;
        rule(differ(attached), place, "a policy is attached twice")?;
        let all_there = attached.iter().chain(boundary).all(|arn| self.has_policy(arn));
        rule(all_there, place, "a policy that is attached, or is the boundary, does not exist")
    }

    fn check_user(&self, name: &Name, user: &User) -> Checked {
        let place = format!("users.{name}");
        rule(name.as_str().len() <= USER_NAME_CHARS_MAX, &place, "the name is longer than 64 characters")?;
        self.check_attached(&place, &user.attached, user.boundary.as_ref())?;
        check_tags(&place, &user.tags, true)?;
        rule(user.groups.len() <= GROUPS_PER_USER_MAX, &place, "a user is in at most 10 groups")?;
        let folded = user.groups.iter().map(|group| group.as_str().to_ascii_lowercase());
        rule(differ(folded), &place, "a group is there twice")?;
        // The group's own spelling, too: a name of a group has one.
        let exists = |group: &Name| {
            self.groups.get_key_value(group).is_some_and(|(there, _)| there.as_str() == group.as_str())
        };
        rule(user.groups.iter().all(exists), &place, "a group does not exist")?;
        let services = user.keys.iter().filter(|key| key.is_of_service()).count();
        rule(user.keys.len() - services <= ACCESS_KEYS_MAX, &place, "a user has at most two access keys")?;
        rule(services <= SERVICE_KEYS_MAX, &place, "a user has at most 100 service keys")
    }

    fn check_group(&self, name: &Name, group: &Group) -> Checked {
        let place = format!("groups.{name}");
        let external = group.external.as_deref();
        rule(
            external.is_none_or(|dn| !dn.is_empty() && is_free(dn)),
            &place,
            "the DN of a group of the directory has 1 to 512 characters, in one line",
        )?;
        self.check_attached(&place, &group.attached, None)
    }

    fn check_role(&self, name: &Name, role: &Role) -> Checked {
        let place = format!("roles.{name}");
        rule(name.as_str().len() <= USER_NAME_CHARS_MAX, &place, "the name is longer than 64 characters")?;
        let seconds = MAX_SESSION_SECONDS.contains(&role.max_session);
        rule(seconds, &place, "sessions of a role last at most 3600 to 43200 seconds")?;
        check_tags(&place, &role.tags, true)?;
        self.check_attached(&place, &role.attached, role.boundary.as_ref())
    }
}

fn check_tags(place: &str, tags: &Tags, without_case: bool) -> Checked {
    rule(tags.len() <= TAGS_MAX, place, "there are more than 50 tags")?;
    rule(!without_case || differ_without_case(tags), place, "two tags differ in case alone")
}

fn check_policy(name: &Name, policy: &ManagedPolicy) -> Checked {
    let place = format!("policies.{name}");
    check_tags(&place, &policy.tags, false)?;
    let versions = (1..=VERSIONS_MAX).contains(&policy.versions.len());
    rule(versions, &place, "a policy has 1 to 5 versions")?;
    rule(policy.versions.contains_key(&policy.default), &place, "the default version does not exist")?;
    let numbers = policy.versions.keys().all(|number| *number > 0 && *number < policy.next);
    rule(numbers, &place, "the numbers of versions are from 1 to below the next one")
}

fn check_provider(url: &str, provider: &Provider) -> Checked {
    let place = format!("providers.{url}");
    let is_url = ProviderUrl::without_scheme(url).is_ok();
    rule(is_url, &place, "the URL of a provider has a host, and at most 255 printable ASCII characters")?;
    check_tags(&place, &provider.tags, false)?;
    rule(provider.client_ids.len() <= CLIENT_IDS_MAX, &place, "a provider has at most 100 client ids")?;
    rule(differ(&provider.client_ids), &place, "a client id is there twice")?;
    rule(provider.thumbprints.len() <= THUMBPRINTS_MAX, &place, "a provider has at most 5 thumbprints")?;
    let claims = provider.posix_claim.iter().chain(&provider.role_claim);
    let mut texts = provider.client_ids.iter().chain(&provider.thumbprints).chain(claims);
    rule(texts.all(|text| is_free(text)), &place, "a text has more than 512 characters or lines")
}
