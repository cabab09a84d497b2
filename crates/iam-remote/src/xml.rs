//! Reads the few elements of S3's XML documents that a store needs.

use quick_xml::Reader;
use quick_xml::events::Event;

/// The depth of the elements of a document: S3's have four.
const DEPTH_MAX: usize = 16;
/// The bytes of a document with an error.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// A page of a listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Keys, and the ETags of their objects.
    pub objects: Vec<(String, String)>,
    /// The token with which the next page is requested; `None` on the last one.
    pub next: Option<String>,
}

/// Reads a page of ListObjectsV2; `None` if the document is another one, or is incomplete.
pub fn page(document: &[u8]) -> Option<Page> {
    let (mut page, mut is_truncated) = (Page::default(), false);
    let (mut key, mut etag) = (None, None);
    let end = each(document, |path, text| match path {
        ["ListBucketResult", "IsTruncated"] => is_truncated = text == "true",
        ["ListBucketResult", "NextContinuationToken"] => page.next = Some(text.to_owned()),
        ["ListBucketResult", "Contents", "Key"] => key = Some(text.to_owned()),
        ["ListBucketResult", "Contents", "ETag"] => etag = Some(text.to_owned()),
        ["ListBucketResult", "Contents"] => page.objects.extend(key.take().zip(etag.take())),
        _ => {}
    });
    let is_whole = end.as_deref() == Some("ListBucketResult") && is_truncated == page.next.is_some();
    is_whole.then_some(page)
}

/// Returns the code and the message of an error; `None` for a document that is none, or is longer
/// than errors are.
pub fn error(document: &[u8]) -> Option<(String, String)> {
    if document.len() > ERROR_BYTES_MAX {
        return None;
    }
    let (mut code, mut message) = (None, String::new());
    each(document, |path, text| match path {
        ["Error", "Code"] => code = Some(text.to_owned()),
        ["Error", "Message"] => text.clone_into(&mut message),
        _ => {}
    });
    Some((code?, message))
}

/// Calls for each element at its end, with the names down to it, and its text. Returns the name of
/// the outermost element if the document is whole, and not deeper than [`DEPTH_MAX`].
fn each(document: &[u8], mut call: impl FnMut(&[&str], &str)) -> Option<String> {
    let mut reader = Reader::from_reader(document);
    let (mut path, mut text): (Vec<String>, String) = (Vec::new(), String::new());
    loop {
        match reader.read_event().ok()? {
            Event::Start(_) if path.len() == DEPTH_MAX => return None,
            Event::Start(element) => {
                path.push(element.local_name().as_ref().to_owned());
                text.clear();
            }
            Event::Text(more) => text.push_str(&more),
            Event::GeneralRef(reference) => text.push_str(match &*reference {
                "amp" => "&",
                "lt" => "<",
                "gt" => ">",
                "quot" | "#34" | "#x22" => "\"",
                "apos" | "#39" | "#x27" => "'",
                _ => "\u{fffd}",
            }),
            Event::End(_) => {
                let names: Vec<&str> = path.iter().map(String::as_str).collect();
                call(&names, &text);
                text.clear();
                let name = path.pop()?;
                if path.is_empty() {
                    return Some(name);
                }
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read() {
        let text = "<?xml version='1.0'?>\n<ListBucketResult xmlns='x'><Name>b</Name><IsTruncated>true</IsTruncated>\
                    <Contents><Key>a/&amp;</Key><ETag>&quot;1&quot;</ETag><Size>1</Size><Owner><ID>x</ID></Owner>\
                    </Contents><Contents><ETag>\"2\"</ETag><Key>b</Key></Contents>\
                    <NextContinuationToken>t</NextContinuationToken></ListBucketResult>";
        let object = |key: &str, etag: &str| (key.to_owned(), etag.to_owned());
        let objects = vec![object("a/&", "\"1\""), object("b", "\"2\"")];
        assert_eq!(page(text.as_bytes()), Some(Page { objects, next: Some("t".to_owned()) }));
        let empty = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
        assert_eq!(page(empty.as_bytes()), Some(Page::default()));
        let endless = "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>";
        for bad in [&text[..text.len() - 5], "<Error></Error>", "", "{}", endless] {
            assert_eq!(page(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn errors_are_read() {
        let text =
            b"<Error><Code>SlowDown</Code><Message>a &lt;b&gt;</Message><Resource>/</Resource></Error>";
        assert_eq!(error(text), Some(("SlowDown".to_owned(), "a <b>".to_owned())));
        assert_eq!(error(b"<html><Code>x</Code></html>"), None);
        assert_eq!(error(b""), None);
    }

    /// The work for each element grows with its depth, and that of a hostile document has no limit.
    #[test]
    fn depth_and_length_are_limited() {
        let nested = |depth: usize| {
            format!("<Error>{}{}<Code>x</Code></Error>", "<a>".repeat(depth), "</a>".repeat(depth))
        };
        assert!(error(nested(DEPTH_MAX - 1).as_bytes()).is_some());
        assert_eq!(error(nested(DEPTH_MAX).as_bytes()), None);
        let long = format!("<Error><Code>x</Code>{}</Error>", " ".repeat(ERROR_BYTES_MAX));
        assert_eq!(error(long.as_bytes()), None);
    }
}
