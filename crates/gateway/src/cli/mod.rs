//! The command line: its commands, and how options are read from flags, environment and file.

mod command;
mod read;
pub mod reference;
mod variables;

pub use command::{Cli, Command};
pub use read::{Said, Values, sentence};
pub use reference::reference;
pub use variables::refuse_unknown_variables;
