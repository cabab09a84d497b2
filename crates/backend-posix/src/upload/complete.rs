//! Completes uploads (CompleteMultipartUpload).

use backend::{BackendError, CompleteUpload, ObjectPart, Result, WriteReceipt};
use kernel_calls::acting::is_acting;
use s3_types::limits::{OBJECT_BYTES_MAX, PART_BYTES_MIN};
use s3_types::{
    Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, Checksummer, CompletedPart, Digests, ETag,
};

use super::gather::{Gathered, gather};
use super::in_progress::{Upload, UploadName, is_own};
use super::part::Part;
use super::{allowed, journal, receipt};
use crate::error::{Fail, Op, retrying_times};
use crate::fs::{file_info, files};
use crate::layout::uploads::{WHOLE, WHOLE_NAME, part_name};
use crate::limits::{COPY_ATTEMPTS, PART_TRIES, PART_TRIES_STEP};
use crate::object::{check_access, check_early};
use crate::record::{ObjectContent, ObjectRecord, Unknown, UploadRecord, Version};
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;
use crate::write::publish::Target;
use crate::write::staging::Staged;

/// The arguments of a completion: a [`CompleteUpload`], with its upload and target.
pub(crate) struct Complete {
    pub upload: UploadName,
    pub target: Target,
    pub request: CompleteUpload,
    /// The algorithm of the checksum, for uploads that chose none.
    pub default: ChecksumAlgorithm,
}

/// Makes the object from its parts. If it is repeated with the same parts, it returns the same
/// receipt.
pub(crate) fn complete(store: &Store, complete: &Complete) -> Result<WriteReceipt> {
    let name = &complete.upload;
    allowed::check(store, &name.bucket, &name.place)?;
    retrying_times(COPY_ATTEMPTS, || {
        let bucket = store.bucket(&name.bucket)?;
        check_access(store, &complete.target)?;
        let upload = match Upload::open(&bucket, name) {
            Err(BackendError::NoSuchUpload) => {
                return Ok(repeated(&complete.request, earlier_receipt(&bucket, name)?)?);
            }
            result => result?,
        };
        let given = complete.request.check(upload.record.checksum, complete.default)?;
        // Whoever comes second finds the first one's receipt.
        let _lock = upload.lock(&bucket)?;
        let receipt = match journal::finish_interrupted(&bucket, &upload, name)? {
            Some(receipt) => {
                journal::end(&bucket, &upload, name, &receipt);
                return Ok(repeated(&complete.request, receipt)?);
            }
            None => publish(store, complete, &bucket, &upload, given.as_ref())?,
        };
        journal::end(&bucket, &upload, name, &receipt);
        Ok(receipt)
    })
}

/// Returns the receipt of an earlier completion, if the request may be a repetition of it.
/// Otherwise fails: the request names other parts or another size than the object has, and the
/// upload no longer exists to make an object from it.
fn repeated(request: &CompleteUpload, receipt: WriteReceipt) -> Result<WriteReceipt> {
    let same_parts = multipart_etag(request.parts.iter().map(|part| &part.etag)) == receipt.etag;
    let same_size = request.size_bytes.is_none_or(|given| given == receipt.size_bytes);
    let in_order = request.parts.is_sorted_by(|a, b| a.part_number < b.part_number);
    if same_parts && same_size && in_order { Ok(receipt) } else { Err(BackendError::NoSuchUpload) }
}

/// Returns the receipt of the upload, if it was completed before.
fn earlier_receipt(bucket: &Bucket<'_>, name: &UploadName) -> Result<WriteReceipt> {
    let record = receipt::receipt(bucket, name.id.as_str())?
        .filter(|record| record.key.as_deref() == Some(&name.place.key));
    if record.as_ref().is_some_and(|record| !is_own(record.user)) {
        return Err(BackendError::UploadOfAnother);
    }
    match record.and_then(receipt::answer) {
        Some(receipt) => Ok(receipt),
        None => journal::published(bucket.store, name)?.ok_or(BackendError::NoSuchUpload),
    }
}

