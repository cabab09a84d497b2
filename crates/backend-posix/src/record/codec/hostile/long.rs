//! A search for records that are read wrongly, for as long as wanted (tests/README.md).
//!
//! An input is kept and changed further if one of its fields has a new length, or is read as a new
//! kind of record. So the search finds inputs that no table of cases has.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::*;
use crate::base::unique;

/// The variable with the length of the search, in seconds.
const SECONDS: &str = "SLIPWAY_FUZZ_SECONDS";
/// The most bytes of an input: the time of reading is proportional to its length.
const INPUT_BYTES_MAX: usize = 8 << 10;

/// Describes how an input is read: the number and length of each of its fields, and as which kinds
/// of record the whole is read.
fn traits_of(bytes: &[u8]) -> Vec<u64> {
    fn of<R: Kind>(bytes: &[u8]) -> u64 {
        match decode::<R>(bytes) {
            Ok(record) => 2 + u64::from(record.unknown().next().is_some()),
            Err(Unread::Damaged) => 0,
            Err(Unread::Closed) => 1,
        }
    }
    let kinds = [
        of::<ObjectRecord>(bytes),
        of::<PartRecord>(bytes),
        of::<LayoutRecord>(bytes),
        of::<DirectoryRecord>(bytes),
        of::<BucketRecord>(bytes),
        of::<UploadRecord>(bytes),
        of::<CompletionRecord>(bytes),
    ];
    let read = kinds.iter().fold(1_u64, |all, kind| all << 2 | *kind);
    let fields = Fields::of(bytes).into_iter().flatten().map_while(Result::ok);
    // Of a length: nothing, or how many bits it has.
    let traits = fields.map(|(tag, value)| {
        let bits = value.len().checked_ilog2().map_or(0, |bits| u64::from(bits) + 1);
        read << 16 | bits << 8 | u64::from(tag)
    });
    traits.chain([read << 16]).collect()
}

/// Changes an input in one of several ways.
fn change(input: &mut Vec<u8>, known: &[Vec<u8>], chance: &mut Chance) {
    let at = chance.below(input.len() + 1);
    let to = (at + chance.below(20)).min(input.len());
    match chance.below(8) {
        0 if at < input.len() => input[at] ^= 1 << chance.below(8),
        1 if at < input.len() => input[at] = [0, 1, 2, 0x7f, 0x80, 0xff][chance.below(6)],
        2 => drop(input.drain(at..to)),
        3 => {
            let again = input[at..to].to_vec();
            input.splice(at..at, again);
        }
        4 => input.insert(at, u8::try_from(chance.below(256)).unwrap()),
        5 => {
            let other = &known[chance.below(known.len())];
            let from = chance.below(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        6 => {
            let value = vec![u8::try_from(chance.below(256)).unwrap(); chance.below(24)];
            field(input, u8::try_from(chance.below(256)).unwrap(), &value);
        }
        _ => {
            if let Some(version) = input.first_mut() {
                *version = u8::try_from(chance.below(4)).unwrap();
            }
        }
    }
    input.truncate(INPUT_BYTES_MAX);
}

#[test]
#[ignore = "it takes as long as one likes"]
fn search() {
    let seconds = std::env::var(SECONDS).map_or(60, |seconds| seconds.parse().unwrap());
    // Another search each time; what it finds is shown.
    let seed = unique::random() | 1;
    let mut chance = Chance(seed);
    let mut known = good();
    known.retain(|input| input.len() <= INPUT_BYTES_MAX);
    let mut met: HashSet<_> = known.iter().flat_map(|input| traits_of(input)).collect();
    let begun = Instant::now();
    let mut inputs = 0_u64;
    while begun.elapsed() < Duration::from_secs(seconds) {
        let mut input = known[chance.below(known.len())].clone();
        for _ in 0..=chance.below(4) {
            change(&mut input, &known, &mut chance);
        }
        let checked = std::panic::catch_unwind(|| read(&input));
        assert!(checked.is_ok(), "this is read wrongly: {input:02x?}");
        inputs += 1;
        let before = met.len();
        met.extend(traits_of(&input));
        if met.len() > before {
            known.push(input);
        }
    }
    eprintln!("{inputs} inputs, {} of them kept, in {seconds} s (seed {seed})", known.len());
}
