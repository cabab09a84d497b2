//! Refuses writes that give a header or parameter twice that may be given only once: one of the two
//! values would be ignored.

use http::{HeaderMap, HeaderName};

use crate::error::{Result, S3Error};
use crate::query::Query;

/// Refuses a header or parameter that is given twice, if one of its values would decide how a write
/// is performed (`InvalidArgument`).
///
/// It must be called after everything that the operation does not implement was refused: then each
/// remaining parameter has a meaning, or is for access logs.
pub(super) fn check(query: &Query<'_>, headers: &HeaderMap) -> Result<()> {
    // `len` counts values, and `keys_len` counts names.
    if headers.len() != headers.keys_len() {
        let twice = |name: &&HeaderName| headers.get_all(*name).iter().nth(1).is_some();
        if let Some(name) = headers.keys().filter(|name| !is_list(name.as_str())).find(twice) {
            return Err(refused(name.as_str()));
        }
    }
    let names = || query.iter().map(|(name, _)| name).filter(|name| !is_for_the_log(name));
    for (count, name) in names().enumerate() {
        // Parameters that stand for headers are read in any case of letters.
        if names().take(count).any(|earlier| earlier.eq_ignore_ascii_case(name)) {
            return Err(refused(name));
        }
    }
    Ok(())
}

/// True for a header whose values are joined when it is read, and for one that writes do not read.
fn is_list(name: &str) -> bool {
    match name.strip_prefix("x-amz-") {
        // An expected owner is compared with all its values.
        Some(rest) => {
            rest.starts_with("meta-")
                || matches!(
                    rest,
                    "expected-bucket-owner" | "source-expected-bucket-owner" | "trailer" | "user-agent"
                )
        }
        None => !matches!(
            name,
            "cache-control"
                | "content-disposition"
                | "content-language"
                | "content-md5"
                | "content-type"
                | "expires"
        ),
    }
}

/// True for a parameter that begins with `x-` and is not S3's: it is for access logs.
fn is_for_the_log(name: &str) -> bool {
    let starts = |start: &str| name.get(..start.len()).is_some_and(|s| s.eq_ignore_ascii_case(start));
    starts("x-") && !starts("x-amz-") && name != "x-id"
}

fn refused(name: &str) -> S3Error {
    let message = format!("{name} was given more than once.");
    S3Error::with_message(crate::error::ErrorCode::InvalidArgument, message).detail("ArgumentName", name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn ask(query: &str, header: &'static str) -> bool {
        let mut headers = HeaderMap::new();
        for value in ["a", "a"].iter().filter(|_| !header.is_empty()) {
            headers.append(header, HeaderValue::from_static(value));
        }
        check(&Query::parse(query).unwrap(), &headers).is_ok()
    }

    #[test]
    fn what_decides_is_there_once() {
        for header in ["", "x-amz-meta-a", "if-match", "content-encoding", "accept", "user-agent"] {
            assert!(ask("a=1&b=2&x-a=1&x-a=2", header), "{header}");
        }
        for header in ["x-amz-copy-source", "x-amz-copy-source-if-match", "content-md5", "x-amz-acl"] {
            assert!(!ask("", header), "{header}");
        }
        for query in ["uploadId=1&uploadId=1", "X-Amz-Meta-A=1&x-amz-meta-a=2", "x-id=a&x-id=a"] {
            assert!(!ask(query, ""), "{query}");
        }
    }
}
