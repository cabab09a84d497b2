//! The different kinds of requests, which are told apart before they are routed.

use http::{HeaderMap, Method};
use s3_wire::route::is_form;
use s3_wire::target::Shape;

/// A kind of request. Each has other rules for who asks, what for, and the form of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// A browser asks whether a page may send a request to another origin; it is not signed.
    Preflight,
    /// `POST /`: an action of IAM or STS, which its document names.
    Action,
    /// An upload by a form of a page, which has its key, its policy and its signature in its body.
    Form,
    /// An operation of S3, which the table knows.
    Operation,
}

impl Fork {
    /// The kind of a request; `shape` is `None` if its path names no bucket or key.
    pub fn of(method: &Method, shape: Option<Shape>, headers: &HeaderMap) -> Self {
        match (method, shape) {
            (&Method::OPTIONS, _) => Self::Preflight,
            (&Method::POST, Some(Shape::Service)) => Self::Action,
            (&Method::POST, Some(Shape::Bucket)) if is_form(headers) => Self::Form,
            _ => Self::Operation,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::CONTENT_TYPE;

    use super::*;

    #[test]
    fn a_request_takes_one_way() {
        let form = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("multipart/form-data; x"))]);
        let none = HeaderMap::new();
        for (method, shape, headers, way) in [
            (Method::OPTIONS, None, &none, Fork::Preflight),
            (Method::OPTIONS, Some(Shape::Bucket), &form, Fork::Preflight),
            (Method::POST, Some(Shape::Service), &form, Fork::Action),
            (Method::GET, Some(Shape::Service), &none, Fork::Operation),
            (Method::POST, Some(Shape::Bucket), &form, Fork::Form),
            (Method::POST, Some(Shape::Bucket), &none, Fork::Operation),
            (Method::PUT, Some(Shape::Bucket), &form, Fork::Operation),
            (Method::POST, Some(Shape::Object), &form, Fork::Operation),
            (Method::POST, None, &form, Fork::Operation),
        ] {
            assert_eq!(Fork::of(&method, shape, headers), way, "{method} {shape:?}");
        }
    }
}
