//! Reads the few elements of S3's documents that the load generator needs.

use quick_xml::Reader;
use quick_xml::events::Event;

/// Returns the text of the first element with this name.
pub(crate) fn first(document: &[u8], name: &str) -> Option<String> {
    texts(document, name, 1).into_iter().next()
}

/// Returns the texts of all elements with this name. Stops where the document is not well-formed.
pub(crate) fn all(document: &[u8], name: &str) -> Vec<String> {
    texts(document, name, usize::MAX)
}

/// Returns the name of the outermost element.
pub(crate) fn root(document: &[u8]) -> Option<String> {
    let mut reader = Reader::from_reader(document);
    loop {
        match reader.read_event().ok()? {
            Event::Start(element) | Event::Empty(element) => {
                return Some(element.local_name().as_ref().to_owned());
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

fn texts(document: &[u8], name: &str, most: usize) -> Vec<String> {
    let mut reader = Reader::from_reader(document);
    let mut found = Vec::new();
    let mut inside: Option<String> = None;
    while found.len() < most {
        match reader.read_event() {
            Ok(Event::Start(element)) if element.local_name().as_ref() == name => {
                inside = Some(String::new());
            }
            Ok(Event::Text(text)) => {
                if let Some(inside) = &mut inside {
                    inside.push_str(&text);
                }
            }
            Ok(Event::GeneralRef(reference)) => {
                let text = match &*reference {
                    "amp" => "&",
                    "lt" => "<",
                    "gt" => ">",
                    "quot" | "#34" => "\"",
                    "apos" | "#39" => "'",
                    _ => "\u{fffd}",
                };
                if let Some(inside) = &mut inside {
                    inside.push_str(text);
                }
            }
            Ok(Event::End(_)) => found.extend(inside.take()),
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] =
        b"<?xml version='1.0'?>\n<ListBucketResult xmlns='x'><Contents><Key>a/1</Key></Contents>\
        <Contents><Key>b&amp;c</Key><Size>1</Size></Contents></ListBucketResult>";

    #[test]
    fn words_are_found() {
        assert_eq!(all(LIST, "Key"), ["a/1", "b&c"]);
        assert_eq!(first(LIST, "Size").as_deref(), Some("1"));
        assert_eq!(first(LIST, "Code"), None);
        assert_eq!(root(LIST).as_deref(), Some("ListBucketResult"));
        assert_eq!(first(b"<Error><Code>SlowDown</Code><Mess", "Code").as_deref(), Some("SlowDown"));
        assert_eq!(first(b"<html><Code>", "Code"), None);
        assert_eq!(root(b"not xml"), None);
    }
}
