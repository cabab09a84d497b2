//! Names and contents of files about a tree as a whole.

/// The file that says where the tree's records are kept, in `DIR/.slipway`.
pub(crate) const METADATA: &str = "metadata";
/// The files that gateways keep in `DIR/.slipway`, beside those of this crate. The last is never
/// more than a file whose owner and mode are looked at.
pub(crate) const OF_GATEWAYS: [&str; 3] = ["account.toml", "credentials.toml", "try"];

/// The directory in `DIR/.slipway` with a file for each gateway that serves the tree.
pub(crate) const GATEWAYS: &str = "gateways";
/// The file in it whose shared lock gateways hold, and an upgrade the exclusive one.
pub(crate) const GATEWAYS_LOCK: &str = ",lock";
/// The word in [`METADATA`] for records in files.
const SIDECAR: &str = "sidecar";
/// The word in [`METADATA`] for records in attributes.
const ATTRIBUTES: &str = "xattr";
/// The word that follows in a tree which the first builds must not open, because of its format:
/// they accept only [`SIDECAR`] alone.
const STOP: &str = "format-2";

/// The contents of [`METADATA`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataFile {
    /// There is no such file: records are in attributes.
    None,
    /// Records are in files.
    Sidecar { stop: bool },
    /// Records are in attributes; only with the word that stops the first builds.
    Attributes,
    /// The file is empty, or has zeros: a power cut may have left that at the first start, with a
    /// build that wrote the file in place. Only a start with records in files wrote it, and no
    /// start without has opened the tree since. Also a file that is missing in a tree whose options
    /// name records in files.
    Torn,
}

impl MetadataFile {
    /// The meaning of a regular file with these contents; `None` if it is unknown.
    pub fn of(text: &[u8]) -> Option<Self> {
        if text.iter().all(|byte| *byte == 0) {
            return Some(Self::Torn);
        }
        let words: Vec<_> = str::from_utf8(text).ok()?.split_ascii_whitespace().collect();
        match &*words {
            [SIDECAR] => Some(Self::Sidecar { stop: false }),
            [SIDECAR, STOP] => Some(Self::Sidecar { stop: true }),
            [ATTRIBUTES, STOP] => Some(Self::Attributes),
            _ => None,
        }
    }

    pub fn text(self) -> String {
        match self {
            Self::None | Self::Torn => String::new(),
            Self::Sidecar { stop: false } => format!("{SIDECAR}\n"),
            Self::Sidecar { stop: true } => format!("{SIDECAR} {STOP}\n"),
            Self::Attributes => format!("{ATTRIBUTES} {STOP}\n"),
        }
    }
}
