use super::malformed::Malformed;
use crate::limits::LINE_BYTES_MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In a body of known length: the number of bytes that are still to come.
    Length(u64),
    UntilClose,
    /// In the line that gives a chunk's size: the size read so far, and the length of the line so
    /// far.
    ChunkSize {
        size: u64,
        read: usize,
        extension: bool,
    },
    /// In a chunk's data: the number of bytes that are still to come.
    Chunk(u64),
    ChunkEnd(usize),
    /// In the trailers: the length of the current line so far, and of all trailers so far, in
    /// bytes.
    Trailer {
        line: usize,
        all: usize,
    },
    Done,
}

/// Separates the bytes of a body from the framing around them as they come in, and finds the body's
/// end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing(State);

impl Framing {
    /// Returns the framing of a body of this length.
    pub const fn length(bytes: u64) -> Self {
        Self(if bytes == 0 { State::Done } else { State::Length(bytes) })
    }

    /// Returns the framing of a body in HTTP's chunks.
    pub const fn chunked() -> Self {
        Self(State::ChunkSize { size: 0, read: 0, extension: false })
    }

    /// Returns the framing of a body that ends when the server closes the connection.
    pub const fn until_close() -> Self {
        Self(State::UntilClose)
    }

    /// True once the whole body has come in.
    pub fn is_done(self) -> bool {
        self.0 == State::Done
    }

    /// True if the body is complete in case the server closes the connection now.
    pub fn may_end(self) -> bool {
        matches!(self.0, State::UntilClose | State::Done)
    }

    /// Returns the number of bytes that are still to come; `None` if it is not known.
    pub fn left(self) -> Option<u64> {
        match self.0 {
            State::Length(left) => Some(left),
            State::Done => Some(0),
            _ => None,
        }
    }

    /// Returns the number of bytes to read at once: the rest of the body, or of the current chunk.
    pub(crate) fn wanted(self) -> u64 {
        match self.0 {
            State::Length(left) | State::Chunk(left) => left,
            State::UntilClose => u64::MAX,
            _ => 0,
        }
    }

    /// Takes framing, and then the next data, from the beginning of `input`. Returns the data: an
    /// empty slice if `input` has none, or if the body is done.
    pub fn take<'a>(&mut self, input: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
        while self.0 != State::Done {
            let most = match self.0 {
                State::Length(left) | State::Chunk(left) => left,
                State::UntilClose => u64::MAX,
                _ => {
                    let Some((&byte, rest)) = input.split_first() else { return Ok(&[]) };
                    *input = rest;
                    self.0 = between(self.0, byte)?;
                    continue;
                }
            };
            let length = usize::try_from(most).unwrap_or(usize::MAX).min(input.len());
            let (data, rest) = input.split_at(length);
            *input = rest;
            self.0 = match self.0 {
                State::UntilClose => State::UntilClose,
                State::Length(left) if left == data.len() as u64 => State::Done,
                State::Length(left) => State::Length(left - data.len() as u64),
                _ if most == data.len() as u64 => State::ChunkEnd(0),
                _ => State::Chunk(most - data.len() as u64),
            };
            return Ok(data);
        }
        Ok(&[])
    }
}

/// Returns the state after one more byte of the framing around chunks.
fn between(state: State, byte: u8) -> Result<State, Malformed> {
    const BAD: Malformed = Malformed("a chunk with wrong framing");
    Ok(match (state, byte) {
        (State::ChunkSize { read: 0, .. }, b'\r' | b'\n' | b';') => return Err(BAD),
        (State::ChunkSize { size: 0, .. }, b'\n') => State::Trailer { line: 0, all: 0 },
        (State::ChunkSize { size, .. }, b'\n') => State::Chunk(size),
        (State::ChunkSize { read, .. }, _) if read > LINE_BYTES_MAX => return Err(BAD),
        (State::ChunkSize { size, read, extension }, byte) => {
            let digit = char::from(byte).to_digit(16).filter(|_| !extension);
            match digit {
                Some(_) if size >> 60 != 0 => return Err(BAD),
                Some(digit) => {
                    State::ChunkSize { size: size << 4 | u64::from(digit), read: read + 1, extension }
                }
                None if extension || matches!(byte, b';' | b'\r' | b' ' | b'\t') => {
                    State::ChunkSize { size, read: read + 1, extension: true }
                }
                None => return Err(BAD),
            }
        }
        (State::ChunkEnd(0), b'\r') => State::ChunkEnd(1),
        (State::ChunkEnd(_), b'\n') => State::ChunkSize { size: 0, read: 0, extension: false },
        (State::Trailer { line: 0, .. }, b'\n') => State::Done,
        (State::Trailer { all, .. }, b'\n') => State::Trailer { line: 0, all },
        (State::Trailer { line, all }, b'\r') => State::Trailer { line, all },
        (State::Trailer { all, .. }, _) if all > LINE_BYTES_MAX => return Err(BAD),
        (State::Trailer { line, all }, _) => State::Trailer { line: line + 1, all: all + 1 },
        _ => return Err(BAD),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a body in pieces; returns its data, and the rest of the input.
    fn read(mut framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, usize, Framing), Malformed> {
        let (mut data, mut left) = (Vec::new(), 0);
        for piece in pieces {
            let mut input = *piece;
            loop {
                let taken = framing.take(&mut input)?;
                if taken.is_empty() {
                    break;
                }
                data.extend_from_slice(taken);
            }
            left += input.len();
        }
        Ok((data, left, framing))
    }

    proptest! {
        #[test]
        fn chunks_of_any_sizes_in_any_pieces_are_the_body(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..6),
            cut in 1usize..40,
        ) {
            let mut text = Vec::new();
            for chunk in &chunks {
                text.extend_from_slice(format!("{:X};a=\"b\"\r\n", chunk.len()).as_bytes());
                text.extend_from_slice(chunk);
                text.extend_from_slice(b"\r\n");
            }
            text.extend_from_slice(b"000\r\nx-trailer: y\r\n\r\n");
            let pieces: Vec<&[u8]> = text.chunks(cut).collect();
            let (data, left, framing) = read(Framing::chunked(), &pieces).unwrap();
            prop_assert_eq!((data, left), (chunks.concat(), 0));
            prop_assert!(framing.is_done());
            // Cut off before the end, it is never whole.
            let (.., framing) = read(Framing::chunked(), &[&text[..text.len() - cut.min(text.len())]]).unwrap();
            prop_assert!(!framing.may_end());
        }

        #[test]
        fn nothing_after_the_end_is_taken(length in 0usize..100, more in 0usize..100, cut in 1usize..50) {
            let text = vec![b'x'; length + more];
            let pieces: Vec<&[u8]> = text.chunks(cut).collect();
            let (data, left, framing) = read(Framing::length(length as u64), &pieces).unwrap();
            prop_assert_eq!((data.len(), left, framing.is_done()), (length, more, true));
        }

        #[test]
        fn anything_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(Framing::chunked(), &[&bytes]);
        }
    }

    #[test]
    fn endless_lines_are_refused() {
        let endless = vec![b'0'; LINE_BYTES_MAX + 10];
        assert!(read(Framing::chunked(), &[&endless]).is_err());
        let endless = [b"0\r\n", &vec![b'x'; LINE_BYTES_MAX + 10][..]].concat();
        assert!(read(Framing::chunked(), &[&endless]).is_err());
    }
}
