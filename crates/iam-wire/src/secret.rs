use std::fmt;

/// A secret of a request or an answer, which debug output does not show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret<'a>(&'a str);

impl<'a> Secret<'a> {
    /// Wraps a secret.
    pub const fn new(secret: &'a str) -> Self {
        Self(secret)
    }

    /// Returns the secret.
    pub const fn expose(self) -> &'a str {
        self.0
    }
}

impl fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
