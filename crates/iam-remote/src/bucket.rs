//! Documents of identities in a bucket of an S3 server: each is an object, and each write has a
//! condition on the object's ETag (docs/decisions/0066-identities-in-vault-and-buckets.md).

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use http::{Method, StatusCode};
use iam::model::limits::ACCOUNT_BYTES_MAX;
use iam::{DocumentName, Documents, Mark, StoreError, Tag};
use s3_client::{Credentials, Request, Trust, target};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::exchange::{Answer, Channel, mark_of, shown, unavailable};
use crate::limits::{BUCKET_PAGES_MAX, SECRETS_INTERVAL, STORE_ANSWER_BYTES_MAX};
use crate::place::BucketPlace;
use crate::secrets::{SecretsOf, read};
use crate::xml::{error, page};

/// The suffix of the names of objects; the files of a tree's store have it, too.
const SUFFIX: &str = ".json";
/// The beginning of the key of a test object. It cannot be the name of a document.
const PROBE: &str = ",probe-";

/// The codes of errors that may go away if the credentials are read again.
const OF_KEYS: [&str; 5] =
    ["AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"];

/// A store of documents in a bucket.
pub struct Bucket {
    place: BucketPlace,
    channel: Channel,
    secrets: SecretsOf<Credentials>,
    signing: Mutex<Signing>,
}

/// The credentials that requests are signed with.
#[derive(Default)]
struct Signing {
    with: Option<(Credentials, Channel)>,
    /// The time at which they were last read.
    read: Option<Instant>,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("place", &self.place).finish_non_exhaustive()
    }
}

/// The state of the object that a write expects.
#[derive(Debug, Clone, Copy)]
enum Expected<'e> {
    Nothing,
    Etag(&'e str),
}

fn same(one: &Credentials, other: &Credentials) -> bool {
    let token = |of: &Credentials| of.security_token.as_ref().map(|token| token.to_string());
    one.access_key == other.access_key && *one.secret_key == *other.secret_key && token(one) == token(other)
}

impl Bucket {
    /// Makes the store from its place and the file of trusted certificates, and sends no request
    /// yet.
    pub fn new(place: BucketPlace, trust: &Trust, secrets: SecretsOf<Credentials>) -> Result<Self, String> {
        let channel = Channel::new(&place.server, trust)?;
        Ok(Self { place, channel, secrets, signing: Mutex::default() })
    }

    /// Checks, with an object of its own that it removes again, that the server obeys conditions on
    /// writes. Without these, changes by two gateways at once could be lost. `number` makes the
    /// name of the object different from that of other gateways.
    pub async fn check_conditions(&self, number: u64) -> Result<(), StoreError> {
        let key = format!("{}{PROBE}{number:016x}", self.place.prefix);
        let body = || Some(Bytes::from_static(b"{}"));
        let etag = self.write(&key, Expected::Nothing, body()).await?;
        let etag = etag.ok_or_else(|| unavailable("the server gives objects no ETags"))?;
        let other = "00000000000000000000000000000000";
        let heeded = [
            ("If-None-Match: * of PutObject", self.write(&key, Expected::Nothing, body()).await),
            ("If-Match of PutObject", self.write(&key, Expected::Etag(other), body()).await),
            ("If-Match of DeleteObject", self.write(&key, Expected::Etag(other), None).await),
        ];
        let removed = self.write(&key, Expected::Etag(&etag), None).await;
        for (what, result) in heeded {
            match result {
                Err(StoreError::Changed) => {}
                Ok(_) => {
                    return Err(unavailable(format!(
                        "the server ignores {what}, so that changes of several gateways could be lost: choose another \
                         server"
                    )));
                }
                Err(error) => return Err(unavailable(format!("{what}: {error}"))),
            }
        }
        removed.map(drop)
    }

    fn key(&self, name: &DocumentName) -> String {
        format!("{}{name}{SUFFIX}", self.place.prefix)
    }

    async fn channel(&self) -> Result<Channel, StoreError> {
        let mut signing = self.signing.lock().await;
        if let Some((_, channel)) = &signing.with {
            return Ok(channel.clone());
        }
        signing.read = Some(Instant::now());
        let keys = read(&self.secrets).await?;
        let channel = self.channel.signing(keys.clone());
        signing.with = Some((keys, channel.clone()));
        Ok(channel)
    }

    /// Reads the credentials again after the server has refused them; `None` if they are the same,
    /// or were read just now.
    async fn channel_anew(&self) -> Result<Option<Channel>, StoreError> {
        let mut signing = self.signing.lock().await;
        if signing.read.is_some_and(|at| at.elapsed() < SECRETS_INTERVAL) {
            return Ok(None);
        }
        signing.read = Some(Instant::now());
        let keys = read(&self.secrets).await?;
        if signing.with.as_ref().is_some_and(|(before, _)| same(before, &keys)) {
            return Ok(None);
        }
        let channel = self.channel.signing(keys.clone());
        signing.with = Some((keys, channel.clone()));
        Ok(Some(channel))
    }

    async fn send(&self, request: &Request, body: Bytes, bytes_max: usize) -> Result<Answer, StoreError> {
        let answer = self.channel().await?.send(request, body.clone(), bytes_max).await?;
        let is_of_keys =
            |answer: &Answer| error(&answer.body).is_some_and(|(code, _)| OF_KEYS.contains(&code.as_str()));
        if matches!(answer.status, StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST)
            && is_of_keys(&answer)
            && let Some(channel) = self.channel_anew().await?
        {
            return channel.send(request, body, bytes_max).await;
        }
        Ok(answer)
    }

