//! Random streams in random pieces, alone and together, beside another implementation.

use digest_lanes::{LANES, Md5, Update, update_together};
use md5::Digest as _;
use proptest::collection::vec;
use proptest::prelude::*;

/// A stream: its bytes, in pieces whose lengths gather at the edges of blocks.
fn stream() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let length = prop_oneof![0usize..4, 54usize..=66, 119usize..=130, 0usize..2000];
    vec(length.prop_flat_map(|length| vec(any::<u8>(), length)), 0..8)
}

fn expected(pieces: &[Vec<u8>]) -> [u8; 16] {
    md5::Md5::digest(pieces.concat()).into()
}

proptest! {
    #[test]
    fn alone(pieces in stream()) {
        let mut md5 = Md5::new();
        for piece in &pieces {
            md5.update(piece);
        }
        prop_assert_eq!(md5.finish(), expected(&pieces));
        prop_assert_eq!(Md5::of(&pieces.concat()), expected(&pieces));
    }

    /// As a server does it: a stream whose piece is used up goes on with its next, one that has ended makes room for another.
    #[test]
    fn together(streams in vec(stream(), 1..40), lanes in 1..=LANES + 3) {
        let mut md5s = vec![Md5::new(); streams.len()];
        let mut left: Vec<_> = md5s.iter_mut().zip(&streams).map(|(md5, pieces)| (md5, pieces.iter())).collect();
        let mut busy: Vec<(Update<'_, '_>, std::slice::Iter<'_, Vec<u8>>)> = Vec::new();
        loop {
            let mut again = Vec::new();
            for (update, mut pieces) in busy {
                if !update.bytes.is_empty() {
                    again.push((update, pieces));
                } else if let Some(bytes) = pieces.next() {
                    again.push((Update { md5: update.md5, bytes }, pieces));
                }
            }
            busy = again;
            while busy.len() < lanes && let Some((md5, pieces)) = left.pop() {
                busy.push((Update { md5, bytes: &[] }, pieces));
            }
            if busy.is_empty() {
                break;
            }
            let before: usize = busy.iter().map(|(update, _)| update.bytes.len()).sum();
            let mut updates: Vec<_> =
                busy.iter_mut().map(|(update, _)| Update { md5: &mut *update.md5, bytes: update.bytes }).collect();
            update_together(&mut updates);
            let rest: Vec<_> = updates.iter().map(|update| update.bytes).collect();
            for ((update, _), bytes) in busy.iter_mut().zip(rest) {
                update.bytes = bytes;
            }
            let after: usize = busy.iter().map(|(update, _)| update.bytes.len()).sum();
            prop_assert!(busy.iter().any(|(update, _)| update.bytes.is_empty()), "someone's bytes are used up");
            prop_assert!(after <= before);
        }
        for (md5, pieces) in md5s.into_iter().zip(&streams) {
            prop_assert_eq!(md5.finish(), expected(pieces));
        }
    }
}

/// Long ones, of about the lengths that a server has.
#[test]
fn long_streams() {
    let streams: Vec<Vec<u8>> = (0..16).map(|n| vec![n; 100_000 + usize::from(n) * 777]).collect();
    let mut md5s = vec![Md5::new(); streams.len()];
    let mut rest: Vec<&[u8]> = streams.iter().map(Vec::as_slice).collect();
    while rest.iter().any(|bytes| !bytes.is_empty()) {
        let mut updates: Vec<_> = md5s
            .iter_mut()
            .zip(&rest)
            .filter(|(_, bytes)| !bytes.is_empty())
            .map(|(md5, bytes)| Update { md5, bytes })
            .collect();
        update_together(&mut updates);
        let left: Vec<usize> = updates.iter().map(|update| update.bytes.len()).collect();
        for (bytes, left) in rest.iter_mut().filter(|bytes| !bytes.is_empty()).zip(left) {
            *bytes = &bytes[bytes.len() - left..];
        }
    }
    for (md5, bytes) in md5s.into_iter().zip(&streams) {
        assert_eq!(md5.finish(), <[u8; 16]>::from(md5::Md5::digest(bytes)));
    }
}
