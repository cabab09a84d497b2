/// The first line of every document.
pub const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// How keys are written in a listing (`encoding-type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyEncoding {
    /// As XML text.
    #[default]
    Plain,
    /// Percent-encoded: safe for every key.
    Url,
}

impl KeyEncoding {
    /// What a checked `encoding-type` asks for.
    pub const fn of(encoding_type: Option<&str>) -> Self {
        if encoding_type.is_some() { Self::Url } else { Self::Plain }
    }
}

/// Whom an object, part or bucket belongs to, or who began an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// The canonical user id.
    pub id: &'a str,
    /// A name for people. S3 sends it with initiators alone.
    pub display_name: Option<&'a str>,
}

impl<'a> Owner<'a> {
    /// An owner as S3 shows it: without a name.
    pub const fn new(id: &'a str) -> Self {
        Self { id, display_name: None }
    }
}

/// `document` without its declaration.
///
/// CompleteMultipartUpload may answer 200 before it knows the outcome: it sends [`DECLARATION`],
/// then white space to keep the connection alive, then the result or an `<Error>`, of which this is
/// the rest.
pub fn without_declaration(document: &str) -> &str {
    document.strip_prefix(DECLARATION).unwrap_or(document)
}
