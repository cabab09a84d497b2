//! Finds the one operation that method, shape, query and headers of a request ask for, or S3's
//! refusal.
//!
//! A write that names a subresource is never performed as its plain verb: the client meant
//! something else, and the plain verb could overwrite or delete data that it wants to keep
//! (docs/decisions/0017-refused-not-guessed.md).

use std::sync::LazyLock;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method};

use crate::error::{ErrorCode, Result, S3Error};
use crate::headers::{ListObjects, ListObjectsV2, ListVersions, check_integer, has};
use crate::operation::{OPERATIONS, Operation, OperationInfo, Selector, Verb};
use crate::query::Query;
use crate::subresource::{self, Subresource};
use crate::target::Shape;

/// The result of routing a request.
#[derive(Debug)]
pub enum Route {
    /// The request asks for this operation.
    Operation(Operation),
    /// The request is refused. If its signature is wrong, that error is reported instead.
    Refused(S3Error),
    /// The request is refused. If its signature is wrong or its bucket does not exist, that error
    /// is reported instead.
    RefusedInBucket(S3Error),
}

/// Finds the operation that a request asks for. Errors in `Err` are those that S3 reports before it
/// checks the signature.
///
/// The most specific row of the table counts. A subresource that S3 does not have on this path is
/// ignored on GET and HEAD, as by S3, and refused on other methods. Parameters that S3 does not
/// know are checked in [`crate::honoured`], not here.
pub fn route(method: &Method, shape: Shape, query: &Query<'_>, headers: &HeaderMap) -> Result<Route> {
    let Some(verb) = Verb::from_method(method) else {
        return match *method {
            Method::PATCH => Ok(Route::Refused(not_allowed(method, shape, Asked::Plain))),
            _ => Err(ErrorCode::BadRequest.into()),
        };
    };
    let found = subresource::named(query, shape);
    let asked = asked(verb, shape, query, &found)?;
    if (verb, shape, asked) == (Verb::Post, Shape::Bucket, Asked::Plain) && !is_form(headers) {
        return Err(S3Error::new(ErrorCode::PreconditionFailed)
            .detail("Condition", "Bucket POST must be of the enclosure-type multipart/form-data"));
    }
    check_version(verb, shape, asked, query)?;
    check_website(query)?;
    if let Some(meaningless) = found.iter().find(|row| row.resource_type(shape).is_none())
        && !verb.is_read()
    {
        return Ok(Route::Refused(not_here(meaningless.name, shape)));
    }
    if verb != Verb::Put && has(headers, COPY_SOURCE) {
        let value = headers.get(COPY_SOURCE).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let value = value.unwrap_or_default();
        let message = "You can only specify a copy source header for copy requests.";
        return Ok(Route::Refused(S3Error::invalid_argument(COPY_SOURCE, value, message)));
    }
    if let Some(refusal) = refused_in_bucket(method, verb, shape, asked) {
        return Ok(Route::RefusedInBucket(refusal));
    }
    let row = match asked {
        Asked::Sub(row) if shape == Shape::Object && row.is_of_bucket() && verb == Verb::Get => {
            best(verb, Shape::Bucket, asked, query, headers)
        }
        _ => best(verb, shape, asked, query, headers),
    };
    Ok(match row {
        Some(row) => {
            check_listing(row.operation, query)?;
            Route::Operation(row.operation)
        }
        None => Route::Refused(not_allowed(method, shape, asked)),
    })
}

/// Refuses a page size or position that is not an integer, and an argument of another form of the
/// listing. S3 does so before it checks the signature.
fn check_listing(operation: Operation, query: &Query<'_>) -> Result<()> {
    use Operation as Op;
    match operation {
        Op::ListBuckets => check_integer(query, "max-buckets"),
        Op::ListObjects => ListObjects::check(query),
        Op::ListObjectsV2 => ListObjectsV2::check(query),
        Op::ListObjectVersions => ListVersions::check(query),
        Op::ListMultipartUploads => check_integer(query, "max-uploads"),
        Op::ListParts => {
            check_integer(query, "max-parts")?;
            check_integer(query, "part-number-marker")
        }
        _ => Ok(()),
    }
}

