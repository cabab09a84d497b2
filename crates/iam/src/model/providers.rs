//! The operations on OpenID providers.

use super::change::Context;
use super::document::AccountDocument;
use super::error::{IamCode, IamError};
use super::limits::{CLIENT_ID_CHARS_MAX, CLIENT_IDS_MAX, PROVIDERS_MAX, THUMBPRINT_CHARS, THUMBPRINTS_MAX};
use super::parts::Provider;
use super::provider_url::{ProviderArn, ProviderUrl};
use super::rules::is_free;
use super::tagging::check_tags;
use super::tags::Tags;
use crate::unique_id::IdKind;

/// The arguments of CreateOpenIDConnectProvider.
#[derive(Debug, Clone)]
pub struct NewProvider {
    /// The URL.
    pub url: ProviderUrl,
    /// True if the scheme of the URL is `http`.
    pub is_http: bool,
    /// The audiences that are accepted.
    pub client_ids: Vec<Box<str>>,
    /// Thumbprints of certificates.
    pub thumbprints: Vec<Box<str>>,
    /// The tags.
    pub tags: Tags,
}

fn check_thumbprints(thumbprints: &[Box<str>]) -> Result<(), IamError> {
    let is_one =
        |text: &str| text.len() == THUMBPRINT_CHARS && text.bytes().all(|b| b.is_ascii_alphanumeric());
    if !thumbprints.iter().all(|text| is_one(text)) {
        let rule = format!(
            "Member must satisfy constraint: [Member must have length less than or equal to {THUMBPRINT_CHARS}, \
             Member must have length greater than or equal to {THUMBPRINT_CHARS}]"
        );
        return Err(IamError::constraint("thumbprintList", &rule));
    }
    if thumbprints.len() > THUMBPRINTS_MAX {
        // AWS's own words; it takes five.
        let message = format!("Thumbprint list must contain fewer than {THUMBPRINTS_MAX} entries.");
        return Err(IamError::new(IamCode::InvalidInput, message));
    }
    Ok(())
}

fn check_client_id(id: &str) -> Result<(), IamError> {
    if (1..=CLIENT_ID_CHARS_MAX).contains(&id.chars().count()) && is_free(id) {
        return Ok(());
    }
    let rule = format!(
        "Member must satisfy constraint: [Member must have length less than or equal to {CLIENT_ID_CHARS_MAX}, \
         Member must have length greater than or equal to 1]"
    );
    Err(IamError::constraint("clientIDList", &rule))
}

/// Returns the texts without repetitions, in the order of their first occurrences.
fn once(texts: &[Box<str>]) -> Vec<Box<str>> {
    let mut all: Vec<Box<str>> = Vec::new();
    for text in texts {
        if !all.contains(text) {
            all.push(text.clone());
        }
    }
    all
}

fn too_many_client_ids() -> IamError {
    IamError::quota("ClientIdsPerOpenIdConnectProvider", CLIENT_IDS_MAX)
}

impl AccountDocument {
    /// Returns the ARN of a provider.
    pub fn provider_arn(&self, url: &ProviderUrl) -> ProviderArn {
        ProviderArn::of(&self.account, url)
    }

    /// Finds a provider (GetOpenIDConnectProvider).
    pub fn provider(&self, arn: &ProviderArn) -> Result<&Provider, IamError> {
        if arn.account() != &self.account {
            return Err(IamError::no_provider(arn));
        }
        self.providers.get(arn.url().as_str()).ok_or_else(|| IamError::no_provider(arn))
    }

    pub(super) fn provider_mut(&mut self, arn: &ProviderArn) -> Result<&mut Provider, IamError> {
        if arn.account() != &self.account {
            return Err(IamError::no_provider(arn));
        }
        self.providers.get_mut(arn.url().as_str()).ok_or_else(|| IamError::no_provider(arn))
    }

