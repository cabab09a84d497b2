//! The actions about OpenID providers and their tags.

use async_trait::async_trait;
use iam::model::{NewProvider, ProviderArn, ProviderUrl, Tagged};
use iam_wire::api::{
    self, CreateOpenIDConnectProviderResult, GetOpenIDConnectProviderClaimsResult,
    GetOpenIDConnectProviderResult, ListOpenIDConnectProviderTagsResult, ListOpenIDConnectProvidersResult,
    OpenIDConnectProviderListEntry,
};
use iam_wire::{QueryCode, QueryError, Tag, Text};

use super::call::ActionCall;
use super::entities::{new_tags, tag_keys, tags};
use super::error;
use super::perform::{Perform, done, rendered};
use super::target::Target;

/// Makes the URL of a provider from a parameter. The sentence of the error is AWS's.
fn url(text: &str) -> Result<ProviderUrl, QueryError> {
    ProviderUrl::new(text).map_err(|why| QueryError::new(QueryCode::ValidationError, why.to_string()))
}

/// Makes the ARN of a provider from a parameter.
fn provider_arn(text: &str) -> Result<ProviderArn, QueryError> {
    let invalid = || QueryError::new(QueryCode::ValidationError, format!("ARN {text} is not valid."));
    ProviderArn::new(text).ok_or_else(invalid)
}

/// Returns the target of an action on a provider: the ARN, and the tags if the provider exists.
fn target_of<'v>(call: &'v ActionCall<'_>, arn: &str) -> Result<Target<'v>, QueryError> {
    let arn = provider_arn(arn)?;
    let target = Target::new(arn.to_string());
    Ok(match call.document().provider(&arn) {
        Ok(provider) => target.having_tags(&provider.tags),
        Err(_) => target,
    })
}

fn texts(sent: &[&str]) -> Vec<Box<str>> {
    sent.iter().map(|text| (*text).into()).collect()
}

#[async_trait]
impl<'f> Perform<'f> for api::CreateOpenIDConnectProvider<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        let arn = call.document().provider_arn(&url(self.url)?);
        Ok(Target::new(arn.to_string()).sending_tags(&self.tags))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let new = NewProvider {
            url: url(self.url)?,
            is_http: self.url.starts_with("http://"),
            client_ids: texts(&self.client_id_list),
            thumbprints: texts(&self.thumbprint_list),
            tags: new_tags(&self.tags)?,
        };
        let arn = call.change(&|document, cx| document.create_provider(&new, cx)).await?;
        let tags = Some(tags(&new.tags)).filter(|tags| !tags.is_empty());
        Ok(rendered(&CreateOpenIDConnectProviderResult { arn: arn.to_string().into(), tags }, call))
    }
}

#[async_trait]
impl Perform<'_> for api::ListOpenIDConnectProviders {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::new(call.arn("oidc-provider", "/*")))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let arns = call.document().providers.keys().map(|url| call.arn("oidc-provider", &format!("/{url}")));
        let providers = arns.map(|arn| OpenIDConnectProviderListEntry { arn: arn.into() }).collect();
        Ok(rendered(&ListOpenIDConnectProvidersResult { providers }, call))
    }
}

/// Implements what all actions on a provider share; `$perform` is the rest.
macro_rules! of_provider {
    ($($name:ident $sending:expr, $perform:ident;)*) => {$(
        #[async_trait]
        impl<'f> Perform<'f> for api::$name<'f> {
            fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
                let sending: for<'x> fn(&'x Self, Target<'x>) -> Target<'x> = $sending;
                Ok(sending(self, target_of(call, self.arn)?))
            }

            async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
                let arn = provider_arn(self.arn)?;
                $perform(self, &arn, call).await
            }
        }
    )*};
}

of_provider! {
    GetOpenIDConnectProvider |_, target| target, get;
    DeleteOpenIDConnectProvider |_, target| target, delete;
    AddClientIDToOpenIDConnectProvider |_, target| target, add_client_id;
    RemoveClientIDFromOpenIDConnectProvider |_, target| target, remove_client_id;
    UpdateOpenIDConnectProviderThumbprint |_, target| target, update_thumbprints;
    TagOpenIDConnectProvider |input, target| target.sending_tags(&input.tags), tag;
    UntagOpenIDConnectProvider |input, target| target.sending_keys(&input.tag_keys), untag;
    ListOpenIDConnectProviderTags |_, target| target, list_tags;
    SetOpenIDConnectProviderClaims |_, target| target, set_claims;
    GetOpenIDConnectProviderClaims |_, target| target, get_claims;
}

