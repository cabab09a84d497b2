//! `slipway stat`.

use std::fmt::Write as _;
use std::process::ExitCode;

use backend::{ObjectAttributes, ObjectPart};
use backend_posix::FileStamp;
use backend_posix::tools::{
    Inspection, KeyVersion, Kind, Standing, StoredRecord, VolumeLack, VolumeReport, inspect, volume_of,
};
use clap::Args;
use s3_types::{ObjectMetadata, Tags, Timestamp};
use serde_json::{Map, Value, json};

use super::{Console, FOUND, OK, Places, one_line, shown};
use crate::state_dir::STATE_DIR;

/// Options of `slipway stat`.
#[derive(Debug, Clone, Args)]
pub struct StatOptions {
    /// The files and directories.
    #[command(flatten)]
    pub places: Places,

    /// Show for each directory what its file system can do, such as hard links and locks. What does
    /// not follow from the kind of the file system is tested in a new directory there, which is
    /// removed again
    #[arg(long = "try")]
    pub tries: bool,

    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Prints what S3 knows of files, and what their file systems can do.
pub fn run(options: &StatOptions) -> ExitCode {
    let (console, mut status) = (Console::new(), OK);
    for path in &options.places.paths {
        match inspect(path, options.places.tree.as_deref()) {
            Ok(found) => {
                for inspection in found {
                    let volume = volume_of(&inspection, options.tries).unwrap_or_else(|error| {
                        console.complain(&error);
                        status = FOUND;
                        None
                    });
                    let text = if options.json {
                        as_json(&inspection, volume.as_ref()).to_string()
                    } else {
                        as_text(&inspection, volume.as_ref())
                    };
                    console.say_lines(&text);
                }
            }
            Err(error) => {
                console.complain(&error);
                status = FOUND;
            }
        }
    }
    status.into()
}

/// Returns a few words about the path, such as whether it is an object, and the reason.
fn verdict(inspection: &Inspection) -> (&'static str, Option<String>) {
    let (what, why) = verdict_of_content(inspection);
    let Some(link) = &inspection.link else { return (what, why) };
    match link.refused {
        Some(refused) if link.path == inspection.path => {
            ("link", Some(format!("S3 does not follow it: {refused}")))
        }
        Some(refused) => {
            let way = shown(&link.path);
            (
                "no object",
                Some(format!("S3 does not follow {way}, a link to {}: {refused}", shown(&link.target))),
            )
        }
        None => {
            let ends = if link.leads_up {
                "; that directory contains the link itself, so listings do not enter it"
            } else {
                ""
            };
            let why = why.map_or_else(String::new, |why| format!(" ({why})"));
            ("link", Some(format!("S3 follows it to this {what}{why}{ends}")))
        }
    }
}

fn verdict_of_content(inspection: &Inspection) -> (&'static str, Option<String>) {
    let foreign = |why: &str| ("foreign file", Some(why.to_owned()));
    match inspection.standing {
        Standing::Recorded => ("object", None),
        Standing::NoRecord => foreign("it has no record: another program created it"),
        Standing::Unreadable { newer: true } => {
            let why = "its record was written by a newer version of Slipway: S3 lists the object, but refuses to \
                read or change it";
            ("unknown", Some(why.to_owned()))
        }
        Standing::Unreadable { newer: false } if inspection.kind == Kind::Directory => {
            ("directory", Some("its record is damaged".to_owned()))
        }
        Standing::Unreadable { newer: false } => foreign("its record is damaged"),
        Standing::Changed { size, modified } => {
            let what = match (size, modified) {
                (true, true) => "size and mtime differ",
                (true, false) => "its size differs",
                _ => "its mtime differs",
            };
            foreign(&format!("another program changed it after its record was written: {what}"))
        }
        Standing::NotAnObjects => foreign("its record tells nothing of its bytes"),
        Standing::Bucket => ("bucket", None),
        Standing::Directory { made: true } => (
            "directory",
            Some("a PUT created it: it is removed together with the last object in it".to_owned()),
        ),
        Standing::Directory { made: false } => ("directory", Some(why_it_stays(inspection).to_owned())),
        Standing::OldVersion => {
            let is_marker = inspection.version.as_ref().is_some_and(|version| version.size_bytes.is_none());
            (if is_marker { "delete marker" } else { "old version" }, None)
        }
        Standing::Deleted => ("deleted", Some("its key has no file, but versions".to_owned())),
        Standing::NotShown(why) => ("no object", Some(format!("S3 does not show it: {why}"))),
        Standing::LinkNotFollowed => ("no object", Some("S3 does not follow a link".to_owned())),
        Standing::InNoTree => {
            let why = "it is not in a directory that a gateway is known to have served (name that directory with \
                --tree)";
            ("no object", Some(why.to_owned()))
        }
        Standing::Other => {
            ("no object", Some("only regular files and directories can be objects".to_owned()))
        }
    }
}

/// Returns the reason why a directory that was not made by a PUT stays when its last object is
/// deleted.
fn why_it_stays(inspection: &Inspection) -> &'static str {
    // What is in a tree and in no bucket is its root.
    let Some((tree, bucket)) = &inspection.place else {
        return "the root of the tree: each directory in it is a bucket";
    };
    let own = tree.join(bucket.as_str()).join(STATE_DIR);
    if inspection.path.canonicalize().is_ok_and(|path| path.starts_with(own)) {
        "the server's own directory: it is never removed"
    } else {
        "no PUT created it: it stays when its last object is deleted"
    }
}

