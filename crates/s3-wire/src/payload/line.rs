//! Lines of framing, gathered from input that may be split anywhere.

use bytes::Bytes;

use super::input::Input;

/// A reader of lines, which keeps the beginning of a line whose end has not arrived.
#[derive(Debug, Default)]
pub(super) struct LineReader {
    partial: Vec<u8>,
}

/// The error for a line that is longer than allowed.
pub(super) struct TooLong;

impl LineReader {
    /// Returns the next line with its line feed, of at most `length_max` bytes; `None` if more
    /// input is needed.
    pub(super) fn next(&mut self, input: &mut Input, length_max: usize) -> Result<Option<Bytes>, TooLong> {
        loop {
            let bytes = input.peek();
            if bytes.is_empty() {
                return Ok(None);
            }
            let room = length_max.saturating_sub(self.partial.len());
            let seen = bytes.len().min(room);
            let end = bytes.iter().take(seen).position(|b| *b == b'\n').map(|at| at + 1);
            if end.is_none() && bytes.len() >= room {
                return Err(TooLong);
            }
            let piece = input.take(end.unwrap_or(seen) as u64);
            if end.is_some() && self.partial.is_empty() {
                return Ok(Some(piece));
            }
            self.partial.extend_from_slice(&piece);
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.partial).into()));
            }
        }
    }
}
