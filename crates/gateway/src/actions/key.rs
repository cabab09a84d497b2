//! The actions about access keys.

use async_trait::async_trait;
use iam::AccessKeyId;
use iam::model::{Key, KeyOwner, KeyStatus, NewKey};
use iam_wire::api::{
    self, AccessKey, AccessKeyLastUsed, AccessKeyMetadata, CreateAccessKeyResult, GetAccessKeyLastUsedResult,
    ListAccessKeysResult,
};
use iam_wire::{Input as _, QueryCode, QueryError, Secret, Text};
use s3_types::Timestamp;

use super::authorize;
use super::call::ActionCall;
use super::error;
use super::perform::{Perform, done, rendered};
use super::target::Target;
use crate::identities::last_use;

pub(super) fn owner_name(owner: &KeyOwner) -> &str {
    match owner {
        KeyOwner::Root => iam::ROOT_NAME,
        KeyOwner::User(name) => name.as_str(),
    }
}

pub(super) fn key_id(text: &str) -> Result<AccessKeyId, QueryError> {
    AccessKeyId::new(text).map_err(|_| {
        let message = format!("The Access Key with id {text} cannot be found.");
        QueryError::new(QueryCode::NoSuchEntity, message)
    })
}

pub(super) fn shown(key: &Key, now: Timestamp) -> iam_wire::KeyStatus {
    match key.status {
        _ if key.has_ended(now) => iam_wire::KeyStatus::Expired,
        KeyStatus::Active => iam_wire::KeyStatus::Active,
        KeyStatus::Inactive => iam_wire::KeyStatus::Inactive,
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::CreateAccessKey<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        call.of_key_owner(self.user_name)
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let owner = call.key_owner(self.user_name)?;
        call.check_makes_no_own_key(&owner)?;
        let new = NewKey { owner, expires: None, policy: None, description: None };
        let (made, created) = call
            .change(&|document, cx| {
                let made = document.create_access_key(&new, cx)?;
                let there = document.keys_of(&new.owner)?.iter().find(|key| key.id == made.access_key);
                Ok((made.clone(), there.map_or(cx.now, |key| key.created)))
            })
            .await?;
        let access_key = AccessKey {
            user_name: owner_name(&new.owner).into(),
            access_key_id: made.access_key.as_str().into(),
            status: iam_wire::KeyStatus::Active,
            secret_access_key: Secret::new(made.secret_key.expose()),
            create_date: created,
        };
        Ok(rendered(&CreateAccessKeyResult { access_key }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::UpdateAccessKey<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        call.of_key(self.access_key_id, self.user_name)
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (owner, id) = (call.key_owner(self.user_name)?, key_id(self.access_key_id)?);
        let status = match self.status {
            iam_wire::KeyStatus::Active => KeyStatus::Active,
            iam_wire::KeyStatus::Inactive => KeyStatus::Inactive,
            iam_wire::KeyStatus::Expired => {
                let message = "The status of an access key cannot be set to Expired.";
                return Err(QueryError::new(QueryCode::InvalidInput, message));
            }
        };
        call.change(&|document, cx| document.update_access_key(&owner, &id, status, cx.now)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::DeleteAccessKey<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        call.of_key(self.access_key_id, self.user_name)
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (owner, id) = (call.key_owner(self.user_name)?, key_id(self.access_key_id)?);
        call.change(&|document, _| document.delete_access_key(&owner, &id)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListAccessKeys<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        call.of_key_owner(self.user_name)
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let owner = call.key_owner(self.user_name)?;
        let keys = call.document().keys_of(&owner).map_err(error::of_iam)?;
        let page = self.page.cut(keys, |key| key.id.as_str().into());
        let is_truncated = page.is_truncated();
        let access_key_metadata = page.items.iter().map(|key| AccessKeyMetadata {
            user_name: owner_name(&owner).into(),
            access_key_id: key.id.as_str().into(),
            status: shown(key, call.now),
            create_date: key.created,
        });
        let access_key_metadata = access_key_metadata.collect();
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&ListAccessKeysResult { access_key_metadata, is_truncated, marker }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::GetAccessKeyLastUsed<'f> {
    const DECIDES_ITSELF: bool = true;

    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        let hidden = || QueryError::access_key_hidden(&call.session.principal.arn, self.access_key_id);
        let owner = owner_of(call, self.access_key_id).ok_or_else(hidden)?;
        let keys = call.document().keys_of(&owner).unwrap_or_default();
        Ok(call.of_owner(&owner).on_key(self.access_key_id, keys))
    }

    /// Returns the same error for a key whose owner's keys the requester may not see, and for a key
    /// that does not exist.
    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let hidden = || QueryError::access_key_hidden(&call.session.principal.arn, self.access_key_id);
        let owner = owner_of(call, self.access_key_id).ok_or_else(hidden)?;
        authorize::check(&self, Self::ACTION.info(), call).map_err(|_| hidden())?;
        let key = key_id(self.access_key_id)?;
        let last = last_use::read(call.registry).await.map_err(error::of_iam)?.of_key(&key);
        let (service_name, region) = match &last {
            Some(last) => (last.service.as_str(), &*last.region),
            None => ("N/A", "N/A"),
        };
        let access_key_last_used = AccessKeyLastUsed {
            last_used_date: last.as_ref().map(|last| last.hour),
            service_name: service_name.into(),
            region: region.into(),
        };
        let user_name = owner_name(&owner).into();
        Ok(rendered(&GetAccessKeyLastUsedResult { user_name, access_key_last_used }, call))
    }
}

fn owner_of(call: &ActionCall<'_>, access_key: &str) -> Option<KeyOwner> {
    let document = call.document();
    if document.root_keys.iter().any(|key| key.id.as_str() == access_key) {
        return Some(KeyOwner::Root);
    }
    let has_it = |keys: &[Key]| keys.iter().any(|key| key.id.as_str() == access_key);
    let user = document.users.iter().find(|(_, user)| has_it(&user.keys))?;
    Some(KeyOwner::User(user.0.clone()))
}
