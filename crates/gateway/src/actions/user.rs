//! Users, their boundaries and tags.

use async_trait::async_trait;
use iam::PrincipalKind;
use iam::model::{Holder, NewUser, Tagged, Tags};
use iam_wire::api::{self, CreateUserResult, GetUserResult, ListUserTagsResult, ListUsersResult};
use iam_wire::{QueryError, Tag, Text};
use policy::Value;
use s3_types::Timestamp;

use super::call::{ActionCall, name};
use super::entities::{
    Shown, new_tags, path, policy_arn, tag_keys, tags, user, value_of_resource_tags, value_of_sent_keys,
    value_of_sent_tags,
};
use super::error;
use super::perform::{Perform, done, rendered};

/// Returns the tags of a user who may not be there.
fn tags_of<'v>(call: &'v ActionCall<'_>, user_name: &str) -> Option<&'v Tags> {
    call.user(user_name).ok().map(|(_, user)| &user.tags)
}

#[async_trait]
impl<'f> Perform<'f> for api::CreateUser<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.arn("user", &format!("{}{}", self.path.unwrap_or("/"), self.user_name)))
    }

    fn own_value<'v>(&'v self, _: &'v ActionCall<'_>, name: &str, tag: &str) -> Value<'v> {
        match name {
            "iam:PermissionsBoundary" => self.permissions_boundary.map_or(Value::Absent, Value::text),
            _ => value_of_sent_tags(&self.tags, name, tag),
        }
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
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(self.user_name.map_or_else(|| call.session.principal.arn.to_string(), |name| call.user_arn(name)))
    }

    fn own_value<'v>(&'v self, call: &'v ActionCall<'_>, name: &str, tag: &str) -> Value<'v> {
        let own = || call.asking_user().map(|(_, user)| &user.tags);
        value_of_resource_tags(self.user_name.map_or_else(own, |user| tags_of(call, user)), name, tag)
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

/// Returns the root of the account, as IAM shows it: its id is the account's. When it was made is
/// not known.
fn root(call: &ActionCall<'_>) -> String {
    let user = api::User {
        path: "/".into(),
        user_name: iam::ROOT_NAME.into(),
        user_id: call.account_id().as_str().into(),
        arn: call.arn("root", "").into(),
        create_date: Timestamp::UNIX_EPOCH,
        permissions_boundary: None,
        tags: None,
    };
    rendered(&GetUserResult { user }, call)
}

#[async_trait]
impl<'f> Perform<'f> for api::UpdateUser<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.user_arn(self.user_name))
    }

    /// Asks, as IAM does, also for the right to update the user that it becomes.
    fn becomes(&self, call: &ActionCall<'_>) -> Result<Option<String>, QueryError> {
        if self.new_user_name.is_none() && self.new_path.is_none() {
            return Ok(None);
        }
        let there = call.user(self.user_name).ok();
        let path = self.new_path.or(there.map(|(_, user)| user.path.as_str())).unwrap_or("/");
        Ok(Some(call.arn("user", &format!("{path}{}", self.new_user_name.unwrap_or(self.user_name)))))
    }

    fn own_value<'v>(&'v self, call: &'v ActionCall<'_>, name: &str, tag: &str) -> Value<'v> {
        value_of_resource_tags(tags_of(call, self.user_name), name, tag)
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
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.user_arn(self.user_name))
    }

    fn own_value<'v>(&'v self, call: &'v ActionCall<'_>, name: &str, tag: &str) -> Value<'v> {
        value_of_resource_tags(tags_of(call, self.user_name), name, tag)
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let user = name("UserName", self.user_name)?;
        call.change(&|document, _| document.delete_user(&user)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListUsers<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.arn("user", "/"))
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
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.user_arn(self.user_name))
    }

    fn own_value<'v>(&'v self, call: &'v ActionCall<'_>, name: &str, tag: &str) -> Value<'v> {
        match name {
            "iam:PermissionsBoundary" => Value::text(self.permissions_boundary),
            _ => value_of_resource_tags(tags_of(call, self.user_name), name, tag),
        }
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
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.user_arn(self.user_name))
    }

    /// The boundary that is removed.
    fn own_value<'v>(&'v self, call: &'v ActionCall<'_>, name: &str, tag: &str) -> Value<'v> {
        match name {
            "iam:PermissionsBoundary" => {
                let user = call.user(self.user_name).ok();
                let arn = user.and_then(|(_, user)| user.boundary.as_ref());
                arn.map_or(Value::Absent, |arn| Value::text(arn.as_str()))
            }
            _ => value_of_resource_tags(tags_of(call, self.user_name), name, tag),
        }
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let of = Holder::User(name("UserName", self.user_name)?);
        call.change(&|document, _| document.set_boundary(&of, None)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::TagUser<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.user_arn(self.user_name))
    }

    fn own_value<'v>(&'v self, call: &'v ActionCall<'_>, name: &str, tag: &str) -> Value<'v> {
        match value_of_sent_tags(&self.tags, name, tag) {
            Value::Absent => value_of_resource_tags(tags_of(call, self.user_name), name, tag),
            sent => sent,
        }
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (of, new) = (Tagged::User(name("UserName", self.user_name)?), new_tags(&self.tags)?);
        call.change(&|document, _| document.tag(&of, &new)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::UntagUser<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.user_arn(self.user_name))
    }

    fn own_value<'v>(&'v self, call: &'v ActionCall<'_>, name: &str, tag: &str) -> Value<'v> {
        match value_of_sent_keys(&self.tag_keys, name) {
            Value::Absent => value_of_resource_tags(tags_of(call, self.user_name), name, tag),
            sent => sent,
        }
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (of, keys) = (Tagged::User(name("UserName", self.user_name)?), tag_keys(&self.tag_keys)?);
        call.change(&|document, _| document.untag(&of, &keys)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListUserTags<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(call.user_arn(self.user_name))
    }

    fn own_value<'v>(&'v self, call: &'v ActionCall<'_>, name: &str, tag: &str) -> Value<'v> {
        value_of_resource_tags(tags_of(call, self.user_name), name, tag)
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let all = tags(&call.user(self.user_name)?.1.tags);
        let page = self.page.cut(all, |tag: &Tag<'_>| tag.key.clone().into_owned().into());
        let is_truncated = page.is_truncated();
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&ListUserTagsResult { tags: page.items, is_truncated, marker }, call))
    }
}
