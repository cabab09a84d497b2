//! XML in and out.

use std::borrow::Cow;

/// Escapes text for an element. What XML 1.0 cannot hold even as a reference is written as a reference all the
/// same, as S3 does (`&#x1;`): clients that meet such keys ask for `encoding-type=url`.
pub fn escape(text: &str) -> Cow<'_, str> {
    let special = |b: u8| matches!(b, b'&' | b'<' | b'>' | b'"' | 0..=8 | 0x0B..=0x1F);
    if !text.bytes().any(special) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if u8::try_from(c).is_ok_and(special) => {
                out.push_str("&#x");
                out.push_str(&format!("{:X};", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.into()
}
