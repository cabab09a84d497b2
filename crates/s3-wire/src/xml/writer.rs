use std::fmt::{self, Write as _};

use s3_types::{Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, ETag, Timestamp};

use super::words::{DECLARATION, KeyEncoding, Owner};
use crate::escape::{push_escaped, push_url_encoded};
use crate::time::push_iso8601_of_xml;

const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// Writes one document, as one string or, if it may be long, as several strings that are taken
/// while it is written.
///
/// A long document is begun by its result (such as [`super::ListObjectsResult::begin`]). Its
/// entries are written one by one.
pub struct Writer {
    // Element names are ours, so they are never escaped.
    out: String,
    root: &'static str,
    /// The text between the last entry and the end tag of the root.
    tail: String,
}

impl Writer {
    /// Begins a document.
    pub(crate) fn document(root: &'static str, capacity: usize) -> Self {
        let mut out = String::with_capacity(capacity + 256);
        for piece in [DECLARATION, "<", root, " xmlns=\"", NAMESPACE, "\">"] {
            out.push_str(piece);
        }
        Self { out, root, tail: String::new() }
    }

    /// Writes a whole document that is one element without content.
    pub(super) fn empty_document(root: &str) -> String {
        format!("{DECLARATION}<{root} xmlns=\"{NAMESPACE}\"/>")
    }

    /// Ends the document, and returns the text that has not been taken.
    pub fn finish(mut self) -> String {
        self.out.push_str(&self.tail);
        self.close(self.root);
        self.out
    }

    /// Returns the number of bytes that have been written and not been taken.
    pub const fn pending_bytes(&self) -> usize {
        self.out.len()
    }

    /// Returns the text that has been written since the last call.
    pub fn take(&mut self) -> String {
        let room = String::with_capacity(self.out.len());
        std::mem::replace(&mut self.out, room)
    }

    /// Runs `write`, and keeps what it writes until the document is finished.
    pub(super) fn at_end(&mut self, write: impl FnOnce(&mut Self)) {
        let entries_begin = self.out.len();
        write(self);
        self.tail = self.out.split_off(entries_begin);
    }

    pub(crate) fn open(&mut self, name: &str) {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push('>');
    }

    pub(crate) fn close(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.open(name);
        push_escaped(&mut self.out, text);
        self.close(name);
    }

    /// Writes an element without content.
    pub(crate) fn empty(&mut self, name: &str) {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push_str("/>");
    }

    /// Writes the grantee of a grant.
    pub(crate) fn canonical_user(&mut self, name: &str, user: Owner<'_>) {
        self.out.push('<');
        self.out.push_str(name);
        self.out
            .push_str(" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\">");
        self.text("ID", user.id);
        self.close(name);
    }

    /// Writes text into the open element.
    pub(super) fn content(&mut self, text: &str) {
        push_escaped(&mut self.out, text);
    }

    pub(crate) fn optional_text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// Writes a key or a part of one, in the encoding that the client asked for.
    pub(super) fn key(&mut self, name: &str, key: &str, encoding: KeyEncoding) {
        self.open(name);
        match encoding {
            KeyEncoding::Plain => push_escaped(&mut self.out, key),
            KeyEncoding::Url => push_url_encoded(&mut self.out, key),
        }
        self.close(name);
    }

    pub(super) fn optional_key(&mut self, name: &str, key: Option<&str>, encoding: KeyEncoding) {
        if let Some(key) = key {
            self.key(name, key, encoding);
        }
    }

    pub(super) fn number(&mut self, name: &str, number: impl TryInto<u64>) {
        self.open(name);
        push_number(&mut self.out, number.try_into().unwrap_or(u64::MAX));
        self.close(name);
    }

    pub(super) fn boolean(&mut self, name: &str, value: bool) {
        self.text(name, if value { "true" } else { "false" });
    }

    pub(super) fn time(&mut self, name: &str, time: Timestamp) {
        self.open(name);
        push_iso8601_of_xml(&mut self.out, time);
        self.close(name);
    }

    /// Writes an ETag in its quotes, which S3 writes as entities.
    pub(super) fn etag(&mut self, name: &str, etag: &ETag) {
        self.open(name);
        self.out.push_str("&quot;");
        self.display(etag);
        self.out.push_str("&quot;");
        self.close(name);
    }

    pub(super) fn bare_etag(&mut self, name: &str, etag: &ETag) {
        self.open(name);
        self.display(etag);
        self.close(name);
    }

    pub(crate) fn owner(&mut self, name: &str, owner: Owner<'_>) {
        self.open(name);
        self.text("ID", owner.id);
        self.optional_text("DisplayName", owner.display_name);
        self.close(name);
    }

    /// Writes a value in its algorithm's element.
    pub(super) fn checksum_value(&mut self, value: &ChecksumValue) {
        let name = value.algorithm().element();
        self.open(name);
        self.display(value);
        self.close(name);
    }

    /// Writes a value in its algorithm's element, then its type.
    pub(super) fn checksum(&mut self, checksum: &Checksum) {
        let name = checksum.value.algorithm().element();
        self.open(name);
        self.display(checksum);
        self.close(name);
        self.text("ChecksumType", checksum.checksum_type.name());
    }

    /// Writes the algorithm and type of a checksum, if there is one.
    pub(super) fn checksum_kind(&mut self, kind: Option<(ChecksumAlgorithm, ChecksumType)>) {
        if let Some((algorithm, checksum_type)) = kind {
            self.text("ChecksumAlgorithm", algorithm.name());
            self.text("ChecksumType", checksum_type.name());
        }
    }

    /// Writes a common prefix as an entry of its own.
    pub fn common_prefix(&mut self, prefix: &str, encoding: KeyEncoding) {
        self.open("CommonPrefixes");
        self.key("Prefix", prefix, encoding);
        self.close("CommonPrefixes");
    }

    fn display(&mut self, value: impl fmt::Display) {
        // Writing to a string fails only if the value's own `Display` does.
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
