//! `slipway man`.

use std::path::PathBuf;

use clap::Args;

/// Options of `slipway man`.
#[derive(Debug, Clone, Args)]
pub struct ManOptions {
    /// The directory for manual pages, such as /usr/local/share/man. The pages are written to its
    /// subdirectories man1 and man5
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// The date that the pages show in their footers, such as 2026-11-22. Without this option they
    /// show no date
    #[arg(long, value_name = "DATE", default_value = "", hide_default_value = true)]
    pub date: String,
}
