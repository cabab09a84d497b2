//! The attributes that Versity S3 Gateway keeps of an object: extended attributes, or files in a
//! sidecar directory.
//!
//! Each attribute is one of `user.etag` (quoted), `user.checksums` (JSON), `user.metadata` (JSON
//! map; formerly one `user.X-Amz-Meta.NAME` each), `user.content-type` and similar ones (text),
//! `user.mp-metadata` (gzip of JSON: cumulative sizes of parts), and some that have no place here
//! yet. There is no stamp: nothing shows whether the file has changed since they were written.
//! Whoever can write the file can write them, so no value is trusted to be well-formed.

use std::io::Read as _;
use std::sync::Arc;

use backend::ObjectPart;
use flate2::read::GzDecoder;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use s3_types::limits::{OBJECT_TAGS_MAX, PARTS_MAX};
use s3_types::{Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, ETag, ObjectMetadata, Tags};
use serde_json::Value;

use crate::error::Io;
use crate::fs::reading::entries;
use crate::fs::{files, resolve};
use crate::limits::{
    FOREIGN_VALUE_BYTES_MAX, METADATA_BYTES_MAX, RECORD_BYTES_MAX, VERSITYGW_PARTS_BYTES_MAX,
};

const PREFIX: &str = "user.";
const ETAG: &str = "etag";
const CHECKSUMS: &str = "checksums";
const METADATA: &str = "metadata";
const OLD_METADATA: &str = "X-Amz-Meta.";
const PARTS: &str = "mp-metadata";
const CONTENT_TYPE: &str = "content-type";
const CONTENT_ENCODING: &str = "content-encoding";
const CONTENT_LANGUAGE: &str = "content-language";
const CONTENT_DISPOSITION: &str = "content-disposition";
const CACHE_CONTROL: &str = "cache-control";
const EXPIRES: &str = "expires";
const REDIRECT: &str = "website-redirect-location";

const TAGS: &str = "X-Amz-Tagging";
/// The attribute of a file that stands for a delete marker.
const DELETE_MARKER: &str = "delete-marker";

/// The attributes that have a place in our records.
const CARRIED: [&str; 12] = [
    ETAG,
    CHECKSUMS,
    METADATA,
    PARTS,
    CONTENT_TYPE,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_DISPOSITION,
    CACHE_CONTROL,
    EXPIRES,
    REDIRECT,
    TAGS,
];
/// The attributes that an import does not take over, with their meaning.
const NOT_CARRIED: [(&str, &str); 12] = [
    ("object-retention", "retention"),
    ("object-legal-hold", "legal hold"),
    ("version-id", "version id"),
    (DELETE_MARKER, "delete marker"),
    ("acl", "ACL"),
    ("ownership", "ownership controls"),
    ("policy", "policy"),
    ("cors", "CORS rules"),
    ("website", "website configuration"),
    ("versioning", "versioning"),
    ("bucket-lock", "object lock configuration"),
    ("bucket-encryption", "encryption configuration"),
];

/// The place of an object's attributes.
pub(crate) enum Source<'f> {
    /// Extended attributes of the file or directory.
    File(BorrowedFd<'f>),
    /// Files in a directory.
    Sidecar(OwnedFd),
}

