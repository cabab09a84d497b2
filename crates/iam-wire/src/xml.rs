//! A small writer of answers. S3's XML has another root element and other types; both share the
//! escaping of text.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use s3_types::Timestamp;
use s3_wire::time::format_iso8601;
use s3_wire::xml::escape;

use crate::secret::Secret;
use crate::words::Word;

/// A text in an answer: borrowed, or made for the answer.
pub type Text<'a> = Cow<'a, str>;

/// The characters of a document that IAM percent-encodes: all but RFC 3986's unreserved ones.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A policy document, which answers contain percent-encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedDocument<'a>(pub Text<'a>);

/// Replaces the characters that XML 1.0 cannot contain, not even as references: most control
/// characters.
pub(crate) fn printable(text: &str) -> Text<'_> {
    let is_lost = |c: char| matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    if text.contains(is_lost) { text.replace(is_lost, "\u{fffd}").into() } else { text.into() }
}

/// An answer that is being written.
#[derive(Debug)]
pub struct Xml {
    out: String,
}

impl Xml {
    /// Begins a document with a start tag that has a namespace.
    pub(crate) fn document(root: &str, namespace: &str) -> Self {
        let mut xml = Self { out: String::with_capacity(1024) };
        for piece in ["<", root, " xmlns=\"", namespace, "\">"] {
            xml.out.push_str(piece);
        }
        xml
    }

    /// Writes the end tag of the document, and returns the text.
    pub(crate) fn finish(mut self, root: &str) -> String {
        self.close(root);
        self.out
    }

    /// Writes a start tag.
    pub(crate) fn open(&mut self, name: &str) {
        for piece in ["<", name, ">"] {
            self.out.push_str(piece);
        }
    }

    /// Writes an end tag.
    pub(crate) fn close(&mut self, name: &str) {
        for piece in ["</", name, ">"] {
            self.out.push_str(piece);
        }
    }

    /// Writes an element with text.
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.open(name);
        self.out.push_str(&escape(&printable(text)));
        self.close(name);
    }
}

/// A value that can be a member of an answer. Element names are those of the API model, and are not
/// escaped.
pub trait Element {
    /// Writes the element with its content.
    fn write(&self, xml: &mut Xml, name: &str);
}

impl Element for Text<'_> {
    fn write(&self, xml: &mut Xml, name: &str) {
        xml.text(name, self);
    }
}

impl Element for bool {
    fn write(&self, xml: &mut Xml, name: &str) {
        xml.text(name, if *self { "true" } else { "false" });
    }
}

impl Element for u32 {
    fn write(&self, xml: &mut Xml, name: &str) {
        xml.text(name, &self.to_string());
    }
}

impl Element for Timestamp {
    fn write(&self, xml: &mut Xml, name: &str) {
        xml.text(name, &format_iso8601(*self));
    }
}

impl Element for EncodedDocument<'_> {
    fn write(&self, xml: &mut Xml, name: &str) {
        xml.text(name, &utf8_percent_encode(&self.0, ENCODED).to_string());
    }
}

impl Element for Secret<'_> {
    fn write(&self, xml: &mut Xml, name: &str) {
        xml.text(name, self.expose());
    }
}

impl<W: Word> Element for W {
    fn write(&self, xml: &mut Xml, name: &str) {
        xml.text(name, self.as_str());
    }
}

impl<T: Element> Element for Option<T> {
    fn write(&self, xml: &mut Xml, name: &str) {
        if let Some(element) = self {
            element.write(xml, name);
        }
    }
}

impl<T: Element> Element for Vec<T> {
    fn write(&self, xml: &mut Xml, name: &str) {
        xml.open(name);
        for member in self {
            member.write(xml, "member");
        }
        xml.close(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(element: &dyn Element) -> String {
        let mut xml = Xml::document("R", "n");
        element.write(&mut xml, "E");
        xml.finish("R")
    }

    #[test]
    fn elements() {
        for (element, expected) in [
            (&Text::Borrowed("a<b&\"c\"\r") as &dyn Element, "<E>a&lt;b&amp;&quot;c&quot;&#xD;</E>"),
            (&Text::Borrowed("a\0b\u{1f}c\td"), "<E>a\u{fffd}b\u{fffd}c\td</E>"),
            (&true, "<E>true</E>"),
            (&7_u32, "<E>7</E>"),
            (&Timestamp::from_second(784_111_777).unwrap(), "<E>1994-11-06T08:49:37Z</E>"),
            (
                &EncodedDocument("{\"a\": [\"~é*\"]}".into()),
                "<E>%7B%22a%22%3A%20%5B%22~%C3%A9%2A%22%5D%7D</E>",
            ),
            (&Secret::new("hush+/"), "<E>hush+/</E>"),
            (&None::<bool>, ""),
            (&Some(false), "<E>false</E>"),
            (&Vec::<bool>::new(), "<E></E>"),
            (&vec![true, false], "<E><member>true</member><member>false</member></E>"),
        ] {
            assert_eq!(written(element), format!("<R xmlns=\"n\">{expected}</R>"));
        }
        assert_eq!(format!("{:?}", Secret::new("hush")), "Secret(..)");
    }
}
