//! The server: sends actions to it, and reads its answers.

use std::fmt;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method};
use iam_wire::Service;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use s3_client::{Client, Credentials, Endpoint, Request, Settings};
use s3_types::Timestamp;
use s3_wire::auth::sign::Unsigned;
use tokio::runtime::Runtime;
use zeroize::Zeroizing;

use super::node::Node;
use super::profile::Found;

/// The advice if the system has no trusted certificates.
const WITHOUT_ROOTS: &str = "name a file with --ca, or accept any certificate with --insecure";
/// The time that an action may take.
const ACTION_TIME_MAX: Duration = Duration::from_mins(1);
/// The longest answer, in bytes: a page of 1,000 users with their tags is shorter.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// The number of items to request for a page of a list: IAM's maximum.
const PAGE_ITEMS: &str = "1000";
/// The characters in forms that are percent-encoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The reason why an action has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server has refused the action, with a code and a sentence.
    Refused {
        /// The code, such as `NoSuchEntity`.
        code: String,
        /// The sentence.
        message: String,
    },
    /// The server could not be reached, or the answer is not one of IAM's; the text says why.
    NotAsked(String),
}

impl Failure {
    /// True if the server says that something does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "NoSuchEntity")
    }

    /// True if the server says that the requester may not do this.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "AccessDenied")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { code, message } => write!(f, "{code}: {message}"),
            Self::NotAsked(why) => f.write_str(why),
        }
    }
}

/// The result of a request.
pub type Result<T> = std::result::Result<T, Failure>;

/// A parameter of an action.
pub type Member<'m> = (&'m str, &'m str);

/// A server that performs actions.
pub struct Server {
    client: Client,
    credentials: Credentials,
    source: String,
    runtime: Runtime,
}

