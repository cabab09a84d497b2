//! Texts for people: escaping for terminals, the line of an error, and advice.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

/// Returns a text in a form that is one line: if it has hidden characters, such as line breaks, it
/// is quoted and they are escaped.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_hidden) { Cow::Owned(format!("{text:?}")) } else { Cow::Borrowed(text) }
}

/// Returns a text without characters that move a terminal's cursor, colour it or change the
/// direction of writing, since names may contain any. They are escaped as in JSON, so that JSON
/// remains JSON.
pub fn visible(text: &str, lines: bool) -> Cow<'_, str> {
    let kept = |c: char| !is_hidden(c) || (lines && c == '\n');
    if text.chars().all(kept) {
        return Cow::Borrowed(text);
    }
    let escape = |mut all: String, c| {
        if kept(c) {
            all.push(c);
        } else {
            let _ = write!(all, "\\u{:04x}", u32::from(c));
        }
        all
    };
    Cow::Owned(text.chars().fold(String::new(), escape))
}

/// True for control characters, line breaks, and characters that change the direction of writing
/// (Unicode's `Bidi_Control`).
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the number of the line, from 1, in which a text's byte at `offset` is.
pub fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or_default().matches('\n').count() + 1
}

/// Returns the reason why a file can't be read, and what to do about it.
pub fn unreadable(error: &io::Error) -> String {
    let cure = match error.kind() {
        io::ErrorKind::NotFound => "create the file, or give the path of another",
        io::ErrorKind::PermissionDenied => "give the server's user read permission",
        io::ErrorKind::IsADirectory => "this is a directory: give the path of a file in it",
        io::ErrorKind::InvalidData => "save it as UTF-8",
        _ => "give the path of another file",
    };
    format!("{error}: {cure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_reaches_a_terminal_but_as_text() {
        assert_eq!(visible("a\x1b[2J\nb\u{9b}\u{2069}", false), "a\\u001b[2J\\u000ab\\u009b\\u2069");
        assert_eq!(visible("a\n\rb", true), "a\n\\u000db");
        assert_eq!(visible("\u{e4}\u{200d}", false), "\u{e4}\u{200d}");
        let json = serde_json::json!({ "path": "a\u{202e}\u{7f}\n" });
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&visible(&json.to_string(), false)).unwrap(),
            json
        );
    }
}
