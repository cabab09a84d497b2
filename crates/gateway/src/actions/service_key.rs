//! The actions about service keys: access keys of users, each with a policy of its own that limits
//! it (docs/decisions/0040-accounts-and-users.md).

use async_trait::async_trait;
use iam::model::{Description, Document, Key, KeyOwner, NewKey};
use iam_wire::api::{self, CreateServiceKeyResult, ListServiceKeysResult, ServiceKey, ServiceKeyMetadata};
use iam_wire::{EncodedDocument, KeyStatus, QueryCode, QueryError, Secret, Text};
use s3_types::Timestamp;

use super::call::ActionCall;
use super::error;
use super::key::{owner_name, shown};
use super::perform::{Perform, rendered};
use super::target::Target;

/// The policy of a service key for which none is given: it allows everything, so that the key may
/// do all that its user may.
const ALL_OF_ITS_USER: &str =
    r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#;

fn time(text: &str) -> Result<Timestamp, QueryError> {
    text.parse().map_err(|_| {
        let message = format!("The value of Expires is no time: {text}. One is 2027-01-31T12:00:00Z.");
        QueryError::new(QueryCode::ValidationError, message)
    })
}

fn new_key(input: &api::CreateServiceKey<'_>, owner: KeyOwner) -> Result<NewKey, QueryError> {
    let document = Document::new(input.policy_document.unwrap_or(ALL_OF_ITS_USER));
    let description = input.description.filter(|text| !text.is_empty()).map(Description::new);
    Ok(NewKey {
        owner,
        expires: input.expires.map(time).transpose()?,
        policy: Some(document.map_err(|why| error::of_text("PolicyDocument", why))?),
        description: description.transpose().map_err(|why| error::of_text("Description", why))?,
    })
}

fn described(key: &Key) -> Option<Text<'_>> {
    key.description.as_ref().map(|text| text.as_str().into())
}

#[async_trait]
impl<'f> Perform<'f> for api::CreateServiceKey<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        call.of_key_owner(self.user_name)
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let owner = call.key_owner(self.user_name)?;
        call.check_makes_no_own_key(&owner)?;
        let new = new_key(&self, owner)?;
        let (made, key) = call
            .change(&|document, cx| {
                let made = document.create_access_key(&new, cx)?;
                let there = document.keys_of(&new.owner)?.iter().find(|key| key.id == made.access_key);
                Ok((made.clone(), there.cloned()))
            })
            .await?;
        let service_key = ServiceKey {
            user_name: owner_name(&new.owner).into(),
            access_key_id: made.access_key.as_str().into(),
            status: KeyStatus::Active,
            secret_access_key: Secret::new(made.secret_key.expose()),
            create_date: key.as_ref().map_or(call.now, |key| key.created),
            expires: key.as_ref().and_then(|key| key.expires),
            description: key.as_ref().and_then(described),
        };
        Ok(rendered(&CreateServiceKeyResult { service_key }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListServiceKeys<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        call.of_key_owner(self.user_name)
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let owner = call.key_owner(self.user_name)?;
        let keys = call.document().keys_of(&owner).map_err(error::of_iam)?;
        let of_services = keys.iter().filter_map(|key| Some((key, key.policy.as_ref()?)));
        let page = self.page.cut(of_services, |(key, _)| key.id.as_str().into());
        let is_truncated = page.is_truncated();
        let service_key_metadata = page.items.iter().map(|(key, policy)| ServiceKeyMetadata {
            user_name: owner_name(&owner).into(),
            access_key_id: key.id.as_str().into(),
            status: shown(key, call.now),
            create_date: key.created,
            expires: key.expires,
            description: described(key),
            policy_document: EncodedDocument(policy.as_str().into()),
        });
        let service_key_metadata = service_key_metadata.collect();
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&ListServiceKeysResult { service_key_metadata, is_truncated, marker }, call))
    }
}
