//! Writes fields of JSON objects that are lines of a log. `name` is what stands before a value:
//! `,"user":"`.

use std::io::Write as _;
use std::net::IpAddr;

use crate::text::is_hidden;

/// Appends a field with a number.
pub fn number(out: &mut Vec<u8>, name: &[u8], value: u64) {
    out.extend_from_slice(name);
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends an address.
pub fn push_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            for (place, byte) in address.octets().into_iter().enumerate() {
                if place > 0 {
                    out.push(b'.');
                }
                if byte >= 100 {
                    out.push(b'0' + byte / 100);
                }
                if byte >= 10 {
                    out.push(b'0' + byte / 10 % 10);
                }
                out.push(b'0' + byte % 10);
            }
        }
        IpAddr::V6(_) => out.extend_from_slice(address.to_string().as_bytes()),
    }
}

/// Appends a field whose text needs no escapes.
pub fn word(out: &mut Vec<u8>, name: &[u8], value: Option<&str>) {
    if let Some(value) = value {
        out.extend_from_slice(name);
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    }
}

/// Appends a field with a text.
pub fn text(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    if is_plain(value) {
        out.extend_from_slice(value);
    } else {
        escape(out, value);
    }
    out.push(b'"');
}

/// True for ASCII that JSON does not escape. Looks at eight bytes at a time.
pub fn is_plain(value: &[u8]) -> bool {
    let (words, rest) = value.as_chunks::<8>();
    let any = words.iter().fold(0, |any, word| any | specials(*word));
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    any | specials(last) == 0
}

/// Not zero if one of these bytes is not printable ASCII, or is `"` or `\`. A byte that is too
/// small borrows from the next one, which may then be reported too, but only in addition.
fn specials(word: [u8; 8]) -> u64 {
    const fn all(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
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
    fn addresses() {
        for address in ["0.1.9.10", "99.100.109.110", "192.0.2.255", "2001:db8::1"] {
            let mut out = Vec::new();
            push_address(&mut out, address.parse().unwrap());
            assert_eq!(out, address.as_bytes());
        }
    }
}