const COPY_SOURCE: &str = "x-amz-copy-source";

/// The thing that a query asks for.
#[derive(Debug, Clone, Copy)]
enum Asked {
    /// No subresource: the request asks for its plain verb.
    Plain,
    /// A subresource.
    Sub(&'static Subresource),
    /// A part of an upload: `partNumber` and `uploadId`.
    Part,
}

impl Asked {
    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Sub(row) => row.name,
            Self::Part => "partNumber",
        }
    }
}

impl PartialEq for Asked {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// Finds the one thing that the query asks for. A query that asks for two is refused
/// (`InvalidArgument`).
///
/// `partNumber` and `uploadId` together name a part of an upload. `partNumber` alone selects a part
/// of an object (GET and HEAD of a key). PUT refuses it, and so does any method on a bucket's path.
fn asked(verb: Verb, shape: Shape, query: &Query<'_>, found: &[&'static Subresource]) -> Result<Asked> {
    let meant = |row: &&&Subresource| row.resource_type(shape).is_some();
    let mut names: Vec<&str> = found.iter().filter(meant).map(|row| row.name).collect();
    let part = shape != Shape::Service && query.has("partNumber");
    match (names.as_slice(), part) {
        ([], false) => return Ok(Asked::Plain),
        ([], true) if shape == Shape::Bucket => {
            let message = "Object must have a valid key name.";
            return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
        }
        ([], true) if verb == Verb::Put => {
            let message = "This operation does not accept partNumber without uploadId";
            return Err(S3Error::invalid_argument("partNumber", "partNumber", message));
        }
        ([], true) => return Ok(Asked::Plain),
        (["uploadId"], true) => return Ok(Asked::Part),
        ([_], false) => {}
        _ => {
            if part {
                names.push("partNumber");
                names.sort_unstable();
            }
            let message = format!("Conflicting query string parameters: {}", names.join(", "));
            let first = names.first().copied().unwrap_or_default();
            return Err(S3Error::invalid_argument("ResourceType", first, message));
        }
    }
    Ok(found.iter().find(|row| meant(row)).map_or(Asked::Plain, |row| Asked::Sub(row)))
}

/// Refuses a `versionId` if the operation does not take one, or it is empty.
fn check_version(verb: Verb, shape: Shape, asked: Asked, query: &Query<'_>) -> Result<()> {
    let Some(version) = query.get("versionId").filter(|_| shape != Shape::Service) else { return Ok(()) };
    let message = match (shape, asked) {
        (Shape::Bucket, Asked::Sub(row)) if row.name == "acl" && verb != Verb::Delete => {
            "Invalid version id specified"
        }
        (Shape::Bucket, _) | (_, Asked::Part) => "This operation does not accept a version-id.",
        (_, Asked::Sub(row))
            if row.is_of_bucket() || matches!(row.name, "torrent" | "uploadId" | "uploads") =>
        {
            "This operation does not accept a version-id."
        }
        (_, Asked::Plain) if verb == Verb::Put => "This operation does not accept a version-id.",
        _ if version.is_empty() => "Version id cannot be the empty string",
        _ => return Ok(()),
    };
    Err(S3Error::invalid_argument("versionId", version, message))
}

fn check_website(query: &Query<'_>) -> Result<()> {
    match query.get_non_empty("website") {
        None => Ok(()),
        Some(value) => {
            Err(S3Error::invalid_argument("website", value, "The website parameter must not have a value"))
        }
    }
}

