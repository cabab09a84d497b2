//! The actions about managed policies that are attached to users, groups and roles.

use async_trait::async_trait;
use iam::model::{Holder, PolicyArn};
use iam_wire::api::{
    self, AttachedPolicy, ListAttachedGroupPoliciesResult, ListAttachedRolePoliciesResult,
    ListAttachedUserPoliciesResult, ListEntitiesForPolicyResult, PolicyGroup, PolicyRole, PolicyUser,
};
use iam_wire::{EntityKind, Page, PolicyUsage, QueryError, Text};

use super::call::{ActionCall, name};
use super::entities::policy_arn;
use super::error;
use super::perform::{Perform, done, rendered};
use super::target::Target;

async fn attach(call: &ActionCall<'_>, to: &Holder, arn: &str) -> Result<(), QueryError> {
    let arn = policy_arn(arn)?;
    call.change(&|document, _| document.attach_policy(to, &arn)).await
}

async fn detach(call: &ActionCall<'_>, from: &Holder, arn: &str) -> Result<(), QueryError> {
    let arn = policy_arn(arn)?;
    call.change(&|document, _| document.detach_policy(from, &arn)).await
}

/// Returns a page of the policies whose paths begin with a prefix, sorted by name and account. The
/// other values are whether there are more pages, and the marker of the next one.
fn page<'a>(
    page: &Page,
    attached: &'a [PolicyArn],
    path_prefix: Option<&str>,
) -> (Vec<AttachedPolicy<'a>>, bool, Option<Text<'a>>) {
    let prefix = path_prefix.unwrap_or("/");
    let parts = attached.iter().filter_map(|arn| Some((arn, arn.parts()?)));
    let below = parts.filter(|(_, parts)| parts.path.as_str().starts_with(prefix));
    let cut = page.cut(below, |(_, parts)| {
        let account = parts.account.as_ref().map_or("aws", |account| account.as_str());
        format!("{} {account}", parts.name).into()
    });
    let is_truncated = cut.is_truncated();
    let policies = cut.items.into_iter().map(|(arn, parts)| AttachedPolicy {
        policy_name: parts.name.as_str().to_owned().into(),
        policy_arn: arn.as_str().into(),
    });
    (policies.collect(), is_truncated, cut.marker.map(Text::Owned))
}

macro_rules! attached {
    ($($holder:ident $find:ident $target:ident $field:ident $parameter:literal
        $attach:ident $detach:ident $list:ident $result:ident;)*) => {$(
        #[async_trait]
        impl<'f> Perform<'f> for api::$attach<'f> {
            fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
                Ok(call.$target(self.$field).sending("iam:PolicyARN", Some(self.policy_arn)))
            }

            async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
                attach(call, &Holder::$holder(name($parameter, self.$field)?), self.policy_arn).await?;
                Ok(done::<Self>(call))
            }
        }

        #[async_trait]
        impl<'f> Perform<'f> for api::$detach<'f> {
            fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
                Ok(call.$target(self.$field).sending("iam:PolicyARN", Some(self.policy_arn)))
            }

            async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
                detach(call, &Holder::$holder(name($parameter, self.$field)?), self.policy_arn).await?;
                Ok(done::<Self>(call))
            }
        }

        #[async_trait]
        impl<'f> Perform<'f> for api::$list<'f> {
            fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
                Ok(call.$target(self.$field))
            }

            async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
                let (_, there) = call.$find(self.$field)?;
                let (attached_policies, is_truncated, marker) =
                    page(&self.page, &there.attached, self.path_prefix);
                Ok(rendered(&$result { attached_policies, is_truncated, marker }, call))
            }
        }
    )*};
}

