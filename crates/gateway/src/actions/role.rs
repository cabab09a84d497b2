//! The actions about roles, their boundaries and tags.

use async_trait::async_trait;
use iam::model::{Description, Document, Holder, NewRole, Tagged};
use iam_wire::api::{
    self, CreateRoleResult, GetRoleResult, ListRoleTagsResult, ListRolesResult, RoleLastUsed,
    UpdateRoleDescriptionResult, UpdateRoleResult,
};
use iam_wire::{QueryCode, QueryError, Tag, Text};

use super::call::{ActionCall, name};
use super::entities::{Shown, new_tags, path, policy_arn, role, tag_keys, tags};
use super::error;
use super::perform::{Perform, done, rendered};
use super::target::Target;
use crate::identities::last_use;

/// Makes the trust policy of a role from a parameter, in the form in which it is stored.
fn trust(call: &ActionCall<'_>, parameter: &str, text: &str) -> Result<Document, QueryError> {
    let stored = call.state.with_ids(text);
    let stored =
        stored.map_err(|why| QueryError::new(QueryCode::MalformedPolicyDocument, why.to_string()))?;
    Document::new(stored.as_deref().unwrap_or(text)).map_err(|why| error::of_text(parameter, why))
}

fn description(text: &str) -> Result<Description, QueryError> {
    Description::new(text).map_err(|why| error::of_text("Description", why))
}

#[async_trait]
impl<'f> Perform<'f> for api::CreateRole<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call
            .to_be_made("role", self.path, self.role_name)
            .sending_tags(&self.tags)
            .bounded(self.permissions_boundary))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let new = NewRole {
            name: name("RoleName", self.role_name)?,
            path: path(self.path)?,
            trust: trust(call, "AssumeRolePolicyDocument", self.assume_role_policy_document)?,
            description: self.description.map(description).transpose()?,
            max_session: self.max_session_duration,
            boundary: self.permissions_boundary.map(policy_arn).transpose()?,
            tags: new_tags(&self.tags)?,
        };
        let made = call
            .change(&|document, cx| {
                document.create_role(&new, cx)?;
                Ok(document.roles.get(&new.name).cloned())
            })
            .await?;
        let made = made.ok_or_else(|| error::missing("role", self.role_name))?;
        let shown = role(call, &new.name, &made, Shown::Whole);
        let role = api::Role { description: None, max_session_duration: None, ..shown };
        Ok(rendered(&CreateRoleResult { role }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::GetRole<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_role(self.role_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (name, found) = call.role(self.role_name)?;
        let shown = role(call, name, found, Shown::Whole);
        let last = last_use::read(call.registry).await.map_err(error::of_iam)?.of_role(&found.id);
        let last_used = RoleLastUsed {
            last_used_date: last.as_ref().map(|last| last.hour),
            region: last.as_ref().map(|last| last.region.to_string().into()),
        };
        let role = api::Role { role_last_used: Some(last_used), ..shown };
        Ok(rendered(&GetRoleResult { role }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::UpdateRole<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_role(self.role_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let role = name("RoleName", self.role_name)?;
        let text = self.description.map(description).transpose()?;
        let seconds = self.max_session_duration;
        call.change(&|document, _| document.update_role(&role, text.as_ref(), seconds)).await?;
        Ok(rendered(&UpdateRoleResult {}, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::UpdateRoleDescription<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_role(self.role_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (role_name, text) = (name("RoleName", self.role_name)?, description(self.description)?);
        let changed = call
            .change(&|document, _| {
                document.update_role(&role_name, Some(&text), None)?;
                Ok(document.roles.get_key_value(&role_name).map(|(name, role)| (name.clone(), role.clone())))
            })
            .await?;
        let (name, changed) = changed.ok_or_else(|| error::missing("role", self.role_name))?;
        let shown = role(call, &name, &changed, Shown::Whole);
        let role = api::Role { max_session_duration: None, ..shown };
        Ok(rendered(&UpdateRoleDescriptionResult { role }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::UpdateAssumeRolePolicy<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_role(self.role_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let role = name("RoleName", self.role_name)?;
        let trust = trust(call, "PolicyDocument", self.policy_document)?;
        call.change(&|document, cx| document.update_trust(&role, &trust, cx)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::DeleteRole<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_role(self.role_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let role = name("RoleName", self.role_name)?;
        call.change(&|document, _| document.delete_role(&role)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListRoles<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.all_of("role"))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let prefix = self.path_prefix.unwrap_or("/");
        let found = call.document().roles.iter().filter(|(_, role)| role.path.as_str().starts_with(prefix));
        let page = self.page.cut(found, |(name, _)| name.as_str().into());
        let is_truncated = page.is_truncated();
        let roles = page.items.iter().map(|(name, found)| role(call, name, found, Shown::InList));
        let roles = roles.collect();
        Ok(rendered(&ListRolesResult { roles, is_truncated, marker: page.marker.map(Text::Owned) }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::PutRolePermissionsBoundary<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_role(self.role_name).bounded(Some(self.permissions_boundary)))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let of = Holder::Role(name("RoleName", self.role_name)?);
        let arn = policy_arn(self.permissions_boundary)?;
        call.change(&|document, _| document.set_boundary(&of, Some(&arn))).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::DeleteRolePermissionsBoundary<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_role(self.role_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let of = Holder::Role(name("RoleName", self.role_name)?);
        call.change(&|document, _| document.set_boundary(&of, None)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::TagRole<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_role(self.role_name).sending_tags(&self.tags))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (of, new) = (Tagged::Role(name("RoleName", self.role_name)?), new_tags(&self.tags)?);
        call.change(&|document, _| document.tag(&of, &new)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::UntagRole<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_role(self.role_name).sending_keys(&self.tag_keys))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (of, keys) = (Tagged::Role(name("RoleName", self.role_name)?), tag_keys(&self.tag_keys)?);
        call.change(&|document, _| document.untag(&of, &keys)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListRoleTags<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_role(self.role_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let all = tags(&call.role(self.role_name)?.1.tags);
        let page = self.page.cut(all, |tag: &Tag<'_>| tag.key.clone().into_owned().into());
        let is_truncated = page.is_truncated();
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&ListRoleTagsResult { tags: page.items, is_truncated, marker }, call))
    }
}
