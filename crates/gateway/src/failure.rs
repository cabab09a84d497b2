//! The reasons why a server could not start.

use std::ffi::OsString;
use std::fmt;

use crate::cli::Cli;
use crate::identities::NotOpened;

/// The reason why a server could not start, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The command line, a variable or the configuration file is wrong, or a file of keys or
    /// certificates that they name.
    Configuration(String),
    /// Anything else.
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Configuration(message) | Self::Other(message)) = self;
        f.write_str(message)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// Names the place in the file, if the option is set there ([`Cli::located`]).
    pub(crate) fn located(self, arguments: &[OsString]) -> Self {
        match self {
            Self::Configuration(message) => Self::Configuration(Cli::located(arguments, message)),
            Self::Other(message) => Self::Other(Cli::located(arguments, message)),
        }
    }
}

impl From<NotOpened> for Failure {
    fn from(NotOpened { message, is_of_keys }: NotOpened) -> Self {
        // As what is wrong with the keys themselves.
        if is_of_keys { Self::Configuration(message) } else { Self::Other(message) }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Other(message)
    }
}
