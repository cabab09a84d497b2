//! The access log: a line for each finished request (decision 0021).

mod json;
mod s3;

use std::cell::Cell;
use std::fs::File;
use std::time::Duration;

use s3_types::Timestamp;

use crate::choices::AccessLogFormat;
use crate::limits::{ACCESS_LOG_LINE_BYTES, ACCESS_LOG_SPARE_BYTES_MAX};
use crate::line::{Ended, Line};
use crate::line_log::{Counts, LineLog};

/// The line of a request that was answered, without the fields that are known only at its end.
#[derive(Debug)]
pub struct BegunLine {
    time: Timestamp,
    text: Vec<u8>,
    /// The position in the text at which the remaining fields are inserted.
    rest_at: usize,
}

thread_local! {
    /// The memory of a line that has ended, for the next one.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
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
        let mut text = SPARE.try_with(Cell::take).unwrap_or_default();
        text.reserve(ACCESS_LOG_LINE_BYTES);
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
    pub fn end(&self, line: BegunLine, ended: &Ended<'_>) {
        self.lines.add(|buffer| match self.format {
            AccessLogFormat::Json => json::end(buffer, line.time, &line.text, ended),
            AccessLogFormat::S3 => s3::end(&mut buffer.bytes, &line.text, line.rest_at, ended),
        });
        let mut text = line.text;
        if text.capacity() <= ACCESS_LOG_SPARE_BYTES_MAX {
            text.clear();
            // A thread that ends keeps nothing.
            let _ = SPARE.try_with(|spare| spare.set(text));
        }
    }

    /// Continues with another file, or with a new one of the same name.
    pub fn replace(&self, file: File) {
        self.lines.replace(file);
    }

    /// Returns the numbers of lines that were written and lost so far.
    pub fn counts(&self) -> &Counts {
        self.lines.counts()
    }

    /// Writes the remaining lines, and waits at most `limit` for that. Returns false if it took
    /// longer.
    pub fn finish(&self, limit: Duration) -> bool {
        self.lines.finish(limit)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use http::Request;

    use super::*;
    use crate::line::tests::{ENDED, with_line_of};

    #[test]
    fn a_line_has_nothing_of_the_one_before_in_its_memory() {
        let mut file = tempfile::tempfile().unwrap();
        let log = AccessLog::start(file.try_clone().unwrap(), AccessLogFormat::Json).unwrap();
        let agents = ["a".repeat(ACCESS_LOG_SPARE_BYTES_MAX), "b".repeat(100), "c".to_owned()];
        for agent in &agents {
            let request = Request::builder().uri("/").header("user-agent", agent).body(()).unwrap();
            with_line_of(request, |line| log.end(log.begin(line), &ENDED));
            let capacity = SPARE.with(|spare| {
                let kept = spare.take();
                let capacity = kept.capacity();
                spare.set(kept);
                capacity
            });
            assert!(capacity <= ACCESS_LOG_SPARE_BYTES_MAX, "{capacity}");
        }
        assert!(log.finish(Duration::from_secs(10)));
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        let told: Vec<_> = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["user_agent"].clone())
            .collect();
        assert_eq!(told, agents.map(|agent| agent[..agent.len().min(1 << 10)].to_owned()));
    }
}
