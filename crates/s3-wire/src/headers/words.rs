//! User metadata beyond ASCII in headers: encoded words (RFC 2047), written and read as Amazon S3
//! does, which follows Java's `MimeUtility`.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The maximum number of characters of a word's text. A word has at most 75, of which `=?UTF-8?Q?`
/// and `?=` take 12.
const WORD_TEXT_MAX: usize = 75 - 12;
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Encodes `text` as a header's value: unchanged if it is printable ASCII and tabs, else as encoded
/// words. These have the form Q if more than half of the characters (in UTF-16) are ASCII, else the
/// form B.
pub(super) fn encode(text: &str) -> Cow<'_, str> {
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut others) = (0, 0);
    for c in text.chars() {
        let count = if u8::try_from(c).is_ok_and(|b| is_plain(b) || matches!(b, b'\r' | b'\n')) {
            &mut plain
        } else {
            &mut others
        };
        *count += c.len_utf16();
    }
    let word = if plain > others { Form::Q } else { Form::B };
    let mut out = String::with_capacity(text.len() * 3 + 16);
    word.push(&mut out, text);
    Cow::Owned(out)
}

/// True for bytes that a header may have unencoded.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t')
}

#[derive(Clone, Copy)]
enum Form {
    Q,
    B,
}

impl Form {
    /// Appends encoded words. A text that is too long for one word is halved.
    fn push(self, out: &mut String, text: &str) {
        let half = text.floor_char_boundary(text.len() / 2);
        if self.encoded_length(text) > WORD_TEXT_MAX && half > 0 {
            self.push(out, &text[..half]);
            self.push(out, &text[half..]);
            return;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        match self {
            Self::Q => {
                out.push_str("=?UTF-8?Q?");
                text.bytes().for_each(|byte| push_q(out, byte));
            }
            Self::B => {
                out.push_str("=?UTF-8?B?");
                BASE64.encode_string(text, out);
            }
        }
        out.push_str("?=");
    }

    fn encoded_length(self, text: &str) -> usize {
        match self {
            Self::Q => text.bytes().map(|byte| if is_q_plain(byte) || byte == b' ' { 1 } else { 3 }).sum(),
            Self::B => text.len().div_ceil(3) * 4,
        }
    }
}

fn is_q_plain(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~') && !matches!(byte, b'=' | b'_' | b'?')
}

fn push_q(out: &mut String, byte: u8) {
    match byte {
        b' ' => out.push('_'),
        _ if is_q_plain(byte) => out.push(char::from(byte)),
        _ => {
            let digits = [byte >> 4, byte & 15].map(|digit| char::from(HEX[usize::from(digit)]));
            out.push('=');
            out.extend(digits);
        }
    }
}

/// Decodes the encoded words in a value, and drops the white space between two of them. Text that
/// is not an encoded word stays unchanged, and so does a word in another character set than UTF-8,
/// ISO 8859-1 and ASCII. A value that would have control characters stays unchanged as a whole.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains("=?") {
        return Cow::Borrowed(text);
    }
    let (mut out, mut after_word) = (String::with_capacity(text.len()), false);
    let mut rest = text;
    while !rest.is_empty() {
        let is_space = |c: char| matches!(c, ' ' | '\t');
        let begin = rest.len() - rest.trim_start_matches(is_space).len();
        let (space, behind) = rest.split_at(begin);
        let (token, behind) = behind.split_at(behind.find(is_space).unwrap_or(behind.len()));
        let word = decode_word(token);
        if !(after_word && word.is_some()) {
            out.push_str(space);
        }
        after_word = word.is_some();
        out.push_str(word.as_deref().unwrap_or(token));
        rest = behind;
    }
    if out.chars().any(|c| c.is_control() && c != '\t') { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

fn decode_word(token: &str) -> Option<String> {
    let mut fields = token.strip_prefix("=?")?.strip_suffix("?=")?.splitn(3, '?');
    let (charset, form, text) = (fields.next()?, fields.next()?, fields.next()?);
    let bytes = match form {
        "B" | "b" => BASE64.decode(text).ok()?,
        "Q" | "q" => decode_q(text)?,
        _ => return None,
    };
    let is = |name: &str| charset.eq_ignore_ascii_case(name);
    if is("UTF-8") || (is("US-ASCII") && bytes.is_ascii()) {
        String::from_utf8(bytes).ok()
    } else if is("ISO-8859-1") {
        Some(bytes.into_iter().map(char::from).collect())
    } else {
        None
    }
}

fn decode_q(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'_' => b' ',
            b'=' => digit(bytes.next())? << 4 | digit(bytes.next())?,
            b'?' => return None,
            byte => byte,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The values as Amazon S3 answered them.
    #[test]
    fn known_answers() {
        for (text, header) in [
            ("ÄMÄZÕÑ S3", "=?UTF-8?Q?=C3=84M=C3=84Z=C3=95=C3=91_S3?="),
            (
                "test_—_file%E2%80%94_é_2?.pdf",
                "=?UTF-8?Q?test=5F=E2=80=94=5Ffile%E2%80%94=5F=C3=A9=5F2=3F.pdf?=",
            ),
            ("non-ascii-%E2%80%94_—_é_", "=?UTF-8?Q?non-ascii-%E2%80%94=5F=E2=80=94=5F=C3=A9=5F?="),
            ("\u{0}\u{1}\u{2}\u{3}", "=?UTF-8?B?AAECAw==?="),
            ("\u{fffd}\u{fffd}", "=?UTF-8?B?77+977+9?="),
            ("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
        ] {
            assert_eq!(encode(text), header);
        }
        for (sent, kept) in [
            ("=?UTF-8?Q?actually-ascii?=", "actually-ascii"),
            ("=?UTF-8?B?YWJj?=", "abc"),
            ("=?UTF-8?Q?=C3=84M=C3=84Z=C3=95=C3=91_S3?=", "ÄMÄZÕÑ S3"),
            // S3 keeps these bytes and answers with the same word.
            ("=?UTF-8?B?AAECAw==?=", "=?UTF-8?B?AAECAw==?="),
        ] {
            assert_eq!(decode(sent), kept);
        }
    }

    #[test]
    fn words_among_others() {
        for (text, decoded) in [
            ("a  =?utf-8?q?b?= \t=?us-ascii?Q?c_d?=  e ", "a  bc d  e "),
            (" =?iso-8859-1?Q?=E9?=", " é"),
            ("=?UTF-8?B??=", ""),
        ] {
            assert_eq!(decode(text), decoded);
        }
        for strange in [
            "=?UTF-8?B?=GGG?=",
            "=?UTF-8?B?/w==?=",
            "=?UTF-8?X?a?=",
            "=?UTF-8?Q?=0g?=",
            "=?UTF-8?Q?=C?=",
            "=?UTF-8?Q?a?b?=",
            "=?KOI8-R?Q?a?=",
            "=?US-ASCII?Q?=E9?=",
            "=?UTF-8?Q?a",
            "=??=",
            "=?",
            "x=?UTF-8?Q?a?=",
            "=?UTF-8?Q?=0D=0AX:_1?=",
            "=?UTF-8?B?DQo=?=",
            "=?ISO-8859-1?Q?=85?=",
        ] {
            assert_eq!(decode(strange), strange);
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text in "[ -~]{0,20}\\PC{1,90}") {
            let encoded = encode(&text);
            prop_assert!(encoded.is_ascii() && !encoded.contains(['\r', '\n']));
            if encoded != text {
                prop_assert!(encoded.split(' ').all(|word| word.len() <= 75));
                prop_assert_eq!(decode(&encoded), text.as_str());
            }
        }

        #[test]
        fn nothing_panics(text in "(=\\?|UTF-8|\\?Q\\?|\\?B\\?|\\?=|=|[a-f0-9]| |\\PC){0,30}") {
            let _ = (encode(&text), decode(&text));
        }
    }
}
