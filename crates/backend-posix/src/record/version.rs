//! The version that an object has among those of its key (decision 0059).

use s3_types::VersionId;

use crate::base::unique;
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

/// The largest order that is believed: the year 2400. Whoever may write a file may write its
/// record, and there have to be orders after each.
const ORDER_MAX: Order = 13_569_465_600 * 1_000_000_000;

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
        match self.id {
            Id::Order => text_of(self.order),
            Id::Early(id) => text_of(id),
            Id::Null => None,
        }
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

impl Version {
    /// Returns the version with an id that is given out before the order is known: this one, or a
    /// new one. The null version stays what it is.
    pub fn given(self, id: Option<u64>) -> Self {
        let Self { order, id: own, is_marker } = self;
        let id = match own {
            Id::Order => Id::Early(id.unwrap_or_else(early_id)),
            Id::Early(_) | Id::Null => own,
        };
        Self { order, id, is_marker }
    }
}

impl Named {
    /// Returns the id of a version that has a number.
    pub fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Null | Self::Removed(_) => None,
        }
    }

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

/// True if a number in an id is an order: those of ids that were given out early are odd.
pub(crate) fn is_order(number: u64) -> bool {
    number.is_multiple_of(2)
}

/// Returns a new id that is given out before the order is known.
pub(crate) fn early_id() -> u64 {
    unique::random() | 1
}

/// Returns the text of the id of a version that has this number.
pub(crate) fn text_of(number: u64) -> Option<VersionId> {
    VersionId::new(&format!("{number:016x}")).ok()
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

/// Unpacks a version; `None` if it is malformed, or says what no gateway writes: an odd order, an
/// even id that was given out early, or an order after [`ORDER_MAX`].
pub(super) fn unpack(bytes: &[u8]) -> Option<Version> {
    let version = read(bytes)?;
    let is_possible = is_order(version.order) && version.order <= ORDER_MAX;
    let id_is = !matches!(version.id, Id::Early(id) if is_order(id));
    (is_possible && id_is).then_some(version)
}

fn read(bytes: &[u8]) -> Option<Version> {
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
                let version = Version { order: 0x0123_4567_89ab_cdee, id, is_marker };
                assert_eq!(unpack(&pack(version)), Some(version));
                let text = version.text();
                assert_eq!(text.is_none(), id == Id::Null);
                let named = text.map_or(Named::Null, |text| Named::of(&text).unwrap());
                assert!(version.is(named) && !version.is(Named::Number(2)));
            }
        }
        let version = Version { order: 2, id: Id::Order, is_marker: false };
        assert_eq!(version.given(Some(7)).id, Id::Early(7));
        assert!(matches!(version.given(None).id, Id::Early(id) if id % 2 == 1));
        let null = Version { order: 2, id: Id::Null, is_marker: false };
        assert_eq!(null.given(Some(7)), null);
        for damaged in [&[0; 7][..], &[0, 0, 0, 0, 0, 0, 0, 0, 3], &[0, 0, 0, 0, 0, 0, 0, 0, 1, 5]] {
            assert_eq!(unpack(damaged), None, "{damaged:?}");
        }
        // An odd order, one of which none may come after, and an id that could be an order.
        let impossible = [(3, Id::Order), (ORDER_MAX + 2, Id::Null), (4, Id::Early(6))];
        for (order, id) in impossible {
            assert_eq!(unpack(&pack(Version { order, id, is_marker: false })), None, "{order} {id:?}");
        }
        assert_eq!(Named::of(&removed_id(7).unwrap()), Some(Named::Removed(7)));
        for other in ["7", "000000000000000G", "r7", "NULL"] {
            assert_eq!(Named::of(&VersionId::new(other).unwrap()), None);
        }
    }
}