    fn request(&self, method: Method, key: &str, query: &[(&str, &str)]) -> Result<Request, StoreError> {
        let path = format!("/{}{}{key}", self.place.bucket, if key.is_empty() { "" } else { "/" });
        let target = target(&path, query).ok_or_else(|| unavailable("the path of the store is too long"))?;
        Ok(Request::new(method, target))
    }

    /// Writes an object, or removes it, and returns its new ETag.
    async fn write(
        &self,
        key: &str,
        expected: Expected<'_>,
        with: Option<Bytes>,
    ) -> Result<Option<String>, StoreError> {
        let is_removal = with.is_none();
        let method = if is_removal { Method::DELETE } else { Method::PUT };
        let mut request = self.request(method, key, &[])?;
        match expected {
            Expected::Nothing => {
                request.headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
            }
            Expected::Etag(etag) => {
                let value = HeaderValue::from_str(&format!("\"{etag}\""));
                request.headers.insert(IF_MATCH, value.map_err(|error| unavailable(error.to_string()))?);
            }
        }
        if !is_removal {
            request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let answer = self.send(&request, with.unwrap_or_default(), STORE_ANSWER_BYTES_MAX).await?;
        let code = error(&answer.body).map(|(code, _)| code);
        match (answer.status, code.as_deref()) {
            (StatusCode::OK, _) if !is_removal => etag(&answer).map(Some),
            (StatusCode::OK | StatusCode::NO_CONTENT, _) if is_removal => Ok(None),
            // S3 answers 409 to one of two writes at a time, and 404 if there is no object.
            (StatusCode::PRECONDITION_FAILED, _)
            | (StatusCode::CONFLICT, Some("ConditionalRequestConflict"))
            | (StatusCode::NOT_FOUND, Some("NoSuchKey")) => Err(StoreError::Changed),
            (_, Some("EntityTooLarge")) => Err(StoreError::TooLarge),
            _ => Err(refused(&answer)),
        }
    }

    /// Returns the names and ETags of all documents.
    async fn all(&self) -> Result<Vec<(DocumentName, Tag)>, StoreError> {
        let (mut all, mut after): (Vec<_>, Option<String>) = (Vec::new(), None);
        for _ in 0..BUCKET_PAGES_MAX {
            let mut query = vec![("list-type", "2"), ("prefix", &self.place.prefix), ("delimiter", "/")];
            query.extend(after.as_deref().map(|after| ("continuation-token", after)));
            // In the order that signatures have.
            query.sort_unstable();
            let request = self.request(Method::GET, "", &query)?;
            let answer = self.send(&request, Bytes::new(), STORE_ANSWER_BYTES_MAX).await?;
            if answer.status != StatusCode::OK {
                return Err(refused(&answer));
            }
            let page = page(&answer.body).ok_or_else(|| unavailable("the server's listing is none"))?;
            for (key, etag) in page.objects {
                let name = key.strip_prefix(&self.place.prefix).and_then(|name| name.strip_suffix(SUFFIX));
                let name = name.and_then(|name| DocumentName::new(name).ok());
                all.extend(name.map(|name| (name, Tag::new(etag.trim_matches('"')))));
            }
            after = page.next;
            if after.is_none() {
                all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
                return Ok(all);
            }
        }
        Err(unavailable(format!("the listing has more than {BUCKET_PAGES_MAX} pages")))
    }
}

/// Returns the ETag of an answer, without quotes.
fn etag(answer: &Answer) -> Result<String, StoreError> {
    let etag = answer.headers.get(ETAG).and_then(|etag| etag.to_str().ok());
    let etag = etag.map(|etag| etag.trim_matches('"').to_owned()).filter(|etag| !etag.is_empty());
    etag.ok_or_else(|| unavailable("the server's answer has no ETag"))
}

fn refused(answer: &Answer) -> StoreError {
    let why = error(&answer.body).map(|(code, message)| format!(": {code}: {}", shown(&message)));
    unavailable(format!("the server of the bucket answered {}{}", answer.status, why.unwrap_or_default()))
}

#[async_trait]
impl Documents for Bucket {
    async fn look(&self) -> Result<Mark, StoreError> {
        self.all().await.map(|all| mark_of(&all))
    }

    async fn list(&self) -> Result<Vec<(DocumentName, Tag)>, StoreError> {
        self.all().await
    }

    async fn read(&self, name: &DocumentName) -> Result<Option<(Bytes, Tag)>, StoreError> {
        let request = self.request(Method::GET, &self.key(name), &[])?;
        let answer = self.send(&request, Bytes::new(), ACCOUNT_BYTES_MAX).await?;
        if answer.status == StatusCode::OK {
            let tag = Tag::new(&etag(&answer)?);
            return Ok(Some((answer.body, tag)));
        }
        match (answer.status, error(&answer.body)) {
            (StatusCode::NOT_FOUND, Some((code, _))) if code == "NoSuchKey" => Ok(None),
            _ => Err(refused(&answer)),
        }
    }

    async fn replace(
        &self,
        name: &DocumentName,
        expected: Option<&Tag>,
        with: Option<Bytes>,
    ) -> Result<Option<Tag>, StoreError> {
        if with.as_ref().is_some_and(|bytes| bytes.len() > ACCOUNT_BYTES_MAX) {
            return Err(StoreError::TooLarge);
        }
        let key = self.key(name);
        let expected = match (expected, &with) {
            (Some(tag), _) => Expected::Etag(tag.as_str()),
            (None, Some(_)) => Expected::Nothing,
            // What is not there cannot be removed.
            (None, None) => return self.read(name).await?.map_or(Ok(None), |_| Err(StoreError::Changed)),
        };
        Ok(self.write(&key, expected, with).await?.as_deref().map(Tag::new))
    }
}
