//! Bytes as hexadecimal digits.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Returns bytes as lower-case digits, two for each byte.
pub fn encode(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

/// Reads `N` bytes from two digits each, of either case; `None` for any other text.
pub fn decode<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != N * 2 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_lower_case_and_two_for_each_byte() {
        assert_eq!(encode(&[]), "");
        assert_eq!(encode(&[0x00, 0x0A, 0xF0, 0xFF]), "000af0ff");
    }

    #[test]
    fn digits_of_either_case_are_read() {
        assert_eq!(decode(b"000aF0fF"), Some([0x00, 0x0A, 0xF0, 0xFF]));
        assert_eq!(decode(b""), Some([]));
        for bad in ["0", "000", "0000", "0g", "g0", "+1", " 1", "\u{e9}"] {
            assert_eq!(decode::<1>(bad.as_bytes()), None, "{bad}");
        }
    }
}