fn time(stamp: FileStamp) -> String {
    Timestamp::from_nanosecond(stamp.modified_ns)
        .map_or_else(|_| stamp.modified_ns.to_string(), |t| t.to_string())
}

/// Returns the S3 headers for the metadata, with their values.
fn headers(metadata: &ObjectMetadata) -> Vec<(String, &str)> {
    let standard = [
        ("content-type", &metadata.content_type),
        ("content-encoding", &metadata.content_encoding),
        ("content-language", &metadata.content_language),
        ("content-disposition", &metadata.content_disposition),
        ("cache-control", &metadata.cache_control),
        ("expires", &metadata.expires),
        ("x-amz-website-redirect-location", &metadata.website_redirect_location),
    ];
    let standard =
        standard.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.as_deref()?)));
    let user = metadata.user.iter().map(|(name, value)| (format!("x-amz-meta-{name}"), value.as_str()));
    standard.chain(user).collect()
}

fn as_text(inspection: &Inspection, volume: Option<&VolumeReport>) -> String {
    let mut text = shown(&inspection.path);
    let mut line = |name: &str, value: &str| {
        let _ = write!(text, "\n  {name:<14} {}", one_line(value));
    };
    let (what, why) = verdict(inspection);
    if inspection.versitygw {
        line("also", "it has attributes of versitygw, which `slipway import versitygw` can import");
    }
    line("is", &why.map_or_else(|| what.to_owned(), |why| format!("{what}; {why}")));
    if let Some(link) = inspection.link.as_ref().filter(|link| link.path == inspection.path) {
        line("leads to", &link.target.display().to_string());
    }
    if let Some((tree, bucket)) = &inspection.place {
        line("tree", &tree.display().to_string());
        line("bucket", bucket.as_str());
    }
    if let Some(key) = &inspection.key {
        line("key", key);
    }
    if inspection.kind == Kind::File {
        line("size", &inspection.stamp.size_bytes.to_string());
    }
    if inspection.kind != Kind::Other {
        line("mtime", &time(inspection.stamp));
    }
    if let Some(attributes) = &inspection.attributes {
        line("etag", &attributes.etag.to_string());
        if let Some(checksum) = &attributes.checksum {
            let (algorithm, kind) = (checksum.value.algorithm().name(), checksum.checksum_type.name());
            line("checksum", &format!("{algorithm} {checksum} ({kind})"));
        }
        for (name, value) in headers(&attributes.metadata) {
            line(&name, value);
        }
        if let Some(parts) = &attributes.parts {
            line("parts", &parts_text(parts));
        }
    }
    for (key, value) in inspection.tags.as_slice() {
        line("tag", &format!("{key}={value}"));
    }
    if let Some(id) = &inspection.upload_id {
        line("upload", id);
    }
    if let Some(version) = &inspection.version {
        line("version", &version.id);
    }
    for version in &inspection.versions {
        line("older", &version_text(version));
    }
    match &inspection.record {
        Some(record) => line("record", &record_text(record, inspection)),
        None if inspection.kind != Kind::Other => line("record", "none"),
        None => {}
    }
    if let Some(volume) = volume {
        text.push_str(&volume_text(volume));
    }
    text
}