impl Source<'_> {
    /// Returns the names of the existing attributes.
    pub fn names(&self) -> Io<Vec<String>> {
        match self {
            Self::File(file) => attribute_names(*file),
            Self::Sidecar(directory) => {
                // Opened anew, to be read from its start.
                let entries = entries(&resolve::plain(directory, "", resolve::DIRECTORY)?)?;
                Ok(entries.into_iter().filter(|(_, kind)| kind.is_file()).map(|(name, _)| name).collect())
            }
        }
    }

    /// Returns the access list of a bucket, which names its owner.
    pub fn access_list(&self) -> Io<Option<Vec<u8>>> {
        match self.get("acl") {
            Err(Errno::NODATA | Errno::NOENT) => Ok(None),
            found => found.map(Some),
        }
    }

    fn get(&self, name: &str) -> Io<Vec<u8>> {
        match self {
            Self::File(file) => {
                let mut value = vec![0; RECORD_BYTES_MAX];
                let length = rustix::fs::fgetxattr(file, format!("{PREFIX}{name}"), &mut value[..])?;
                value.truncate(length);
                Ok(value)
            }
            Self::Sidecar(directory) => files::read_own(directory, name),
        }
    }

    /// Returns the source of an object's attributes in a sidecar directory.
    pub fn sidecar(directory: impl AsFd, path: &str) -> Io<Option<Self>> {
        let path = if path.is_empty() { "meta".to_owned() } else { format!("{path}/meta") };
        match resolve::plain(directory, &path, resolve::DIRECTORY | OFlags::NOFOLLOW) {
            Ok(directory) => Ok(Some(Self::Sidecar(directory))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

fn attribute_names(file: BorrowedFd<'_>) -> Io<Vec<String>> {
    let mut short = [0; 1024];
    let mut long = Vec::new();
    let list = match rustix::fs::flistxattr(file, &mut short[..]) {
        Ok(length) => &short[..length],
        Err(Errno::RANGE) => {
            long.resize(RECORD_BYTES_MAX, 0);
            let length = rustix::fs::flistxattr(file, &mut long[..])?;
            &long[..length]
        }
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(errno) => return Err(errno),
    };
    let names = list.split(|byte| *byte == 0).filter_map(|name| str::from_utf8(name).ok());
    Ok(names.filter_map(|name| name.strip_prefix(PREFIX)).map(str::to_owned).collect())
}

/// The contents of versitygw's attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub etag: ETag,
    pub checksum: Option<Checksum>,
    pub metadata: ObjectMetadata,
    pub parts: Option<Arc<[ObjectPart]>>,
    /// The tags; `None` if they are none that S3 allows.
    pub tags: Option<Tags>,
}

impl Attributes {
    /// Reads the attributes; `None` if there is no ETag, which versitygw gives to all of its
    /// objects. Malformed values are left out.
    pub fn read(source: &Source<'_>) -> Io<Option<Self>> {
        let names = source.names()?;
        if !names.iter().any(|name| name == ETAG) {
            return Ok(None);
        }
        // What can't be read just now must not pass for what is not there: an import would remove
        // it.
        let get = |name: &str| -> Io<Option<Vec<u8>>> {
            if !names.iter().any(|found| found == name) {
                return Ok(None);
            }
            match source.get(name) {
                Ok(value) => Ok(Some(value).filter(|v| name == PARTS || v.len() <= FOREIGN_VALUE_BYTES_MAX)),
                // Removed meanwhile, or more than any is long.
                Err(Errno::NODATA | Errno::NOENT | Errno::RANGE) => Ok(None),
                Err(errno) => Err(errno),
            }
        };
        let header = |name: &str| -> Io<Option<String>> { Ok(get(name)?.and_then(text)) };
        let Some(etag) = header(ETAG)? else { return Ok(None) };
        let metadata = ObjectMetadata {
            content_type: header(CONTENT_TYPE)?,
            content_encoding: header(CONTENT_ENCODING)?,
            content_language: header(CONTENT_LANGUAGE)?,
            content_disposition: header(CONTENT_DISPOSITION)?,
            cache_control: header(CACHE_CONTROL)?,
            expires: header(EXPIRES)?,
            website_redirect_location: header(REDIRECT)?,
            user: user_metadata(&names, get)?,
        };
        Ok(Some(Self {
            etag: ETag::parse(&etag),
            checksum: get(CHECKSUMS)?.and_then(|json| checksum(&json)),
            metadata,
            parts: get(PARTS)?.and_then(|packed| parts(&packed)),
            tags: get(TAGS)?.map_or_else(|| Some(Tags::default()), |json| tags(&json)),
        }))
    }

    /// True if a record has all of this. The checksum may differ.
    pub fn are_in(
        &self,
        etag: Option<&ETag>,
        metadata: &ObjectMetadata,
        parts: Option<&[ObjectPart]>,
        tags: &Tags,
    ) -> bool {
        let same = |(theirs, ours): (Option<&str>, Option<&str>)| theirs.is_none() || theirs == ours;
        etag == Some(&self.etag)
            && (self.parts.is_none() || self.parts.as_deref() == parts)
            && self.tags.as_ref().is_none_or(|theirs| theirs.is_empty() || theirs == tags)
            && self.metadata.headers().into_iter().zip(metadata.headers()).all(same)
            && self.metadata.user.iter().all(|pair| metadata.user.contains(pair))
    }

    /// False if the sizes alone show that the ETag can't be that of `size_bytes` bytes.
    pub fn is_possible(&self, size_bytes: u64) -> bool {
        let Some(parts) = &self.parts else { return true };
        let total = parts.iter().try_fold(0u64, |sum, part| sum.checked_add(part.size_bytes));
        let count = match self.etag {
            ETag::Multipart { parts, .. } => Some(parts),
            _ => None,
        };
        total == Some(size_bytes) && count.is_none_or(|count| usize::try_from(count) == Ok(parts.len()))
    }
}

/// Returns the names of attributes that our record replaces; the tags' only if `tags` is true. The
/// ETag's comes last, so that it is also removed last: as long as it exists, an interrupted import
/// has left attributes.
pub(crate) fn carried(names: &[String], tags: bool) -> impl Iterator<Item = &String> {
    let mut carried: Vec<_> = names
        .iter()
        .filter(|name| CARRIED.contains(&name.as_str()) || name.starts_with(OLD_METADATA))
        .filter(|name| tags || *name != TAGS)
        .collect();
    carried.sort_by_key(|name| *name == ETAG);
    carried.into_iter()
}

/// Returns the kinds of data in the attributes that Slipway cannot keep yet.
pub(crate) fn not_carried(names: &[String]) -> Vec<&'static str> {
    let has = |name: &str| names.iter().any(|found| found == name);
    NOT_CARRIED.into_iter().filter(|(name, _)| has(name)).map(|(_, what)| what).collect()
}

/// True if a file stands for a delete marker.
pub(crate) fn is_delete_marker(names: &[String]) -> bool {
    names.iter().any(|name| name == DELETE_MARKER)
}

/// Reads tags, which are a JSON map; `None` if they are none that S3 allows.
fn tags(json: &[u8]) -> Option<Tags> {
    let Ok(Value::Object(map)) = serde_json::from_slice(json) else { return None };
    let tags = map.into_iter().map(|(key, value)| Some((key.into(), value.as_str()?.into())));
    Tags::new(tags.collect::<Option<Vec<_>>>()?, OBJECT_TAGS_MAX).ok()
}

/// Removes an attribute of a file.
pub(crate) fn remove(file: impl AsFd, name: &str) -> Io<()> {
    match rustix::fs::fremovexattr(file, format!("{PREFIX}{name}")) {
        Err(Errno::NODATA) => Ok(()),
        result => result,
    }
}

/// Returns a text that can be the value of a header; `None` if the bytes are not one.
fn text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control))
}

