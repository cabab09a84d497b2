//! AssumeRoleWithWebIdentity: it issues sessions of roles to people for whom an OpenID provider
//! vouches (docs/decisions/0072-openid-tokens.md). The requests are not signed: the token is the
//! proof.

use http::HeaderMap;
use iam::model::{Name, Provider, ProviderArn, ProviderUrl, Role, arn_of, is_of_name};
use iam::{
    AccountId, AccountState, ActionQuestion, Claims, Decision, PosixClaim, PosixOf, Requester, SessionKind,
    Snapshot, Values, WebIdentity, WebSubject, Who,
};
use iam_remote::{Expected, Refusal, Unverified, WebToken};
use iam_wire::api::{self, AssumeRoleWithWebIdentityResult, AssumedRoleUser};
use iam_wire::{Action, Form, Output as _, QueryCode, QueryError, Tag, parse};
use policy::Value;

use super::authorize::{asker, decide};
use super::entities::new_tags;
use super::error;
use super::session::{
    ROLE_SECONDS, Wanted, credentials, find, session_policies, session_policy, transitive_of,
};
use super::target::Target;
use crate::access::{Asker, Subject};
use crate::gateway::Gateway;
use crate::request::RequestContext;

const ACTION: Action = Action::AssumeRoleWithWebIdentity;
/// The minimum and the maximum length of a source identity in characters, from STS's model.
const SOURCE_IDENTITY_CHARS: (usize, usize) = (2, 256);
/// The longest name of a session, in characters.
const SESSION_NAME_CHARS_MAX: usize = 64;

type Input<'f> = api::AssumeRoleWithWebIdentity<'f>;

/// A request for a session, from a client that has a token.
pub(super) struct Login<'a> {
    /// The gateway.
    pub gateway: &'a Gateway,
    /// The account of the tree.
    pub account: &'a AccountId,
    /// The facts about the request.
    pub cx: &'a RequestContext,
    /// The headers.
    pub headers: &'a HeaderMap,
}

/// The provider of a token, in the account of the role.
struct Found<'s> {
    account: &'s AccountState,
    url: &'s str,
    arn: String,
    provider: &'s Provider,
}

fn invalid(message: impl Into<String>) -> QueryError {
    QueryError::new(QueryCode::InvalidIdentityToken, message.into())
}

/// Makes the error for a role that does not exist, or that does not trust the person: clients do
/// not learn which. The sentence is AWS's.
fn denied() -> QueryError {
    let message = "Not authorized to perform sts:AssumeRoleWithWebIdentity";
    QueryError::new(QueryCode::AccessDenied, message)
}

fn refused(why: Refusal) -> QueryError {
    match &why {
        Refusal::Invalid(sentence) => invalid(*sentence),
        Refusal::Expired { .. } => QueryError::new(QueryCode::ExpiredTokenException, why.to_string()),
        Refusal::Unreachable(_) => {
            let message = "The keys of the identity provider could not be fetched.";
            QueryError::new(QueryCode::IDPCommunicationError, message).caused_by(why)
        }
    }
}

