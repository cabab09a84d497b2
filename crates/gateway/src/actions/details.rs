//! GetAccountAuthorizationDetails: all users, groups, roles and policies in one list.

use async_trait::async_trait;
use iam::LastUse;
use iam::model::{BUILT_IN, Group, Inline, ManagedPolicy, Name, PolicyArn, Role, User, arn_of};
use iam_wire::api::{
    self, AttachedPermissionsBoundary, AttachedPolicy, GetAccountAuthorizationDetailsResult, GroupDetail,
    ManagedPolicyDetail, PolicyDetail, PolicyVersion, RoleDetail, RoleLastUsed, UserDetail,
};
use iam_wire::{EncodedDocument, EntityKind, QueryError, Text};

use super::call::ActionCall;
use super::entities::Shown;
use super::entities::{document, policy, role, tags, version_id};
use super::error;
use super::perform::{Perform, rendered};
use super::policy::{BUILT_IN_VERSION, shown_built_in};
use super::target::Target;
use crate::identities::last_use;

/// An item of the list.
enum Item<'a> {
    User(&'a Name, &'a User),
    Group(&'a Name, &'a Group),
    Role(&'a Name, &'a Role),
    Policy(&'a Name, &'a ManagedPolicy),
    BuiltIn(&'static iam::model::BuiltIn),
}

impl Item<'_> {
    const fn kind(&self) -> EntityKind {
        match self {
            Self::User(..) => EntityKind::User,
            Self::Group(..) => EntityKind::Group,
            Self::Role(..) => EntityKind::Role,
            Self::Policy(..) => EntityKind::LocalManagedPolicy,
            Self::BuiltIn(_) => EntityKind::AWSManagedPolicy,
        }
    }

    /// Returns the key by which pages are cut, so that first all users come, then groups, roles and
    /// policies.
    fn key(&self) -> String {
        match self {
            Self::User(name, _) => format!("1 {name}"),
            Self::Group(name, _) => format!("2 {name}"),
            Self::Role(name, _) => format!("3 {name}"),
            Self::Policy(name, _) => format!("4 {name}"),
            Self::BuiltIn(policy) => format!("5 {}", policy.arn),
        }
    }
}

fn inline(policies: &Inline) -> Vec<PolicyDetail<'_>> {
    let shown = policies.iter().map(|(name, text)| PolicyDetail {
        policy_name: name.as_str().into(),
        policy_document: document(text.as_str()),
    });
    shown.collect()
}

fn attached(policies: &[PolicyArn]) -> Vec<AttachedPolicy<'_>> {
    let named = policies.iter().filter_map(|arn| Some((arn, arn.parts()?)));
    let shown = named.map(|(arn, parts)| AttachedPolicy {
        policy_name: parts.name.as_str().to_owned().into(),
        policy_arn: arn.as_str().into(),
    });
    shown.collect()
}

fn boundary(arn: Option<&PolicyArn>) -> Option<AttachedPermissionsBoundary<'_>> {
    arn.map(|arn| AttachedPermissionsBoundary::new(arn.as_str()))
}

fn user<'a>(call: &ActionCall<'_>, name: &'a Name, user: &'a User) -> UserDetail<'a> {
    UserDetail {
        path: user.path.as_str().into(),
        user_name: name.as_str().into(),
        user_id: user.id.as_str().into(),
        arn: arn_of(call.account_id(), "user", &user.path, name).into(),
        create_date: user.created,
        user_policy_list: inline(&user.inline),
        group_list: user.groups.iter().map(|group| group.as_str().into()).collect(),
        attached_managed_policies: attached(&user.attached),
        permissions_boundary: boundary(user.boundary.as_ref()),
        tags: tags(&user.tags),
    }
}

fn group<'a>(call: &ActionCall<'_>, name: &'a Name, group: &'a Group) -> GroupDetail<'a> {
    GroupDetail {
        path: group.path.as_str().into(),
        group_name: name.as_str().into(),
        group_id: group.id.as_str().into(),
        arn: arn_of(call.account_id(), "group", &group.path, name).into(),
        create_date: group.created,
        group_policy_list: inline(&group.inline),
        attached_managed_policies: attached(&group.attached),
    }
}

