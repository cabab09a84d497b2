/// Makes a text from a server printable on one line: control characters become `?`.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