/// True for a text that can be part of a header's name.
pub(crate) fn is_token(name: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(token)
}

fn user_metadata(names: &[String], get: impl Fn(&str) -> Io<Option<Vec<u8>>>) -> Io<Vec<(String, String)>> {
    let mut user = Vec::new();
    let mut add = |name: &str, value: String| {
        if is_token(name) {
            user.push((name.to_ascii_lowercase(), value));
        }
    };
    if let Some(Ok(Value::Object(map))) = get(METADATA)?.map(|json| serde_json::from_slice(&json)) {
        for (name, value) in map {
            if let Some(value) = value.as_str().and_then(|value| text(value.into())) {
                add(&name, value);
            }
        }
    }
    let mut old_bytes = 0;
    for name in names {
        if let Some(short) = name.strip_prefix(OLD_METADATA)
            && let Some(value) = get(name)?.and_then(text)
        {
            old_bytes += value.len();
            add(short, value);
            // Already more than is served or taken over (`record::fits`).
            if old_bytes > METADATA_BYTES_MAX {
                break;
            }
        }
    }
    user.sort();
    user.dedup_by(|a, b| a.0 == b.0);
    Ok(user)
}

fn checksum(json: &[u8]) -> Option<Checksum> {
    let json: Value = serde_json::from_slice(json).ok()?;
    let algorithm = ChecksumAlgorithm::from_name(json.get("Algorithm")?.as_str()?)?;
    let value = json.get(algorithm.name())?.as_str()?;
    match ChecksumType::from_name(json.get("Type").and_then(Value::as_str).unwrap_or("FULL_OBJECT"))? {
        ChecksumType::FullObject => {
            Some(Checksum::full_object(ChecksumValue::from_base64(algorithm, value)?))
        }
        ChecksumType::Composite => {
            let (value, parts) = value.rsplit_once('-')?;
            Some(Checksum::composite(ChecksumValue::from_base64(algorithm, value)?, parts.parse().ok()?))
        }
    }
}

