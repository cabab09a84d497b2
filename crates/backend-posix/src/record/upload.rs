//! The records of a whole upload: its creation and its completion.

use backend::Initiator;
use s3_types::{
    Checksum, ChecksumAlgorithm, ChecksumType, ETag, ObjectLock, ObjectMetadata, Retention, RetentionMode,
    Timestamp,
};

use super::attached::{Attached, half_of};
use super::input::{Input, varint};
use super::kind::{Field, Kind, Taken, Unknown};
use super::predecessor::{ObjectIdentity, Predecessor};
use super::tag;
use super::values::{
    field, fits, get_etag, get_metadata, put_bytes, put_checksum, put_etag, put_metadata, take_checksum, text,
};

/// The request of the client that created an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UploadRecord {
    /// The object's key.
    pub key: Option<String>,
    /// The time at which the upload was created, in ns.
    pub time_ns: Option<i64>,
    /// The algorithm and the type of the upload's checksum, if they were chosen.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumType)>,
    /// The metadata that the client sent.
    pub metadata: ObjectMetadata,
    /// The object that the key had at that time, if it could be read.
    pub predecessor: Option<Predecessor>,
    /// The requester who created the upload; `None` for the root of the tree's account.
    pub initiator: Option<Box<Initiator>>,
    /// The user id of the upload's owner on the file system: see [`CompletionRecord::user`].
    pub user: Option<u32>,
    /// The id that the object's version will have, if the bucket kept versions by then.
    pub version_id: Option<u64>,
    /// The fields that the object will have attached.
    pub attached: Attached,
    /// The lock that the object will have.
    pub lock: ObjectLock,
    pub unknown: Unknown,
}

impl Kind for UploadRecord {
    fn blank() -> Self {
        Self {
            key: None,
            time_ns: None,
            checksum: None,
            metadata: ObjectMetadata::default(),
            predecessor: None,
            initiator: None,
            user: None,
            version_id: None,
            attached: Attached::none(),
            lock: ObjectLock::default(),
            unknown: Unknown::none(),
        }
    }

    fn take(&mut self, tag: u8, bytes: &[u8]) -> Option<Taken> {
        let mut value = Input(bytes);
        match tag {
            tag::CONTENT_TYPE_COMMON..=tag::USER_METADATA => get_metadata(&mut self.metadata, tag, bytes)?,
            tag::TIME => self.time_ns = Some(value.i64()?),
            tag::KEY => self.key = Some(text(bytes)?),
            tag::UPLOAD_CHECKSUM => {
                // Who completes the upload without it answers with another checksum.
                let Some(algorithm) = ChecksumAlgorithm::from_u8(value.byte()?) else {
                    return Some(Taken::Closing);
                };
                let composite = value.byte()? != 0;
                let checksum_type =
                    if composite { ChecksumType::Composite } else { ChecksumType::FullObject };
                self.checksum = Some((algorithm, checksum_type));
            }
            tag::PREDECESSOR => self.predecessor = Some(get_predecessor(bytes)?),
            tag::INITIATOR => {
                let id = text(value.bytes()?)?.into();
                self.initiator = Some(Box::new(Initiator { id, name: text(value.0)?.into() }));
            }
            tag::USER => self.user = Some(get_user(bytes)?),
            tag::VERSION_ID => self.version_id = Some(get_version_id(bytes)?),
            tag::LOCK => self.lock = get_lock(bytes)?,
            _ => return self.attached.take_field(tag, bytes),
        }
        Some(Taken::Yes)
    }

    fn put(&self, out: &mut Vec<u8>) {
        let Self {
            key,
            time_ns,
            checksum,
            metadata,
            predecessor,
            initiator,
            user,
            version_id,
            attached,
            lock,
            unknown: _,
        } = self;
        put_metadata(out, metadata);
        if let Some(time_ns) = time_ns {
            field(out, tag::TIME, &time_ns.to_le_bytes());
        }
        if let Some(key) = key {
            field(out, tag::KEY, key.as_bytes());
        }
        if let Some((algorithm, checksum_type)) = checksum {
            let composite = *checksum_type == ChecksumType::Composite;
            field(out, tag::UPLOAD_CHECKSUM, &[*algorithm as u8, u8::from(composite)]);
        }
        if let Some(predecessor) = predecessor {
            field(out, tag::PREDECESSOR, &pack_predecessor(predecessor));
        }
        if let Some(initiator) = initiator {
            let mut value = Vec::new();
            put_bytes(&mut value, initiator.id.as_bytes());
            value.extend(initiator.name.as_bytes());
            field(out, tag::INITIATOR, &value);
        }
        attached.put(out);
        put_user(out, *user);
        put_version_id(out, *version_id);
        if !lock.is_empty() {
            field(out, tag::LOCK, &pack_lock(lock));
        }
    }

    fn unknown(&self) -> impl Iterator<Item = &Field> {
        self.unknown.0.iter().chain(self.attached.unknown())
    }

    fn add_unknown(&mut self, tag: u8, value: &[u8]) {
        half_of(&mut self.unknown, &mut self.attached, tag).add(tag, value);
    }

    fn is_within_limits(&self) -> bool {
        fits(&self.metadata) && self.initiator.as_deref().is_none_or(Initiator::fits)
    }
}

fn pack_predecessor(predecessor: &Predecessor) -> Vec<u8> {
    let Predecessor::Object(identity) = predecessor else { return Vec::new() };
    let mut out = identity.modified_ns.to_le_bytes().to_vec();
    out.extend(varint(identity.size_bytes));
    out.push(u8::from(identity.inode.is_some()));
    out.extend(identity.inode.map(varint).unwrap_or_default());
    out.extend(identity.etag.iter().flat_map(|etag| etag.to_string().into_bytes()));
    out
}

