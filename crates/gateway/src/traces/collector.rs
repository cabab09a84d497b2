//! The collector that spans are sent to, and the resource that they come from: `--traces`, and
//! OpenTelemetry's variables for everything that has no option.

use std::fmt;
use std::path::PathBuf;

use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    USER_AGENT,
};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use s3_client::{Endpoint, Trust};

use super::span::text;
use crate::version;

/// The path for traces over HTTP, below a collector's endpoint for all signals.
const PATH: &str = "/v1/traces";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
const CERTIFICATES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"];
/// The headers that say how a request is sent, and that the variables must not set.
const OURS: [HeaderName; 7] = [CONNECTION, CONTENT_LENGTH, EXPECT, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
/// The advice if the system has no list of certificate authorities.
const WITHOUT_ROOTS: &str =
    "install the package ca-certificates, or name a file in OTEL_EXPORTER_OTLP_CERTIFICATE";
const RESOURCE: &str = "OTEL_RESOURCE_ATTRIBUTES";
const SERVICE: &str = "OTEL_SERVICE_NAME";

/// The value of `--traces`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracesTo {
    /// A collector's URL. [`Collector::new`] parses it: an error of an option's parser shows the
    /// value, which may hold a password.
    Url(String),
    /// The collector that OpenTelemetry's variables name.
    Environment,
}

impl TracesTo {
    /// Reads a URL, or `env`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("expected a URL such as http://127.0.0.1:4318, or env".to_owned()),
            "env" => Ok(Self::Environment),
            url => Ok(Self::Url(url.to_owned())),
        }
    }
}

/// Parses a URL. Errors do not repeat it.
fn url(text: &str) -> Result<Uri, String> {
    let expected = || "expected a URL such as http://127.0.0.1:4318, or env".to_owned();
    let uri: Uri = text.parse().map_err(|_| expected())?;
    let authority = uri.authority().ok_or_else(expected)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || authority.host().is_empty() {
        return Err(expected());
    }
    if authority.as_str().contains('@') {
        return Err(format!(
            "the URL must not contain a user or password: put credentials into the variable {}",
            HEADERS[1]
        ));
    }
    if uri.query().is_some() {
        return Err("the collector's URL must not have a query (?...)".to_owned());
    }
    s3_client::port(authority, 0)?;
    Ok(uri)
}

/// An OpenTelemetry collector, reached by OTLP over HTTP with Protocol Buffers.
#[derive(Clone)]
pub struct Collector {
    /// The URL, as the log shows it.
    pub url: String,
    /// The server.
    pub endpoint: Endpoint,
    /// The path that spans are posted to.
    pub path: PathAndQuery,
    /// The headers that are sent with spans.
    pub headers: HeaderMap,
    /// The fields of `Resource`, encoded for OTLP, except for the instance.
    pub resource: Vec<u8>,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

impl Collector {
    /// Makes the collector that `to` names. `env` returns environment variables.
    pub fn new(to: &TracesTo, env: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        // A variable that is empty counts as none, says their specification.
        let env = |name: &str| env(name).map(|value| value.trim().to_owned()).filter(|v| !v.is_empty());
        let first = |names: [&'static str; 2]| names.into_iter().find_map(|name| Some((name, env(name)?)));
        let uri = match to {
            TracesTo::Url(text) => with_path(url(text).map_err(|e| format!("--traces: {e}"))?),
            TracesTo::Environment => from_environment(env)?,
        };
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err("--traces: expected a URL with scheme and host".to_owned());
        };
        let ca = first(CERTIFICATES).filter(|_| scheme == "https");
        let trust = Trust { ca: ca.as_ref().map(|(_, file)| PathBuf::from(file)), insecure: false };
        let source = ca.map_or("--traces", |(name, _)| name);
        let endpoint = Endpoint::new(&format!("{scheme}://{authority}"), &trust, WITHOUT_ROOTS);
        let endpoint = endpoint.map_err(|e| format!("{source}: {e}"))?;
        let mut headers = HeaderMap::new();
        if let Some((name, list)) = first(HEADERS) {
            read_headers(&mut headers, &list).map_err(|e| format!("{name}: {e}"))?;
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("slipway/", env!("CARGO_PKG_VERSION"))));
        headers.remove(HOST);
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static(PATH));
        Ok(Self { url: uri.to_string(), endpoint, path, headers, resource: resource(env)? })
    }
}

