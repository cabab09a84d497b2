use std::ops::Range;

/// A single byte range as a client asked for it (RFC 9110, section 14.1.2), not yet fitted to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRange {
    /// `bytes=first-last`, both inclusive; `last` may lie beyond the end.
    FromTo {
        /// First byte.
        first: u64,
        /// Last byte.
        last: u64,
    },
    /// `bytes=first-`.
    From {
        /// First byte.
        first: u64,
    },
    /// `bytes=-length`: the last `length` bytes.
    Last {
        /// How many bytes.
        length: u64,
    },
}

impl ByteRange {
    /// The bytes meant, of an object of `size_bytes`; `None` if there are none (416).
    pub fn resolve(self, size_bytes: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::FromTo { first, last } => first..last.saturating_add(1).min(size_bytes),
            Self::From { first } => first..size_bytes,
            Self::Last { length } => size_bytes.saturating_sub(length)..size_bytes,
        };
        (range.start < range.end).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::ByteRange::{From, FromTo, Last};

    #[test]
    fn ranges_fit_the_object() {
        assert_eq!(FromTo { first: 0, last: 0 }.resolve(10), Some(0..1));
        assert_eq!(FromTo { first: 5, last: u64::MAX }.resolve(10), Some(5..10));
        assert_eq!(FromTo { first: 10, last: 11 }.resolve(10), None);
        assert_eq!(From { first: 9 }.resolve(10), Some(9..10));
        assert_eq!(From { first: 10 }.resolve(10), None);
        assert_eq!(Last { length: 3 }.resolve(10), Some(7..10));
        assert_eq!(Last { length: 30 }.resolve(10), Some(0..10));
        assert_eq!(Last { length: 0 }.resolve(10), None);
        assert_eq!(Last { length: 1 }.resolve(0), None);
    }
}
