//! How a line of the log is written.

use std::fmt::Debug;

use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::commands::visible;

/// The message and the fields of a line, for logs of text. Names and texts of others may be in any
/// of them: whatever would end the line, or steer a terminal, is written as an escape.
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
