//! Reads the archive that `mc admin cluster iam export` makes: a zip of some JSON files.
//!
//! The archive may be malicious. So nothing is written to a path that it names, and names, sizes
//! and the number of entries are limited before anything is unpacked.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};
use std::path::Path;

use memchr::memmem;
use zeroize::Zeroizing;
use zip::{CompressionMethod, ZipArchive};

use super::file;

/// The largest number of entries that are read; an export has seven.
const ENTRIES_MAX: usize = 64;
/// The largest size of all files together, in bytes. The document of an account may have 16 MiB.
const BYTES_MAX: u64 = 64 << 20;
/// The directory in the archive that has the files.
const DIRECTORY: &str = "iam-assets/";
/// The bytes at the beginning of each entry in the archive's central directory.
const ENTRY_MARK: &[u8] = b"PK\x01\x02";

/// The files of an export.
pub const FILES: [&str; 7] = [
    "policies.json",
    "users.json",
    "groups.json",
    "svcaccts.json",
    "user_mappings.json",
    "group_mappings.json",
    "stsuser_mappings.json",
];

/// The content of an archive.
#[derive(Debug, Default)]
pub struct Archive {
    /// The files that are known, by name. They contain secrets.
    pub files: BTreeMap<&'static str, Zeroizing<Vec<u8>>>,
    /// The names of the other files.
    pub others: Vec<String>,
}

/// Reads an archive.
pub fn read(path: &Path) -> Result<Archive, String> {
    let bytes = file::read(path)?;
    unpack(&bytes)
}

fn unpack(bytes: &[u8]) -> Result<Archive, String> {
    if memmem::find_iter(bytes, ENTRY_MARK).take(ENTRIES_MAX + 1).count() > ENTRIES_MAX {
        return Err(format!("it has more than {ENTRIES_MAX} entries: it is no export of MinIO's IAM"));
    }
    let broken = |e: zip::result::ZipError| format!("it is no zip archive that can be read: {e}");
    let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    if zip.has_duplicate_names() {
        return Err("two entries have one name".to_owned());
    }
    let mut archive = Archive::default();
    let mut left = BYTES_MAX;
    for at in 0..zip.len() {
        let mut entry = zip.by_index(at).map_err(broken)?;
        let name = entry.name().map_err(broken)?.into_owned();
        if name.starts_with('/') || name.contains('\\') || name.split('/').any(|part| part == "..") {
            return Err(format!("the entry {name:?} leads out of the archive"));
        }
        if name == DIRECTORY {
            continue;
        }
        let known = FILES.iter().find(|file| name.strip_prefix(DIRECTORY) == Some(file));
        let Some(known) = known else {
            archive.others.push(name);
            continue;
        };
        if !matches!(entry.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
            return Err(format!("{name}: it is compressed in another way than MinIO does"));
        }
        // What the entry says of its size is not believed.
        let mut text = Zeroizing::new(Vec::new());
        (&mut entry).take(left + 1).read_to_end(&mut text).map_err(|e| format!("{name}: {e}"))?;
        left = left
            .checked_sub(text.len() as u64)
            .ok_or_else(|| format!("{name}: its files have more than {BYTES_MAX} bytes"))?;
        archive.files.insert(known, text);
    }
    if archive.files.is_empty() {
        return Err(format!("there are no files in {DIRECTORY}: it is no export of MinIO's IAM"));
    }
    Ok(archive)
}
