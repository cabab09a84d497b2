//! Checks for data of MinIO in a directory that is to be served.

use std::path::Path;

use serde::Deserialize;

use crate::state_dir;

/// MinIO's own directory, and the file in it that says how objects are stored.
const OWN: &str = ".minio.sys";
const FORMAT: &str = "format.json";
/// The format whose objects are plain files.
const PLAIN_FILES: &str = "fs";

#[derive(Deserialize)]
struct FormatFile {
    format: String,
}

/// Refuses a directory in which MinIO stores objects in other forms than plain files: they would be
/// served as directories full of MinIO's own files. Warns of a directory with plain files, whose
/// metadata is not used until it is imported.
pub fn check(dir: &Path) -> Result<(), String> {
    let text = match state_dir::read_below(dir, OWN, FORMAT) {
        Ok(None) => return Ok(()),
        Ok(Some(text)) => text,
        Err(error) => {
            tracing::warn!(?dir, %error, "{OWN}/{FORMAT} can't be read: whether MinIO's objects there are plain files is not known");
            return Ok(());
        }
    };
    match serde_json::from_str::<FormatFile>(&text) {
        Ok(FormatFile { format }) if format == PLAIN_FILES => {
            tracing::warn!(
                ?dir,
                "MinIO served it: what MinIO noted of its objects (ETags, content types, metadata) counts once `slipway \
                 import minio-fs` has taken it over; to end this warning then, move {OWN} elsewhere"
            );
            Ok(())
        }
        Ok(FormatFile { format }) => Err(format!(
            "{}: of MinIO's format {format:?}, not {PLAIN_FILES:?}: its objects are no plain files. Copy them by way of \
             S3, from a MinIO that still runs, to another directory",
            dir.display()
        )),
        Err(_) => {
            tracing::warn!(
                ?dir,
                "{OWN}/{FORMAT} is not as MinIO writes it: whether MinIO's objects there are plain files is not known"
            );
            Ok(())
        }
    }
}
