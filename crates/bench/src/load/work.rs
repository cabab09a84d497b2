//! Chooses the requests that the lanes send.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use super::churn::{Churn, ChurnPicker};
use super::sets::Sets;
use super::streams::{StreamPicker, Streams};
use crate::request::Prepared;
use crate::units::Mix;

/// The requests of all lanes together. They are sent over and over, or until a number of them was
/// sent.
pub(crate) struct Work {
    kind: Kind,
    taken: AtomicU64,
    most: Option<u64>,
}

enum Kind {
    /// Requests that are sent in their order.
    Ring(Sets),
    /// A mix of operations.
    Mixed(Mixed),
    /// Objects that are written, read and deleted.
    Churn(Churn),
    /// Large objects, each read by a lane of its own.
    Streams(Streams),
}

impl Work {
    fn new(kind: Kind, most: Option<u64>) -> Self {
        Self { kind, taken: AtomicU64::new(0), most }
    }

    pub fn ring(sets: Sets, most: Option<u64>) -> Self {
        Self::new(Kind::Ring(sets), most)
    }

    pub fn mixed(mixed: Mixed, most: Option<u64>) -> Self {
        Self::new(Kind::Mixed(mixed), most)
    }

    pub fn churn(churn: Churn, most: Option<u64>) -> Self {
        Self::new(Kind::Churn(churn), most)
    }

    pub fn streams(streams: Streams, most: Option<u64>) -> Self {
        Self::new(Kind::Streams(streams), most)
    }

    /// True if each lane reads its own object, so that the rate of each lane is of interest.
    pub fn is_streams(&self) -> bool {
        matches!(self.kind, Kind::Streams(_))
    }

    /// Returns the number of the next request; `None` if the largest number of requests was
    /// reached.
    fn take(&self) -> Option<u64> {
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        self.most.is_none_or(|most| number < most).then_some(number)
    }
}

/// A mix of operations. GetObject and HeadObject name objects that stay; PutObject and DeleteObject
/// name others.
pub(crate) struct Mixed {
    pub mix: Mix,
    pub get: Sets,
    pub head: Sets,
    pub list: Sets,
    /// PutObject requests for the same keys as those of `delete`.
    pub put: Sets,
    pub delete: Sets,
    pub lanes: usize,
}

/// Chooses the requests of one lane.
pub(crate) struct Picker<'a> {
    work: &'a Work,
    kind: PickerKind<'a>,
}