    /// CreateOpenIDConnectProvider. Returns the ARN of the new provider.
    pub fn create_provider(&mut self, new: &NewProvider, cx: &Context<'_>) -> Result<ProviderArn, IamError> {
        new.client_ids.iter().try_for_each(|id| check_client_id(id))?;
        check_thumbprints(&new.thumbprints)?;
        let client_ids = once(&new.client_ids);
        if client_ids.len() > CLIENT_IDS_MAX {
            return Err(too_many_client_ids());
        }
        check_tags(&Tags::new(), &new.tags, false)?;
        if self.providers.contains_key(new.url.as_str()) {
            let message = format!("Provider with url https://{} already exists.", new.url);
            return Err(IamError::new(IamCode::EntityAlreadyExists, message));
        }
        if self.providers.len() >= PROVIDERS_MAX {
            return Err(IamError::quota("OpenIdConnectProvidersPerAccount", PROVIDERS_MAX));
        }
        let provider = Provider {
            id: self.new_id(IdKind::Provider, cx)?,
            is_http: new.is_http,
            client_ids,
            thumbprints: once(&new.thumbprints),
            created: cx.second(),
            disabled: false,
            posix_claim: None,
            role_claim: None,
            tags: new.tags.clone(),
        };
        self.providers.insert(new.url.as_str().into(), provider);
        Ok(self.provider_arn(&new.url))
    }

    /// DeleteOpenIDConnectProvider. Roles that trust the provider stay as they are.
    pub fn delete_provider(&mut self, arn: &ProviderArn) -> Result<(), IamError> {
        if self.provider(arn).is_err() {
            let message = format!("OpenId connect Provider {arn} cannot be found.");
            return Err(IamError::new(IamCode::NoSuchEntity, message));
        }
        self.providers.remove(arn.url().as_str());
        Ok(())
    }

    /// AddClientIDToOpenIDConnectProvider. It succeeds also if the provider has the id already.
    pub fn add_client_id(&mut self, arn: &ProviderArn, id: &str) -> Result<(), IamError> {
        check_client_id(id)?;
        let there = &mut self.provider_mut(arn)?.client_ids;
        if there.iter().any(|other| **other == *id) {
            return Ok(());
        }
        if there.len() >= CLIENT_IDS_MAX {
            return Err(too_many_client_ids());
        }
        there.push(id.into());
        Ok(())
    }

    /// RemoveClientIDFromOpenIDConnectProvider. It succeeds also if the provider does not have the
    /// id.
    pub fn remove_client_id(&mut self, arn: &ProviderArn, id: &str) -> Result<(), IamError> {
        self.provider_mut(arn)?.client_ids.retain(|there| **there != *id);
        Ok(())
    }

    /// UpdateOpenIDConnectProviderThumbprint: the new list replaces the old one.
    pub fn update_thumbprints(
        &mut self,
        arn: &ProviderArn,
        thumbprints: &[Box<str>],
    ) -> Result<(), IamError> {
        check_thumbprints(thumbprints)?;
        self.provider_mut(arn)?.thumbprints = once(thumbprints);
        Ok(())
    }

    /// Refuses all sessions that came through a provider and issues no more, or ends this (not in
    /// AWS).
    pub fn set_provider_disabled(&mut self, arn: &ProviderArn, disabled: bool) -> Result<(), IamError> {
        self.provider_mut(arn)?.disabled = disabled;
        Ok(())
    }

    /// Sets the names of the claims that hold the roles of a session and its user name on the file
    /// system (not in AWS); `None` removes a name.
    pub fn set_provider_claims(
        &mut self,
        arn: &ProviderArn,
        role: Option<&str>,
        posix: Option<&str>,
    ) -> Result<(), IamError> {
        if [role, posix].into_iter().flatten().any(|claim| claim.is_empty() || !is_free(claim)) {
            let why = "The name of a claim has 1 to 512 characters, in one line.";
            return Err(IamError::new(IamCode::InvalidInput, why));
        }
        let provider = self.provider_mut(arn)?;
        (provider.role_claim, provider.posix_claim) = (role.map(Into::into), posix.map(Into::into));
        Ok(())
    }
}