fn get_predecessor(bytes: &[u8]) -> Option<Predecessor> {
    if bytes.is_empty() {
        return Some(Predecessor::Nothing);
    }
    let mut value = Input(bytes);
    let (modified_ns, size_bytes) = (value.i64()?, value.varint()?);
    let inode = match value.byte()? {
        0 => None,
        _ => Some(value.varint()?),
    };
    // Bare, a text that begins with `W/` would lose that: it is quoted, as in a header.
    let quoted = |text: String| ETag::parse(&format!("\"{text}\""));
    let etag = Some(text(value.0)?).filter(|text| !text.is_empty()).map(quoted);
    Some(Predecessor::Object(ObjectIdentity { modified_ns, size_bytes, inode, etag }))
}

/// Packs the lock of an upload's object: the mode (0 for no retention), the end in ms (8 bytes,
/// little-endian, signed), and the legal hold (0 if none was set).
fn pack_lock(lock: &ObjectLock) -> [u8; 10] {
    let ObjectLock { retention, legal_hold } = lock;
    let mode = match retention.map(|retention| retention.mode) {
        None => 0,
        Some(RetentionMode::Governance) => 1,
        Some(RetentionMode::Compliance) => 2,
    };
    let until_ms = retention.map_or(0, |retention| retention.until().as_millisecond());
    let mut out = [0; 10];
    out[0] = mode;
    out[1..9].copy_from_slice(&until_ms.to_le_bytes());
    out[9] = match legal_hold {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    };
    out
}

fn get_lock(bytes: &[u8]) -> Option<ObjectLock> {
    let [mode, until @ .., hold] = <[u8; 10]>::try_from(bytes).ok()?;
    let until = Timestamp::from_millisecond(i64::from_le_bytes(until)).ok()?;
    let retention = match mode {
        0 => None,
        1 => Some(Retention::new(RetentionMode::Governance, until)),
        2 => Some(Retention::new(RetentionMode::Compliance, until)),
        _ => return None,
    };
    let legal_hold = match hold {
        0 => None,
        1 => Some(false),
        2 => Some(true),
        _ => return None,
    };
    Some(ObjectLock { retention, legal_hold })
}

fn put_user(out: &mut Vec<u8>, user: Option<u32>) {
    if let Some(user) = user {
        field(out, tag::USER, &varint(u64::from(user)));
    }
}

fn put_version_id(out: &mut Vec<u8>, id: Option<u64>) {
    if let Some(id) = id {
        field(out, tag::VERSION_ID, &id.to_be_bytes());
    }
}

fn get_version_id(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

fn get_user(bytes: &[u8]) -> Option<u32> {
    u32::try_from(Input(bytes).varint()?).ok()
}

/// The answer of a Complete. It is the upload's journal before the object is published, and its
/// receipt afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletionRecord {
    /// The object's key.
    pub key: Option<String>,
    pub etag: Option<ETag>,
    pub checksum: Option<Checksum>,
    pub size_bytes: Option<u64>,
    /// The object's time, in ns.
    pub time_ns: Option<i64>,
    /// The number of the upload's file that becomes the object.
    pub assembly: Option<u8>,
    /// The user id with which the upload was begun, if that request's file calls were made as a
    /// user. Requests whose file calls are made as another user are refused.
    pub user: Option<u32>,
    /// The id of the object's version; `None` for the null version, and where none are kept.
    pub version_id: Option<u64>,
    pub unknown: Unknown,
}

impl Kind for CompletionRecord {
    fn blank() -> Self {
        Self {
            key: None,
            etag: None,
            checksum: None,
            size_bytes: None,
            time_ns: None,
            assembly: None,
            user: None,
            version_id: None,
            unknown: Unknown::none(),
        }
    }

    fn take(&mut self, tag: u8, value: &[u8]) -> Option<Taken> {
        match tag {
            tag::ETAG_MD5..=tag::ETAG_OPAQUE => self.etag = Some(get_etag(tag, value)?),
            tag::CHECKSUM | tag::CHECKSUM_COMPOSITE => return take_checksum(&mut self.checksum, tag, value),
            tag::TIME => self.time_ns = Some(Input(value).i64()?),
            tag::KEY => self.key = Some(text(value)?),
            tag::SIZE => self.size_bytes = Some(Input(value).varint()?),
            tag::ASSEMBLY => self.assembly = Some(Input(value).byte()?),
            tag::USER => self.user = Some(get_user(value)?),
            tag::VERSION_ID => self.version_id = Some(get_version_id(value)?),
            _ => return Some(Taken::No),
        }
        Some(Taken::Yes)
    }

    fn put(&self, out: &mut Vec<u8>) {
        let Self { key, etag, checksum, size_bytes, time_ns, assembly, user, version_id, unknown: _ } = self;
        put_etag(out, etag.as_ref());
        put_checksum(out, checksum.as_ref());
        if let Some(time_ns) = time_ns {
            field(out, tag::TIME, &time_ns.to_le_bytes());
        }
        if let Some(key) = key {
            field(out, tag::KEY, key.as_bytes());
        }
        if let Some(size_bytes) = size_bytes {
            field(out, tag::SIZE, &varint(*size_bytes));
        }
        if let Some(assembly) = assembly {
            field(out, tag::ASSEMBLY, &[*assembly]);
        }
        put_user(out, *user);
        put_version_id(out, *version_id);
    }

    fn unknown(&self) -> impl Iterator<Item = &Field> {
        self.unknown.0.iter()
    }

    fn add_unknown(&mut self, tag: u8, value: &[u8]) {
        self.unknown.add(tag, value);
    }
}
