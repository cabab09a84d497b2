//! Groups and their members.

use async_trait::async_trait;
use iam_wire::api::{self, CreateGroupResult, GetGroupResult, ListGroupsForUserResult, ListGroupsResult};
use iam_wire::{QueryError, Text};
use policy::Value;

use super::call::{ActionCall, name};
use super::entities::{Shown, group, path, user, value_of_entity};
use super::error;
use super::perform::{Perform, done, rendered};

#[async_trait]
impl<'f> Perform<'f> for api::CreateGroup<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.arn("group", &format!("{}{}", self.path.unwrap_or("/"), self.group_name)))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (name, path) = (name("GroupName", self.group_name)?, path(self.path)?);
        let made = call
            .change(&|document, cx| {
                document.create_group(&name, &path, cx)?;
                Ok(document.groups.get(&name).cloned())
            })
            .await?;
        let made = made.ok_or_else(|| error::missing("group", self.group_name))?;
        let group = group(call.account_id(), &name, &made);
        Ok(rendered(&CreateGroupResult { group }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::GetGroup<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.group_arn(self.group_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let wanted = name("GroupName", self.group_name)?;
        let found = call.document().groups.get_key_value(&wanted);
        let (group_name, found) = found.ok_or_else(|| error::missing("group", self.group_name))?;
        let members = call.document().users.iter().filter(|(_, user)| user.groups.contains(group_name));
        let page = self.page.cut(members, |(name, _)| name.as_str().into());
        let is_truncated = page.is_truncated();
        let users =
            page.items.iter().map(|(name, found)| user(call.account_id(), name, found, Shown::InList));
        let users = users.collect();
        let group = group(call.account_id(), group_name, found);
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&GetGroupResult { group, users, is_truncated, marker }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::UpdateGroup<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.group_arn(self.group_name))
    }

    /// Asks, as IAM does, also for the right to update the group that it becomes.
    fn becomes(&self, call: &ActionCall<'_>) -> Result<Option<String>, QueryError> {
        if self.new_group_name.is_none() && self.new_path.is_none() {
            return Ok(None);
        }
        let there = call.group(self.group_name).ok();
        let path = self.new_path.or(there.map(|(_, group)| group.path.as_str())).unwrap_or("/");
        Ok(Some(call.arn("group", &format!("{path}{}", self.new_group_name.unwrap_or(self.group_name)))))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let old = name("GroupName", self.group_name)?;
        let new = self.new_group_name.map(|new| name("NewGroupName", new)).transpose()?;
        let new_path = self.new_path.map(|new| path(Some(new))).transpose()?;
        call.change(&|document, _| document.update_group(&old, new.as_ref(), new_path.as_ref())).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::DeleteGroup<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.group_arn(self.group_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let group = name("GroupName", self.group_name)?;
        call.change(&|document, _| document.delete_group(&group)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListGroups<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.arn("group", "/"))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let prefix = self.path_prefix.unwrap_or("/");
        let found =
            call.document().groups.iter().filter(|(_, group)| group.path.as_str().starts_with(prefix));
        let page = self.page.cut(found, |(name, _)| name.as_str().into());
        let is_truncated = page.is_truncated();
        let groups = page.items.iter().map(|(name, found)| group(call.account_id(), name, found)).collect();
        Ok(rendered(&ListGroupsResult { groups, is_truncated, marker: page.marker.map(Text::Owned) }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListGroupsForUser<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.user_arn(self.user_name))
    }

    fn own_value<'v>(&'v self, call: &'v ActionCall<'_>, name: &str, tag: &str) -> Value<'v> {
        value_of_entity(call.facts_of_user(self.user_name), name, tag)
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (_, user) = call.user(self.user_name)?;
        let found = user.groups.iter().filter_map(|group| call.document().groups.get_key_value(group));
        let page = self.page.cut(found, |(name, _)| name.as_str().into());
        let is_truncated = page.is_truncated();
        let groups = page.items.iter().map(|(name, found)| group(call.account_id(), name, found)).collect();
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&ListGroupsForUserResult { groups, is_truncated, marker }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::AddUserToGroup<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.group_arn(self.group_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (group, user) = (name("GroupName", self.group_name)?, name("UserName", self.user_name)?);
        call.change(&|document, _| document.add_user_to_group(&group, &user)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::RemoveUserFromGroup<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.group_arn(self.group_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (group, user) = (name("GroupName", self.group_name)?, name("UserName", self.user_name)?);
        call.change(&|document, _| document.remove_user_from_group(&group, &user)).await?;
        Ok(done::<Self>(call))
    }
}
