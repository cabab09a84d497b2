//! The actions about groups and their members.

use async_trait::async_trait;
use iam_wire::api::{self, CreateGroupResult, GetGroupResult, ListGroupsForUserResult, ListGroupsResult};
use iam_wire::{QueryError, Text};

use super::call::{ActionCall, name};
use super::entities::{Shown, group, path, user};
use super::error;
use super::perform::{Perform, done, rendered};
use super::target::Target;

#[async_trait]
impl<'f> Perform<'f> for api::CreateGroup<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.to_be_made("group", self.path, self.group_name))
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
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_group(self.group_name))
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
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_group(self.group_name).becoming(self.new_group_name, self.new_path))
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
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_group(self.group_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let group = name("GroupName", self.group_name)?;
        call.change(&|document, _| document.delete_group(&group)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListGroups<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.all_of("group"))
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
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_user(self.user_name))
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
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_group(self.group_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (group, user) = (name("GroupName", self.group_name)?, name("UserName", self.user_name)?);
        call.change(&|document, _| document.add_user_to_group(&group, &user)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::RemoveUserFromGroup<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_group(self.group_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (group, user) = (name("GroupName", self.group_name)?, name("UserName", self.user_name)?);
        call.change(&|document, _| document.remove_user_from_group(&group, &user)).await?;
        Ok(done::<Self>(call))
    }
}
