use std::borrow::Cow;

/// Escapes text for an XML element.
///
/// Line feeds and tabs are kept; a carriage return becomes a reference, since a parser would turn a
/// bare one into a line feed. Characters that XML 1.0 does not allow even as references (other
/// control characters, U+FFFE, U+FFFF) are still written as references, as S3 does (`&#x1;`):
/// lenient parsers can read the document, and clients that expect such keys ask for
/// `encoding-type=url`.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|b| SPECIAL[usize::from(b)]) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    push_escaped(&mut out, text);
    Cow::Owned(out)
}

/// A table that is true for bytes that [`push_escaped`] must look at. 0xEF is the first byte of
/// U+FFFE and U+FFFF, and of many characters that need no escape.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut control = 0;
    while control < 0x20 {
        special[control] = control != b'\t' as usize && control != b'\n' as usize;
        control += 1;
    }
    special[b'&' as usize] = true;
    special[b'<' as usize] = true;
    special[b'>' as usize] = true;
    special[b'"' as usize] = true;
    special[0xEF] = true;
    special
};

/// Appends `text`, escaped as [`escape`] does.
pub(crate) fn push_escaped(out: &mut String, text: &str) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if !SPECIAL[usize::from(byte)] {
            continue;
        }
        let (replacement, length) = match byte {
            b'&' => ("&amp;", 1),
            b'<' => ("&lt;", 1),
            b'>' => ("&gt;", 1),
            b'"' => ("&quot;", 1),
            0xEF if bytes[at..].starts_with(b"\xEF\xBF\xBE") => ("&#xFFFE;", 3),
            0xEF if bytes[at..].starts_with(b"\xEF\xBF\xBF") => ("&#xFFFF;", 3),
            0xEF => continue,
            control => (CONTROLS[usize::from(control)], 1),
        };
        out.push_str(&text[copied..at]);
        out.push_str(replacement);
        copied = at + length;
    }
    out.push_str(&text[copied..]);
}

const CONTROLS: [&str; 32] = [
    "&#x0;", "&#x1;", "&#x2;", "&#x3;", "&#x4;", "&#x5;", "&#x6;", "&#x7;", "&#x8;", "&#x9;", "&#xA;",
    "&#xB;", "&#xC;", "&#xD;", "&#xE;", "&#xF;", "&#x10;", "&#x11;", "&#x12;", "&#x13;", "&#x14;", "&#x15;",
    "&#x16;", "&#x17;", "&#x18;", "&#x19;", "&#x1A;", "&#x1B;", "&#x1C;", "&#x1D;", "&#x1E;", "&#x1F;",
];

/// Appends `text` encoded for `encoding-type=url`: as in a form, with `+` for a space, which SDKs
/// decode.
pub(crate) fn push_url_encoded(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' | b'/' => {
                out.push(char::from(byte));
            }
            b' ' => out.push('+'),
            _ => {
                out.push('%');
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> String {
        let mut out = String::new();
        push_url_encoded(&mut out, text);
        out
    }

    #[test]
    fn what_xml_cannot_hold_becomes_a_reference() {
        assert_eq!(escape("plain \t\n é ﷰ"), "plain \t\n é ﷰ");
        assert_eq!(escape("a&b<c>d\"e'f"), "a&amp;b&lt;c&gt;d&quot;e'f");
        assert_eq!(escape("a\rb\u{0}\u{1}\u{1f}"), "a&#xD;b&#x0;&#x1;&#x1F;");
        assert_eq!(escape("\u{fffe}x\u{ffff}\u{fffd}"), "&#xFFFE;x&#xFFFF;\u{fffd}");
        assert!(matches!(escape("nothing special"), Cow::Borrowed(_)));
    }

    /// The second case is AWS's own example, in the reference of ListObjectsV2.
    #[test]
    fn url_encoding_is_that_of_s3() {
        assert_eq!(url("a b/c+d~é\u{1}"), "a+b/c%2Bd%7E%C3%A9%01");
        assert_eq!(url("test_file(3).png"), "test_file%283%29.png");
    }
}
