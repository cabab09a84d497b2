//! Elements of patterns, and their comparison with the beginning or the end of a text.

use std::borrow::Cow;

use crate::limits::VARIABLES_MAX;

/// An element of a part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Text(Box<[u8]>),
    /// A `?`, which stands for one character.
    One,
    /// A variable, by its index in the pattern's list.
    Variable(u8),
}

/// The values of a pattern's variables.
pub(super) type Values<'v> = [Option<Cow<'v, str>>; VARIABLES_MAX];

/// Matches tokens with the beginning of a text, and returns the length of the match in bytes.
pub(super) fn forward(tokens: &[Token], text: &[u8], values: &Values<'_>) -> Option<usize> {
    tokens.iter().try_fold(0, |at, token| {
        let rest = &text[at..];
        let length = match token {
            Token::Text(wanted) => rest.starts_with(wanted).then_some(wanted.len()),
            Token::One => first_char(rest),
            Token::Variable(of) => {
                let value = values.get(usize::from(*of))?.as_deref()?.as_bytes();
                rest.starts_with(value).then_some(value.len())
            }
        };
        Some(at + length?)
    })
}

/// Matches tokens with the end of a text, and returns the offset in bytes at which the match
/// begins.
pub(super) fn backward(tokens: &[Token], text: &[u8], values: &Values<'_>) -> Option<usize> {
    tokens.iter().rev().try_fold(text.len(), |end, token| {
        let rest = &text[..end];
        let length = match token {
            Token::Text(wanted) => rest.ends_with(wanted).then_some(wanted.len()),
            Token::One => last_char(rest),
            Token::Variable(of) => {
                let value = values.get(usize::from(*of))?.as_deref()?.as_bytes();
                rest.ends_with(value).then_some(value.len())
            }
        };
        Some(end - length?)
    })
}

/// True for a byte of a character that is not its first one.
pub(super) const fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Returns the length in bytes of a text's first character.
pub(super) fn first_char(text: &[u8]) -> Option<usize> {
    let (_, rest) = text.split_first()?;
    Some(1 + rest.iter().take_while(|byte| continues(**byte)).count())
}

/// Returns the length in bytes of a text's last character.
fn last_char(text: &[u8]) -> Option<usize> {
    let continued = text.iter().rev().take_while(|byte| continues(**byte)).count();
    (continued < text.len()).then_some(continued + 1)
}
