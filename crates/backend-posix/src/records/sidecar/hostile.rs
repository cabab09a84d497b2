//! Records beside files, as anyone who can write in a directory may make them.

use crate::fs::file_info::FileStamp;
use s3_types::{Digests, ETag, ObjectMetadata};

use super::*;
use crate::record::{Attached, to_bytes};

const OWN: u64 = 0x0102_0304_0506_0708;
const FILE: FileIdentity = FileIdentity { stamp: FileStamp { size_bytes: 5, modified_ns: 7 }, inode: 99 };

fn record(stamp: FileStamp) -> Vec<u8> {
    let digests = Digests { etag: ETag::Md5([0xcd; 16]), checksum: None };
    let mut record = ObjectRecord::of_bytes(digests, ObjectMetadata::default(), Attached::none(), None);
    record.content.stamp = Some(stamp);
    to_bytes(&record)
}

/// Sidecars with one and with two records, of both versions.
fn good() -> Vec<Vec<u8>> {
    let older = FileStamp { size_bytes: 4, modified_ns: 6 };
    let records = [record(FILE.stamp), record(older)];
    let entries = records.iter().zip([FILE.inode, 98]).map(|(record, inode)| Entry { inode, record });
    let first = |count: usize| {
        let entries = records
            .iter()
            .take(count)
            .flat_map(|record| [&u32::try_from(record.len()).unwrap().to_le_bytes()[..], record].concat());
        [FIRST_VERSION].into_iter().chain([0xee; 16]).chain(entries).collect()
    };
    vec![Sidecar::pack(OWN, entries.clone().take(1)), Sidecar::pack(OWN, entries), first(1), first(2)]
}

/// Calls every function that reads a sidecar, for files of every kind. True if it has a record of
/// [`FILE`].
fn read(bytes: &[u8]) -> bool {
    let other = FileIdentity { inode: 98, ..FILE };
    let unknown = FileIdentity { inode: 0, ..FILE };
    for inode in [OWN, 0, u64::MAX] {
        let sidecar = in_file(bytes.to_vec(), inode);
        let lengths: Vec<_> = sidecar.entries().map(|entry| entry.record.len()).collect();
        assert!(lengths.len() <= RECORDS_MAX && lengths.iter().sum::<usize>() <= bytes.len());
        let changed = FileIdentity { stamp: FileStamp { size_bytes: 5, modified_ns: 8 }, ..FILE };
        let recognized = sidecar.clone().recognize(changed, || Some(0));
        assert_eq!(recognized.changed.is_some(), recognized.of_changed(Some(changed)).is_some());
        for (sidecar, file) in [
            (&sidecar, None),
            (&sidecar, Some(FILE)),
            (&sidecar, Some(other)),
            (&sidecar, Some(unknown)),
            (&recognized, Some(changed)),
        ] {
            let told: Reading<ObjectRecord> = sidecar.record(file);
            let mut without_parts = told.clone();
            if let Reading::Known(told) = &mut without_parts {
                told.content.parts = None;
            }
            assert_eq!(sidecar.brief(file), without_parts);
            match sidecar.raw(file) {
                Raw::Known(_, known) => assert_eq!(Reading::Known(*known), told),
                Raw::Newer(_) => assert_eq!(told, Reading::Closed),
                Raw::Damaged(_) => {}
                Raw::Absent => panic!("there is one"),
            }
        }
        let _ = (sidecar.is_torn(false), sidecar.is_torn(true));
        if sidecar.is_whole() && sidecar.has_inodes() {
            // What was written of it is the same, but for what is never the same twice.
            let again = Sidecar::pack(OWN, sidecar.entries());
            assert_eq!((again.len(), &again[HEAD_BYTES..]), (bytes.len(), &bytes[HEAD_BYTES..]));
        }
    }
    let sidecar = in_file(bytes.to_vec(), OWN);
    let record = sidecar.record::<ObjectRecord>(Some(FILE)).known();
    record.is_some_and(|record| record.content.stamp == Some(FILE.stamp))
}

#[test]
fn what_is_good_tells_of_its_file() {
    for packed in good() {
        assert!(read(&packed));
        let sidecar = in_file(packed, OWN);
        assert!(sidecar.is_whole());
    }
}

#[test]
fn no_end_and_no_byte_is_too_odd() {
    assert!(!read(&[]));
    for packed in good() {
        for at in 0..packed.len() {
            read(&packed[..at]);
            let bits = (0..8).map(|bit| packed[at] ^ 1 << bit);
            for byte in bits.chain([0, 1, 2, 3, 0x7f, 0x80, 0xff]) {
                let mut spoilt = packed.clone();
                spoilt[at] = byte;
                read(&spoilt);
            }
        }
        let longer = in_file([&packed[..], b"x"].concat(), OWN);
        assert!(read(&longer.bytes) && !longer.is_whole());
    }
}

#[test]
fn no_length_is_too_odd() {
    for (packed, at) in [(&good()[1], HEAD_BYTES + 8), (&good()[3], FIRST_HEAD_BYTES)] {
        let right = u32::from_le_bytes(packed[at..at + 4].try_into().unwrap());
        for length in (0..=right + 40).chain([1 << 16, 1 << 31, u32::MAX]) {
            let mut spoilt = packed.clone();
            spoilt[at..at + 4].copy_from_slice(&length.to_le_bytes());
            // What is cut off, or too much, may be fields.
            assert!(read(&spoilt) || length != right);
        }
    }
}
