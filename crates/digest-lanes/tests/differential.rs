//! Compares random streams in random pieces, alone and together, with another implementation.

use std::slice::Iter;

use aws_lc_rs::digest::{SHA256, digest};
use digest_lanes::{Algorithm, LANES, Md5, Sha256, Stream, Update, update_together};
use md5::Digest as _;
use proptest::collection::vec;
use proptest::prelude::*;

/// A random stream: its bytes, in pieces whose lengths are mostly near the edges of blocks.
fn stream() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let length = prop_oneof![0usize..4, 54usize..=66, 119usize..=130, 0usize..2000];
    vec(length.prop_flat_map(|length| vec(any::<u8>(), length)), 0..8)
}

fn md5(bytes: &[u8]) -> [u8; 16] {
    md5::Md5::digest(bytes).into()
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest(&SHA256, bytes).as_ref().try_into().expect("32 bytes")
}

fn alone<A: Algorithm>(mut stream: Stream<A>, pieces: &[Vec<u8>]) -> A::Output {
    for piece in pieces {
        stream.update(piece);
    }
    stream.finish()
}

/// A stream that has something to add, and its pieces after that.
type Busy<'s, A> = (Update<'s, 's, Stream<A>>, Iter<'s, Vec<u8>>);

/// Digests streams as a server does: a stream whose piece is used up continues with its next, one
/// that has ended makes room for another.
fn together<A: Algorithm>(start: &Stream<A>, streams: &[Vec<Vec<u8>>], lanes: usize) -> Vec<A::Output> {
    let mut digests = vec![start.clone(); streams.len()];
    let mut left: Vec<_> =
        digests.iter_mut().zip(streams).map(|(stream, pieces)| (stream, pieces.iter())).collect();
    let mut busy: Vec<Busy<'_, A>> = Vec::new();
    loop {
        let mut again = Vec::new();
        for (update, mut pieces) in busy {
            if !update.bytes.is_empty() {
                again.push((update, pieces));
            } else if let Some(bytes) = pieces.next() {
                again.push((Update { stream: update.stream, bytes }, pieces));
            }
        }
        busy = again;
        while busy.len() < lanes
            && let Some((stream, pieces)) = left.pop()
        {
            busy.push((Update { stream, bytes: &[] }, pieces));
        }
        if busy.is_empty() {
            break;
        }
        let before: usize = busy.iter().map(|(update, _)| update.bytes.len()).sum();
        let mut updates: Vec<_> = busy
            .iter_mut()
            .map(|(update, _)| Update { stream: &mut *update.stream, bytes: update.bytes })
            .collect();
        update_together(&mut updates);
        let rest: Vec<_> = updates.iter().map(|update| update.bytes).collect();
        for ((update, _), bytes) in busy.iter_mut().zip(rest) {
            update.bytes = bytes;
        }
        let after: usize = busy.iter().map(|(update, _)| update.bytes.len()).sum();
        assert!(busy.iter().any(|(update, _)| update.bytes.is_empty()), "someone's bytes are used up");
        assert!(after <= before);
    }
    digests.into_iter().map(Stream::finish).collect()
}

proptest! {
    #[test]
    fn one_stream(pieces in stream()) {
        let bytes = pieces.concat();
        prop_assert_eq!(alone(Md5::new(), &pieces), md5(&bytes));
        prop_assert_eq!(Md5::of(&bytes), md5(&bytes));
        prop_assert_eq!(alone(Sha256::new(), &pieces), sha256(&bytes));
        prop_assert_eq!(Sha256::of(&bytes), sha256(&bytes));
    }

    #[test]
    fn several_streams(streams in vec(stream(), 1..40), lanes in 1..=LANES + 3) {
        let bytes: Vec<_> = streams.iter().map(|pieces| pieces.concat()).collect();
        let expected: Vec<_> = bytes.iter().map(|bytes| md5(bytes)).collect();
        prop_assert_eq!(together(&Md5::new(), &streams, lanes), expected);
        let expected: Vec<_> = bytes.iter().map(|bytes| sha256(bytes)).collect();
        prop_assert_eq!(together(&Sha256::new(), &streams, lanes), expected);
    }
}

/// Long streams, of about the lengths that a server has.
#[test]
fn long_streams() {
    let streams: Vec<_> = (0..16).map(|n| vec![vec![n; 100_000 + usize::from(n) * 777]]).collect();
    let expected: Vec<_> = streams.iter().map(|pieces| md5(&pieces[0])).collect();
    assert_eq!(together(&Md5::new(), &streams, LANES), expected);
    let expected: Vec<_> = streams.iter().map(|pieces| sha256(&pieces[0])).collect();
    assert_eq!(together(&Sha256::new(), &streams, LANES), expected);
}
