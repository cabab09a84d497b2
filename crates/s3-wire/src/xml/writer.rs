use std::fmt::{self, Write as _};

use s3_types::{Checksum, ChecksumValue, ETag, Timestamp};

use super::escape::{push_escaped, push_url_encoded};
use super::{DECLARATION, KeyEncoding, Owner};
use crate::time::push_iso8601_millis;

const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// Writes one document into one string. Element names are ours, so they are never escaped.
pub(super) struct Writer {
    out: String,
    root: &'static str,
}

impl Writer {
    /// Begins a document.
    pub fn document(root: &'static str, capacity: usize) -> Self {
        let mut out = String::with_capacity(capacity + 256);
        for piece in [DECLARATION, "<", root, " xmlns=\"", NAMESPACE, "\">"] {
            out.push_str(piece);
        }
        Self { out, root }
    }

    /// Ends the document.
    pub fn finish(mut self) -> String {
        self.close(self.root);
        self.out
    }

    pub fn open(&mut self, name: &str) {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push('>');
    }

    pub fn close(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    pub fn text(&mut self, name: &str, text: &str) {
        self.open(name);
        push_escaped(&mut self.out, text);
        self.close(name);
    }

    /// Text of the element that is open.
    pub fn content(&mut self, text: &str) {
        push_escaped(&mut self.out, text);
    }

    pub fn optional_text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// A key or part of one, in the encoding that the client asked for.
    pub fn key(&mut self, name: &str, key: &str, encoding: KeyEncoding) {
        self.open(name);
        match encoding {
            KeyEncoding::Plain => push_escaped(&mut self.out, key),
            KeyEncoding::Url => push_url_encoded(&mut self.out, key),
        }
        self.close(name);
    }

    pub fn optional_key(&mut self, name: &str, key: Option<&str>, encoding: KeyEncoding) {
        if let Some(key) = key {
            self.key(name, key, encoding);
        }
    }

    pub fn number(&mut self, name: &str, number: impl TryInto<u64>) {
        self.open(name);
        push_number(&mut self.out, number.try_into().unwrap_or(u64::MAX));
        self.close(name);
    }

    pub fn boolean(&mut self, name: &str, value: bool) {
        self.text(name, if value { "true" } else { "false" });
    }

    pub fn time(&mut self, name: &str, time: Timestamp) {
        self.open(name);
        push_iso8601_millis(&mut self.out, time);
        self.close(name);
    }

    /// An ETag in its quotes, which S3 writes as references.
    pub fn etag(&mut self, name: &str, etag: &ETag) {
        self.open(name);
        self.out.push_str("&quot;");
        self.display(etag);
        self.out.push_str("&quot;");
        self.close(name);
    }

    pub fn bare_etag(&mut self, name: &str, etag: &ETag) {
        self.open(name);
        self.display(etag);
        self.close(name);
    }

    pub fn owner(&mut self, name: &str, owner: Owner<'_>) {
        self.open(name);
        self.text("ID", owner.id);
        self.optional_text("DisplayName", owner.display_name);
        self.close(name);
    }

    /// A value under its algorithm's element.
    pub fn checksum_value(&mut self, value: &ChecksumValue) {
        let name = value.algorithm().element();
        self.open(name);
        self.display(value);
        self.close(name);
    }

    /// A value under its algorithm's element, and its type.
    pub fn checksum(&mut self, checksum: &Checksum) {
        let name = checksum.value.algorithm().element();
        self.open(name);
        self.display(checksum);
        self.close(name);
        self.text("ChecksumType", checksum.checksum_type.name());
    }

    pub fn common_prefixes<'a>(
        &mut self,
        prefixes: impl IntoIterator<Item = &'a str>,
        encoding: KeyEncoding,
    ) {
        for prefix in prefixes {
            self.open("CommonPrefixes");
            self.key("Prefix", prefix, encoding);
            self.close("CommonPrefixes");
        }
    }

    fn display(&mut self, value: impl fmt::Display) {
        // Writing to a string fails only if the value's own Display does.
        let _ = write!(Escaped(&mut self.out), "{value}");
    }
}

struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        push_escaped(self.0, text);
        Ok(())
    }
}

fn push_number(out: &mut String, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.push_str(str::from_utf8(&digits[first..]).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers() {
        let mut out = String::new();
        push_number(&mut out, 0);
        push_number(&mut out, u64::MAX);
        assert_eq!(out, "018446744073709551615");
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_the_formatter(number: u64) {
            let mut out = String::new();
            push_number(&mut out, number);
            prop_assert_eq!(out, number.to_string());
        }
    }
}
