//! `slipway man`.

use std::path::PathBuf;

use clap::Args;

/// Options of `slipway man`.
#[derive(Debug, Clone, Args)]
pub struct ManOptions {
    /// Where the pages go, to man1 and man5: /usr/local/share/man
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// The date to stand in them, such as 2026-11-22: a package's builds are to be alike
    #[arg(long, value_name = "DATE", default_value = "")]
    pub date: String,
}
