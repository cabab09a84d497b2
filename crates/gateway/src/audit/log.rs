use std::fs::File;
use std::time::Duration;

use s3_types::Timestamp;

use crate::line_log::{Counts, LineLog};

/// An open audit log.
#[derive(Debug)]
pub struct AuditLog(LineLog);

impl AuditLog {
    /// Starts writing lines to the file. If `required` is true, no request is served while lines
    /// cannot be written.
    pub fn start(file: File, required: bool) -> Result<Self, String> {
        LineLog::start(file, "audit log", required).map(Self)
    }

    /// True if the log is required, and cannot be written.
    pub fn stops_requests(&self) -> bool {
        self.0.is_stuck()
    }

    /// Adds a line with this time; `fields` are all other fields.
    pub(super) fn add(&self, time: Timestamp, fields: &[u8]) {
        self.0.add(|buffer| {
            let time = buffer.time(time);
            buffer.bytes.extend_from_slice(b"{\"time\":\"");
            buffer.bytes.extend_from_slice(time.as_bytes());
            buffer.bytes.push(b'"');
            buffer.bytes.extend_from_slice(fields);
            buffer.bytes.push(b'}');
        });
    }

    /// Continues in another file, or in a new file of the same name.
    pub fn replace(&self, file: File) {
        self.0.replace(file);
    }

    /// Returns the numbers of lines so far.
    pub fn counts(&self) -> &Counts {
        self.0.counts()
    }

    /// Writes the remaining lines, and waits at most `limit` for that. Returns false if it took
    /// longer.
    pub fn finish(&self, limit: Duration) -> bool {
        self.0.finish(limit)
    }
}
