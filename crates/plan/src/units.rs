//! Units, and checks of numbers and texts that users give.

/// A result whose error is a sentence for people: the cause, and what to do about it.
pub type Result<T> = std::result::Result<T, String>;

pub(crate) const KIB: f64 = 1024.0;
pub(crate) const MIB: f64 = 1_048_576.0;
pub(crate) const GIB: f64 = 1_073_741_824.0;
pub(crate) const TIB: f64 = 1_099_511_627_776.0;
/// The number of bytes of a MB, as makers of networks and disks count.
pub(crate) const MB: f64 = 1e6;
/// The number of hours of a month, as clouds count.
pub(crate) const HOURS_A_MONTH: f64 = 730.0;

/// Describes the error of a TOML file, on one line.
pub(crate) fn toml_error(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let message = error.message().lines().next().unwrap_or_default();
    format!("line {}: {message}", before.matches('\n').count() + 1)
}

/// The size of the blocks that file systems allocate, in bytes.
pub(crate) const BLOCK: f64 = 4096.0;
/// The default size of ZFS's records, in bytes: ZFS protects each record by itself.
pub(crate) const RECORD: f64 = 131_072.0;

/// True for a number that is above 0 and finite.
pub(crate) fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}
