//! A load of objects with a short life: each is written, read once, and deleted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use super::sets::Sets;
use crate::request::Prepared;

/// A load that keeps the number of existing objects about the same as at its beginning.
pub(crate) struct Churn {
    /// PUT requests for the same keys as those of `get` and `delete`.
    put: Sets,
    get: Sets,
    delete: Sets,
    lanes: usize,
    /// The number of keys that have an object at the beginning: the first keys.
    alive: usize,
    /// The states in which the lanes ended the previous run.
    left: Mutex<BTreeMap<usize, State>>,
}

/// The state of a lane. Each lane has keys that no other lane uses.
#[derive(Debug, Default)]
struct State {
    next: Verb,
    /// The keys that have an object, the oldest first.
    alive: VecDeque<usize>,
    free: VecDeque<usize>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Verb {
    #[default]
    Put,
    Get,
    Delete,
}

impl Churn {
    /// Makes a load that begins with `alive` objects. There must be more keys than objects, by at
    /// least one for each lane.
    pub fn new(put: Sets, get: Sets, delete: Sets, lanes: usize, alive: usize) -> Self {
        Self { put, get, delete, lanes: lanes.max(1), alive, left: Mutex::default() }
    }

    fn state(&self, lane: usize) -> State {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).remove(&lane);
        left.unwrap_or_else(|| {
            let keys = self.put.first().map_or(0, Vec::len);
            let own = (lane..keys).step_by(self.lanes);
            let (alive, free) = own.partition(|key| *key < self.alive);
            State { next: Verb::Put, alive, free }
        })
    }
}

/// Chooses the requests of one lane. The next run continues where this one ends.
pub(crate) struct ChurnPicker<'a> {
    churn: &'a Churn,
    lane: usize,
    state: State,
}

impl<'a> ChurnPicker<'a> {
    pub fn new(churn: &'a Churn, lane: usize) -> Self {
        Self { churn, lane, state: churn.state(lane) }
    }

    pub fn next(&mut self, endpoint: usize) -> Option<&'a Prepared> {
        let state = &mut self.state;
        let (sets, key, next) = match state.next {
            Verb::Put => {
                let key = state.free.pop_front()?;
                state.alive.push_back(key);
                (&self.churn.put, key, Verb::Get)
            }
            Verb::Get => (&self.churn.get, *state.alive.front()?, Verb::Delete),
            Verb::Delete => {
                let key = state.alive.pop_front()?;
                state.free.push_back(key);
                (&self.churn.delete, key, Verb::Put)
            }
        };
        state.next = next;
        sets.get(endpoint)?.get(key)
    }
}

impl Drop for ChurnPicker<'_> {
    fn drop(&mut self) {
        let mut left = self.churn.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.insert(self.lane, std::mem::take(&mut self.state));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::work::tests::set;
    use super::*;
    use crate::request::Operation;

    #[test]
    fn each_object_is_read_once_before_it_is_deleted() {
        let sets = |operation| set(operation, 20);
        let (put, get, delete) =
            (sets(Operation::PutObject), sets(Operation::GetObject), sets(Operation::DeleteObject));
        let churn = Churn::new(put, get, delete, 3, 10);
        let mut alive: BTreeSet<u8> = (0..10).collect();
        let mut reads = BTreeMap::<u8, u32>::new();
        let mut check = |picker: &mut ChurnPicker<'_>| {
            let request = picker.next(0).unwrap();
            let key = request.head[0];
            match request.operation {
                Operation::PutObject => assert!(alive.insert(key), "{key} is there"),
                Operation::GetObject => {
                    assert!(alive.contains(&key), "{key} is not there");
                    *reads.entry(key).or_default() += 1;
                }
                _ => {
                    assert!(alive.remove(&key) && reads.remove(&key) == Some(1), "{key}");
                }
            }
            assert!((10..=13).contains(&alive.len()), "{}", alive.len());
        };
        // The second run begins in the midst of what the first one left.
        for steps in [1000, 1001] {
            let mut lanes: Vec<ChurnPicker<'_>> = (0..3).map(|lane| ChurnPicker::new(&churn, lane)).collect();
            (0..steps).for_each(|step| check(&mut lanes[step % 3]));
        }
    }

    #[test]
    fn a_lane_without_objects_makes_its_own() {
        let sets = |operation| set(operation, 2);
        let (put, get, delete) =
            (sets(Operation::PutObject), sets(Operation::GetObject), sets(Operation::DeleteObject));
        let churn = Churn::new(put, get, delete, 2, 0);
        let mut picker = ChurnPicker::new(&churn, 1);
        for (operation, key) in [
            (Operation::PutObject, 1),
            (Operation::GetObject, 1),
            (Operation::DeleteObject, 1),
            (Operation::PutObject, 1),
        ] {
            let request = picker.next(0).unwrap();
            assert_eq!((request.operation, request.head[0]), (operation, key));
        }
    }
}