fn parts(packed: &[u8]) -> Option<Arc<[ObjectPart]>> {
    let mut json = Vec::new();
    if GzDecoder::new(packed).take(VERSITYGW_PARTS_BYTES_MAX).read_to_end(&mut json).is_err() {
        // Older versions did not pack it.
        json = packed.to_vec();
    }
    let json: Value = serde_json::from_slice(&json).ok()?;
    let ends = json.get("parts")?.as_array()?;
    if ends.is_empty() || ends.len() > PARTS_MAX as usize {
        return None;
    }
    let mut start = 0;
    let part = |(end, part_number): (&Value, u32)| {
        let end = end.as_u64()?;
        let size_bytes = end.checked_sub(start)?;
        start = end;
        Some(ObjectPart { part_number, size_bytes, checksum: None })
    };
    ends.iter().zip(1..).map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use rustix::fs::XattrFlags;

    use super::*;

    fn gzip(text: &str) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    }

    fn read(attributes: &[(&str, &[u8])]) -> [Option<Attributes>; 2] {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("a/meta")).unwrap();
        let file = fs::File::create(directory.path().join("file")).unwrap();
        for (name, value) in attributes {
            let attribute = format!("user.{name}");
            rustix::fs::fsetxattr(&file, attribute, value, XattrFlags::empty()).unwrap();
            fs::write(directory.path().join("a/meta").join(name), value).unwrap();
        }
        let top = fs::File::open(directory.path()).unwrap();
        let sidecar = Source::sidecar(&top, "a").unwrap().unwrap();
        [Source::File(file.as_fd()), sidecar].map(|source| Attributes::read(&source).unwrap())
    }

    #[test]
    fn reads_both_forms() {
        if crate::testing::fixture::skips_without_attributes("versitygw's attributes are") {
            return;
        }
        let md5 = "0123456789abcdef0123456789abcdef";
        let packed = gzip(r#"{"uploadId":"u","parts":[5,10,12]}"#);
        let found = read(&[
            ("etag", format!("\"{md5}-3\"").as_bytes()),
            ("checksums", br#"{"Algorithm":"CRC32","Type":"COMPOSITE","CRC32":"AAAAAA==-3","SHA1":null}"#),
            ("metadata", br#"{"Colour":"blue","bad name":"x","line":"a\nb","number":1}"#),
            ("X-Amz-Meta.old", b"one"),
            ("content-type", b"text/plain"),
            ("content-encoding", b"gz\nip"),
            ("mp-metadata", &packed),
        ]);
        for attributes in found.map(Option::unwrap) {
            assert_eq!(attributes.etag.to_string(), format!("{md5}-3"));
            assert_eq!(attributes.checksum.unwrap().to_string(), "AAAAAA==-3");
            let user = [("colour", "blue"), ("old", "one")].map(|(n, v)| (n.to_owned(), v.to_owned()));
            assert_eq!(attributes.metadata.user, user);
            assert_eq!(attributes.metadata.content_type.as_deref(), Some("text/plain"));
            assert_eq!(attributes.metadata.content_encoding, None);
            let sizes: Vec<_> =
                attributes.parts.as_ref().unwrap().iter().map(|part| part.size_bytes).collect();
            assert_eq!(sizes, [5, 5, 2]);
            assert!(attributes.is_possible(12) && !attributes.is_possible(13));
        }
    }

    #[test]
    fn what_is_damaged_is_left_out() {
        if crate::testing::fixture::skips_without_attributes("versitygw's attributes are") {
            return;
        }
        assert_eq!(read(&[("content-type", b"text/plain")]), [None, None]);
        let [found, _] = read(&[
            ("etag", b"\"x\""),
            ("checksums", b"{"),
            ("metadata", b"[]"),
            ("mp-metadata", br#"{"parts":[5,3]}"#),
        ]);
        let (metadata, etag) = (ObjectMetadata::default(), ETag::Opaque("x".into()));
        let tags = Some(Tags::default());
        assert_eq!(found, Some(Attributes { etag, checksum: None, metadata, parts: None, tags }));
        assert_eq!(parts(br#"{"parts":[5]}"#).map(|parts| parts.len()), Some(1));
        assert_eq!(parts(&gzip(&format!("{{\"x\":\"{}\"}}", " ".repeat(8 << 20)))), None);
    }
}
