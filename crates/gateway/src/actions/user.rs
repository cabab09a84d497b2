//! The actions about users, their boundaries and tags.

use async_trait::async_trait;
use iam::PrincipalKind;
use iam::model::{Holder, NewUser, Tagged};
use iam_wire::api::{self, CreateUserResult, GetUserResult, ListUserTagsResult, ListUsersResult};
use iam_wire::{QueryError, Tag, Text};
use s3_types::Timestamp;

use super::call::{ActionCall, name};
use super::entities::{Shown, new_tags, path, policy_arn, tag_keys, tags, user};
use super::error;
use super::perform::{Perform, done, rendered};
use super::target::Target;

#[async_trait]
impl<'f> Perform<'f> for api::CreateUser<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call
            .to_be_made("user", self.path, self.user_name)
            .sending_tags(&self.tags)
            .bounded(self.permissions_boundary))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let new = NewUser {
            name: name("UserName", self.user_name)?,
            path: path(self.path)?,
            boundary: self.permissions_boundary.map(policy_arn).transpose()?,
            tags: new_tags(&self.tags)?,
        };
        let made = call
            .change(&|document, cx| {
                document.create_user(&new, cx)?;
                Ok(document.users.get(&new.name).cloned())
            })
            .await?;
        let made = made.ok_or_else(|| error::missing("user", self.user_name))?;
        let user = user(call.account_id(), &new.name, &made, Shown::Whole);
        Ok(rendered(&CreateUserResult { user }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::GetUser<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_user_or_asker(self.user_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let found = match self.user_name {
            Some(name) => call.user(name)?,
            None if call.session.principal.kind == PrincipalKind::Root => return Ok(root(call)),
            None => call.asking_user().ok_or_else(QueryError::user_name_missing)?,
        };
        let user = user(call.account_id(), found.0, found.1, Shown::Whole);
        Ok(rendered(&GetUserResult { user }, call))
    }
}

/// Renders the root of the account as GetUser shows it: its id is the account's, and its time that
/// of 1970, since it is not known.
fn root(call: &ActionCall<'_>) -> String {
    let user = api::User {
        path: "/".into(),
        user_name: iam::ROOT_NAME.into(),
        user_id: call.account_id().as_str().into(),
        arn: call.arn("root", "").into(),
        create_date: Timestamp::UNIX_EPOCH,
        permissions_boundary: None,
        tags: None,
        status: None,
        posix_identity: None,
    };
    rendered(&GetUserResult { user }, call)
}

#[async_trait]
impl<'f> Perform<'f> for api::UpdateUser<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_user(self.user_name).becoming(self.new_user_name, self.new_path))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let old = name("UserName", self.user_name)?;
        let new = self.new_user_name.map(|new| name("NewUserName", new)).transpose()?;
        let new_path = self.new_path.map(|new| path(Some(new))).transpose()?;
        call.change(&|document, _| document.update_user(&old, new.as_ref(), new_path.as_ref())).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::DeleteUser<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_user(self.user_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let user = name("UserName", self.user_name)?;
        call.change(&|document, _| document.delete_user(&user)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListUsers<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.all_of("user"))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let prefix = self.path_prefix.unwrap_or("/");
        let found = call.document().users.iter().filter(|(_, user)| user.path.as_str().starts_with(prefix));
        let page = self.page.cut(found, |(name, _)| name.as_str().into());
        let is_truncated = page.is_truncated();
        let users =
            page.items.iter().map(|(name, found)| user(call.account_id(), name, found, Shown::InList));
        let users = users.collect();
        Ok(rendered(&ListUsersResult { users, is_truncated, marker: page.marker.map(Text::Owned) }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::PutUserPermissionsBoundary<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_user(self.user_name).bounded(Some(self.permissions_boundary)))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let of = Holder::User(name("UserName", self.user_name)?);
        let arn = policy_arn(self.permissions_boundary)?;
        call.change(&|document, _| document.set_boundary(&of, Some(&arn))).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::DeleteUserPermissionsBoundary<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_user(self.user_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let of = Holder::User(name("UserName", self.user_name)?);
        call.change(&|document, _| document.set_boundary(&of, None)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::TagUser<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_user(self.user_name).sending_tags(&self.tags))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (of, new) = (Tagged::User(name("UserName", self.user_name)?), new_tags(&self.tags)?);
        call.change(&|document, _| document.tag(&of, &new)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::UntagUser<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_user(self.user_name).sending_keys(&self.tag_keys))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (of, keys) = (Tagged::User(name("UserName", self.user_name)?), tag_keys(&self.tag_keys)?);
        call.change(&|document, _| document.untag(&of, &keys)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListUserTags<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_user(self.user_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let all = tags(&call.user(self.user_name)?.1.tags);
        let page = self.page.cut(all, |tag: &Tag<'_>| tag.key.clone().into_owned().into());
        let is_truncated = page.is_truncated();
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&ListUserTagsResult { tags: page.items, is_truncated, marker }, call))
    }
}
