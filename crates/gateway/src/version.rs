//! The version of this program.

/// The version number, from the workspace's `Cargo.toml`.
pub const NUMBER: &str = env!("CARGO_PKG_VERSION");
/// The commit that the program was built from: seven digits, or `unknown` for sources without their
/// history (`build.rs`).
pub const COMMIT: &str = env!("SLIPWAY_COMMIT");
/// The version and the commit: `1.2.3 (1a2b3c4)`.
pub const LONG: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("SLIPWAY_COMMIT"), ")");
