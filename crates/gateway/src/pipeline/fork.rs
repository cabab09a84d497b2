//! The kinds of requests, which are distinguished before requests are routed.

use http::{HeaderMap, Method};
use s3_wire::Query;
use s3_wire::auth::{SigningService, signed_service};
use s3_wire::route::is_form;
use s3_wire::target::Shape;

/// A kind of request. Each has its own rules for the identification of the requester, the operation
/// and the form of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// A browser asks whether a page may send a request to another origin; it is not signed.
    Preflight,
    /// An action of IAM or STS: `POST /`, or a `GET /` with the parameter `Action` that is signed
    /// for one of them.
    Action,
    /// An upload by an HTML form, which has its key, its policy and its signature in its body.
    Form,
    /// An operation in the table of S3's operations.
    Operation,
}

impl Fork {
    /// Returns the kind of a request; `shape` is `None` if its path names no bucket or key.
    pub fn of(method: &Method, shape: Option<Shape>, query: &Query<'_>, headers: &HeaderMap) -> Self {
        match (method, shape) {
            (&Method::OPTIONS, _) => Self::Preflight,
            (&Method::POST, Some(Shape::Service)) => Self::Action,
            // Without a signature it is no action, so that no link on a page logs anybody in.
            (&Method::GET, Some(Shape::Service)) if is_signed_action(query, headers) => Self::Action,
            (&Method::POST, Some(Shape::Bucket)) if is_form(headers) => Self::Form,
            _ => Self::Operation,
        }
    }
}

fn is_signed_action(query: &Query<'_>, headers: &HeaderMap) -> bool {
    let signed = || signed_service(query, headers);
    query.get("Action").is_some() && matches!(signed(), Some(SigningService::Iam | SigningService::Sts))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{AUTHORIZATION, CONTENT_TYPE};

    use super::*;

    fn query(text: &str) -> Query<'_> {
        Query::parse(text).unwrap()
    }

    /// A `GET /` is ListBuckets unless all says that it is an action.
    #[test]
    fn a_get_is_an_action_if_it_is_signed_for_one() {
        let none = HeaderMap::new();
        let credential =
            |service: &str| format!("X-Amz-Credential=key/20261126/us-east-1/{service}/aws4_request");
        let authorization = |service: &str| {
            let scope = format!("key/20261126/us-east-1/{service}/aws4_request");
            let value = format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=00");
            HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(&value).unwrap())])
        };
        for (text, headers, way) in [
            (format!("Action=ListUsers&{}", credential("iam")), none.clone(), Fork::Action),
            (format!("Action=GetCallerIdentity&{}", credential("sts")), none.clone(), Fork::Action),
            (format!("Action=ListUsers&{}", credential("s3")), none.clone(), Fork::Operation),
            (credential("iam"), none.clone(), Fork::Operation),
            ("Action=ListUsers".to_owned(), none.clone(), Fork::Operation),
            ("Action=ListUsers".to_owned(), authorization("iam"), Fork::Action),
            ("Action=ListUsers".to_owned(), authorization("s3"), Fork::Operation),
        ] {
            let found = Fork::of(&Method::GET, Some(Shape::Service), &query(&text), &headers);
            assert_eq!(found, way, "{text}");
            let in_bucket = Fork::of(&Method::GET, Some(Shape::Bucket), &query(&text), &headers);
            assert_eq!(in_bucket, Fork::Operation, "{text}");
        }
    }

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
            assert_eq!(Fork::of(&method, shape, &query(""), headers), way, "{method} {shape:?}");
        }
    }
}
