//! From method, shape, query and headers to one operation, or S3's refusal.

use std::sync::LazyLock;

use http::{HeaderMap, Method};

use crate::Result;
use crate::error::{ErrorCode, S3Error};
use crate::operation::{OPERATIONS, Operation, OperationInfo, Selector, Verb};
use crate::query::Query;
use crate::target::Shape;

/// Finds the operation that a request asks for.
///
/// The most specific row of the table wins. A subresource that S3 knows, but not for this method and shape, gives
/// `MethodNotAllowed`; so does a plain verb that S3 lacks. Nothing with a subresource is ever treated as the plain
/// verb. Query parameters without a meaning in S3 are ignored.
pub fn route(method: &Method, shape: Shape, query: &Query<'_>, headers: &HeaderMap) -> Result<Operation> {
    let verb = Verb::from_method(method).ok_or_else(|| refuse(method, shape))?;
    let named: Vec<&str> =
        query.iter().map(|(name, _)| name).filter(|name| is_subresource(name, shape)).collect();
    let rows = OPERATIONS.iter().filter(|row| row.method == verb && row.shape == shape);
    let best =
        rows.filter(|row| matches(row, &named, query, headers)).max_by_key(|row| specificity(row.selector));
    let found = best.ok_or_else(|| refuse(method, shape))?;
    let explained = subresource_of(found.selector);
    // `partNumber` selects a part on GET and HEAD; there it is an argument, not a subresource.
    let explains = |name: &str| {
        explained.contains(&Some(name)) || (name == "partNumber" && matches!(verb, Verb::Get | Verb::Head))
    };
    match named.into_iter().find(|name| !explains(name)) {
        None => Ok(found.operation),
        Some("uploadId" | "partNumber") if shape == Shape::Object && verb == Verb::Put => {
            Err(S3Error::new(ErrorCode::InvalidRequest))
        }
        Some(_) if explained[0].is_some() => Err(S3Error::invalid_argument(
            "ResourceType",
            explained[0].unwrap_or_default(),
            "Conflicting query string parameters",
        )),
        Some(_) => Err(refuse(method, shape)),
    }
}

/// `named` are the subresources that the query has; `list-type` and `id`, which alone ask for nothing, are only in the query.
fn matches(row: &OperationInfo, named: &[&str], query: &Query<'_>, headers: &HeaderMap) -> bool {
    let has = |name: &str| if is_argument(name) { query.has(name) } else { named.contains(&name) };
    match row.selector {
        Selector::Plain => true,
        Selector::Sub(name) => has(name),
        Selector::SubValue(name, value) => has(name) && query.get(name) == Some(value),
        Selector::SubBoth(a, b) => has(a) && has(b),
        Selector::Header(name) => headers.contains_key(name),
        Selector::SubBothHeader(a, b, name) => has(a) && has(b) && headers.contains_key(name),
    }
}

const fn specificity(selector: Selector) -> u8 {
    match selector {
        Selector::Plain => 0,
        Selector::Header(_) => 1,
        Selector::Sub(_) | Selector::SubValue(..) => 2,
        Selector::SubBoth(..) => 3,
        Selector::SubBothHeader(..) => 4,
    }
}

const fn subresource_of(selector: Selector) -> [Option<&'static str>; 2] {
    match selector {
        Selector::Plain | Selector::Header(_) => [None, None],
        Selector::Sub(name) | Selector::SubValue(name, _) => [Some(name), None],
        Selector::SubBoth(a, b) | Selector::SubBothHeader(a, b, _) => [Some(a), Some(b)],
    }
}

/// True for `list-type` and `id`: alone they ask for nothing.
fn is_argument(name: &str) -> bool {
    matches!(name, "list-type" | "id")
}

