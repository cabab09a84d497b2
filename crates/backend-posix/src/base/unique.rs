//! Random numbers, unique names, and the hash of the protocol between gateways.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::rand::{GetRandomFlags, getrandom};

/// Random bits from the kernel.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    let read = getrandom(&mut bytes, GetRandomFlags::empty());
    debug_assert_eq!(read, Ok(8));
    u64::from_ne_bytes(bytes)
}

/// A random number from 0 to 1.
pub(crate) fn fraction() -> f64 {
    f64::from(random().to_ne_bytes()[0]) / 255.0
}

/// A number that is unique among all gateways: random bits of this process, and a counter.
pub(crate) fn id() -> u128 {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let process = *PROCESS.get_or_init(random);
    u128::from(process) << 64 | u128::from(COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A number that is unique, too, and that nobody can guess: random bits alone.
pub(crate) fn unguessable() -> u128 {
    u128::from(random()) << 64 | u128::from(random())
}

/// True for names that [`name`] makes.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// [`id`] as a file name.
pub(crate) fn name() -> String {
    format!("{:032x}", id())
}

/// FNV-1a. Part of the protocol, like the number of locks.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