/// Returns the error for a request that is refused only if its bucket exists: S3 refuses it, or S3
/// would perform the bucket's operation and this server refuses it.
fn refused_in_bucket(method: &Method, verb: Verb, shape: Shape, asked: Asked) -> Option<S3Error> {
    let Asked::Sub(row) = asked else { return None };
    let invalid = |message| S3Error::with_message(ErrorCode::InvalidRequest, message);
    Some(match (shape, verb, row.name) {
        (Shape::Bucket, Verb::Get, "torrent") => not_allowed(method, shape, asked),
        (Shape::Bucket, Verb::Get | Verb::Post | Verb::Delete, "uploadId") => {
            invalid("A key must be specified")
        }
        (Shape::Bucket, Verb::Post, "restore") => ErrorCode::UserKeyMustBeSpecified.into(),
        (Shape::Object, Verb::Get, "uploads") => {
            invalid("Key is not expected for the GET method ?uploads subresource")
        }
        (Shape::Object, Verb::Get, "versions") => {
            invalid("There is no such thing as the ?versions sub-resource for a key")
        }
        (Shape::Object, Verb::Get, "logging") => ErrorCode::NoLoggingStatusForKey.into(),
        // S3 ignores the key and performs the bucket's operation, but the client may have meant the
        // object.
        (Shape::Object, Verb::Put | Verb::Post | Verb::Delete, name)
            if (row.is_of_bucket() || name == "delete")
                && rows(verb, Shape::Bucket).any(|other| subresource_of(other.selector) == Some(name)) =>
        {
            not_here(name, shape)
        }
        _ => return None,
    })
}

fn rows(verb: Verb, shape: Shape) -> impl Iterator<Item = &'static OperationInfo> {
    static ROWS: LazyLock<[[Vec<&OperationInfo>; 3]; 5]> = LazyLock::new(|| {
        let mut rows: [[Vec<&OperationInfo>; 3]; 5] = Default::default();
        for row in OPERATIONS {
            rows[row.method as usize][row.shape as usize].push(row);
        }
        rows
    });
    ROWS[verb as usize][shape as usize].iter().copied()
}

/// Returns the most specific row that matches the request.
fn best(
    verb: Verb,
    shape: Shape,
    asked: Asked,
    query: &Query<'_>,
    headers: &HeaderMap,
) -> Option<&'static OperationInfo> {
    let fits = |row: &&OperationInfo| match (row.selector, asked) {
        (Selector::Plain, Asked::Plain) => true,
        (Selector::Header(name), Asked::Plain) => has(headers, name),
        (Selector::SubValue(name, value), Asked::Plain) => query.get(name) == Some(value),
        (Selector::Sub(name), Asked::Sub(sub)) => name == sub.name,
        (Selector::SubBoth(name, other), Asked::Sub(sub)) => name == sub.name && query.has(other),
        (Selector::SubBoth("partNumber", _), Asked::Part) => true,
        (Selector::SubBothHeader(.., header), Asked::Part) => has(headers, header),
        _ => false,
    };
    rows(verb, shape).filter(fits).max_by_key(|row| match row.selector {
        Selector::Plain => 0,
        Selector::Header(_) | Selector::Sub(_) | Selector::SubValue(..) => 1,
        Selector::SubBoth(..) => 2,
        Selector::SubBothHeader(..) => 3,
    })
}

const fn subresource_of(selector: Selector) -> Option<&'static str> {
    match selector {
        Selector::Plain | Selector::Header(_) | Selector::SubValue(..) => None,
        Selector::Sub(name) | Selector::SubBoth(name, _) | Selector::SubBothHeader(name, ..) => Some(name),
    }
}

/// True if the body is sent as by an HTML form: its `Content-Type` is `multipart/form-data`.
pub fn is_form(headers: &HeaderMap) -> bool {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.get(..19).is_some_and(|start| start.eq_ignore_ascii_case("multipart/form-data"))
}

/// Makes `NotImplemented` for a subresource that S3 ignores on this path, or understands as the
/// bucket's.
fn not_here(name: &str, shape: Shape) -> S3Error {
    let path = if shape == Shape::Object { "key" } else { "bucket" };
    let message = format!("The {name} subresource is not implemented on the path of a {path}.");
    S3Error::with_message(ErrorCode::NotImplemented, message)
}

