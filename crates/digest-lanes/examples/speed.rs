//! Measures the speed of each kernel that this machine can run, by CPU time: `cargo run --release
//! -p digest-lanes --example speed`.

#![expect(clippy::cast_precision_loss, reason = "figures of three digits")]

use std::hint::black_box;

use aws_lc_rs::digest::{SHA256, digest};
use digest_lanes::{Algorithm, Md5, Sha256, Stream, Update, update_together};
use md5::Digest as _;

const BYTES: usize = 64 << 10;
/// The CPU time of a round in nanoseconds. It is long because the scheduler counts CPU time in
/// steps of up to 4 ms.
const ROUND_NS: f64 = 80e6;
const ROUNDS: usize = 7;

/// Returns the CPU time of this thread in nanoseconds, which excludes other programs.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("this is Linux");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds")
}

/// Returns the speed of `work`, which digests `bytes` at each call, in MB/s: the best of several
/// rounds.
fn rate(bytes: usize, mut work: impl FnMut()) -> f64 {
    let mut round = || {
        let (begin, mut done, mut ns) = (cpu_ns(), 0, 0.0);
        while ns < ROUND_NS {
            for _ in 0..(16 << 20) / bytes {
                work();
                done += bytes;
            }
            ns = cpu_ns() - begin;
        }
        done as f64 / ns * 1e3
    };
    (0..ROUNDS).map(|_| round()).fold(0.0, f64::max)
}

fn together<A: Algorithm>(start: &Stream<A>, inputs: &[Vec<u8>], name: &str) {
    for streams in 1..=inputs.len() {
        let rate = rate(streams * BYTES, || {
            let mut digests = vec![start.clone(); streams];
            let mut updates: Vec<_> = digests
                .iter_mut()
                .zip(inputs)
                .map(|(stream, bytes)| Update { stream, bytes: black_box(bytes) })
                .collect();
            update_together(&mut updates);
            black_box(&digests);
        });
        println!("{name}, {streams:2} streams  {rate:7.0} MB/s");
    }
}

fn main() {
    let inputs: Vec<Vec<u8>> = (0..16).map(|n| vec![n; BYTES]).collect();
    let peer = rate(BYTES, || {
        black_box(md5::Md5::digest(black_box(&inputs[0])));
    });
    println!("md-5, one stream     {peer:7.0} MB/s");
    together(&Md5::new(), &inputs, "MD5");
    let peer = rate(BYTES, || {
        black_box(digest(&SHA256, black_box(&inputs[0])));
    });
    println!("aws-lc, one stream   {peer:7.0} MB/s");
    together(&Sha256::new(), &inputs, "SHA-256");
}
