//! The conversion of users, groups, roles and policies to the form of answers, and of parameters to
//! the types of the account model.

use iam::AccountId;
use iam::model::{
    AccountDocument, Group, ManagedPolicy, Name, Path, PolicyArn, Posix, Role, TagKey, TagValue, Tags, User,
    arn_of,
};
use iam_wire::api::{self, AttachedPermissionsBoundary};
use iam_wire::{EncodedDocument, QueryCode, QueryError, Tag, Text};

use super::call::ActionCall;
use super::error;

/// The part of an entity that an answer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// Everything.
    Whole,
    /// Everything except the boundary and the tags, as in lists.
    InList,
}

fn boundary(arn: Option<&PolicyArn>, shown: Shown) -> Option<AttachedPermissionsBoundary<'_>> {
    arn.filter(|_| shown == Shown::Whole).map(|arn| AttachedPermissionsBoundary::new(arn.as_str()))
}

/// Returns tags in the order of their keys.
pub(super) fn tags(tags: &Tags) -> Vec<Tag<'_>> {
    tags.iter().map(|(key, value)| Tag { key: key.as_str().into(), value: value.as_str().into() }).collect()
}

fn some_tags(of: &Tags, shown: Shown) -> Option<Vec<Tag<'_>>> {
    (shown == Shown::Whole && !of.is_empty()).then(|| tags(of))
}

/// Returns the status of a user or a role, which IAM does not have; `None` unless it is disabled.
fn status(disabled: bool) -> Option<Text<'static>> {
    disabled.then(|| "Disabled".into())
}

/// Returns whom a user or a role is on the file system, which IAM does not have.
fn posix(of: Option<&Posix>, shown: Shown) -> Option<Text<'static>> {
    of.filter(|_| shown == Shown::Whole).map(|posix| posix.to_string().into())
}

/// Returns a user in the form of answers.
pub(super) fn user<'a>(account: &AccountId, name: &'a Name, user: &'a User, shown: Shown) -> api::User<'a> {
    api::User {
        path: user.path.as_str().into(),
        user_name: name.as_str().into(),
        user_id: user.id.as_str().into(),
        arn: arn_of(account, "user", &user.path, name).into(),
        create_date: user.created,
        permissions_boundary: boundary(user.boundary.as_ref(), shown),
        tags: some_tags(&user.tags, shown),
        status: status(user.disabled),
        posix_identity: posix(user.posix.as_ref(), shown),
    }
}

/// Returns a group in the form of answers.
pub(super) fn group<'a>(account: &AccountId, name: &'a Name, group: &'a Group) -> api::Group<'a> {
    api::Group {
        path: group.path.as_str().into(),
        group_name: name.as_str().into(),
        group_id: group.id.as_str().into(),
        arn: arn_of(account, "group", &group.path, name).into(),
        create_date: group.created,
    }
}

/// Returns a role in the form of answers, without its last use.
pub(super) fn role<'a>(call: &ActionCall<'_>, name: &'a Name, role: &'a Role, shown: Shown) -> api::Role<'a> {
    let trust = role.trust.as_str();
    api::Role {
        path: role.path.as_str().into(),
        role_name: name.as_str().into(),
        role_id: role.id.as_str().into(),
        arn: arn_of(call.account_id(), "role", &role.path, name).into(),
        create_date: role.created,
        assume_role_policy_document: EncodedDocument(
            call.state.with_arns(trust).map_or_else(|| trust.into(), Text::Owned),
        ),
        description: role.description.as_ref().map(|text| text.as_str().into()),
        max_session_duration: Some(role.max_session),
        permissions_boundary: boundary(role.boundary.as_ref(), shown),
        tags: some_tags(&role.tags, shown),
        role_last_used: None,
        status: status(role.disabled),
        posix_identity: posix(role.posix.as_ref(), shown),
    }
}

/// Returns the document of a policy in the form of answers.
pub(super) fn document(text: &str) -> EncodedDocument<'_> {
    EncodedDocument(text.into())
}

/// Returns the number of users, groups and roles that a policy is attached to, and the number of
/// those whose boundary it is.
pub(super) fn uses(document: &AccountDocument, arn: &PolicyArn) -> (u32, u32) {
    let attached = document
        .users
        .values()
        .map(|user| &user.attached)
        .chain(document.groups.values().map(|group| &group.attached))
        .chain(document.roles.values().map(|role| &role.attached));
    let boundaries = document
        .users
        .values()
        .map(|user| &user.boundary)
        .chain(document.roles.values().map(|role| &role.boundary));
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    (
        count(attached.filter(|attached| attached.contains(arn)).count()),
        count(boundaries.filter(|boundary| boundary.as_ref() == Some(arn)).count()),
    )
}

/// Returns a managed policy of the account in the form of answers, without description and tags.
pub(super) fn policy<'a>(
    document: &AccountDocument,
    name: &'a Name,
    policy: &'a ManagedPolicy,
) -> api::Policy<'a> {
    let arn = document.policy_arn(name, policy);
    let (attachments, boundaries) = uses(document, &arn);
    api::Policy {
        policy_name: name.as_str().into(),
        policy_id: policy.id.as_str().into(),
        arn: arn.to_string().into(),
        path: policy.path.as_str().into(),
        default_version_id: version_id(policy.default),
        attachment_count: attachments,
        permissions_boundary_usage_count: boundaries,
        is_attachable: true,
        description: None,
        create_date: policy.created,
        update_date: policy.updated,
        tags: None,
    }
}

/// Returns the id of a version as clients see it, such as `v3`.
pub(super) fn version_id(number: u32) -> Text<'static> {
    format!("v{number}").into()
}

/// Makes a path from a parameter; `None` stands for `/`.
pub(super) fn path(text: Option<&str>) -> Result<Path, QueryError> {
    text.map_or_else(|| Ok(Path::root()), |text| Path::new(text).map_err(|why| error::of_text("Path", why)))
}

/// Makes the ARN of a policy from a parameter.
pub(super) fn policy_arn(text: &str) -> Result<PolicyArn, QueryError> {
    let invalid = |_| QueryError::new(QueryCode::ValidationError, format!("ARN {text} is not valid."));
    PolicyArn::new(text).map_err(invalid)
}

/// Makes tags from a parameter.
pub(super) fn new_tags(sent: &[Tag<'_>]) -> Result<Tags, QueryError> {
    let mut tags = Tags::new();
    for Tag { key, value } in sent {
        let invalid = |why: iam::model::InvalidTag| QueryError::new(QueryCode::InvalidInput, why.to_string());
        let (key, value) = (TagKey::new(key).map_err(invalid)?, TagValue::new(value).map_err(invalid)?);
        if tags.insert(key, value).is_some() {
            let message = "Duplicate tag keys found. Please note that Tag keys are case insensitive.";
            return Err(QueryError::new(QueryCode::InvalidInput, message));
        }
    }
    Ok(tags)
}

/// Makes keys of tags from a parameter.
pub(super) fn tag_keys(sent: &[&str]) -> Result<Vec<TagKey>, QueryError> {
    let invalid = |why: iam::model::InvalidTag| QueryError::new(QueryCode::InvalidInput, why.to_string());
    sent.iter().map(|key| TagKey::new(key).map_err(invalid)).collect()
}