impl Login<'_> {
    /// Performs the action. If `RoleArn` is missing, the token names the role.
    pub async fn perform(&self, form: &Form<'_>) -> Result<String, QueryError> {
        let token = form.get("WebIdentityToken").filter(|_| form.get("RoleArn").is_none());
        let Some(token) = token else { return self.perform_named(form).await };
        match self.named_by(token).await? {
            None => self.perform_named(form).await,
            Some((arn, name)) => {
                let form = form.with("RoleArn", arn);
                if form.get("RoleSessionName").is_some() {
                    return self.perform_named(&form).await;
                }
                self.perform_named(&form.with("RoleSessionName", name)).await
            }
        }
    }

    /// Returns the ARN of the role that a token names, and a name for the session; `None` if the
    /// token's provider has no claim for roles.
    async fn named_by(&self, token: &str) -> Result<Option<(String, String)>, QueryError> {
        let sent = Unverified::read(token).map_err(refused)?;
        let state = self.gateway.registry.fresh_or_look().await.map_err(error::unavailable)?;
        let found = self.find_provider(&state, self.account.as_str(), sent.issuer())?;
        if found.provider.role_claim.is_none() {
            return Ok(None);
        }
        let token = self.verify(&sent, &found).await?;
        let roles = &found.account.document().roles;
        let arn_of = |(name, role): (&Name, &Role)| arn_of(self.account, "role", &role.path, name);
        let mut named = roles.iter().map(arn_of).filter(|arn| is_named(&token, arn));
        match (named.next(), named.next()) {
            (Some(arn), None) => Ok(Some((arn, session_name(&token.subject)))),
            (None, _) => Err(denied()),
            (Some(_), Some(_)) => {
                let message = "The token names several roles: RoleArn has to say which.";
                Err(QueryError::new(QueryCode::InvalidParameterValue, message))
            }
        }
    }

    async fn verify(&self, sent: &Unverified<'_>, found: &Found<'_>) -> Result<WebToken, QueryError> {
        let Provider { client_ids, role_claim, posix_claim, .. } = found.provider;
        let (role_claim, posix_claim) = (role_claim.as_deref(), posix_claim.as_deref());
        let expected = Expected { issuer: sent.issuer(), client_ids, role_claim, posix_claim };
        let token =
            self.gateway.openid.verify(sent, expected, self.cx.now.as_second()).await.map_err(refused)?;
        if let Some(trail) = &self.cx.trail {
            let (provider, subject) = (found.arn.as_str().into(), token.subject.clone());
            trail.set_web(WebSubject { provider, subject });
        }
        Ok(token)
    }

    /// Verifies the token with the keys of its provider, checks the trust policy of the role, and
    /// issues a session.
    async fn perform_named(&self, form: &Form<'_>) -> Result<String, QueryError> {
        let input: Input<'_> = parse(form)?;
        let sent = Unverified::read(input.web_identity_token.expose()).map_err(refused)?;
        let state = self.gateway.registry.fresh_or_look().await.map_err(error::unavailable)?;
        let account = input.role_arn.strip_prefix("arn:aws:iam::").and_then(|rest| rest.split(':').next());
        let found = self.find_provider(&state, account.ok_or_else(denied)?, sent.issuer())?;
        let token = self.verify(&sent, &found).await?;
        // Only those who have a token of the provider learn what roles there are.
        let wanted = find(&state, input.role_arn).filter(|_| is_named(&token, input.role_arn));
        let wanted = wanted.ok_or_else(denied)?;
        self.check(&input, &wanted, &found, &token)?;
        self.answer(&input, &wanted, &found, &token)
    }

    /// Finds the provider of a token in an account, which is that of the role. Since the gateway
    /// fetches documents from servers that a provider names, only the account of the tree may have
    /// providers, until there is an option for the hosts that other accounts may name.
    fn find_provider<'s>(
        &self,
        state: &'s Snapshot,
        account: &str,
        issuer: &str,
    ) -> Result<Found<'s>, QueryError> {
        let account = Some(account).filter(|id| *id == self.account.as_str()).ok_or_else(denied)?;
        let account = AccountId::new(account).ok().and_then(|id| state.account(&id)).ok_or_else(denied)?;
        let providers = &account.document().providers;
        let url = issuer.strip_prefix("https://").or_else(|| issuer.strip_prefix("http://"));
        let found = url.and_then(|url| providers.get_key_value(url));
        let found = found.filter(|(url, provider)| provider.issuer(url) == issuer);
        let (url, provider) = found.ok_or_else(|| {
            let issuer: String = issuer.chars().take(300).collect();
            // AWS's sentence.
            invalid(format!("No OpenIDConnect provider found in your account for {issuer}"))
        })?;
        if provider.disabled {
            let message = "The identity provider is disabled.";
            return Err(QueryError::new(QueryCode::IDPRejectedClaim, message));
        }
        let parsed = ProviderUrl::without_scheme(url).map_err(|why| invalid(why.to_string()))?;
        let arn = ProviderArn::of(account.account().id(), &parsed).to_string();
        Ok(Found { account, url, arn, provider })
    }

    /// Checks that the trust policy of the role allows the session, with the tags and the source
    /// identity that the token has for it.
    fn check(
        &self,
        input: &Input<'_>,
        wanted: &Wanted<'_>,
        found: &Found<'_>,
        token: &WebToken,
    ) -> Result<(), QueryError> {
        let (tags, transitive) =
            (sent_tags(token), token.transitive.iter().map(|key| &**key).collect::<Vec<_>>());
        let source = token.source_identity.as_deref();
        let target = Target::new(input.role_arn)
            .having_tags(&wanted.role.tags)
            .sending_tags(&tags)
            .sending_transitive(&transitive)
            .sending("sts:RoleSessionName", Some(input.role_session_name))
            .sending("sts:SourceIdentity", source)
            .sending("aws:FederatedProvider", Some(&found.arn));
        let claims = format!("{}:", found.url.to_ascii_lowercase());
        let own_values = |key: &str, tag: &str| match key.strip_prefix(&claims) {
            Some(claim) => value_of_claim(token, claim),
            None => target.value(ACTION, key, tag),
        };
        let nobody = Requester::Anonymous;
        let asker: Asker<'_> = asker(self.gateway, self.cx, self.headers, &nobody);
        let of_operation: &Values<'_> = &|_| Value::Absent;
        let values = |key| asker.value_of(key, Subject::default(), of_operation);
        let may = |permission: &str| {
            let action = policy::Action::named(permission).ok_or_else(denied)?;
            let question = ActionQuestion {
                requester: &nobody,
                provider: Some(&found.arn),
                action,
                resource: input.role_arn,
                trust: Some((wanted.trust, wanted.account.account().id().as_str())),
                values: &values,
                own_values: &own_values,
            };
            if decide(&asker, &question) == Decision::Allow { Ok(()) } else { Err(denied()) }
        };
        may("sts:AssumeRoleWithWebIdentity")?;
        if !tags.is_empty() {
            may("sts:TagSession")?;
        }
        if source.is_some() {
            may("sts:SetSourceIdentity")?;
        }
        Ok(())
    }

    fn answer(
        &self,
        input: &Input<'_>,
        wanted: &Wanted<'_>,
        found: &Found<'_>,
        token: &WebToken,
    ) -> Result<String, QueryError> {
        let account = wanted.account.account().id();
        let issued = self.cx.now.as_second();
        let ends = issued.saturating_add(i64::from(seconds(input, wanted.role)?));
        let (whose, name) = (Who::Id(wanted.role.id.clone()), input.role_session_name);
        let mut claims = Claims::new(SessionKind::WebIdentity, account.clone(), whose, name, issued, ends);
        claims.web = Some(WebIdentity {
            provider: found.arn.as_str().into(),
            provider_id: found.provider.id.clone(),
            subject: token.subject.clone(),
            audience: token.audience.clone(),
        });
        let named = found.provider.posix_claim.clone().zip(token.posix_name.clone());
        claims.posix = named.map(|(claim, name)| PosixOf::Claim(PosixClaim { claim, name }));
        claims.policy = session_policy(input.policy)?;
        claims.managed = session_policies(&input.policy_arns, found.account)?;
        claims.tags = new_tags(&sent_tags(token)).map_err(|why| invalid(why.message()))?;
        claims.transitive = transitive_of(&claims.tags, &token.transitive);
        claims.source = token.source_identity.as_deref().map(source_identity).transpose()?;
        let session = self.gateway.registry.issue(&claims).map_err(error::of_iam)?;
        let output = AssumeRoleWithWebIdentityResult {
            credentials: credentials(&session, &claims),
            subject_from_web_identity_token: (&*token.subject).into(),
            assumed_role_user: AssumedRoleUser {
                assumed_role_id: format!("{}:{name}", wanted.role.id.as_str()).into(),
                arn: format!("arn:aws:sts::{account}:assumed-role/{}/{name}", wanted.name).into(),
            },
            packed_policy_size: session.packed_percent,
            provider: found.arn.as_str().into(),
            audience: (&*token.audience).into(),
            source_identity: claims.source.as_deref().map(Into::into),
        };
        Ok(output.render(self.cx.id.as_str()))
    }
}