attached! {
    User user of_user user_name "UserName"
        AttachUserPolicy DetachUserPolicy ListAttachedUserPolicies ListAttachedUserPoliciesResult;
    Group group of_group group_name "GroupName"
        AttachGroupPolicy DetachGroupPolicy ListAttachedGroupPolicies ListAttachedGroupPoliciesResult;
    Role role of_role role_name "RoleName"
        AttachRolePolicy DetachRolePolicy ListAttachedRolePolicies ListAttachedRolePoliciesResult;
}

/// A user, group or role to which a policy is attached.
enum Entity<'a> {
    Group(PolicyGroup<'a>),
    User(PolicyUser<'a>),
    Role(PolicyRole<'a>),
}

impl Entity<'_> {
    /// Returns the key by which pages are cut, so that first all entities of one kind come, then
    /// those of the next.
    fn key(&self) -> String {
        match self {
            Self::Group(group) => format!("1 {}", group.group_name),
            Self::Role(role) => format!("2 {}", role.role_name),
            Self::User(user) => format!("3 {}", user.user_name),
        }
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListEntitiesForPolicy<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_policy(self.policy_arn))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let arn = policy_arn(self.policy_arn)?;
        let document = call.document();
        if !document.has_policy(&arn) {
            return Err(error::no_policy(self.policy_arn));
        }
        let found = entities(&self, call, &arn);
        let page = self.page.cut(found, |entity| entity.key().into());
        let is_truncated = page.is_truncated();
        let (mut policy_groups, mut policy_users, mut policy_roles) = (Vec::new(), Vec::new(), Vec::new());
        for entity in page.items {
            match entity {
                Entity::Group(group) => policy_groups.push(group),
                Entity::User(user) => policy_users.push(user),
                Entity::Role(role) => policy_roles.push(role),
            }
        }
        let marker = page.marker.map(Text::Owned);
        let output =
            ListEntitiesForPolicyResult { policy_groups, policy_users, policy_roles, is_truncated, marker };
        Ok(rendered(&output, call))
    }
}

/// Finds the users, groups and roles to which a policy is attached, and that the request's filters
/// let through.
fn entities<'a>(
    wanted: &api::ListEntitiesForPolicy<'_>,
    call: &'a ActionCall<'_>,
    arn: &PolicyArn,
) -> Vec<Entity<'a>> {
    let document = call.document();
    let prefix = wanted.path_prefix.unwrap_or("/");
    let is_wanted = |kind| wanted.entity_filter.is_none_or(|filter| filter == kind);
    let has = |attached: &[PolicyArn], boundary: Option<&PolicyArn>| match wanted.policy_usage_filter {
        None => attached.contains(arn) || boundary == Some(arn),
        Some(PolicyUsage::PermissionsPolicy) => attached.contains(arn),
        Some(PolicyUsage::PermissionsBoundary) => boundary == Some(arn),
    };
    let mut found = Vec::new();
    if is_wanted(EntityKind::Group) {
        let groups = document.groups.iter().filter(|(_, group)| group.path.as_str().starts_with(prefix));
        found.extend(groups.filter(|(_, group)| has(&group.attached, None)).map(|(name, group)| {
            Entity::Group(PolicyGroup {
                group_name: name.as_str().into(),
                group_id: group.id.as_str().into(),
            })
        }));
    }
    if is_wanted(EntityKind::User) {
        let users = document.users.iter().filter(|(_, user)| user.path.as_str().starts_with(prefix));
        found.extend(users.filter(|(_, user)| has(&user.attached, user.boundary.as_ref())).map(
            |(name, user)| {
                Entity::User(PolicyUser { user_name: name.as_str().into(), user_id: user.id.as_str().into() })
            },
        ));
    }
    if is_wanted(EntityKind::Role) {
        let roles = document.roles.iter().filter(|(_, role)| role.path.as_str().starts_with(prefix));
        found.extend(roles.filter(|(_, role)| has(&role.attached, role.boundary.as_ref())).map(
            |(name, role)| {
                Entity::Role(PolicyRole { role_name: name.as_str().into(), role_id: role.id.as_str().into() })
            },
        ));
    }
    found
}