/// True if some operation of this shape is asked for by `name`.
fn is_subresource(name: &str, shape: Shape) -> bool {
    /// Of each shape, sorted.
    static NAMES: LazyLock<[Vec<&str>; 3]> = LazyLock::new(|| {
        [Shape::Service, Shape::Bucket, Shape::Object].map(|shape| {
            let rows = OPERATIONS.iter().filter(|row| row.shape == shape);
            let mut names: Vec<_> = rows
                .flat_map(|row| subresource_of(row.selector))
                .flatten()
                .filter(|name| !is_argument(name))
                .collect();
            names.sort_unstable();
            names.dedup();
            names
        })
    });
    NAMES.get(shape as usize).is_some_and(|names| names.binary_search(&name).is_ok())
}

fn refuse(method: &Method, shape: Shape) -> S3Error {
    let allow = match shape {
        Shape::Service => "GET",
        Shape::Bucket => "DELETE, GET, HEAD, POST, PUT",
        Shape::Object => "DELETE, GET, HEAD, POST, PUT",
    };
    S3Error::method_not_allowed(method, shape.resource_type(), allow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn ask(
        method: &str,
        shape: Shape,
        query: &str,
        header: Option<&'static str>,
    ) -> std::result::Result<&'static str, String> {
        let mut headers = HeaderMap::new();
        if let Some(name) = header {
            headers.insert(name, HeaderValue::from_static("x"));
        }
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        route(&method, shape, &Query::parse(query).unwrap(), &headers)
            .map(Operation::name)
            .map_err(|e| <&str>::from(e.code()).to_owned())
    }

    #[test]
    fn every_row_is_reached_by_its_own_selector() {
        for row in OPERATIONS {
            let (query, header) = match row.selector {
                Selector::Plain => (String::new(), None),
                Selector::Sub(a) => (a.to_owned(), None),
                Selector::SubValue(a, v) => (format!("{a}={v}"), None),
                Selector::SubBoth(a, b) => (format!("{a}=1&{b}=x"), None),
                Selector::Header(h) => (String::new(), Some(h)),
                Selector::SubBothHeader(a, b, h) => (format!("{a}=1&{b}=x"), Some(h)),
            };
            assert_eq!(ask(row.method.as_str(), row.shape, &query, header), Ok(row.name), "{}", row.name);
        }
    }

    #[test]
    fn a_subresource_is_never_a_plain_verb() {
        use Shape::{Bucket, Object, Service};
        let refused = Err("MethodNotAllowed".to_owned());
        assert_eq!(ask("DELETE", Bucket, "acl", None), refused);
        assert_eq!(ask("PUT", Object, "torrent", None), refused);
        assert_eq!(ask("PUT", Object, "uploads", None), refused);
        assert_eq!(ask("HEAD", Object, "acl", None), refused);
        assert_eq!(ask("PATCH", Object, "", None), refused);
        assert_eq!(ask("POST", Object, "", None), refused);
        assert_eq!(ask("PUT", Service, "", None), refused);
        assert_eq!(ask("PUT", Object, "uploadId=x", None), Err("InvalidRequest".to_owned()));
        assert_eq!(ask("GET", Bucket, "acl&policy", None), Err("InvalidArgument".to_owned()));
    }

    #[test]
    fn arguments_are_no_subresources() {
        use Shape::{Bucket, Object};
        assert_eq!(ask("GET", Object, "partNumber=2", None), Ok("GetObject"));
        assert_eq!(ask("HEAD", Object, "partNumber=2", None), Ok("HeadObject"));
        // Nor do they hide one.
        for query in ["acl&tagging", "acl&partNumber=2&tagging"] {
            assert_eq!(ask("GET", Object, query, None), Err("InvalidArgument".to_owned()), "{query}");
        }
        assert_eq!(ask("GET", Object, "foo=bar&x-id=GetObject", None), Ok("GetObject"));
        assert_eq!(ask("GET", Bucket, "list-type=3", None), Ok("ListObjects"));
        assert_eq!(ask("PUT", Object, "x-id=PutObject", Some("x-amz-copy-source")), Ok("CopyObject"));
    }
}
