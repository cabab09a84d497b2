use std::ops::Range;

/// A single byte range as a client asked for it (RFC 9110, section 14.1.2), before it is applied to
/// an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRange {
    /// `bytes=first-last`, both inclusive; `last` may lie beyond the end.
    FromTo {
        /// The offset of the first byte.
        first: u64,
        /// The offset of the last byte.
        last: u64,
    },
    /// `bytes=first-`.
    From {
        /// The offset of the first byte.
        first: u64,
    },
    /// `bytes=-length`: the last `length` bytes.
    Last {
        /// The number of bytes.
        length: u64,
    },
}

/// The result of applying a range to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// The range selects these bytes, at least one (206).
    Bytes(Range<u64>),
    /// The object is empty, and the range selects the whole object (200).
    Whole,
    /// The range selects no bytes (416).
    Unsatisfiable,
}

impl ByteRange {
    /// Applies the range to an object of `size_bytes`. For an empty object, "the last bytes" select
    /// the whole object, as RFC 9110, section 14.1.2, says; any other range is unsatisfiable.
    pub fn resolve(self, size_bytes: u64) -> Resolved {
        let range = match self {
            Self::FromTo { first, last } => first..last.saturating_add(1).min(size_bytes),
            Self::From { first } => first..size_bytes,
            Self::Last { length } if length > 0 && size_bytes == 0 => return Resolved::Whole,
            Self::Last { length } => size_bytes.saturating_sub(length)..size_bytes,
        };
        if range.start < range.end { Resolved::Bytes(range) } else { Resolved::Unsatisfiable }
    }
}

#[cfg(test)]
mod tests {
    use super::ByteRange::{From, FromTo, Last};
    use super::Resolved::{Bytes, Unsatisfiable, Whole};

    #[test]
    fn ranges_fit_the_object() {
        assert_eq!(FromTo { first: 0, last: 0 }.resolve(10), Bytes(0..1));
        assert_eq!(FromTo { first: 5, last: u64::MAX }.resolve(10), Bytes(5..10));
        assert_eq!(FromTo { first: 10, last: 11 }.resolve(10), Unsatisfiable);
        assert_eq!(From { first: 9 }.resolve(10), Bytes(9..10));
        assert_eq!(From { first: 10 }.resolve(10), Unsatisfiable);
        assert_eq!(Last { length: 3 }.resolve(10), Bytes(7..10));
        assert_eq!(Last { length: 30 }.resolve(10), Bytes(0..10));
        assert_eq!(Last { length: 0 }.resolve(10), Unsatisfiable);
    }

    #[test]
    fn of_no_bytes_the_last_ones_are_all() {
        assert_eq!(Last { length: 1 }.resolve(0), Whole);
        assert_eq!(Last { length: 0 }.resolve(0), Unsatisfiable);
        assert_eq!(From { first: 0 }.resolve(0), Unsatisfiable);
        assert_eq!(FromTo { first: 0, last: 0 }.resolve(0), Unsatisfiable);
    }
}