/// Describes an old version: its id, the time since which it was the current one, its size, its
/// tags.
fn version_text(version: &KeyVersion) -> String {
    let KeyVersion { id, order, size_bytes, tags, path: _ } = version;
    let since = order.and_then(|order| Timestamp::from_nanosecond(order.into()).ok());
    let mut text = format!("{id} {}", since.map_or_else(String::new, |since| since.to_string()));
    let _ = match size_bytes {
        Some(bytes) => write!(text, " {bytes} bytes"),
        None => write!(text, " delete marker"),
    };
    for (key, value) in tags.as_slice() {
        let _ = write!(text, " {key}={value}");
    }
    text
}

fn version_json(version: &KeyVersion) -> Value {
    let KeyVersion { id, order, size_bytes, tags, path } = version;
    let since = order.and_then(|order| Timestamp::from_nanosecond(order.into()).ok());
    json!({
        "version_id": id,
        "order": order,
        "since": since.map(|since| since.to_string()),
        "size_bytes": size_bytes,
        "delete_marker": size_bytes.is_none(),
        "tags": tags_json(tags),
        "path": path,
    })
}

/// Returns the abilities of a file system, one on each line.
fn volume_text(volume: &VolumeReport) -> String {
    let mut text = String::new();
    let driver = volume.driver.as_ref().map_or_else(String::new, |driver| format!(" ({})", one_line(driver)));
    let known = if volume.tried { "" } else { "; what it can do was not tried (--try)" };
    let _ = write!(text, "\n  file system    {}{driver}{known}", volume.kind);
    for (name, value) in &volume.facts {
        let _ = write!(text, "\n    {name:<23} {value}");
    }
    for lack in &volume.lacks {
        let what = if lack.is_refused { "required, missing" } else { "lacks" };
        let _ = write!(text, "\n  {what}: {}: {}", lack.name, lack.sentence);
    }
    text
}

/// Describes parts as runs of consecutive parts of the same size.
fn parts_text(parts: &[ObjectPart]) -> String {
    let runs = parts.chunk_by(|a, b| a.part_number + 1 == b.part_number && a.size_bytes == b.size_bytes);
    let runs = runs.map(|run| {
        let (first, last) = (run[0].part_number, run[run.len() - 1].part_number);
        let numbers = if first == last { first.to_string() } else { format!("{first}-{last}") };
        format!("{numbers}: {} bytes", run[0].size_bytes)
    });
    format!("{} ({})", parts.len(), runs.collect::<Vec<_>>().join(", "))
}

fn record_text(record: &StoredRecord, inspection: &Inspection) -> String {
    let place = if record.sidecar { "a file beside it" } else { "user.slipway" };
    let mut text = format!("{} bytes in {place}", record.bytes);
    match record.stamp {
        Some(stamp) if stamp == inspection.stamp => text.push_str("; it matches the file's size and mtime"),
        Some(stamp) => {
            let _ = write!(
                text,
                "; it was written for a file of {} bytes with mtime {}",
                stamp.size_bytes,
                time(stamp)
            );
        }
        None => {}
    }
    if let Some(companion) = &record.companion {
        let state = match companion.size_bytes {
            Some(bytes) if companion.matches => format!("{bytes} bytes"),
            Some(_) => "which belongs to another object".to_owned(),
            None if inspection.place.is_none() => {
                "which was not looked for, since the bucket is unknown".to_owned()
            }
            None => "missing".to_owned(),
        };
        let _ = write!(text, "; the rest in {}, {state}", companion.path);
    }
    text
}

