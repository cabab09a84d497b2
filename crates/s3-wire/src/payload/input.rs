use std::collections::VecDeque;

use bytes::Bytes;

/// Input that has not been looked at yet.
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

    /// The bytes at hand; empty only if there are none.
    pub fn peek(&self) -> &[u8] {
        &self.first
    }

    /// Takes up to `length` bytes, all in one piece; none only if there are none.
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
