//! `slipway man`.

use std::path::PathBuf;

use clap::Args;

/// Options of `slipway man`.
#[derive(Debug, Clone, Args)]
pub struct ManOptions {
    /// The directory for the pages, such as /usr/local/share/man: they are written to man1 and man5
    /// in it
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// The date that the pages show, such as 2026-11-22, so that a package can be built
    /// reproducibly
    #[arg(long, value_name = "DATE", default_value = "")]
    pub date: String,
}