fn as_json(inspection: &Inspection, volume: Option<&VolumeReport>) -> Value {
    let (what, why) = verdict(inspection);
    json!({
        "path": inspection.path.to_string_lossy(),
        "is": what,
        "why": why,
        "foreign": inspection.standing.is_foreign(),
        "tree": inspection.place.as_ref().map(|(tree, _)| tree.to_string_lossy()),
        "bucket": inspection.place.as_ref().map(|(_, bucket)| bucket.as_str()),
        "key": inspection.key,
        "stamp": (inspection.kind != Kind::Other).then(|| stamp_json(inspection.stamp)),
        "object": inspection.attributes.as_ref().map(object_json),
        "tags": tags_json(&inspection.tags),
        "version": inspection.version.as_ref().map(version_json),
        "older_versions": inspection.versions.iter().map(version_json).collect::<Vec<_>>(),
        "versitygw": inspection.versitygw,
        "volume": volume.map(volume_json),
        "upload_id": inspection.upload_id,
        "link": inspection.link.as_ref().map(|link| json!({
            "path": link.path.to_string_lossy(),
            "target": link.target.to_string_lossy(),
            "followed": link.refused.is_none(),
        })),
        "record": inspection.record.as_ref().map(|record| json!({
            "bytes": record.bytes,
            "sidecar": record.sidecar,
            "stamp": record.stamp.map(stamp_json),
            "stamp_matches": record.stamp.map(|stamp| stamp == inspection.stamp),
            "companion": record.companion.as_ref().map(|companion| json!({
                "path": companion.path, "size_bytes": companion.size_bytes, "matches": companion.matches,
            })),
        })),
    })
}

fn volume_json(volume: &VolumeReport) -> Value {
    let facts: Map<_, _> =
        volume.facts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let lack =
        |lack: &VolumeLack| json!({ "lack": lack.name, "refused": lack.is_refused, "says": lack.sentence });
    json!({
        "kind": volume.kind,
        "driver": volume.driver,
        "tried": volume.tried,
        "facts": facts,
        "lacks": volume.lacks.iter().map(lack).collect::<Vec<_>>(),
    })
}

fn stamp_json(stamp: FileStamp) -> Value {
    // Times beyond 2262 are no JSON numbers here; they are still shown as text.
    json!({
        "size_bytes": stamp.size_bytes,
        "modified": time(stamp),
        "modified_ns": i64::try_from(stamp.modified_ns).ok(),
    })
}

fn tags_json(tags: &Tags) -> Value {
    tags.as_slice().iter().map(|(key, value)| (key.to_string(), Value::from(&**value))).collect()
}

fn object_json(attributes: &ObjectAttributes) -> Value {
    let headers: Map<_, _> =
        headers(&attributes.metadata).into_iter().map(|(name, value)| (name, Value::from(value))).collect();
    let part = |part: &ObjectPart| {
        json!({
            "part_number": part.part_number,
            "size_bytes": part.size_bytes,
            "checksum": part.checksum.map(|checksum| checksum.to_string()),
        })
    };
    json!({
        "etag": attributes.etag.to_string(),
        "size_bytes": attributes.size_bytes,
        "last_modified": attributes.last_modified.to_string(),
        "checksum": attributes.checksum.map(|checksum| json!({
            "algorithm": checksum.value.algorithm().name(),
            "type": checksum.checksum_type.name(),
            "value": checksum.to_string(),
        })),
        "headers": headers,
        "parts": attributes.parts.as_ref().map(|parts| parts.iter().map(part).collect::<Vec<_>>()),
    })
}
