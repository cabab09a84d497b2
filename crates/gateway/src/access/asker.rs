use std::borrow::Cow;

use http::HeaderMap;
use http::header::{HeaderName, REFERER, USER_AGENT};
use iam::{Account, Authorizer, ConditionKey, Decision, Question, Requester, Resource, Values};
use s3_types::{S3Action, Timestamp};
use s3_wire::auth::SignatureFacts;

use crate::peer::Peer;

const CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// Who makes a request, from where and how.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// Decides what the requester may do.
    pub authorizer: &'a dyn Authorizer,
    /// The requester.
    pub requester: &'a Requester,
    /// The account that owns all buckets.
    pub account: &'a Account,
    /// The client.
    pub peer: Peer,
    /// When the request arrived.
    pub now: Timestamp,
    /// The headers, and those parameters of a presigned URL that stand for headers.
    pub headers: &'a HeaderMap,
    /// The signature; `None` for an anonymous requester.
    pub signature: Option<SignatureFacts>,
}

impl Asker<'_> {
    /// Decides about an action. `values` are those that the operation will act on; those that every
    /// request has come from here.
    pub fn decide(&self, action: S3Action, resource: Resource<'_>, values: &Values<'_>) -> Decision {
        let values = |key| values(key).or_else(|| self.value(key));
        self.authorizer.decide(&Question { requester: self.requester, action, resource, values: &values })
    }

    /// True if the requester may know which keys a bucket has.
    pub fn may_list(&self, resource: Resource<'_>) -> bool {
        let bucket = Resource { key: None, ..resource };
        self.decide(S3Action::ListBucket, bucket, &|_| None) == Decision::Allow
    }

    /// The value of a key that every request has; `None` for those of operations.
    fn value(&self, key: ConditionKey) -> Option<Cow<'_, str>> {
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
            K::ResourceAccount => Some(self.account.id().as_str().into()),
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
}

/// The time without the fraction of its second.
fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