/// Makes the object. `given` is the checksum that the client sent.
fn publish(
    store: &Store,
    complete: &Complete,
    bucket: &Bucket<'_>,
    upload: &Upload,
    given: Option<&Checksum>,
) -> Result<WriteReceipt, Fail> {
    let request = &complete.request;
    let (predecessor, lock) = (upload.record.predecessor.clone(), upload.record.lock);
    let target = &Target { predecessor, lock, ..complete.target.clone() };
    let parts = check_parts(store, upload, &request.parts)?;
    let size_bytes = total(&parts)?;
    if let Some(given_bytes) = request.size_bytes.filter(|given| *given != size_bytes) {
        return Err(BackendError::WrongSize { given_bytes, actual_bytes: size_bytes }.into());
    }
    let chosen = upload.record.checksum;
    let (algorithm, checksum_type) = chosen.unwrap_or((complete.default, ChecksumType::FullObject));
    let mut checksum = match checksum_type {
        ChecksumType::Composite => Some(composite(algorithm, &parts)?),
        ChecksumType::FullObject => combined(algorithm, &parts),
    };
    // Before anything is moved where possible, since that may take long.
    check_whole(given, checksum.as_ref())?;
    check_early(store, target)?;
    let Gathered { stage, sealed: held } = gather(store, target, upload, &parts, size_bytes)?;
    if checksum.is_none() {
        checksum = Some(Checksum::full_object(read_checksum(&stage.staged, algorithm)?));
        check_whole(given, checksum.as_ref())?;
    }
    let etag = multipart_etag(parts.iter().map(|part| &part.etag));
    let digests = Digests { etag: etag.clone(), checksum };
    let made = target.new_version()?.map(|version| version.given(upload.record.version_id));
    let record = object_record(complete, upload, &parts, digests, made);
    let version = made.and_then(Version::text);
    let mut sealed = stage.staged.seal(&stage.bucket, target.owner, record)?;
    let last_modified = file_info::timestamp(sealed.stamp.modified_ns);
    let receipt = WriteReceipt { etag, checksum, last_modified, size_bytes, version };
    let file = match &held {
        Some(layout) => Some(layout.assembly),
        // A user gives names in its own directories alone. Then the object tells by its record that
        // it was published.
        None if is_acting() => None,
        // From here on, that it is gone tells that it is the object.
        None => sealed.keep_as(&upload.directory.fd, WHOLE_NAME).attempt("name a file")?.then_some(WHOLE),
    };
    let published = journal::begin(bucket, upload, &complete.upload, &receipt, file)
        .and_then(|()| Ok(target.publish(stage.bucket, stage.directory, sealed)?));
    if let Err(fail) = published {
        // Unless the object is there after all, and only its name may not be on disk.
        if let Err(error) = journal::finish_interrupted(bucket, upload, &complete.upload) {
            tracing::warn!(
                ?error,
                "the completion of an upload failed, and its temporary files could not be removed: the next \
                 completion of the upload or a sweep removes them"
            );
        }
        return Err(fail);
    }
    Ok(receipt)
}

/// Makes the record of the object from that of the upload.
fn object_record(
    complete: &Complete,
    upload: &Upload,
    parts: &[Part],
    digests: Digests,
    version: Option<Version>,
) -> ObjectRecord {
    // What is not understood goes with the upload.
    let UploadRecord {
        key: _,
        time_ns: _,
        checksum: _,
        metadata,
        predecessor: _,
        initiator: _,
        user: _,
        version_id: _,
        attached,
        lock: _,
        unknown: _,
    } = &upload.record;
    let Digests { etag, checksum } = digests;
    ObjectRecord {
        content: ObjectContent {
            stamp: None,
            etag: Some(etag),
            checksum,
            metadata: metadata.clone(),
            parts: Some(parts.iter().map(to_object_part).collect()),
            unknown: Unknown::none(),
        },
        attached: attached.completed(),
        version,
        upload_id: Some(complete.upload.id.as_str().to_owned()),
        overflow: None,
    }
}

fn to_object_part(part: &Part) -> ObjectPart {
    ObjectPart { part_number: part.number, size_bytes: part.size_bytes, checksum: part.checksum }
}

