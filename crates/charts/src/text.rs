/// Escapes text for HTML and for attributes of HTML. Replaces control characters, including line
/// breaks, by U+FFFD.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_place() {
        assert_eq!(
            escaped("<a href='x'>\"&\u{1b}\n"),
            "&lt;a href=&#39;x&#39;&gt;&quot;&amp;\u{fffd}\u{fffd}"
        );
    }
}
