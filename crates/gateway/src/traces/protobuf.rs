//! The wire format of Protocol Buffers, as far as traces need it: numbers, texts and nested
//! messages (protobuf.dev/programming-guides/encoding).

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const BYTES: u32 = 2;
const FIXED_32: u32 = 5;

/// Appends a field with a whole number (`uint64`, `int64` that is not negative, `enum`).
pub fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, VARINT);
    varint(out, value);
}

/// Appends a `fixed64`.
pub fn fixed_64(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, FIXED_64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a `fixed32`.
pub fn fixed_32(out: &mut Vec<u8>, field: u32, value: u32) {
    tag(out, field, FIXED_32);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends `bytes`, or a `string`, which has to be UTF-8.
pub fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    tag(out, field, BYTES);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends a message whose fields `write` appends.
pub fn message(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    tag(out, field, BYTES);
    let start = out.len();
    // Most messages here have less than 128 bytes, whose length takes one.
    out.push(0);
    write(out);
    let mut length = out.len() - start - 1;
    if let (true, Ok(short)) = (length < 128, u8::try_from(length)) {
        out[start] = short;
        return;
    }
    let mut prefix = Vec::with_capacity(10);
    varint(&mut prefix, length as u64);
    length = out.len();
    out.resize(length + prefix.len() - 1, 0);
    out.copy_within(start + 1..length, start + prefix.len());
    out[start..start + prefix.len()].copy_from_slice(&prefix);
}

/// Appends the beginning of a message. The caller then has to append its `length` bytes.
pub fn begin_message(out: &mut Vec<u8>, field: u32, length: usize) {
    tag(out, field, BYTES);
    varint(out, length as u64);
}

/// Returns the number of bytes that a field with a content of `length` bytes takes, if the field's
/// number is at most 15.
pub const fn field_bytes(length: usize) -> usize {
    1 + varint_bytes(length) + length
}

const fn varint_bytes(value: usize) -> usize {
    // Zero has one digit, too.
    ((value | 1).ilog2() / 7 + 1) as usize
}

fn tag(out: &mut Vec<u8>, field: u32, wire_type: u32) {
    varint(out, u64::from(field << 3 | wire_type));
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    // The lowest seven bits each time.
    while let [low, ..] = value.to_le_bytes()
        && value >= 0x80
    {
        out.push(low | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A whole number, of variable or fixed length.
    Number(u64),
    /// Bytes, a text or a message.
    Bytes(&'a [u8]),
}

/// Returns the fields of a message with their numbers, up to the first that is malformed.
pub fn fields(message: &[u8]) -> impl Iterator<Item = (u64, Value<'_>)> {
    let mut rest = message;
    std::iter::from_fn(move || {
        let tag = read_varint(&mut rest)?;
        let value = match tag & 7 {
            0 => Value::Number(read_varint(&mut rest)?),
            1 => Value::Number(u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(read_varint(&mut rest)?).ok()?;
                Value::Bytes(take(&mut rest, length)?)
            }
            5 => Value::Number(u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?).into()),
            _ => return None,
        };
        Some((tag >> 3, value))
    })
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_specification_shows_them() {
        let mut out = Vec::new();
        number(&mut out, 1, 150);
        assert_eq!(out, [0x08, 0x96, 0x01]);
        out.clear();
        bytes(&mut out, 2, b"testing");
        assert_eq!(out, b"\x12\x07testing");
        out.clear();
        message(&mut out, 3, |out| number(out, 1, 150));
        assert_eq!(out, [0x1a, 0x03, 0x08, 0x96, 0x01]);
    }

    #[test]
    fn what_is_written_is_read() {
        for length in [0, 1, 127, 128, 129, 16_383, 16_384, 70_000] {
            let inner = vec![b'x'; length];
            let mut out = vec![];
            bytes(&mut out, 15, &inner);
            assert_eq!(out.len(), field_bytes(length));
            out.clear();
            number(&mut out, 16, u64::MAX);
            message(&mut out, 2, |out| out.extend_from_slice(&inner));
            fixed_64(&mut out, 7, 1 << 60);
            fixed_32(&mut out, 5, 257);
            begin_message(&mut out, 1, 2);
            out.extend_from_slice(b"ab");
            let read: Vec<_> = fields(&out).collect();
            let expected = [
                (16, Value::Number(u64::MAX)),
                (2, Value::Bytes(&inner)),
                (7, Value::Number(1 << 60)),
                (5, Value::Number(257)),
                (1, Value::Bytes(b"ab")),
            ];
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn what_is_cut_off_ends() {
        for bad in [&b"\x12\x07test"[..], b"\x08", b"\x08\x96", b"\x0b", b"\x09\x01", &[0xFF; 20]] {
            assert_eq!(fields(bad).count(), 0, "{bad:?}");
        }
    }
}
