//! The packed list of an object's parts: their number, then runs of `skipped part numbers, count,
//! size` for all parts, then the algorithm (1 byte, 0 for none, [`MIXED`]) and the checksums.
//!
//! A few bytes may stand for 10,000 parts. So a list is first checked, in time proportional to its
//! length, and unpacked only if the parts are needed.

use std::sync::Arc;

use backend::ObjectPart;
use s3_types::limits::PARTS_MAX;
use s3_types::{ChecksumAlgorithm, ChecksumValue};

use super::input::{Input, varint};

/// The algorithm's byte if each part names its own algorithm (0 for none).
const MIXED: u8 = 0xff;

/// Packs a list.
pub(super) fn pack(parts: &[ObjectPart]) -> Vec<u8> {
    let mut out = varint(parts.len() as u64);
    let mut number = 0;
    for run in parts.chunk_by(|a, b| b.part_number == a.part_number + 1 && a.size_bytes == b.size_bytes) {
        let first = run[0].part_number;
        out.extend(varint(u64::from(first.wrapping_sub(number + 1))));
        out.extend(varint(run.len() as u64));
        out.extend(varint(run[0].size_bytes));
        number = run[run.len() - 1].part_number;
    }
    let algorithm = |part: &ObjectPart| part.checksum.map_or(0, |c| c.algorithm() as u8);
    let common = parts.first().map_or(0, algorithm);
    let mixed = parts.iter().any(|p| algorithm(p) != common);
    out.push(if mixed { MIXED } else { common });
    for part in parts {
        if mixed {
            out.push(algorithm(part));
        }
        out.extend_from_slice(part.checksum.as_ref().map_or(&[], ChecksumValue::as_bytes));
    }
    out
}

/// A list that is not yet unpacked.
pub(super) enum List<'b> {
    Known(Packed<'b>),
    /// The list has checksums of an unknown algorithm.
    NotUnderstood,
}

/// A well-formed list, still packed.
pub(super) struct Packed<'b> {
    bytes: &'b [u8],
    /// The number of parts.
    pub count: usize,
    /// The total size of the parts, in bytes.
    pub total_bytes: u64,
}

/// Consecutive parts of the same size.
struct Run {
    skipped: u32,
    count: usize,
    size_bytes: u64,
}

impl<'b> List<'b> {
    /// Checks a list; `None` if it is damaged.
    pub fn of(bytes: &'b [u8]) -> Option<Self> {
        let mut input = Input(bytes);
        let count = usize::try_from(input.varint()?).ok()?;
        if count > PARTS_MAX as usize {
            return None;
        }
        let (mut left, mut number, mut total_bytes) = (count, 0u32, 0u64);
        while left > 0 {
            let run = run(&mut input)?;
            left = left.checked_sub(run.count)?;
            number = number.checked_add(run.skipped)?.checked_add(u32::try_from(run.count).ok()?)?;
            total_bytes = total_bytes.checked_add(run.size_bytes.checked_mul(run.count as u64)?)?;
        }
        match input.byte()? {
            MIXED => {
                for _ in 0..count {
                    let algorithm = input.byte()?;
                    if algorithm != 0 {
                        let Some(algorithm) = ChecksumAlgorithm::from_u8(algorithm) else {
                            return Some(Self::NotUnderstood);
                        };
                        input.take(algorithm.length_bytes())?;
                    }
                }
            }
            0 => {}
            common => {
                let Some(algorithm) = ChecksumAlgorithm::from_u8(common) else {
                    return Some(Self::NotUnderstood);
                };
                input.take(algorithm.length_bytes().checked_mul(count)?)?;
            }
        }
        Some(Self::Known(Packed { bytes, count, total_bytes }))
    }
}

impl Packed<'_> {
    /// Unpacks the parts.
    pub fn unpack(&self) -> Option<Arc<[ObjectPart]>> {
        let mut input = Input(self.bytes);
        input.varint()?;
        let mut parts = Vec::with_capacity(self.count);
        let mut number = 0u32;
        while parts.len() < self.count {
            let run = run(&mut input)?;
            number = number.checked_add(run.skipped)?;
            for _ in 0..run.count {
                number = number.checked_add(1)?;
                parts.push(ObjectPart { part_number: number, size_bytes: run.size_bytes, checksum: None });
            }
        }
        let common = input.byte()?;
        for part in &mut parts {
            let algorithm = if common == MIXED { input.byte()? } else { common };
            if algorithm != 0 {
                part.checksum = Some(checksum(&mut input, algorithm)?);
            }
        }
        Some(parts.into())
    }
}

fn run(input: &mut Input<'_>) -> Option<Run> {
    let skipped = u32::try_from(input.varint()?).ok()?;
    let count = usize::try_from(input.varint()?).ok().filter(|count| *count > 0)?;
    Some(Run { skipped, count, size_bytes: input.varint()? })
}

fn checksum(input: &mut Input<'_>, algorithm: u8) -> Option<ChecksumValue> {
    let algorithm = ChecksumAlgorithm::from_u8(algorithm)?;
    ChecksumValue::new(algorithm, input.take(algorithm.length_bytes())?)
}

#[cfg(test)]
mod tests {
    use s3_types::Checksummer;

    use super::*;

    #[test]
    fn ten_thousand_equal_parts_cost_their_checksums() {
        let checksum = Some(Checksummer::of(ChecksumAlgorithm::Crc32, b"x"));
        let parts: Vec<_> =
            (1..=10_000).map(|n| ObjectPart { part_number: n, size_bytes: 5 << 20, checksum }).collect();
        let packed = pack(&parts);
        assert!(packed.len() < 40_020, "{}", packed.len());
        let Some(List::Known(list)) = List::of(&packed) else { panic!("it is known") };
        assert_eq!((list.count, list.total_bytes), (10_000, (5 << 20) * 10_000));
        assert_eq!(list.unpack().as_deref(), Some(&parts[..]));
        assert!(List::of(&packed[..packed.len() - 1]).is_none());
    }
}
