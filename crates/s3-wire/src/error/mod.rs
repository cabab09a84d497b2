//! S3's errors: code, status, AWS's sentence, and the extra elements that some of them carry.

mod code;

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use http::{HeaderName, HeaderValue, StatusCode};

pub use code::ErrorCode;

use crate::escape::escape;

/// A result whose error is an S3 error.
pub type Result<T> = std::result::Result<T, S3Error>;

/// An error as a client sees it, and its cause for the log.
///
/// The constructors named after a code set the extra elements that S3 sends with it.
#[derive(Debug)]
pub struct S3Error {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    code: ErrorCode,
    message: Cow<'static, str>,
    details: Vec<(&'static str, String)>,
    headers: Vec<(HeaderName, HeaderValue)>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl From<ErrorCode> for S3Error {
    fn from(code: ErrorCode) -> Self {
        Self::with_message(code, code.message())
    }
}

impl S3Error {
    /// Makes an error with the code's own sentence.
    pub fn new(code: ErrorCode) -> Self {
        code.into()
    }

    /// Makes an error with another sentence.
    pub fn with_message(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        let inner =
            Inner { code, message: message.into(), details: Vec::new(), headers: Vec::new(), source: None };
        Self { inner: Box::new(inner) }
    }

    /// Adds one of S3's extra elements, after those already added.
    #[must_use]
    pub fn detail(mut self, element: &'static str, text: impl Into<String>) -> Self {
        self.inner.details.push((element, text.into()));
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.inner.headers.push((name, value));
        self
    }

    /// Adds the cause, which only the log shows.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// Makes `InvalidArgument` with the argument's name and value.
    pub fn invalid_argument(
        name: &'static str,
        value: impl Into<String>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::with_message(ErrorCode::InvalidArgument, message)
            .detail("ArgumentName", name)
            .detail("ArgumentValue", value)
    }

    /// Makes `InvalidArgument` with only the argument's name: for some arguments, S3 does not
    /// repeat the value.
    pub fn argument_named(name: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::with_message(ErrorCode::InvalidArgument, message).detail("ArgumentName", name)
    }

    /// Makes `NotImplemented` for conditions that S3 does not accept here. `headers` are their
    /// names, joined by commas; `why` is the error's second sentence.
    pub fn condition_not_implemented(headers: &'static str, why: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotImplemented).detail("Header", headers).detail("additionalMessage", why)
    }

    /// Makes `NotImplemented` for a header with a meaning that this server does not implement.
    pub fn header_not_implemented(name: &str) -> Self {
        Self::new(ErrorCode::NotImplemented).detail("Header", name)
    }

    /// Makes `NotImplemented` for a parameter that the operation does not implement.
    pub fn parameter_not_implemented(name: &str) -> Self {
        let message = "A parameter you provided implies functionality that is not implemented.";
        Self::with_message(ErrorCode::NotImplemented, message).detail("Parameter", name)
    }

    /// Makes `InvalidRange` (416), with the object's size in `Content-Range`.
    pub fn invalid_range(requested: impl Into<String>, size_bytes: u64) -> Self {
        let error = Self::new(ErrorCode::InvalidRange)
            .detail("RangeRequested", requested)
            .detail("ActualObjectSize", size_bytes.to_string());
        match HeaderValue::try_from(format!("bytes */{size_bytes}")) {
            Ok(value) => error.header(http::header::CONTENT_RANGE, value),
            Err(_) => error,
        }
    }

    /// Makes `MethodNotAllowed` (405). `resource_type` is S3's name of the resource (`OBJECT`,
    /// `BUCKET`, `SERVICE`, ...); `allow` is the value of `Allow`, which is left out if it is
    /// empty.
    pub fn method_not_allowed(method: &http::Method, resource_type: &'static str, allow: &str) -> Self {
        let error = Self::new(ErrorCode::MethodNotAllowed)
            .detail("Method", method.as_str())
            .detail("ResourceType", resource_type);
        match HeaderValue::try_from(allow) {
            Ok(allow) if !allow.is_empty() => error.header(http::header::ALLOW, allow),
            _ => error,
        }
    }

    /// Returns the code.
    pub fn code(&self) -> ErrorCode {
        self.inner.code
    }

    /// Returns the HTTP status of the code.
    pub fn status(&self) -> StatusCode {
        self.inner.code.status()
    }

    /// Returns the sentence.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// Returns the extra elements, in order.
    pub fn details(&self) -> &[(&'static str, String)] {
        &self.inner.details
    }

    /// Returns the headers to send with the error.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.inner.headers
    }

    /// Writes the XML document, without `Resource`: the API reference shows that element, but
    /// Amazon S3 does not send it.
    pub fn render(&self, request_id: &str, host_id: &str) -> String {
        let mut xml = String::with_capacity(512);
        xml.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>");
        let code: &str = self.inner.code.into();
        let mut element = |name: &str, text: &str| {
            // Writing to a String cannot fail.
            let _ = write!(xml, "<{name}>{}</{name}>", escape(text));
        };
        element("Code", code);
        element("Message", &self.inner.message);
        for (name, text) in &self.inner.details {
            element(name, text);
        }
        element("RequestId", request_id);
        element("HostId", host_id);
        xml.push_str("</Error>");
        xml
    }
}

impl fmt::Display for S3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code: &str = self.inner.code.into();
        write!(f, "{code}: {}", self.inner.message)
    }
}

impl std::error::Error for S3Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_deref().map(|e| e as _)
    }
}
