use std::collections::VecDeque;

use bytes::Bytes;

/// The input that has not been decoded yet.
#[derive(Default)]
pub(super) struct Input {
    first: Bytes,
    rest: VecDeque<Bytes>,
}

impl Input {
    pub fn push(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        if self.first.is_empty() {
            self.first = bytes;
        } else {
            self.rest.push_back(bytes);
        }
    }

    /// Returns the next bytes; empty only if there is no input.
    pub fn peek(&self) -> &[u8] {
        &self.first
    }

    /// Takes at most `length` bytes, in one piece; empty only if there is no input.
    pub fn take(&mut self, length: u64) -> Bytes {
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(self.first.len());
        let taken = self.first.split_to(length);
        if self.first.is_empty()
            && let Some(next) = self.rest.pop_front()
        {
            self.first = next;
        }
        taken
    }
}