/// Makes `MethodNotAllowed`, with S3's name of the subresource, and the subresource's methods in
/// `Allow`.
fn not_allowed(method: &Method, shape: Shape, asked: Asked) -> S3Error {
    let (kind, name) = match asked {
        Asked::Plain => (shape.resource_type(), None),
        Asked::Part => ("PART", Some("partNumber")),
        Asked::Sub(row) => (row.resource_type(shape).unwrap_or(shape.resource_type()), Some(row.name)),
    };
    let home = match asked {
        Asked::Sub(row) if row.is_of_bucket() => Shape::Bucket,
        _ => shape,
    };
    let mut methods: Vec<&str> = OPERATIONS
        .iter()
        .filter(|row| row.shape == home && name.is_none_or(|_| subresource_of(row.selector) == name))
        .map(|row| row.method.as_str())
        .collect();
    methods.sort_unstable();
    methods.dedup();
    if name.is_none() && shape == Shape::Object {
        // POST on a key needs a subresource.
        methods.retain(|method| *method != "POST");
    }
    S3Error::method_not_allowed(method, kind, &methods.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    /// Returns the operation's name, or the code of the refusal.
    fn ask(method: &str, shape: Shape, query: &str, header: Option<&'static str>) -> String {
        let mut headers = HeaderMap::new();
        if let Some(name) = header {
            headers.insert(name, HeaderValue::from_static("x"));
        }
        refer(method, shape, query, &headers)
    }

    fn refer(method: &str, shape: Shape, query: &str, headers: &HeaderMap) -> String {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        match route(&method, shape, &Query::parse(query).unwrap(), headers) {
            Ok(Route::Operation(operation)) => operation.name().to_owned(),
            Ok(Route::Refused(error)) => <&str>::from(error.code()).to_owned(),
            Ok(Route::RefusedInBucket(error)) => format!("in bucket: {}", <&str>::from(error.code())),
            Err(error) => format!("unsigned: {}", <&str>::from(error.code())),
        }
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
            let got = if row.operation == Operation::PostObject {
                let mut headers = HeaderMap::new();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("Multipart/form-data; boundary=x"));
                refer("POST", row.shape, "", &headers)
            } else {
                ask(row.method.as_str(), row.shape, &query, header)
            };
            assert_eq!(got, row.name);
        }
    }

    #[test]
    fn a_subresource_is_never_a_plain_verb() {
        use Shape::{Bucket, Object, Service};
        for (method, shape, query, answer) in [
            ("DELETE", Bucket, "acl", "MethodNotAllowed"),
            ("PUT", Object, "torrent", "MethodNotAllowed"),
            ("PUT", Object, "uploads", "MethodNotAllowed"),
            ("HEAD", Object, "acl", "MethodNotAllowed"),
            ("HEAD", Object, "policy", "MethodNotAllowed"),
            ("PATCH", Object, "", "MethodNotAllowed"),
            ("POST", Object, "", "MethodNotAllowed"),
            ("PUT", Service, "", "MethodNotAllowed"),
            ("PUT", Object, "uploadId=x", "MethodNotAllowed"),
            ("TRACE", Object, "", "unsigned: BadRequest"),
            ("PUT", Object, "partNumber=1", "unsigned: InvalidArgument"),
            ("PUT", Object, "versionId=x", "unsigned: InvalidArgument"),
            ("POST", Bucket, "", "unsigned: PreconditionFailed"),
            ("GET", Bucket, "acl&policy", "unsigned: InvalidArgument"),
            ("DELETE", Bucket, "uploadId=x", "in bucket: InvalidRequest"),
            ("DELETE", Bucket, "versionId=x", "unsigned: InvalidArgument"),
            ("PUT", Bucket, "partNumber=1&uploadId=x", "MethodNotAllowed"),
            ("PUT", Bucket, "partNumber=1", "unsigned: InvalidRequest"),
            ("PUT", Bucket, "legal-hold", "NotImplemented"),
            ("PUT", Bucket, "renameObject", "NotImplemented"),
            ("DELETE", Bucket, "annotation", "NotImplemented"),
            ("PUT", Object, "policy", "in bucket: NotImplemented"),
            ("DELETE", Object, "policy", "in bucket: NotImplemented"),
            ("POST", Object, "policy", "MethodNotAllowed"),
            ("POST", Object, "delete", "in bucket: NotImplemented"),
            ("DELETE", Object, "publicAccessBlock", "NotImplemented"),
            ("PUT", Object, "annotation&annotationName=n", "PutObjectAnnotation"),
            ("PUT", Object, "website=x", "unsigned: InvalidArgument"),
        ] {
            assert_eq!(ask(method, shape, query, None), answer, "{method} {shape:?} {query}");
        }
    }

    #[test]
    fn reads_of_a_key_with_a_buckets_subresource() {
        use Shape::Object;
        for (query, answer) in [
            ("versioning", "GetBucketVersioning"),
            ("location", "GetBucketLocation"),
            ("versions", "in bucket: InvalidRequest"),
            ("logging", "in bucket: NoLoggingStatusForKey"),
            ("uploads", "in bucket: InvalidRequest"),
            // These subresources have no meaning on a key's path.
            ("analytics", "GetObject"),
            ("policyStatus", "GetObject"),
            ("versioning&versionId=x", "unsigned: InvalidArgument"),
            ("acl&versionId=x", "GetObjectAcl"),
        ] {
            assert_eq!(ask("GET", Object, query, None), answer, "{query}");
        }
        assert_eq!(ask("GET", Shape::Bucket, "legal-hold", None), "ListObjects");
    }

    #[test]
    fn a_405_names_the_subresource_and_its_methods() {
        let refused = |method: Method, shape, query| {
            let query = Query::parse(query).unwrap();
            match route(&method, shape, &query, &HeaderMap::new()) {
                Ok(Route::Refused(error)) => {
                    (error.details()[1].1.clone(), error.headers()[0].1.to_str().unwrap().to_owned())
                }
                other => panic!("{other:?}"),
            }
        };
        let pair = |kind: &str, allow: &str| (kind.to_owned(), allow.to_owned());
        assert_eq!(refused(Method::POST, Shape::Bucket, "acl"), pair("ACL", "GET, PUT"));
        assert_eq!(refused(Method::POST, Shape::Object, "policy"), pair("BUCKETPOLICY", "DELETE, GET, PUT"));
        assert_eq!(refused(Method::PUT, Shape::Object, "uploadId=x"), pair("UPLOAD", "DELETE, GET, POST"));
        assert_eq!(refused(Method::DELETE, Shape::Object, "uploadId=x&partNumber=1"), pair("PART", "PUT"));
        assert_eq!(refused(Method::POST, Shape::Object, ""), pair("OBJECT", "DELETE, GET, HEAD, PUT"));
        assert_eq!(refused(Method::PUT, Shape::Service, ""), pair("SERVICE", "GET"));
    }

    #[test]
    fn arguments_are_no_subresources() {
        use Shape::{Bucket, Object};
        assert_eq!(ask("GET", Object, "partNumber=2", None), "GetObject");
        assert_eq!(ask("HEAD", Object, "partNumber=2", None), "HeadObject");
        // They do not hide a subresource, either.
        for query in ["acl&tagging", "acl&partNumber=2&tagging", "partNumber=2&tagging"] {
            assert_eq!(ask("GET", Object, query, None), "unsigned: InvalidArgument", "{query}");
        }
        assert_eq!(ask("GET", Object, "foo=bar&x-id=GetObject", None), "GetObject");
        assert_eq!(ask("GET", Bucket, "list-type=3", None), "ListObjects");
        assert_eq!(ask("GET", Bucket, "versions&list-type=2", None), "ListObjectVersions");
        assert_eq!(ask("GET", Bucket, "id=x", None), "ListObjects");
        assert_eq!(ask("PUT", Object, "x-id=PutObject", Some("x-amz-copy-source")), "CopyObject");
        assert_eq!(ask("GET", Object, "", Some("x-amz-copy-source")), "InvalidArgument");
    }
}