impl Server {
    /// Makes a client for the server, and sends nothing yet.
    pub fn new(found: Found) -> std::result::Result<Self, String> {
        let endpoint = Endpoint::new(&found.url, &found.trust, WITHOUT_ROOTS)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self {
            client: Client::new(endpoint, Settings { answer_time: ACTION_TIME_MAX, ..Settings::default() }),
            credentials: found.credentials,
            source: found.source,
            runtime: runtime.map_err(|e| format!("cannot start threads: {e}"))?,
        })
    }

    /// Performs an action of IAM, and returns its result.
    pub fn iam(&self, action: &str, members: &[Member<'_>]) -> Result<Node> {
        self.perform(Service::Iam, action, members)
    }

    /// Performs an action of ours.
    pub fn own(&self, action: &str, members: &[Member<'_>]) -> Result<Node> {
        self.perform(Service::Slipway, action, members)
    }

    /// Requests who signs: the result of GetCallerIdentity.
    pub fn caller(&self) -> Result<Node> {
        self.perform(Service::Sts, "GetCallerIdentity", &[])
    }

    /// Returns the id of the access key that signs.
    pub fn access_key(&self) -> &str {
        &self.credentials.access_key
    }

    /// Requests all items of one of IAM's lists.
    pub fn list(&self, action: &str, members: &[Member<'_>], list: &str) -> Result<Vec<Node>> {
        self.list_of(Service::Iam, action, members, list)
    }

    /// Requests all items of a list, page by page.
    pub fn list_of(
        &self,
        service: Service,
        action: &str,
        members: &[Member<'_>],
        list: &str,
    ) -> Result<Vec<Node>> {
        let (mut found, mut marker) = (Vec::new(), None::<String>);
        loop {
            let mut asked = members.to_vec();
            asked.push(("MaxItems", PAGE_ITEMS));
            asked.extend(marker.as_deref().map(|marker| ("Marker", marker)));
            let page = self.perform(service, action, &asked)?;
            found.extend_from_slice(page.members(list));
            let next = page.text_of("Marker");
            // A marker that leads nowhere would be asked for forever.
            if page.text_of("IsTruncated") != "true" || next.is_empty() || marker.as_ref() == Some(&next) {
                return Ok(found);
            }
            marker = Some(next);
        }
    }

    fn perform(&self, service: Service, action: &str, members: &[Member<'_>]) -> Result<Node> {
        let (status, body) = self.send(service, action, members)?;
        let Some(document) = Node::parse(&body) else { return Err(self.stranger(status)) };
        if status == 200 && document.name == format!("{action}Response") {
            return Ok(document.child(&format!("{action}Result")).cloned().unwrap_or_default());
        }
        let error = document.child("Error").unwrap_or(&document);
        let code = error.text_of("Code");
        if code.is_empty() {
            return Err(self.stranger(status));
        }
        let message = error.text_of("Message");
        let is_of_key =
            ["InvalidClientTokenId", "SignatureDoesNotMatch", "ExpiredToken"].contains(&code.as_str());
        let by = format!(" (access key {} of {})", self.credentials.access_key, self.source);
        let message = if is_of_key { message + &by } else { message };
        Err(Failure::Refused { code, message })
    }

    fn stranger(&self, status: u16) -> Failure {
        let url = self.client.endpoint().url();
        Failure::NotAsked(format!("{url}: the answer, {status}, is not that of a gateway: is the URL right?"))
    }

    fn send(&self, service: Service, action: &str, members: &[Member<'_>]) -> Result<(u16, bytes::Bytes)> {
        // It may have a secret.
        let body = Zeroizing::new(form(service, action, members));
        let mut request = Request::new(Method::POST, PathAndQuery::from_static("/"));
        request.headers = self.signed(service, &body)?;
        let failed = |error: &dyn std::error::Error| {
            let causes: Vec<_> =
                std::iter::successors(Some(error), |e| e.source()).map(ToString::to_string).collect();
            Failure::NotAsked(with_advice(causes.join(": ")))
        };
        let body = bytes::Bytes::from_owner(body);
        self.runtime.block_on(async {
            let answered = tokio::time::timeout(ACTION_TIME_MAX, async {
                let mut answer = self.client.send(&request, body).await?;
                let body = answer.body.read(ANSWER_BYTES_MAX).await?;
                Ok::<_, s3_client::Error>((answer.status.as_u16(), body))
            });
            match answered.await {
                Ok(answered) => answered.map_err(|error| failed(&error)),
                Err(_) => Err(Failure::NotAsked(format!(
                    "{}: no answer within {} s",
                    self.client.endpoint().url(),
                    ACTION_TIME_MAX.as_secs()
                ))),
            }
        })
    }

    /// Returns the headers of a signed request with this body.
    fn signed(&self, service: Service, body: &str) -> Result<HeaderMap> {
        let refused =
            |why: String| Failure::NotAsked(format!("requests cannot be signed with these keys: {why}"));
        let mut headers = HeaderMap::new();
        let host = HeaderValue::from_str(self.client.endpoint().host_header());
        headers.insert(HOST, host.map_err(|e| refused(e.to_string()))?);
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded; charset=utf-8"),
        );
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("slipway/", env!("CARGO_PKG_VERSION"))));
        let unsigned = Unsigned { method: &Method::POST, raw_path: "/", raw_query: "", virtual_bucket: None };
        let mut sha256 = [0; 32];
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, body.as_bytes());
        sha256.copy_from_slice(digest.as_ref());
        let (signer, time) = (self.credentials.signer(), Timestamp::now());
        let done = signer.sign_service_headers(service.signed_for(), &unsigned, &mut headers, &sha256, time);
        done.map_err(|error| refused(error.to_string()))?;
        Ok(headers)
    }
}

/// Adds what to do to errors of TLS, whose texts do not say it.
fn with_advice(why: String) -> String {
    let advice = if why.contains("InvalidContentType") {
        "the server does not speak TLS there: give a URL of http://, or the port of https"
    } else if why.contains("UnknownIssuer") || why.contains("CaUsedAsEndEntity") {
        "give the file with the certificate of the server, or of its authority, by --ca, or accept any by --insecure"
    } else {
        return why;
    };
    format!("{why}: {advice}")
}

fn form(service: Service, action: &str, members: &[Member<'_>]) -> String {
    let encoded_max: usize =
        members.iter().map(|(name, value)| "&=".len() + 3 * (name.len() + value.len())).sum();
    let head = format!("Action={action}&Version={}", service.version());
    // With room for all: what it grows out of would keep a secret.
    let mut body = String::with_capacity(head.len() + encoded_max);
    body.push_str(&head);
    for (name, value) in members {
        body.push('&');
        body.extend(utf8_percent_encode(name, ENCODED));
        body.push('=');
        body.extend(utf8_percent_encode(value, ENCODED));
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_encoded() {
        assert_eq!(
            form(Service::Iam, "PutUserPolicy", &[("PolicyDocument", "{\"a\": [\"\u{e4}&+\"]}")]),
            "Action=PutUserPolicy&Version=2010-05-08&PolicyDocument=%7B%22a%22%3A%20%5B%22%C3%A4%26%2B%22%5D%7D"
        );
        assert!(form(Service::Slipway, "ListAccounts", &[]).ends_with("Version=slipway-1"));
    }
}
