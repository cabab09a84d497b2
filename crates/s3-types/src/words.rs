//! Enums whose values are written as words.

use std::fmt;

/// Gives each value of an enum a word that stands for it in text: for writing (`Display`), for
/// reading (`FromStr`) and in the list of all values (`ALL`). Options on a command line use such
/// words.
#[macro_export]
macro_rules! words {
    ($type:ident { $($variant:ident $word:literal,)* }) => {
        impl $type {
            /// All values, in the order of the enum.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the word of the value.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::words::UnknownWord;

            fn from_str(text: &str) -> ::std::result::Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|value| value.word() == text).ok_or($crate::words::UnknownWord)
            }
        }
    };
}

/// The error for a word that stands for no value of an enum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownWord;

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the word is unknown")
    }
}

impl std::error::Error for UnknownWord {}

#[cfg(test)]
mod tests {
    use super::UnknownWord;
    use crate::ETagSource;

    #[test]
    fn words_are_written_and_read() {
        assert_eq!(ETagSource::ALL.iter().map(ToString::to_string).collect::<Vec<_>>(), ["md5", "checksum"]);
        for value in ETagSource::ALL {
            assert_eq!(value.word().parse(), Ok(*value));
        }
        assert_eq!("MD5".parse::<ETagSource>(), Err(UnknownWord));
    }
}
