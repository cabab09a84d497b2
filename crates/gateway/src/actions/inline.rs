//! The actions about inline policies of users, groups and roles.

use async_trait::async_trait;
use iam::model::{Document, Holder, Inline, Name};
use iam_wire::api::{
    self, GetGroupPolicyResult, GetRolePolicyResult, GetUserPolicyResult, ListGroupPoliciesResult,
    ListRolePoliciesResult, ListUserPoliciesResult,
};
use iam_wire::{Page, QueryError, Text};

use super::call::{ActionCall, name};
use super::entities::document;
use super::error;
use super::perform::{Perform, done, rendered};
use super::target::Target;

async fn put(call: &ActionCall<'_>, of: &Holder, policy: &str, text: &str) -> Result<(), QueryError> {
    let policy = name("PolicyName", policy)?;
    let text = Document::new(text).map_err(|why| error::of_text("PolicyDocument", why))?;
    call.change(&|document, cx| document.put_inline_policy(of, &policy, &text, cx)).await
}

async fn delete(call: &ActionCall<'_>, of: &Holder, policy: &str) -> Result<(), QueryError> {
    let policy = name("PolicyName", policy)?;
    call.change(&|document, _| document.delete_inline_policy(of, &policy)).await
}

/// Finds the policy named `policy` among the inline policies of one entity. `kind` says in the
/// error what the entity is, such as `user`.
fn find<'i>(inline: &'i Inline, kind: &str, policy: &str) -> Result<(&'i Name, &'i Document), QueryError> {
    let wanted = name("PolicyName", policy)?;
    inline.get_key_value(&wanted).ok_or_else(|| error::missing(&format!("{kind} policy"), policy))
}

/// Returns a page of names, whether there are more pages, and the marker of the next one.
fn names<'i>(page: &Page, inline: &'i Inline) -> (Vec<Text<'i>>, bool, Option<Text<'i>>) {
    let cut = page.cut(inline.keys(), |name| name.as_str().into());
    let is_truncated = cut.is_truncated();
    (
        cut.items.into_iter().map(|name| name.as_str().into()).collect(),
        is_truncated,
        cut.marker.map(Text::Owned),
    )
}

macro_rules! inline {
    ($($kind:literal $holder:ident $find:ident $target:ident $field:ident $parameter:literal
        $put:ident $get:ident $result:ident $delete:ident $list:ident $names:ident;)*) => {$(
        #[async_trait]
        impl<'f> Perform<'f> for api::$put<'f> {
            fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
                Ok(call.$target(self.$field))
            }

            async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
                let of = Holder::$holder(name($parameter, self.$field)?);
                put(call, &of, self.policy_name, self.policy_document).await?;
                Ok(done::<Self>(call))
            }
        }

        #[async_trait]
        impl<'f> Perform<'f> for api::$get<'f> {
            fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
                Ok(call.$target(self.$field))
            }

            async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
                let (holder, there) = call.$find(self.$field)?;
                let (policy, text) = find(&there.inline, $kind, self.policy_name)?;
                let output = $result {
                    $field: holder.as_str().into(),
                    policy_name: policy.as_str().into(),
                    policy_document: document(text.as_str()),
                };
                Ok(rendered(&output, call))
            }
        }

        #[async_trait]
        impl<'f> Perform<'f> for api::$delete<'f> {
            fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
                Ok(call.$target(self.$field))
            }

            async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
                let of = Holder::$holder(name($parameter, self.$field)?);
                delete(call, &of, self.policy_name).await?;
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
                let (policy_names, is_truncated, marker) = names(&self.page, &there.inline);
                Ok(rendered(&$names { policy_names, is_truncated, marker }, call))
            }
        }
    )*};
}

inline! {
    "user" User user of_user user_name "UserName"
        PutUserPolicy GetUserPolicy GetUserPolicyResult DeleteUserPolicy ListUserPolicies ListUserPoliciesResult;
    "group" Group group of_group group_name "GroupName"
        PutGroupPolicy GetGroupPolicy GetGroupPolicyResult DeleteGroupPolicy ListGroupPolicies ListGroupPoliciesResult;
    "role" Role role of_role role_name "RoleName"
        PutRolePolicy GetRolePolicy GetRolePolicyResult DeleteRolePolicy ListRolePolicies ListRolePoliciesResult;
}
