use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use http::header::{HeaderName, REFERER, USER_AGENT};
use iam::{Account, Authorizer, ConditionKey, Decision, KnownObject, Question, Requester, Values};
use policy::Value;
use s3_types::{ObjectKey, S3Action, Timestamp};
use s3_wire::auth::SignatureFacts;

use super::subject::Subject;
use crate::audit::Trail;
use crate::peer::Peer;

const CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// The requester of a request, with the facts about the request that conditions may need.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// The authorizer, which decides what the requester may do.
    pub authorizer: &'a Arc<dyn Authorizer>,
    /// The requester.
    pub requester: &'a Requester,
    /// The region of this gateway.
    pub region: &'a str,
    /// The client.
    pub peer: Peer,
    /// The time at which the request arrived.
    pub now: Timestamp,
    /// The headers, and the parameters of a presigned URL that replace headers.
    pub headers: &'a HeaderMap,
    /// The signature; `None` for an anonymous requester.
    pub signature: Option<SignatureFacts>,
    /// The request's lines in the audit log, if there is one.
    pub trail: Option<&'a Arc<Trail>>,
}

impl Asker<'_> {
    /// Decides about an action. `values` has the values of the condition keys that depend on the
    /// operation; those that every request has are added here.
    pub fn decide(&self, action: S3Action, subject: Subject<'_>, values: &Values<'_>) -> Decision {
        self.asked(action, subject, values, |question| self.authorizer.decide(question))
    }

    /// Decides as [`Self::decide`] does, and adds a line to the audit log. If the decision depends
    /// on the object, the line is added once the object was read and the decision is made.
    pub fn decide_noted(&self, action: S3Action, subject: Subject<'_>, values: &Values<'_>) -> Decision {
        let Some(trail) = self.trail else { return self.decide(action, subject, values) };
        self.asked(action, subject, values, |question| decide_noted(&**self.authorizer, trail, question))
    }

    /// Returns the sentence that tells the requester why an action is not allowed; `None` if the
    /// requester is not to know the reason.
    #[cold]
    pub fn reason(&self, action: S3Action, subject: Subject<'_>, values: &Values<'_>) -> Option<String> {
        self.asked(action, subject, values, |question| self.authorizer.reason(question))
    }

    fn asked<T>(
        &self,
        action: S3Action,
        subject: Subject<'_>,
        values: &Values<'_>,
        ask: impl FnOnce(&Question<'_>) -> T,
    ) -> T {
        ask(&Question {
            requester: self.requester,
            action,
            resource: subject.resource,
            rules: subject.rules.map(|rules| &**rules),
            object: KnownObject::NotYet,
            values: &|key| self.value_of(key, subject, values),
        })
    }

    /// Returns the value of a condition key. `values` has the values of the keys that depend on the
    /// operation.
    pub fn value_of<'v>(
        &'v self,
        key: ConditionKey,
        subject: Subject<'v>,
        values: &'v Values<'_>,
    ) -> Value<'v> {
        values(key).or_else(|| self.value(key, subject).into())
    }

    /// True if the requester may know whether the bucket has the subject's key, which means that it
    /// may list the bucket with this key as the prefix.
    pub fn may_list(&self, subject: Subject<'_>) -> bool {
        let key = subject.resource.key.map(ObjectKey::as_str);
        let values = |of| if of == ConditionKey::Prefix { key.into() } else { Value::Absent };
        self.decide(S3Action::ListBucket, subject.bucket(), &values) == Decision::Allow
    }

    /// Returns the value of a condition key that every request has; none for a key that depends on
    /// the operation.
    fn value<'v>(&'v self, key: ConditionKey, subject: Subject<'v>) -> Option<Cow<'v, str>> {
        use ConditionKey as K;
        let header = |name| self.headers.get(name)?.to_str().ok().map(Cow::Borrowed);
        let signature = self.signature.as_ref();
        match key {
            K::SourceIp => self.peer.ip().map(|ip| ip.to_string().into()),
            K::SecureTransport => Some(if self.peer.secure { "true" } else { "false" }.into()),
            K::CurrentTime => Some(whole_second(self.now).to_string().into()),
            K::EpochTime => Some(self.now.as_second().to_string().into()),
            K::UserAgent => header(USER_AGENT),
            K::Referer => header(REFERER),
            K::ResourceAccount | K::AccountOfResource => Some(self.owner(subject)?.id().as_str().into()),
            K::RequestedRegion => Some(self.region.into()),
            // That of the client is not known where a proxy is in between.
            K::TlsVersion if self.peer.proxied => None,
            K::TlsVersion => self.peer.tls?.version().strip_prefix("TLSv").map(Into::into),
            K::AuthType => {
                Some(if signature?.presigned { "REST-QUERY-STRING" } else { "REST-HEADER" }.into())
            }
            K::SignatureVersion => Some(signature?.algorithm.into()),
            K::SignatureAge => {
                let SignatureFacts { time, .. } = signature.filter(|facts| facts.presigned)?;
                let age_ms = time.map_or(0, |time| self.now.as_millisecond() - time.as_millisecond());
                Some(age_ms.max(0).to_string().into())
            }
            K::ContentSha256 => signature.filter(|facts| facts.signs_body).and(header(CONTENT_SHA256)),
            _ => None,
        }
    }

    /// Returns the account that owns the resource. For a bucket that does not exist yet, and for
    /// the list of an account's buckets, it is the requester's account.
    fn owner<'v>(&'v self, subject: Subject<'v>) -> Option<&'v Account> {
        let of_requester = || self.requester.session().map(|session| &*session.principal.account);
        subject.rules.map(|rules| &*rules.owner).or_else(of_requester)
    }
}

/// Decides a question, and adds a line to the audit log.
#[cold]
pub fn decide_noted(authorizer: &dyn Authorizer, trail: &Trail, question: &Question<'_>) -> Decision {
    let explained = authorizer.decide_explained(question);
    let Question { requester, action, resource, object, .. } = question;
    let is_open = matches!(explained.decision, Decision::NeedsObject(_));
    if is_open && resource.key.is_some() && *object == KnownObject::NotYet {
        return explained.decision;
    }
    let arn = resource.arn();
    trail.decided(requester, action.as_str(), arn.as_deref().unwrap_or("*"), &explained);
    explained.decision
}

/// True if the requester's session has ended by now. The clock is read only if the session has an
/// end.
pub fn has_ended(requester: &Requester) -> bool {
    let session = requester.session().filter(|session| session.expires.is_some());
    session.is_some_and(|session| session.has_ended(Timestamp::now()))
}

/// Returns a time without the fraction of its second.
fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
