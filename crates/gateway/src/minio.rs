//! Checks a directory that is to be served for data of MinIO.

use std::path::Path;

use serde::Deserialize;

use crate::state_dir;

/// MinIO's own directory.
const OWN: &str = ".minio.sys";
/// The file in [`OWN`] that says how objects are stored.
const FORMAT: &str = "format.json";
/// The format in which objects are plain files.
const PLAIN_FILES: &str = "fs";

#[derive(Deserialize)]
struct FormatFile {
    format: String,
}

/// Refuses a directory in which MinIO stores objects in other forms than plain files: they would be
/// served as directories full of MinIO's own files. Warns about a directory in which they are plain
/// files: their metadata is not used until it is imported.
pub fn check(dir: &Path) -> Result<(), String> {
    let text = match state_dir::read_below(dir, OWN, FORMAT) {
        Ok(None) => return Ok(()),
        Ok(Some(text)) => text,
        Err(error) => {
            tracing::warn!(?dir, %error, "{OWN}/{FORMAT} cannot be read: it is unknown whether the objects that \
                MinIO stored in this directory are plain files; if they are not, slipway cannot serve them");
            return Ok(());
        }
    };
    match serde_json::from_str::<FormatFile>(&text) {
        Ok(FormatFile { format }) if format == PLAIN_FILES => {
            tracing::warn!(
                ?dir,
                "MinIO served this directory before: what it stored about objects (ETags, content types, metadata) \
                 is ignored until you run `slipway import minio-fs`; afterwards, move {OWN} elsewhere to end this \
                 warning"
            );
            Ok(())
        }
        Ok(FormatFile { format }) => Err(format!(
            "{}: MinIO stored the objects here in its format {format:?}, not {PLAIN_FILES:?}, so that they are not \
             plain files. Copy them through S3, from a running MinIO, to another directory",
            dir.display()
        )),
        Err(_) => {
            tracing::warn!(
                ?dir,
                "{OWN}/{FORMAT} is not in the form that MinIO writes: it is unknown whether the objects that MinIO \
                 stored in this directory are plain files; if they are not, slipway cannot serve them"
            );
            Ok(())
        }
    }
}
