//! How fast each way of this machine is, by CPU time: `cargo run --release -p digest-lanes --example speed`.

#![expect(clippy::cast_precision_loss, reason = "figures of three digits")]

use std::hint::black_box;

use digest_lanes::{Md5, Update, update_together};
use md5::Digest as _;

const BYTES: usize = 64 << 10;
const ROUND_BYTES: usize = 16 << 20;

/// Nanoseconds that this thread has been on a core: others' work does not count.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("this is Linux");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds")
}

/// MB/s at the best of several rounds, of work that digests `bytes`.
fn rate(bytes: usize, mut work: impl FnMut()) -> f64 {
    let round = || {
        let (begin, rounds) = (cpu_ns(), ROUND_BYTES / bytes);
        for _ in 0..rounds {
            work();
        }
        (rounds * bytes) as f64 / (cpu_ns() - begin) * 1e3
    };
    std::iter::repeat_with(round).take(7).fold(0.0, f64::max)
}

fn main() {
    let inputs: Vec<Vec<u8>> = (0..16).map(|n| vec![n; BYTES]).collect();
    let peer = rate(BYTES, || {
        black_box(md5::Md5::digest(black_box(&inputs[0])));
    });
    println!("md-5, one stream  {peer:7.0} MB/s");
    for streams in [1, 2, 3, 4, 6, 8, 9, 12, 16] {
        let rate = rate(streams * BYTES, || {
            let mut md5s = vec![Md5::new(); streams];
            let mut updates: Vec<_> = md5s
                .iter_mut()
                .zip(&inputs)
                .map(|(md5, bytes)| Update { md5, bytes: black_box(bytes) })
                .collect();
            update_together(&mut updates);
            black_box(&md5s);
        });
        println!("{streams:2} streams        {rate:7.0} MB/s");
    }
}
