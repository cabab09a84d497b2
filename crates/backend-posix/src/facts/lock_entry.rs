//! The contents of the file of an object lock (docs/FORMAT.md).
//!
//! It is text, a line for each fact, and ends with a checksum of what is above. What is not
//! understood counts as a lock without an end.

use s3_types::{
    ChecksumAlgorithm, Checksummer, LockStrength, ObjectLock, Retention, RetentionMode, Timestamp, hex,
};

use crate::fs::file_info::Stamp;

/// The first line.
const HEAD: &str = "slipway object lock 1";

/// The lock of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockEntry {
    pub lock: ObjectLock,
    /// The file of the version when it was locked.
    pub was: LockedFile,
}

/// The file of a version when it was locked, with which `fsck` compares the present one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockedFile {
    pub stamp: Stamp,
    /// The inode number, if such numbers last.
    pub inode: Option<u64>,
    /// The ETag, if the record of the file has one, as text.
    pub etag: Option<String>,
}

/// The result of reading the file of a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LockReading {
    Known(LockEntry),
    /// The file cannot be understood.
    Unreadable,
}

impl LockReading {
    /// Returns the strength of the lock at a time. What cannot be read holds without an end.
    pub fn strength(&self, now: Timestamp) -> LockStrength {
        match self {
            Self::Known(entry) => entry.lock.strength(now),
            Self::Unreadable => LockStrength::Firm,
        }
    }

    /// Returns the contents, if they were understood.
    pub fn known(&self) -> Option<&LockEntry> {
        match self {
            Self::Known(entry) => Some(entry),
            Self::Unreadable => None,
        }
    }
}

impl LockedFile {
    /// Returns how a file differs from the one that was locked.
    pub fn changes(&self, now: &Self) -> Vec<&'static str> {
        let Self { stamp, inode, etag } = self;
        let differs = |is: bool, what| is.then_some(what);
        let known = |was: bool, is: bool| was && is;
        [
            differs(stamp.size_bytes != now.stamp.size_bytes, "it has another size"),
            differs(stamp.modified_ns != now.stamp.modified_ns, "it has another time"),
            differs(known(inode.is_some(), now.inode.is_some()) && *inode != now.inode, "it is another file"),
            differs(etag.is_some() && *etag != now.etag, "its record has another ETag"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl LockEntry {
    /// Returns the contents of the file.
    pub fn text(&self) -> String {
        let Self { lock: ObjectLock { retention, legal_hold }, was: LockedFile { stamp, inode, etag } } =
            self;
        let mut text = format!("{HEAD}\n");
        let mut line = |name: &str, value: &str| text.extend([name, " ", value, "\n"]);
        if let Some(retention) = retention {
            line("mode", retention.mode.as_str());
            line("until", &retention.until().to_string());
        }
        if let Some(held) = legal_hold {
            line("legal-hold", if *held { "ON" } else { "OFF" });
        }
        line("size", &stamp.size_bytes.to_string());
        line("modified", &stamp.modified_ns.to_string());
        if let Some(inode) = inode {
            line("inode", &inode.to_string());
        }
        if let Some(etag) = etag.as_deref().filter(|etag| !etag.contains('\n')) {
            line("etag", etag);
        }
        let sum = checksum(&text);
        text.extend(["checksum ", &sum, "\n"]);
        text
    }

    /// Reads the contents of a file.
    pub fn read(bytes: &[u8]) -> LockReading {
        str::from_utf8(bytes).ok().and_then(parse).map_or(LockReading::Unreadable, LockReading::Known)
    }
}

fn checksum(text: &str) -> String {
    hex::encode(Checksummer::of(ChecksumAlgorithm::Crc64Nvme, text.as_bytes()).as_bytes())
}

fn parse(text: &str) -> Option<LockEntry> {
    let (above, last) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let above = &text[..=above.len()];
    if last.strip_prefix("checksum ")? != checksum(above) {
        return None;
    }
    let mut lines = above.lines();
    if lines.next()? != HEAD {
        return None;
    }
    let (mut mode, mut until, mut legal_hold) = (None, None, None);
    let (mut size_bytes, mut modified_ns, mut inode, mut etag) = (None, None, None, None);
    for line in lines {
        let (name, value) = line.split_once(' ')?;
        match name {
            "mode" => mode = Some(RetentionMode::of(value)?),
            "until" => until = Some(value.parse::<Timestamp>().ok()?),
            "legal-hold" => {
                legal_hold = Some(match value {
                    "ON" => true,
                    "OFF" => false,
                    _ => return None,
                });
            }
            "size" => size_bytes = Some(value.parse().ok()?),
            "modified" => modified_ns = Some(value.parse().ok()?),
            "inode" => inode = Some(value.parse().ok()?),
            "etag" => etag = Some(value.to_owned()),
            _ => return None,
        }
    }
    let retention = match (mode, until) {
        (Some(mode), Some(until)) => Some(Retention::new(mode, until)),
        (None, None) => None,
        _ => return None,
    };
    let stamp = Stamp { size_bytes: size_bytes?, modified_ns: modified_ns? };
    Some(LockEntry { lock: ObjectLock { retention, legal_hold }, was: LockedFile { stamp, inode, etag } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(retention: Option<Retention>, legal_hold: Option<bool>) -> LockEntry {
        let stamp = Stamp { size_bytes: 4, modified_ns: -1 };
        let was = LockedFile { stamp, inode: Some(7), etag: Some("x y".to_owned()) };
        LockEntry { lock: ObjectLock { retention, legal_hold }, was }
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let until = |text: &str| text.parse().unwrap();
        for retention in [
            None,
            Some(Retention::new(RetentionMode::Governance, until("2030-01-01T00:00:00.001Z"))),
            Some(Retention::new(RetentionMode::Compliance, Timestamp::MAX)),
        ] {
            for legal_hold in [None, Some(false), Some(true)] {
                let entry = entry(retention, legal_hold);
                let text = entry.text();
                assert_eq!(LockEntry::read(text.as_bytes()), LockReading::Known(entry), "{text}");
            }
        }
    }

    /// A lock is not opened by cutting or changing its entry.
    #[test]
    fn what_is_not_whole_holds() {
        let text = entry(None, Some(false)).text();
        assert_eq!(LockEntry::read(text.as_bytes()).strength(Timestamp::MAX), LockStrength::None);
        for end in 0..text.len() {
            let cut = LockEntry::read(&text.as_bytes()[..end]);
            assert_eq!(cut.strength(Timestamp::MAX), LockStrength::Firm, "{end}");
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert_eq!(LockEntry::read(&bytes).strength(Timestamp::MAX), LockStrength::Firm, "{at}");
        }
        let newer = text.replace("size", "event-hold ON\nsize");
        let newer = newer.replace(
            &text[text.len() - 17..],
            &format!("{}\n", {
                let above = newer.rfind("checksum").unwrap();
                checksum(&newer[..above])
            }),
        );
        assert_eq!(LockEntry::read(newer.as_bytes()), LockReading::Unreadable, "{newer}");
    }
}
