//! Searches for a part of a pattern that has a `?` or a variable.

use super::tokens::{Token, Values, continues, first_char, forward};

/// The number of elements whose states are in one word.
const BITS: usize = 128;

/// The largest number of elements with which each place of a text is tried.
const SHORT: usize = 16;

/// A part of a pattern as a row of elements, each of which matches a byte, or for a `?` a
/// character. All states of the row are kept as bits of words, so that the time of a search does
/// not grow with the length of the part (up to [`BITS`]) besides that of the text.
///
/// Source: Baeza-Yates and Gonnet, "A new approach to text searching" (Shift-And).
struct Elements {
    /// The number of elements.
    count: usize,
    /// The number of words of a state.
    words: usize,
    /// For each byte, the elements that match it, but for those of a `?`.
    of_bytes: Vec<u128>,
    /// The elements that are a `?`.
    of_any: Vec<u128>,
}

impl Elements {
    /// Returns the number of the elements of the tokens; `None` if a variable has no value.
    fn count(tokens: &[Token], values: &Values<'_>) -> Option<usize> {
        tokens.iter().map(|token| Some(Valued::of(token, values)?.count())).sum()
    }

    /// `None` if a variable has no value.
    fn new(tokens: &[Token], values: &Values<'_>, count: usize) -> Option<Self> {
        let words = count.div_ceil(BITS);
        let mut made = Self { count: 0, words, of_bytes: vec![0; words * 256], of_any: vec![0; words] };
        for token in tokens {
            match Valued::of(token, values)? {
                Valued::One => {
                    made.of_any[made.count / BITS] |= 1 << (made.count % BITS);
                    made.count += 1;
                }
                Valued::Bytes(bytes) => {
                    for byte in bytes {
                        let word = usize::from(*byte) * words + made.count / BITS;
                        made.of_bytes[word] |= 1 << (made.count % BITS);
                        made.count += 1;
                    }
                }
            }
        }
        Some(made)
    }

    fn first_end(&self, text: &[u8]) -> Option<usize> {
        let Some(last) = self.count.checked_sub(1) else { return Some(0) };
        let has_last = |words: &[u128]| words[last / BITS] >> (last % BITS) & 1 == 1;
        // Bit N is set while the last N + 1 elements match what ends here.
        let mut state = vec![0_u128; self.words];
        for (at, byte) in text.iter().enumerate() {
            let begins = !continues(*byte);
            let mut carried = u128::from(begins);
            let of_byte = &self.of_bytes[usize::from(*byte) * self.words..][..self.words];
            for ((word, of_byte), of_any) in state.iter_mut().zip(of_byte).zip(&self.of_any) {
                let before = *word;
                // A `?` matches the first byte of a character, and remains matched by the others.
                let (any, kept) = if begins { (*of_any, 0) } else { (0, before & of_any) };
                *word = (before << 1 | carried) & (of_byte | any) | kept;
                carried = before >> (BITS - 1);
            }
            if has_last(&state) {
                let more = text[at + 1..].iter().take_while(|byte| continues(**byte)).count();
                return Some(at + 1 + more);
            }
        }
        None
    }
}

/// A token with the value of its variable.
enum Valued<'t> {
    Bytes(&'t [u8]),
    /// A `?`.
    One,
}

impl<'t> Valued<'t> {
    /// `None` for a variable without a value.
    fn of(token: &'t Token, values: &'t Values<'_>) -> Option<Self> {
        Some(match token {
            Token::Text(text) => Self::Bytes(text),
            Token::One => Self::One,
            Token::Variable(of) => Self::Bytes(values.get(usize::from(*of))?.as_deref()?.as_bytes()),
        })
    }

    const fn count(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::One => 1,
        }
    }
}

/// Finds the first place in a text at which the tokens match, and returns where the match ends, in
/// bytes.
pub(super) fn first_end(tokens: &[Token], text: &[u8], values: &Values<'_>) -> Option<usize> {
    let elements = Elements::count(tokens, values).filter(|count| *count <= text.len())?;
    if elements > SHORT {
        Elements::new(tokens, values, elements)?.first_end(text)
    } else {
        by_trying(tokens, text, values)
    }
}

/// Tries each place. That takes less than the preparation of [`Elements`] for few of them.
fn by_trying(tokens: &[Token], text: &[u8], values: &Values<'_>) -> Option<usize> {
    let mut at = 0;
    loop {
        if let Some(length) = forward(tokens, &text[at..], values) {
            return Some(at + length);
        }
        at += first_char(&text[at..])?;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::limits::VARIABLES_MAX;

    /// Both ways find the same, at all lengths of a part and in texts of characters of one to four
    /// bytes.
    #[test]
    fn both_searches_agree() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).unwrap() % below
        };
        let letters = ['a', 'b', 'é', '\u{20ac}', '\u{1f980}'];
        let none = [const { None }; VARIABLES_MAX];
        let mut found = 0;
        for _ in 0..20_000 {
            let kinds = 1 + draw(letters.len());
            let mut row = |count: usize| (0..count).map(|_| letters[draw(kinds)]).collect::<String>();
            let (text, part) = (row(60), row(40));
            let (length, wild) = (1 + draw(36), 2 + draw(5));
            let tokens: Vec<_> = part
                .chars()
                .take(length)
                .map(|one| {
                    if draw(wild) > 0 { Token::One } else { Token::Text(one.to_string().into_bytes().into()) }
                })
                .collect();
            let count = Elements::count(&tokens, &none).unwrap();
            let by_elements = Elements::new(&tokens, &none, count).unwrap().first_end(text.as_bytes());
            assert_eq!(by_elements, by_trying(&tokens, text.as_bytes(), &none), "{tokens:?} in {text}");
            found += usize::from(by_elements.is_some());
        }
        assert!((2_000..19_000).contains(&found), "{found}");
    }

    /// A part of several words: the value of a variable may be as long as the text.
    #[test]
    fn values_of_variables_may_be_long() {
        let value = "ab".repeat(150);
        let mut values = [const { None }; VARIABLES_MAX];
        values[0] = Some(value.as_str().into());
        let tokens = [Token::One, Token::Variable(0), Token::One];
        let text = format!("xx{value}éy");
        assert_eq!(first_end(&tokens, text.as_bytes(), &values), Some(text.len() - 1));
        assert_eq!(first_end(&tokens, &text.as_bytes()[2..], &values), None);
        assert_eq!(first_end(&tokens, b"short", &values), None);
        assert_eq!(first_end(&[Token::Variable(1)], b"x", &values), None);
    }
}