enum PickerKind<'a> {
    Ring(&'a Sets),
    Mixed(Box<MixedPicker<'a>>),
    Churn(Box<ChurnPicker<'a>>),
    Stream(Box<StreamPicker<'a>>),
}

impl<'a> Picker<'a> {
    pub fn new(work: &'a Work, lane: usize) -> Self {
        let kind = match &work.kind {
            Kind::Ring(sets) => PickerKind::Ring(sets),
            Kind::Mixed(mixed) => PickerKind::Mixed(Box::new(MixedPicker::new(mixed, lane))),
            Kind::Churn(churn) => PickerKind::Churn(Box::new(ChurnPicker::new(churn, lane))),
            Kind::Streams(streams) => PickerKind::Stream(Box::new(StreamPicker::new(streams, lane))),
        };
        Self { work, kind }
    }

    /// Returns the next request; `None` if there are no more.
    pub fn next(&mut self, endpoint: usize) -> Option<&Prepared> {
        let number = self.work.take()?;
        match &mut self.kind {
            PickerKind::Ring(sets) => around(sets.get(endpoint)?, number),
            PickerKind::Mixed(mixed) => mixed.next(endpoint),
            PickerKind::Churn(churn) => churn.next(endpoint),
            PickerKind::Stream(stream) => stream.next(endpoint),
        }
    }
}

fn around(set: &[Prepared], number: u64) -> Option<&Prepared> {
    set.get(usize::try_from(number % set.len().max(1) as u64).ok()?)
}

pub(crate) struct MixedPicker<'a> {
    mixed: &'a Mixed,
    random: u64,
    /// The keys of this lane that have no object, the oldest first. `live` has the keys of this
    /// lane that have an object, in the same order. No other lane uses these keys.
    free: VecDeque<usize>,
    live: VecDeque<usize>,
}

impl<'a> MixedPicker<'a> {
    fn new(mixed: &'a Mixed, lane: usize) -> Self {
        let keys = mixed.put.first().map_or(0, Vec::len);
        Self {
            mixed,
            random: (lane as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            free: (lane..keys).step_by(mixed.lanes.max(1)).collect(),
            live: VecDeque::new(),
        }
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 16
    }

    fn next(&mut self, endpoint: usize) -> Option<&'a Prepared> {
        let mixed = self.mixed;
        let mut ticket = self.random() % u64::from(mixed.mix.total());
        let mut drawn = |weight: u32| {
            let hit = ticket < u64::from(weight);
            ticket = ticket.wrapping_sub(u64::from(weight));
            hit
        };
        let (get, head, list) = (drawn(mixed.mix.get), drawn(mixed.mix.head), drawn(mixed.mix.list));
        let delete = !(get || head || list) && drawn(mixed.mix.delete);
        let number = self.random();
        let reading = [(get, &mixed.get), (head, &mixed.head), (list, &mixed.list)];
        if let Some((_, sets)) = reading.into_iter().find(|(hit, _)| *hit) {
            return around(sets.get(endpoint)?, number);
        }
        if delete && let Some(key) = self.live.pop_front() {
            self.free.push_back(key);
            return mixed.delete.get(endpoint)?.get(key);
        }
        // With nothing to delete yet, one more is put. With no key to spare, the oldest is
        // replaced.
        let key = self.free.pop_front().or_else(|| self.live.pop_front())?;
        self.live.push_back(key);
        mixed.put.get(endpoint)?.get(key)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::answer::Wanted;
    use crate::request::{Body, Operation};
    use std::collections::{BTreeMap, BTreeSet};

    /// Requests whose heads are their numbers.
    pub fn set(operation: Operation, count: u8) -> Sets {
        let request = |n| Prepared {
            operation,
            head: Box::from([n]),
            body: Body::Block(0),
            wanted: Wanted::default(),
            expected_bytes: None,
        };
        vec![(0..count).map(request).collect()]
    }

    #[test]
    fn a_ring_ends() {
        let work = Work::ring(set(Operation::GetObject, 3), Some(4));
        let (mut one, mut other) = (Picker::new(&work, 0), Picker::new(&work, 1));
        let mut taken = Vec::new();
        while let Some(request) = one.next(0) {
            taken.push(request.head[0]);
            taken.extend(other.next(0).map(|request| request.head[0]));
        }
        assert_eq!(taken, [0, 1, 2, 0]);
    }

    #[test]
    fn a_mix_is_as_asked_and_deletes_what_it_put() {
        let mixed = Mixed {
            mix: Mix::parse("get=45,put=15,head=30,delete=9,list=1").unwrap(),
            get: set(Operation::GetObject, 5),
            head: set(Operation::HeadObject, 5),
            list: set(Operation::ListObjectsV2, 1),
            put: set(Operation::PutObject, 100),
            delete: set(Operation::DeleteObject, 100),
            lanes: 7,
        };
        let work = Work::mixed(mixed, Some(100_000));
        let mut counts = BTreeMap::<_, u32>::new();
        let mut there = BTreeSet::new();
        let mut picker = Picker::new(&work, 3);
        for _ in 0..100_000 {
            let request = picker.next(0).unwrap();
            *counts.entry(request.operation).or_default() += 1;
            let key = request.head[0];
            match request.operation {
                Operation::PutObject => {
                    assert_eq!(key % 7, 3);
                    there.insert(key);
                }
                Operation::DeleteObject => assert!(there.remove(&key)),
                _ => {}
            }
        }
        for (operation, percent) in [
            (Operation::GetObject, 45),
            (Operation::PutObject, 15),
            (Operation::HeadObject, 30),
            (Operation::DeleteObject, 9),
            (Operation::ListObjectsV2, 1),
        ] {
            let found = counts[&operation];
            assert!(found.abs_diff(percent * 1000) < 600, "{operation:?}: {found}");
        }
        assert!(picker.next(0).is_none());
    }
}