fn check_parts(store: &Store, upload: &Upload, wanted: &[CompletedPart]) -> Result<Vec<Part>> {
    if !wanted.is_sorted_by(|a, b| a.part_number < b.part_number) {
        return Err(BackendError::InvalidPartOrder);
    }
    if wanted.is_empty() {
        return Err(BackendError::InvalidPart { part_number: 1, etag: String::new() });
    }
    let parts = wanted.iter().map(|part| check_part(store, upload, part)).collect::<Result<Vec<_>>>()?;
    for part in &parts[..parts.len() - 1] {
        let size_bytes = part.size_bytes;
        if size_bytes < PART_BYTES_MIN {
            let etag = part.etag.to_string();
            return Err(BackendError::PartTooSmall { part_number: part.number, size_bytes, etag });
        }
    }
    Ok(parts)
}

fn check_part(store: &Store, upload: &Upload, wanted: &CompletedPart) -> Result<Part> {
    let number = wanted.part_number;
    let invalid = || BackendError::InvalidPart { part_number: number, etag: wanted.etag.to_string() };
    let right = |part: &Part| {
        part.etag == wanted.etag && (wanted.checksum.is_none() || wanted.checksum == part.checksum)
    };
    let mut tries = 1;
    loop {
        let part = Part::read(store, &upload.directory, number).op("read a part")?;
        if let Some(part) = part.filter(right) {
            return Ok(part);
        }
        // Of a part that another machine has just replaced, the old one, or some of it, may still
        // be cached here.
        if tries == PART_TRIES || store.times_are_final(file_info::stat(&upload.directory)?.device) {
            return Err(invalid());
        }
        tries += 1;
        std::thread::sleep(PART_TRIES_STEP);
        let _ = file_info::fresh_at(&upload.directory, &part_name(number));
    }
}

fn total(parts: &[Part]) -> Result<u64> {
    let total = parts.iter().try_fold(0u64, |sum, part| sum.checked_add(part.size_bytes));
    total.filter(|total| *total <= OBJECT_BYTES_MAX).ok_or(BackendError::TooLarge)
}

/// Computes the MD5 of the parts' MD5s.
fn multipart_etag<'a>(etags: impl Iterator<Item = &'a ETag>) -> ETag {
    let mut md5 = Checksummer::new(ChecksumAlgorithm::Md5);
    let mut parts = 0u32;
    for etag in etags {
        parts = parts.saturating_add(1);
        match etag {
            ETag::Md5(value) | ETag::Multipart { md5: value, .. } => md5.update(value),
            ETag::Opaque(text) => md5.update(text.as_bytes()),
        }
    }
    let mut value = [0; 16];
    value.copy_from_slice(md5.finish().as_bytes());
    ETag::Multipart { md5: value, parts }
}

fn count(parts: &[Part]) -> u32 {
    u32::try_from(parts.len()).unwrap_or(u32::MAX)
}

fn composite(algorithm: ChecksumAlgorithm, parts: &[Part]) -> Result<Checksum> {
    let mut whole = Checksummer::new(algorithm);
    for part in parts {
        let value = part.checksum.filter(|checksum| checksum.algorithm() == algorithm);
        let value = value.ok_or_else(|| part.invalid())?;
        whole.update(value.as_bytes());
    }
    Ok(Checksum::composite(whole.finish(), count(parts)))
}

/// Computes the CRC of the whole from those of the parts; `None` if it must be computed from the
/// bytes.
fn combined(algorithm: ChecksumAlgorithm, parts: &[Part]) -> Option<Checksum> {
    let (first, rest) = parts.split_first()?;
    let first = first.checksum.filter(|checksum| checksum.algorithm() == algorithm)?;
    let whole = rest
        .iter()
        .try_fold(first, |sum, part| Checksummer::combine(sum, part.checksum?, part.size_bytes))?;
    Some(Checksum::full_object(whole))
}

fn read_checksum(staged: &Staged, algorithm: ChecksumAlgorithm) -> Result<ChecksumValue> {
    let mut checksum = Checksummer::new(algorithm);
    files::read_through(staged.file(), staged.size_bytes(), |piece| checksum.update(piece))
        .op("read a staging file")?;
    Ok(checksum.finish())
}