fn role_detail<'a>(
    call: &ActionCall<'_>,
    last: Option<&LastUse>,
    name: &'a Name,
    of: &'a Role,
) -> RoleDetail<'a> {
    let shown = role(call, name, of, Shown::Whole);
    RoleDetail {
        path: shown.path,
        role_name: shown.role_name,
        role_id: shown.role_id,
        arn: shown.arn,
        create_date: shown.create_date,
        assume_role_policy_document: shown.assume_role_policy_document,
        instance_profile_list: Vec::new(),
        role_policy_list: inline(&of.inline),
        attached_managed_policies: attached(&of.attached),
        permissions_boundary: shown.permissions_boundary,
        tags: tags(&of.tags),
        role_last_used: RoleLastUsed {
            last_used_date: last.map(|last| last.hour),
            region: last.map(|last| last.region.to_string().into()),
        },
    }
}

fn managed<'a>(shown: api::Policy<'a>, versions: Vec<PolicyVersion<'a>>) -> ManagedPolicyDetail<'a> {
    ManagedPolicyDetail {
        policy_name: shown.policy_name,
        policy_id: shown.policy_id,
        arn: shown.arn,
        path: shown.path,
        default_version_id: shown.default_version_id,
        attachment_count: shown.attachment_count,
        permissions_boundary_usage_count: shown.permissions_boundary_usage_count,
        is_attachable: shown.is_attachable,
        description: shown.description,
        create_date: shown.create_date,
        update_date: shown.update_date,
        policy_version_list: versions,
    }
}

fn of_account<'a>(call: &ActionCall<'_>, name: &'a Name, of: &'a ManagedPolicy) -> ManagedPolicyDetail<'a> {
    let versions = of.versions.iter().rev().map(|(number, version)| PolicyVersion {
        document: Some(document(version.document.as_str())),
        version_id: version_id(*number),
        is_default_version: *number == of.default,
        create_date: version.created,
    });
    let description = of.description.as_ref().map(|text| text.as_str().into());
    managed(api::Policy { description, ..policy(call.document(), name, of) }, versions.collect())
}

fn of_aws(call: &ActionCall<'_>, of: &'static iam::model::BuiltIn) -> Option<ManagedPolicyDetail<'static>> {
    let shown = shown_built_in(call, of)?;
    let version = PolicyVersion {
        document: Some(EncodedDocument(of.document.into())),
        version_id: version_id(BUILT_IN_VERSION),
        is_default_version: true,
        create_date: shown.create_date,
    };
    Some(managed(shown, vec![version]))
}

#[async_trait]
impl Perform<'_> for api::GetAccountAuthorizationDetails {
    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::nothing())
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let all = call.document();
        let items = all.users.iter().map(|(name, user)| Item::User(name, user));
        let items = items.chain(all.groups.iter().map(|(name, group)| Item::Group(name, group)));
        let items = items.chain(all.roles.iter().map(|(name, role)| Item::Role(name, role)));
        let items = items.chain(all.policies.iter().map(|(name, policy)| Item::Policy(name, policy)));
        let items = items.chain(BUILT_IN.iter().map(Item::BuiltIn));
        let is_wanted = |item: &Item<'_>| self.filter.is_empty() || self.filter.contains(&item.kind());
        let page = self.page.cut(items.filter(is_wanted), |item| item.key().into());
        let is_truncated = page.is_truncated();
        // Once for all roles: it is one document.
        let has_roles = page.items.iter().any(|item| matches!(item, Item::Role(..)));
        let uses = if has_roles { Some(last_use::read(call.registry).await) } else { None };
        let uses = uses.transpose().map_err(error::of_iam)?;
        let mut result = GetAccountAuthorizationDetailsResult {
            user_detail_list: Vec::new(),
            group_detail_list: Vec::new(),
            role_detail_list: Vec::new(),
            policies: Vec::new(),
            is_truncated,
            marker: page.marker.map(Text::Owned),
        };
        for item in page.items {
            match item {
                Item::User(name, of) => result.user_detail_list.push(user(call, name, of)),
                Item::Group(name, of) => result.group_detail_list.push(group(call, name, of)),
                Item::Role(name, of) => {
                    let last = uses.as_ref().and_then(|uses| uses.of_role(&of.id));
                    result.role_detail_list.push(role_detail(call, last.as_ref(), name, of));
                }
                Item::Policy(name, of) => result.policies.push(of_account(call, name, of)),
                Item::BuiltIn(of) => result.policies.extend(of_aws(call, of)),
            }
        }
        Ok(rendered(&result, call))
    }
}