#[expect(clippy::unused_async, reason = "the others wait for the store")]
async fn get(
    _: api::GetOpenIDConnectProvider<'_>,
    arn: &ProviderArn,
    call: &ActionCall<'_>,
) -> Result<String, QueryError> {
    let provider = call.document().provider(arn).map_err(error::of_iam)?;
    let shown = |texts: &'_ [Box<str>]| texts.iter().map(|text| text.to_string().into()).collect();
    let output = GetOpenIDConnectProviderResult {
        url: arn.url().as_str().into(),
        client_id_list: shown(&provider.client_ids),
        thumbprint_list: shown(&provider.thumbprints),
        create_date: provider.created,
        tags: tags(&provider.tags),
    };
    Ok(rendered(&output, call))
}

async fn delete(
    _: api::DeleteOpenIDConnectProvider<'_>,
    arn: &ProviderArn,
    call: &ActionCall<'_>,
) -> Result<String, QueryError> {
    call.change(&|document, _| document.delete_provider(arn)).await?;
    Ok(done::<api::DeleteOpenIDConnectProvider<'_>>(call))
}

async fn add_client_id(
    input: api::AddClientIDToOpenIDConnectProvider<'_>,
    arn: &ProviderArn,
    call: &ActionCall<'_>,
) -> Result<String, QueryError> {
    call.change(&|document, _| document.add_client_id(arn, input.client_id)).await?;
    Ok(done::<api::AddClientIDToOpenIDConnectProvider<'_>>(call))
}

async fn remove_client_id(
    input: api::RemoveClientIDFromOpenIDConnectProvider<'_>,
    arn: &ProviderArn,
    call: &ActionCall<'_>,
) -> Result<String, QueryError> {
    call.change(&|document, _| document.remove_client_id(arn, input.client_id)).await?;
    Ok(done::<api::RemoveClientIDFromOpenIDConnectProvider<'_>>(call))
}

async fn update_thumbprints(
    input: api::UpdateOpenIDConnectProviderThumbprint<'_>,
    arn: &ProviderArn,
    call: &ActionCall<'_>,
) -> Result<String, QueryError> {
    let thumbprints = texts(&input.thumbprint_list);
    call.change(&|document, _| document.update_thumbprints(arn, &thumbprints)).await?;
    Ok(done::<api::UpdateOpenIDConnectProviderThumbprint<'_>>(call))
}

async fn tag(
    input: api::TagOpenIDConnectProvider<'_>,
    arn: &ProviderArn,
    call: &ActionCall<'_>,
) -> Result<String, QueryError> {
    let (of, new) = (Tagged::Provider(arn.clone()), new_tags(&input.tags)?);
    call.change(&|document, _| document.tag(&of, &new)).await?;
    Ok(done::<api::TagOpenIDConnectProvider<'_>>(call))
}

async fn untag(
    input: api::UntagOpenIDConnectProvider<'_>,
    arn: &ProviderArn,
    call: &ActionCall<'_>,
) -> Result<String, QueryError> {
    let (of, keys) = (Tagged::Provider(arn.clone()), tag_keys(&input.tag_keys)?);
    call.change(&|document, _| document.untag(&of, &keys)).await?;
    Ok(done::<api::UntagOpenIDConnectProvider<'_>>(call))
}

#[expect(clippy::unused_async, reason = "the others wait for the store")]
async fn list_tags(
    input: api::ListOpenIDConnectProviderTags<'_>,
    arn: &ProviderArn,
    call: &ActionCall<'_>,
) -> Result<String, QueryError> {
    let all = tags(&call.document().provider(arn).map_err(error::of_iam)?.tags);
    let page = input.page.cut(all, |tag: &Tag<'_>| tag.key.clone().into_owned().into());
    let is_truncated = page.is_truncated();
    let marker = page.marker.map(Text::Owned);
    Ok(rendered(&ListOpenIDConnectProviderTagsResult { tags: page.items, is_truncated, marker }, call))
}

async fn set_claims(
    input: api::SetOpenIDConnectProviderClaims<'_>,
    arn: &ProviderArn,
    call: &ActionCall<'_>,
) -> Result<String, QueryError> {
    let (role, posix) = (input.role_claim, input.posix_claim);
    call.change(&|document, _| document.set_provider_claims(arn, role, posix)).await?;
    Ok(done::<api::SetOpenIDConnectProviderClaims<'_>>(call))
}

#[expect(clippy::unused_async, reason = "the others wait for the store")]
async fn get_claims(
    _: api::GetOpenIDConnectProviderClaims<'_>,
    arn: &ProviderArn,
    call: &ActionCall<'_>,
) -> Result<String, QueryError> {
    let provider = call.document().provider(arn).map_err(error::of_iam)?;
    let output = GetOpenIDConnectProviderClaimsResult {
        role_claim: provider.role_claim.as_deref().map(Into::into),
        posix_claim: provider.posix_claim.as_deref().map(Into::into),
    };
    Ok(rendered(&output, call))
}