/// Adds the path for traces to a URL without a path, which is an endpoint for all signals.
fn with_path(uri: Uri) -> Uri {
    if uri.path() != "/" {
        return uri;
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::from_static(PATH));
    Uri::from_parts(parts).unwrap_or(uri)
}

fn from_environment(env: impl Fn(&str) -> Option<String>) -> Result<Uri, String> {
    for name in PROTOCOLS {
        if let Some(protocol) = env(name).filter(|protocol| protocol != "http/protobuf") {
            let only = "slipway supports only http/protobuf (usually port 4318)";
            return Err(format!(
                "--traces env: {name} is {protocol:?}: {only}: set the variable to http/protobuf, or unset it"
            ));
        }
    }
    let wrong = |name: &str, error: &str| format!("--traces env: {name}: {error}");
    if let Some(exact) = env(TRACES_ENDPOINT) {
        return url(&exact).map_err(|e| wrong(TRACES_ENDPOINT, &e));
    }
    let Some(base) = env(ENDPOINT) else {
        return Err(format!(
            "--traces env: neither {TRACES_ENDPOINT} nor {ENDPOINT} is set: set one of them"
        ));
    };
    let base = format!("{}{PATH}", base.trim_end_matches('/'));
    url(&base).map_err(|e| wrong(ENDPOINT, &e))
}

/// Parses `name=value,name=value`, with values encoded as in URLs.
fn pairs(list: &str) -> impl Iterator<Item = Result<(&str, String), String>> {
    list.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| {
        // Values may be secrets, so that they are not repeated.
        let (name, value) = pair.split_once('=').ok_or("expected name=value,name=value")?;
        let value = percent_decode_str(value.trim()).decode_utf8();
        let value = value.map_err(|_| format!("the value of {:?} is not UTF-8", name.trim()))?;
        Ok((name.trim(), value.into_owned()))
    })
}

fn read_headers(headers: &mut HeaderMap, list: &str) -> Result<(), String> {
    for pair in pairs(list) {
        let (name, value) = pair?;
        let no_header = |_| format!("{name:?} is not a valid name of an HTTP header");
        let value = HeaderValue::from_str(&value)
            .map_err(|_| format!("the value of {name:?} is not valid in an HTTP header"));
        let mut value = value?;
        value.set_sensitive(true);
        let header = HeaderName::try_from(name).map_err(no_header)?;
        if OURS.contains(&header) {
            return Err(format!("the header {name:?} is set by slipway itself: remove it"));
        }
        headers.insert(header, value);
    }
    Ok(())
}

/// Returns the resource that spans come from, except for the fields that differ between instances.
fn resource(env: impl Fn(&str) -> Option<String>) -> Result<Vec<u8>, String> {
    let given = env(RESOURCE).unwrap_or_default();
    let mut attributes: Vec<(String, String)> = vec![
        ("service.name".to_owned(), "slipway".to_owned()),
        ("service.version".to_owned(), version::NUMBER.to_owned()),
        ("host.name".to_owned(), rustix::system::uname().nodename().to_string_lossy().into_owned()),
    ];
    let mut set = |name: &str, value: String| match attributes.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = value,
        None => attributes.push((name.to_owned(), value)),
    };
    for pair in pairs(&given) {
        let (name, value) = pair.map_err(|e| format!("{RESOURCE}: {e}"))?;
        set(name, value);
    }
    if let Some(name) = env(SERVICE) {
        set("service.name", name);
    }
    let mut out = Vec::new();
    for (name, value) in attributes {
        text(&mut out, 1, &name, &value);
    }
    Ok(out)
}
