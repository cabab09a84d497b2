//! Names and contents of files about a tree as a whole.

/// The file that says where the tree's records are kept, in `DIR/.slipway`.
pub(crate) const METADATA: &str = "metadata";
/// The files that gateways keep in `DIR/.slipway`, beside those of this crate. The last one, `try`,
/// exists only under a temporary name, while a gateway looks at the owner and mode of a new file.
pub(crate) const OF_GATEWAYS: [&str; 3] = ["account.toml", "credentials.toml", "try"];

/// The directory in `DIR/.slipway` with a file for each gateway that serves the tree.
pub(crate) const GATEWAYS: &str = "gateways";
/// The name of the file in [`GATEWAYS`] whose lock gateways hold shared, and an upgrade holds
/// exclusively.
pub(crate) const GATEWAYS_LOCK: &str = ",lock";
/// The word in [`METADATA`] for records in files.
const SIDECAR: &str = "sidecar";
/// The word in [`METADATA`] for records in attributes.
const ATTRIBUTES: &str = "xattr";
/// The second word in [`METADATA`], in a tree whose format the first builds do not know. It stops
/// them, since they accept only [`SIDECAR`] without another word.
const STOP: &str = "format-2";

/// The contents of [`METADATA`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataFile {
    /// The file does not exist: records are in attributes.
    None,
    /// Records are in files. `stop` is true if [`STOP`] follows.
    Sidecar { stop: bool },
    /// Records are in attributes. This form always contains [`STOP`].
    Attributes,
    /// The file is empty, or consists of zeros. A power cut may have left that when the tree was
    /// first served, by a build that wrote the file in place: only a start with records in files
    /// wrote it, and no start with records in attributes has opened the tree since. A file that is
    /// missing in a tree whose options name records in files counts as torn, too.
    Torn,
}

impl MetadataFile {
    /// Returns the meaning of a regular file with these contents; `None` if it is unknown.
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
