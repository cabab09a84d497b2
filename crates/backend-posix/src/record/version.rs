//! The version that an object has among those of its key (decision 0059).

use s3_types::VersionId;

use crate::fs::file_info;
use crate::layout::versions::{Id, Order, number};

/// The id was given out before the order was known, and follows.
const EARLY: u8 = 1;
/// It is the null version.
const NULL: u8 = 2;
/// It is a delete marker.
const MARKER: u8 = 0x80;

/// The prefix of the ids of delete markers that nobody made.
const REMOVED: &str = "r";

/// The order and the id of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub order: Order,
    pub id: Id,
    /// True for a delete marker.
    pub is_marker: bool,
}

/// The id of a version in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// The null version.
    Null,
    /// An order, or an id that was given out before the order was known.
    Number(u64),
    /// The delete marker that nobody made, of a key whose newest version has this order.
    Removed(Order),
}

impl Version {
    /// Returns the id as text; `None` for the null version.
    pub fn text(self) -> Option<VersionId> {
        let number = match self.id {
            Id::Order => self.order,
            Id::Early(id) => id,
            Id::Null => return None,
        };
        VersionId::new(&format!("{number:016x}")).ok()
    }

    /// True if a request names this version.
    pub fn is(self, named: Named) -> bool {
        match (self.id, named) {
            (Id::Order, Named::Number(number)) => self.order == number,
            (Id::Early(id), Named::Number(number)) => id == number,
            (Id::Null, Named::Null) => true,
            _ => false,
        }
    }
}

impl Named {
    /// Reads an id; `None` if no version here can have it.
    pub fn of(id: &VersionId) -> Option<Self> {
        let text = id.as_str();
        if id.is_null() {
            return Some(Self::Null);
        }
        match text.strip_prefix(REMOVED) {
            Some(order) => number(order).map(Self::Removed),
            None => number(text).map(Self::Number),
        }
    }
}

/// Returns the order of a new version, if the newest one of its key has the order `newest`: the
/// clock in ns, or the next one. Orders are even, since ids that are given out early are odd.
pub(crate) fn order_after(newest: Option<Order>) -> Order {
    let clock = u64::try_from(file_info::now_ns()).unwrap_or(0) & !1;
    clock.max(newest.map_or(0, |newest| (newest & !1).saturating_add(2)))
}

/// Returns the id of the delete marker that nobody made, of a key whose newest version has this
/// order.
pub(crate) fn removed_id(order: Order) -> Option<VersionId> {
    VersionId::new(&format!("{REMOVED}{order:016x}")).ok()
}

/// Packs a version, as a record has it.
pub(super) fn pack(version: Version) -> Vec<u8> {
    let Version { order, id, is_marker } = version;
    let marker = if is_marker { MARKER } else { 0 };
    let mut value = order.to_be_bytes().to_vec();
    match id {
        Id::Order if !is_marker => {}
        Id::Order => value.push(marker),
        Id::Null => value.push(marker | NULL),
        Id::Early(id) => {
            value.push(marker | EARLY);
            value.extend(id.to_be_bytes());
        }
    }
    value
}

/// Unpacks a version; `None` if it is malformed.
pub(super) fn unpack(bytes: &[u8]) -> Option<Version> {
    let (order, rest) = bytes.split_first_chunk()?;
    let order = Order::from_be_bytes(*order);
    let Some((kind, rest)) = rest.split_first() else {
        return Some(Version { order, id: Id::Order, is_marker: false });
    };
    let id = match (kind & !MARKER, rest) {
        (0, []) => Id::Order,
        (NULL, []) => Id::Null,
        (EARLY, id) => Id::Early(u64::from_be_bytes(id.try_into().ok()?)),
        _ => return None,
    };
    Some(Version { order, id, is_marker: kind & MARKER != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_it_was_written() {
        for id in [Id::Order, Id::Null, Id::Early(u64::MAX)] {
            for is_marker in [false, true] {
                let version = Version { order: 0x0123_4567_89ab_cdef, id, is_marker };
                assert_eq!(unpack(&pack(version)), Some(version));
                let text = version.text();
                assert_eq!(text.is_none(), id == Id::Null);
                let named = text.map_or(Named::Null, |text| Named::of(&text).unwrap());
                assert!(version.is(named) && !version.is(Named::Number(2)));
            }
        }
        for damaged in [&[0; 7][..], &[0, 0, 0, 0, 0, 0, 0, 0, 3], &[0, 0, 0, 0, 0, 0, 0, 0, 1, 5]] {
            assert_eq!(unpack(damaged), None, "{damaged:?}");
        }
        assert_eq!(Named::of(&removed_id(7).unwrap()), Some(Named::Removed(7)));
        for other in ["7", "000000000000000G", "r7", "NULL"] {
            assert_eq!(Named::of(&VersionId::new(other).unwrap()), None);
        }
    }
}