fn check_whole(given: Option<&Checksum>, checksum: Option<&Checksum>) -> Result<()> {
    let Some((given, checksum)) = given.zip(checksum) else { return Ok(()) };
    let is_same = given.value == checksum.value
        && given.checksum_type == checksum.checksum_type
        // Clients may leave out how many parts there are.
        && (given.parts.is_none() || given.parts == checksum.parts);
    if is_same { Ok(()) } else { Err(BackendError::WrongChecksum { algorithm: checksum.value.algorithm() }) }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use backend::{NewUpload, Versioning};
    use rustix::io::Errno;
    use s3_types::BucketName;

    use super::super::create;
    use super::*;
    use crate::base::step::at_each_step;
    use crate::facts::chain::Chain;
    use crate::layout::keymap::KeyPath;
    use crate::testing::{Scene, digests};
    use crate::write::publish::Rules;

    /// An object that was replaced by one with the same bytes is another object, also on a device
    /// of its own, where the file system is asked whether inode numbers last.
    #[test]
    fn a_twin_that_took_the_key_since_is_another_object() {
        for elsewhere in [false, true] {
            let mut scene = Scene::new();
            if !scene.store.volume.inodes_last {
                return eprintln!(
                    "\n*** SKIPPED: inode numbers do not last here, so equal objects are NOT tested ***\n"
                );
            }
            if elsewhere {
                scene.store.assume_elsewhere();
            }
            for key in ["part", "a", "twin"] {
                scene.put(key, b"1").unwrap();
            }
            let id = create(&scene.store, &scene.name, "a", &NewUpload::default()).unwrap();
            scene.move_file("part", &format!(".slipway/uploads/{id}/00001"));
            let time = fs::metadata(scene.path().join("a")).unwrap().modified().unwrap();
            let twin = File::options().write(true).open(scene.path().join("twin")).unwrap();
            twin.set_modified(time).unwrap();
            // As its record says: of another time, it is a foreign file.
            let mut record = crate::testing::record_of(b"1");
            record.content.stamp = Some(file_info::of(&twin).unwrap().stamp);
            let directory = scene.bucket().directory("").unwrap();
            crate::records::put(&scene.bucket(), &directory, "twin", &twin, &record).unwrap();
            scene.move_file("twin", "a");
            let parts = vec![CompletedPart { part_number: 1, etag: digests(b"1").etag, checksum: None }];
            let request = CompleteUpload { parts, ..CompleteUpload::default() };
            let if_match = Some(s3_types::ETagCondition::OneOf(vec![digests(b"1").etag]));
            let target = Target {
                conditions: s3_types::Conditions { if_match, ..Default::default() },
                ..scene.target("a")
            };
            let upload = UploadName { bucket: scene.name.clone(), place: KeyPath::of("a"), id };
            let default = ChecksumAlgorithm::Crc64Nvme;
            let completed = complete(&scene.store, &Complete { upload, target, request, default });
            assert!(matches!(completed, Err(BackendError::ChangedSinceCreation(_))), "{completed:?}");
        }
    }

    #[derive(Debug)]
    struct KeepsVersions;

    impl Rules for KeepsVersions {
        fn versioning(&self, _: &BucketName) -> Result<Versioning> {
            Ok(Versioning::Enabled)
        }

        fn object_lock(&self, _: &BucketName) -> Result<Option<backend::LockRules>> {
            Ok(None)
        }
    }

    /// A completion that has not replaced the present version yet can be repeated; one that has can
    /// be, too, and is not made twice, though another version has followed it.
    #[test]
    fn a_completion_over_a_version_ends_anywhere() {
        const NAMED: &str = "a new version has the name of the old one";
        const EXCHANGED: &str = "the versions are exchanged";
        for (at, crashes, follows) in
            [(NAMED, true, false), (NAMED, false, false), (EXCHANGED, true, false), (EXCHANGED, true, true)]
        {
            let scene = Scene::new();
            if scene.has_sidecars() || !scene.store.volume.exchange.is_yes() {
                return eprintln!("\n*** SKIPPED: versions cannot be kept here, and are NOT tested ***\n");
            }
            let id = create(&scene.store, &scene.name, "a", &NewUpload::default()).unwrap();
            scene.put("part", b"1").unwrap();
            scene.move_file("part", &format!(".slipway/uploads/{id}/00001"));
            scene.put("a", b"before").unwrap();
            let upload = UploadName { bucket: scene.name.clone(), place: KeyPath::of("a"), id };
            let again = || {
                let parts = vec![CompletedPart { part_number: 1, etag: digests(b"1").etag, checksum: None }];
                let request = CompleteUpload { parts, ..CompleteUpload::default() };
                let target = Target { rules: Some(Arc::new(KeepsVersions)), ..scene.target("a") };
                let default = ChecksumAlgorithm::Crc64Nvme;
                complete(&scene.store, &Complete { upload: upload.clone(), target, request, default })
            };
            let hook = move |step| match step == at {
                true if crashes => panic!("a crash"),
                true => Err(Errno::IO),
                false => Ok(()),
            };
            let ended = catch_unwind(AssertUnwindSafe(|| at_each_step(hook, again)));
            let what = format!("{at:?} {crashes} {follows}");
            assert!(matches!((ended, crashes), (Err(_), true) | (Ok(Err(_)), false)), "{what}");
            let mut expected = if at == NAMED { b"before".to_vec() } else { b"1".to_vec() };
            assert_eq!(scene.get("a").unwrap(), expected, "{what}");
            if follows {
                expected = b"after".to_vec();
                put_version(&scene, "a", &expected);
            }
            for _ in 0..2 {
                again().unwrap();
                expected = if follows { expected } else { b"1".to_vec() };
                assert_eq!(scene.get("a").unwrap(), expected, "{what}");
            }
            let bucket = scene.bucket();
            let chain = Chain::open(&bucket, &KeyPath::of("a")).unwrap().unwrap();
            let olds = chain.olds().unwrap().into_iter();
            let olds = olds.filter(|old| chain.record(&bucket, old.entry()).unwrap().is_some());
            assert_eq!(olds.count(), if follows { 2 } else { 1 }, "{what}");
            assert!(!scene.path().join(format!(".slipway/uploads/{}", upload.id)).exists(), "{what}");
        }
    }

    fn put_version(scene: &Scene, key: &str, body: &[u8]) {
        let target = Target { rules: Some(Arc::new(KeepsVersions)), ..scene.target(key) };
        let mut stage = target.stage(&scene.store).unwrap();
        stage.staged.append(&[bytes::Bytes::copy_from_slice(body)]).unwrap();
        let mut record = crate::testing::record_of(body);
        record.version = target.new_version().unwrap();
        let sealed = stage.staged.seal(&stage.bucket, None, record).unwrap();
        target.publish(scene.bucket(), None, sealed).unwrap();
    }

    /// A file system that machines share may show an outdated part, which another gateway has just
    /// replaced.
    #[test]
    fn a_part_is_read_again_where_machines_share_the_file_system() {
        let mut scene = Scene::new();
        scene.store.assume_shared();
        let id = create(&scene.store, &scene.name, "a", &NewUpload::default()).unwrap();
        scene.put("part", b"1").unwrap();
        let part = format!(".slipway/uploads/{id}/00001");
        scene.move_file("part", &part);
        let part = scene.path().join(part);
        let upload = UploadName { bucket: scene.name.clone(), place: KeyPath::of("a"), id };
        let complete = |etag| {
            let parts = vec![CompletedPart { part_number: 1, etag, checksum: None }];
            let request = CompleteUpload { parts, ..CompleteUpload::default() };
            let (target, default) = (scene.target("a"), ChecksumAlgorithm::Crc64Nvme);
            complete(&scene.store, &Complete { upload: upload.clone(), target, request, default })
        };
        let wrong = complete(digests(b"2").etag);
        assert!(matches!(wrong, Err(BackendError::InvalidPart { part_number: 1, .. })), "{wrong:?}");
        let file = File::options().write(true).open(&part).unwrap();
        let time = file.metadata().unwrap().modified().unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(30));
                file.set_modified(time).unwrap();
            });
            complete(digests(b"1").etag).unwrap();
        });
        assert_eq!(scene.get("a").unwrap(), b"1");
    }
}
