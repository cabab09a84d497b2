//! Requests to a store of identities, and the store's answers.

use std::error::Error;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use iam::{DocumentName, Mark, StoreError, Tag};
use s3_client::{Client, Credentials, Endpoint, Request, Settings, Trust};
use tokio::time::timeout;

use crate::limits::{
    STORE_CONNECT_TIME_MAX, STORE_CONNECTIONS_MAX, STORE_ERROR_CHARS_MAX, STORE_REQUEST_TIME_MAX,
};

/// The advice in the error on a system without trusted certificates.
const WITHOUT_ROOTS: &str = "name a file with some by --identities-ca";

/// A complete answer.
#[derive(Debug)]
pub struct Answer {
    /// The answer's status.
    pub status: StatusCode,
    /// The answer's headers.
    pub headers: HeaderMap,
    /// The answer's body.
    pub body: Bytes,
}

/// A server with documents, and the connections to it.
#[derive(Debug, Clone)]
pub struct Channel(Client);

impl Channel {
    /// Makes a channel from the server's URL and the file of trusted certificates, and connects to
    /// nothing yet.
    pub fn new(server: &str, trust: &Trust) -> Result<Self, String> {
        let settings = Settings {
            connections_max: STORE_CONNECTIONS_MAX,
            connect_time: STORE_CONNECT_TIME_MAX,
            answer_time: STORE_REQUEST_TIME_MAX,
            stall_time: STORE_REQUEST_TIME_MAX,
            ..Settings::default()
        };
        Ok(Self(Client::new(Endpoint::new(server, trust, WITHOUT_ROOTS)?, settings)))
    }

    /// Returns a channel with the same connections that signs with these credentials.
    pub fn signing(&self, credentials: Credentials) -> Self {
        Self(self.0.signing(credentials))
    }

    /// Sends a request, and reads the answer, which may have at most `bytes_max` bytes.
    pub async fn send(&self, request: &Request, body: Bytes, bytes_max: usize) -> Result<Answer, StoreError> {
        let exchange = async {
            let mut answer = self.0.send(request, body).await?;
            let body = answer.body.read(bytes_max).await?;
            Ok(Answer { status: answer.status, headers: answer.headers, body })
        };
        let answered = timeout(STORE_REQUEST_TIME_MAX, exchange).await.map_err(|_| {
            let (url, seconds) = (self.0.endpoint().url(), STORE_REQUEST_TIME_MAX.as_secs());
            unavailable(format!("{url} has not answered within {seconds} s"))
        })?;
        answered.map_err(|error: s3_client::Error| unavailable(causes(&error)))
    }
}

/// Makes the error for a store that cannot be reached, or whose answer was not understood.
pub fn unavailable(why: impl Into<String>) -> StoreError {
    StoreError::Unavailable(why.into().into())
}

/// Makes the mark of a listing, which differs if a name or a tag in it differs.
pub fn mark_of(all: &[(DocumentName, Tag)]) -> Mark {
    let mut text = String::new();
    for (name, tag) in all {
        // A name has no slash.
        text.extend([name.as_str(), "/", tag.as_str(), "/"]);
    }
    Mark::new(Tag::of_bytes(text.as_bytes()).as_str().as_bytes())
}

/// Returns the beginning of a store's message, on one line.
pub fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().take(STORE_ERROR_CHARS_MAX).map(plain).collect()
}

fn causes(error: &dyn Error) -> String {
    let all = std::iter::successors(Some(error), |&cause| cause.source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
