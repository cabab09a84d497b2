//! Random numbers, unique names, and the hash of the protocol between gateways.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::rand::{GetRandomFlags, getrandom};

/// Returns random bits from the kernel.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    let read = getrandom(&mut bytes, GetRandomFlags::empty());
    debug_assert_eq!(read, Ok(8));
    u64::from_ne_bytes(bytes)
}

/// Returns a random number from 0 to 1.
pub(crate) fn fraction() -> f64 {
    f64::from(random().to_ne_bytes()[0]) / 255.0
}

/// A number that is unique among all gateways, and that nobody can guess from another one: a
/// counter under two keyed hashes, whose keys are random bits of this process.
pub(crate) fn id() -> u128 {
    static KEYS: OnceLock<[RandomState; 2]> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let [high, low] = KEYS.get_or_init(|| [RandomState::new(), RandomState::new()]);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    u128::from(high.hash_one(count)) << 64 | u128::from(low.hash_one(count))
}

/// True for names that [`name`] makes.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns [`id`] as a file name.
pub(crate) fn name() -> String {
    format!("{:032x}", id())
}

/// Computes the FNV-1a hash. It is part of the protocol between gateways, like the number of locks.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// With consecutive numbers, whoever sees one knows the names of files that are still to come.
    #[test]
    fn no_id_tells_of_the_next_one() {
        let ids: Vec<u128> = (0..1_000).map(|_| id()).collect();
        for shift in [0, 64] {
            let halves: Vec<u64> =
                ids.iter().map(|id| u64::try_from(id >> shift & u128::from(u64::MAX)).unwrap()).collect();
            assert_eq!(halves.iter().collect::<HashSet<_>>().len(), ids.len());
            let near = halves.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 1 << 32).count();
            assert_eq!(near, 0, "{halves:x?}");
        }
    }
}
