//! The documents of OpenID providers: their configurations, and their keys.
//!
//! A client that may make a provider can choose a URL, which the gateway then asks. So that this
//! cannot be abused, answers are limited in size and time, redirects are errors, and nothing of an
//! answer is passed on to the client.

use std::error::Error;

use http::header::{ACCEPT, HeaderValue, USER_AGENT};
use http::{Method, StatusCode, Uri};
use s3_client::{Client, Endpoint, Payload, Request, Settings, Trust};
use serde::Deserialize;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::jwt::Keys;
use crate::limits::{ANSWER_BYTES_MAX, FETCH_TIME_MAX};

/// The advice in the error on a system without trusted certificates.
const WITHOUT_ROOTS: &str = "name a file with some by --oidc-ca";

/// The members that are needed of a provider's configuration (OpenID Connect Discovery 1.0, 3).
#[derive(Deserialize)]
struct Configuration {
    issuer: String,
    jwks_uri: String,
}

/// Fetches the configuration of a provider, and then its keys.
pub async fn fetch(issuer: &str, trust: &Trust) -> Result<Keys, String> {
    match timeout(FETCH_TIME_MAX, fetch_both(issuer, trust)).await {
        Ok(keys) => keys,
        Err(_) => Err(format!("it did not answer within {} s", FETCH_TIME_MAX.as_secs())),
    }
}

async fn fetch_both(issuer: &str, trust: &Trust) -> Result<Keys, String> {
    let may_be_http = issuer.starts_with("http://");
    let url = format!("{}/.well-known/openid-configuration", issuer.strip_suffix('/').unwrap_or(issuer));
    let document = get(&url, may_be_http, trust).await?;
    let configuration: Configuration =
        serde_json::from_slice(&document).map_err(|_| format!("{url} is no configuration of a provider"))?;
    if configuration.issuer != issuer {
        let named: String = configuration.issuer.chars().take(300).collect();
        return Err(format!("{url} is the configuration of another issuer: {named:?}"));
    }
    let url = configuration.jwks_uri;
    let document = get(&url, may_be_http, trust).await?;
    Keys::read(&document).map_err(|why| format!("{url}: {why}"))
}

/// Checks that the file of trusted certificates, if one is given, can be read and is not empty.
pub fn check(trust: &Trust) -> Result<(), String> {
    if trust.ca.is_none() {
        return Ok(());
    }
    Endpoint::new("https://localhost", trust, WITHOUT_ROOTS).map(|_| ())
}

/// Splits a URL into server and path; `None` if it may not be fetched. Its scheme must be https, or
/// http for an address of this machine if the provider itself has one.
fn parts(url: &str, may_be_http: bool) -> Option<(String, http::uri::PathAndQuery)> {
    let uri: Uri = url.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let is_local = matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]");
    let may = scheme == "https" || (scheme == "http" && may_be_http && is_local);
    let path = uri.path_and_query().cloned().unwrap_or_else(|| http::uri::PathAndQuery::from_static("/"));
    may.then(|| (format!("{scheme}://{authority}"), path))
}

async fn get(url: &str, may_be_http: bool, trust: &Trust) -> Result<Vec<u8>, String> {
    let shown: String = url.chars().take(300).collect();
    let (server, path) = parts(url, may_be_http).ok_or_else(|| {
        format!("{shown:?} is not fetched: it is no URL, or not https, as it has to be but on this machine")
    })?;
    let trust = trust.clone();
    // Reads the file of trusted certificates.
    let endpoint = spawn_blocking(move || Endpoint::new(&server, &trust, WITHOUT_ROOTS)).await;
    let endpoint = endpoint.map_err(|error| error.to_string())??;
    // The time is that of both documents together, and runs out first.
    let limit = FETCH_TIME_MAX * 2;
    let times =
        Settings { connect_time: limit, answer_time: limit, stall_time: limit, ..Settings::default() };
    let settings = Settings { connections_max: 1, ..times };
    let mut request = Request { payload: Payload::Unsigned, ..Request::new(Method::GET, path) };
    request.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    request.headers.insert(USER_AGENT, HeaderValue::from_static("slipway"));
    let failed = |error: &s3_client::Error| format!("{shown}: {}", causes(error.kind()));
    let mut answer = Client::new(endpoint, settings).send(&request, "").await.map_err(|e| failed(&e))?;
    if answer.status != StatusCode::OK {
        return Err(format!("{shown} answered {}", answer.status));
    }
    answer.body.read(ANSWER_BYTES_MAX).await.map(Into::into).map_err(|e| failed(&e))
}

fn causes(error: &dyn Error) -> String {
    let all = std::iter::successors(Some(error), |&cause| cause.source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fetched() {
        for (url, may_be_http, is_fetched) in [
            ("https://idp.lab/.well-known/openid-configuration", false, true),
            ("https://idp.lab:8443/a?b=c", false, true),
            ("https://169.254.169.254/", false, true),
            ("http://idp.lab/a", true, false),
            ("http://localhost.idp.lab/a", true, false),
            ("http://127.0.0.1:8080/a", true, true),
            ("http://[::1]:8080/a", true, true),
            ("http://localhost/a", true, true),
            ("http://localhost/a", false, false),
            ("file:///etc/passwd", true, false),
            ("/keys", true, false),
            ("", true, false),
        ] {
            assert_eq!(parts(url, may_be_http).is_some(), is_fetched, "{url}");
        }
    }
}
