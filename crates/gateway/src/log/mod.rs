//! The server's log: its lines, their format, and the writing to standard error.

mod output;

use std::fmt::Debug;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, reload};

use crate::choices::LogFormat;
use crate::text::visible;
use output::Output;

/// A handle with which the choice of lines to log is changed.
pub type LogFilter = reload::Handle<EnvFilter, Registry>;

/// A log that was started.
pub struct Log {
    output: Output,
    /// Changes the filter; `None` if another server in this process (in tests) owns the log.
    pub filter: Option<LogFilter>,
}

impl Log {
    /// Starts writing the lines that the filter lets through.
    pub fn start(filter: &str, format: LogFormat) -> Result<Self, String> {
        let output =
            Output::stderr().map_err(|error| format!("cannot write the log to standard error: {error}"))?;
        let (filter, handle) = reload::Layer::new(read_filter(filter)?);
        let writer = output.clone();
        let lines = tracing_subscriber::fmt::layer().fmt_fields(fields()).with_writer(move || writer.clone());
        let registry = tracing_subscriber::registry().with(filter);
        let started = match format {
            LogFormat::Text => registry.with(lines.with_ansi(io::stderr().is_terminal())).try_init(),
            LogFormat::Json => {
                let writer = output.clone();
                registry.with(lines.json().with_writer(move || VisibleLines(writer.clone()))).try_init()
            }
        };
        Ok(Self { output, filter: started.is_ok().then_some(handle) })
    }

    /// Waits up to `limit` until the remaining lines are written.
    pub fn finish(&self, limit: Duration) {
        // Whoever did not read the log would not read that it is lost.
        let _ = self.output.finish(limit);
    }
}

/// A writer that replaces, in lines of JSON, characters that control a terminal or change the
/// direction of writing. JSON itself requires escapes of only some control characters, and texts
/// may come from strangers.
struct VisibleLines<W>(W);

impl<W: io::Write> io::Write for VisibleLines<W> {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(lines);
        self.0.write_all(visible(&text, true).as_bytes())?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Parses the value of `--log`.
pub fn read_filter(text: &str) -> Result<EnvFilter, String> {
    EnvFilter::try_new(text).map_err(|e| format!("--log {text:?}: {e}"))
}

/// Returns the formatter of a line's message and fields, for logs of text. Both may hold names and
/// texts of others: characters that would end the line or control a terminal are escaped.
pub fn fields() -> impl for<'writer> FormatFields<'writer> + Clone + 'static {
    debug_fn(|writer: &mut Writer<'_>, field, value: &dyn Debug| {
        let text = format!("{value:?}");
        let text = visible(&text, false);
        match field.name() {
            "message" => write!(writer, "{text}"),
            name => write!(writer, "{name}={text}"),
        }
    })
    .delimited(" ")
}

#[cfg(test)]
mod tests {
    use std::io::{Result, Write};
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn lines_of_json_are_visible() {
        let mut lines = Vec::new();
        let line = "{\"message\":\"a\u{9b}31m\u{202e}\\n\"}\n";
        VisibleLines(&mut lines).write_all(line.as_bytes()).unwrap();
        let line = String::from_utf8(lines).unwrap();
        assert_eq!(line, "{\"message\":\"a\\u009b31m\\u202e\\n\"}\n");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&line).unwrap()["message"],
            "a\u{9b}31m\u{202e}\n"
        );
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_field_begins_a_line() {
        let lines = Lines::default();
        let writer = lines.clone();
        let log = tracing_subscriber::fmt()
            .fmt_fields(fields())
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let name = "a\n2026 ERROR \u{1b}[31m";
        tracing::subscriber::with_default(log, || {
            tracing::error!(name, shown = %name, debugged = ?name, number = 7, "message of {name}");
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let escaped = "a\\u000a2026 ERROR \\u001b[31m";
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(&format!(": message of {escaped} name=")), "{text}");
        assert!(text.contains(&format!("shown={escaped} debugged=\"a\\n2026")), "{text}");
        assert!(text.ends_with("number=7\n"), "{text}");
    }
}
