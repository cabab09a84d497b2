//! Writes fields of JSON objects that are lines of a log. `name` is the text before a value, such
//! as `,"user":"`.

use std::io::Write as _;
use std::net::IpAddr;

use crate::text::is_hidden;

/// Appends a field with a number.
#[inline]
pub fn number(out: &mut Vec<u8>, name: &[u8], value: u64) {
    out.extend_from_slice(name);
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends an address.
pub fn push_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            let (mut text, mut end) = ([0; 16], 0);
            for octet in address.octets() {
                text[end..end + 4].copy_from_slice(&OCTETS[usize::from(octet)]);
                end += 2 + usize::from(octet >= 10) + usize::from(octet >= 100);
            }
            // Without the last dot.
            out.extend_from_slice(&text[..end - 1]);
        }
        IpAddr::V6(_) => out.extend_from_slice(address.to_string().as_bytes()),
    }
}

/// Each octet of an address, in decimal and with a dot after it; the rest is spaces.
static OCTETS: [[u8; 4]; 256] = octets();

const fn octets() -> [[u8; 4]; 256] {
    let mut texts = [*b"    "; 256];
    let mut octet = 0_u8;
    loop {
        let digits = [b'0' + octet / 100, b'0' + octet / 10 % 10, b'0' + octet % 10];
        texts[octet as usize] = match octet {
            0..10 => [digits[2], b'.', b' ', b' '],
            10..100 => [digits[1], digits[2], b'.', b' '],
            100.. => [digits[0], digits[1], digits[2], b'.'],
        };
        if octet == u8::MAX {
            return texts;
        }
        octet += 1;
    }
}

/// Appends a field whose text needs no escapes.
#[inline]
pub fn word(out: &mut Vec<u8>, name: &[u8], value: Option<&str>) {
    if let Some(value) = value {
        out.extend_from_slice(name);
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    }
}

/// Appends a field with a text.
#[inline]
pub fn text(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    // Names are constants, which are copied without a call where this is inlined.
    out.extend_from_slice(name);
    push_text(out, value);
}

fn push_text(out: &mut Vec<u8>, value: &[u8]) {
    if is_plain(value) {
        out.extend_from_slice(value);
    } else {
        escape(out, value);
    }
    out.push(b'"');
}

/// True for text that has only ASCII characters which JSON does not escape. It looks at eight bytes
/// at a time.
#[inline]
pub fn is_plain(value: &[u8]) -> bool {
    // The last eight bytes are looked at as one word, some of them for the second time.
    let Some(last) = value.last_chunk::<8>() else { return is_plain_and_short(value) };
    let (words, _) = value.as_chunks::<8>();
    words.iter().fold(specials(*last), |any, word| any | specials(*word)) == 0
}

/// [`is_plain`], of less than eight bytes.
fn is_plain_and_short(value: &[u8]) -> bool {
    let mut word = [b' '; 8];
    match (value, value.first_chunk::<4>(), value.last_chunk::<4>()) {
        (_, Some(first), Some(last)) => {
            word[..4].copy_from_slice(first);
            word[4..].copy_from_slice(last);
        }
        ([first, .., last], ..) => word[..3].copy_from_slice(&[*first, value[1], *last]),
        ([byte], ..) => word[0] = *byte,
        ([], ..) => {}
    }
    specials(word) == 0
}

/// True if `byte` is one of the value's. For values of few bytes: it looks at eight at a time, and
/// needs no preparation.
#[inline]
pub fn has(value: &[u8], byte: u8) -> bool {
    let differs = |word: &[u8; 8]| u64::from_ne_bytes(*word) ^ all(byte);
    let is_there = |word: &[u8; 8]| differs(word).wrapping_sub(all(1)) & !differs(word) & all(0x80) != 0;
    let Some(last) = value.last_chunk::<8>() else { return value.contains(&byte) };
    is_there(last) || value.as_chunks::<8>().0.iter().any(is_there)
}

/// A word of eight times this byte.
const fn all(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Returns a number that is not zero if one of these bytes is not printable ASCII, or is `"` or
/// `\`. A byte that is too small borrows from the next one, which may then be reported, too, but
/// only in addition.
fn specials(word: [u8; 8]) -> u64 {
    let word = u64::from_ne_bytes(word);
    let control = word.wrapping_sub(all(b' '));
    let delete = word.wrapping_add(all(1));
    let quote = (word ^ all(b'"')).wrapping_sub(all(1));
    let backslash = (word ^ all(b'\\')).wrapping_sub(all(1));
    (word | control | delete | quote | backslash) & all(0x80)
}

/// Appends a text with escapes. It escapes more than JSON requires: also characters that control a
/// terminal, end a line or change the direction of writing.
#[cold]
pub fn escape(out: &mut Vec<u8>, value: &[u8]) {
    for char in String::from_utf8_lossy(value).chars() {
        match char {
            '"' | '\\' => out.extend_from_slice(&[b'\\', char as u8]),
            _ if is_hidden(char) => escape_unit(out, char),
            _ => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

fn escape_unit(out: &mut Vec<u8>, char: char) {
    // A vector grows.
    let _ = write!(out, "\\u{:04x}", u32::from(char));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_obey_is_escaped() {
        let mut out = Vec::new();
        text(&mut out, b"\"", "a\"\\\u{7}\u{9b}31m\u{2028}\u{202e}\u{e9}\u{1f600}".as_bytes());
        let json = String::from_utf8(out).unwrap();
        assert_eq!(json, "\"a\\\"\\\\\\u0007\\u009b31m\\u2028\\u202e\u{e9}\u{1f600}\"");
        let read: String = serde_json::from_str(&json).unwrap();
        assert_eq!(read, "a\"\\\u{7}\u{9b}31m\u{2028}\u{202e}\u{e9}\u{1f600}");
    }

    #[test]
    fn plain_is_what_needs_no_escape() {
        for length in 0..20 {
            assert!(is_plain(&b"abcdefghijk~ !#[]^_z"[..length]));
            for place in 0..length {
                for byte in 0..=u8::MAX {
                    let mut value = [b'a'; 20];
                    value[place] = byte;
                    let is_special = !(b' '..0x7f).contains(&byte) || byte == b'"' || byte == b'\\';
                    assert_eq!(is_plain(&value[..length]), !is_special, "{byte} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn bytes_are_found_wherever_they_are() {
        for length in 0..20 {
            assert!(!has(&[b'a'; 20][..length], b'@'));
            for place in 0..length {
                let mut value = *b"ABCAAAAAA?A\x80\xc0\xffAAAAAA";
                value[place] = b'@';
                assert!(has(&value[..length], b'@'), "at {place} of {length}");
                value[place] = b'?';
                assert!(!has(&value[..length], b'@'), "{length}");
            }
        }
    }

    #[test]
    fn addresses() {
        for address in ["0.1.9.10", "99.100.109.110", "192.0.2.255", "2001:db8::1"] {
            let mut out = Vec::new();
            push_address(&mut out, address.parse().unwrap());
            assert_eq!(out, address.as_bytes());
        }
    }
}
