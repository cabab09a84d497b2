//! Splits text at an ASCII character, by a search for one byte. `str::split` searches for a `char`,
//! which takes several times the instructions for the short texts of a request.

use memchr::memchr;

/// Returns the text before the first `at`, an ASCII character, and the text after it. Without an
/// `at`, the second text is empty.
pub fn cut(text: &str, at: u8) -> (&str, &str) {
    cut_once(text, at).unwrap_or((text, ""))
}

/// Returns the text before the first `at`, an ASCII character, and the text after it; `None`
/// without an `at`.
pub fn cut_once(text: &str, at: u8) -> Option<(&str, &str)> {
    let place = memchr(at, text.as_bytes())?;
    Some((text.get(..place)?, text.get(place + 1..)?))
}

/// Returns the pieces of `text` between `at`s, ASCII characters: those of `str::split`.
pub fn pieces(text: &str, at: u8) -> impl Iterator<Item = &str> {
    let mut left = Some(text);
    std::iter::from_fn(move || {
        let text = left?;
        let (piece, rest) = cut_once(text, at).map_or((text, None), |(piece, rest)| (piece, Some(rest)));
        left = rest;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_those_of_split() {
        for text in ["", "a", ";", "a;b", ";a;;\u{e9};", "a;\u{20ac}\u{3b}b"] {
            assert_eq!(pieces(text, b';').collect::<Vec<_>>(), text.split(';').collect::<Vec<_>>());
            assert_eq!(cut_once(text, b';'), text.split_once(';'));
        }
        assert_eq!((cut("a=b=c", b'='), cut("a", b'=')), (("a", "b=c"), ("a", "")));
    }
}