/// True if a token names a role, by its name or its ARN, or if its provider has no claim for roles,
/// so that any role may be assumed.
fn is_named(token: &WebToken, arn: &str) -> bool {
    let name = arn.rsplit('/').next().unwrap_or_default();
    let is_it = |named: &str| named == arn || (!named.contains(':') && named.eq_ignore_ascii_case(name));
    token.roles.as_ref().is_none_or(|roles| roles.iter().any(|named| is_it(named)))
}

/// Makes a session's name from the subject of a token, for requests without one.
fn session_name(subject: &str) -> String {
    let shown = |c: char| if is_of_name(c) { c } else { '-' };
    let name: String = subject.chars().map(shown).take(SESSION_NAME_CHARS_MAX).collect();
    if name.len() < 2 { format!("{name}-") } else { name }
}

/// Returns the duration of the session in seconds. The sentence of the error is AWS's.
fn seconds(input: &Input<'_>, role: &Role) -> Result<u32, QueryError> {
    let seconds = input.duration_seconds.unwrap_or(ROLE_SECONDS);
    if seconds > role.max_session {
        let message = "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.";
        return Err(QueryError::new(QueryCode::ValidationError, message));
    }
    Ok(seconds)
}

fn sent_tags(token: &WebToken) -> Vec<Tag<'_>> {
    token.tags.iter().map(|(key, value)| Tag { key: (&**key).into(), value: (&**value).into() }).collect()
}

fn source_identity(text: &str) -> Result<Box<str>, QueryError> {
    let (least, most) = SOURCE_IDENTITY_CHARS;
    if (least..=most).contains(&text.len()) && text.chars().all(is_of_name) {
        return Ok(text.into());
    }
    Err(invalid("The source identity of the token is not of its form."))
}

/// Returns the value of a condition key of the provider. As with AWS, `aud` is the client that the
/// token was made for, and `oaud` are the audiences in the token. Names of condition keys are
/// compared without case. So a claim has no value if another claim's name differs from it only in
/// case.
///
/// Source: "IAM and AWS STS condition context keys" in the IAM User Guide, "Available keys for AWS
/// OIDC federation".
fn value_of_claim<'v>(token: &'v WebToken, claim: &str) -> Value<'v> {
    let many = |texts: &'v [Box<str>]| match texts {
        [] => Value::Absent,
        all => Value::Many(all.iter().map(|text| (&**text).into()).collect()),
    };
    match claim {
        "sub" => Value::text(&token.subject),
        "aud" => Value::text(&token.audience),
        "oaud" => many(&token.audiences),
        "azp" => token.authorized_party.as_deref().into(),
        "amr" => many(&token.methods),
        _ => {
            let mut named = token.others.iter().filter(|(name, _)| name.eq_ignore_ascii_case(claim));
            match (named.next(), named.next()) {
                (Some((_, value)), None) => Value::text(value),
                _ => Value::Absent,
            }
        }
    }
}
