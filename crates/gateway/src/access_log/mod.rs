//! The access log: a line for each finished request (decision 0021).

mod json;
mod s3;

use std::fs::File;
use std::time::Duration;

use s3_types::Timestamp;

use crate::choices::AccessLogFormat;
use crate::limits::ACCESS_LOG_LINE_BYTES;
use crate::line::{Ended, Line};
use crate::line_log::{Counts, LineLog};

/// The line of a request that was answered, without the fields that are known only at its end.
#[derive(Debug)]
pub struct BegunLine {
    time: Timestamp,
    text: Vec<u8>,
    /// The position in the text at which the fields are inserted that are known only at the end.
    rest_at: usize,
}

/// An open access log.
#[derive(Debug)]
pub struct AccessLog {
    format: AccessLogFormat,
    lines: LineLog,
}

impl AccessLog {
    /// Starts writing lines in this format to the file.
    pub fn start(file: File, format: AccessLogFormat) -> Result<Self, String> {
        Ok(Self { format, lines: LineLog::start(file, "access log", false)? })
    }

    /// Begins the line of a request.
    pub fn begin(&self, line: &Line<'_>) -> BegunLine {
        let mut text = Vec::with_capacity(ACCESS_LOG_LINE_BYTES);
        let rest_at = match self.format {
            AccessLogFormat::Json => {
                json::begin(&mut text, line);
                text.len()
            }
            AccessLogFormat::S3 => s3::begin(&mut text, line),
        };
        BegunLine { time: line.time, text, rest_at }
    }

    /// Adds the line of a request that has ended.
    pub fn end(&self, line: &BegunLine, ended: &Ended) {
        self.lines.add(|buffer| match self.format {
            AccessLogFormat::Json => json::end(buffer, line.time, &line.text, ended),
            AccessLogFormat::S3 => s3::end(&mut buffer.bytes, &line.text, line.rest_at, ended),
        });
    }

    /// Continues with another file, or with a new one of the same name.
    pub fn replace(&self, file: File) {
        self.lines.replace(file);
    }

    /// The numbers of lines so far.
    pub fn counts(&self) -> &Counts {
        self.lines.counts()
    }

    /// Writes the remaining lines, and waits for that up to `limit`; false if it took longer.
    pub fn finish(&self, limit: Duration) -> bool {
        self.lines.finish(limit)
    }
}
