use std::io::BufRead;

use super::malformed::malformed;
use super::reader::{Document, set_once};
use super::writer::Writer;
use crate::error::{ErrorCode, Result, S3Error};
use crate::limits::XML_BODY_BYTES_MAX;

const ROOT: &str = "VersioningConfiguration";

/// The state in which a client puts the versioning of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersioningStatus {
    /// Every write and delete keeps the version that was current.
    Enabled,
    /// Writes and deletes replace the null version, and keep all others.
    Suspended,
}

impl VersioningStatus {
    /// Reads the body of PutBucketVersioning. A status in other words or letters is `MalformedXML`,
    /// and a document without one is `IllegalVersioningConfigurationException`.
    ///
    /// MFA delete is `NotImplemented`: without a second factor, whoever enables it would take its
    /// versions for safer than they are. To disable it changes nothing.
    pub fn parse(body: &mut dyn BufRead) -> Result<Self> {
        let mut document = Document::open(body, ROOT, XML_BODY_BYTES_MAX)?;
        let (mut status, mut has_mfa_delete) = (None, None);
        while let Some(child) = document.child()? {
            match child {
                "Status" => set_once(&mut status, status_of(&document.text()?)?)?,
                "MfaDelete" => set_once(&mut has_mfa_delete, is_enabled(&document.text()?)?)?,
                _ => return Err(malformed()),
            }
        }
        let status = status.ok_or(ErrorCode::IllegalVersioningConfigurationException)?;
        if has_mfa_delete == Some(true) {
            let message = "MFA delete is not implemented.";
            return Err(S3Error::with_message(ErrorCode::NotImplemented, message));
        }
        Ok(status)
    }
}

fn status_of(text: &str) -> Result<VersioningStatus> {
    match text {
        "Enabled" => Ok(VersioningStatus::Enabled),
        "Suspended" => Ok(VersioningStatus::Suspended),
        _ => Err(malformed()),
    }
}

fn is_enabled(mfa_delete: &str) -> Result<bool> {
    match mfa_delete {
        "Enabled" => Ok(true),
        "Disabled" => Ok(false),
        _ => Err(malformed()),
    }
}

/// Writes the answer of GetBucketVersioning; `None` if versions were never kept.
pub fn versioning_configuration(status: Option<VersioningStatus>) -> String {
    let mut writer = Writer::document(ROOT, 32);
    let text = status.map(|status| match status {
        VersioningStatus::Enabled => "Enabled",
        VersioningStatus::Suspended => "Suspended",
    });
    writer.optional_text("Status", text);
    writer.finish()
}
