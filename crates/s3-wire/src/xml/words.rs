/// The first line of every document.
pub const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// The encoding of keys in a listing (`encoding-type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyEncoding {
    /// Keys are XML text.
    #[default]
    Plain,
    /// Keys are encoded as in a form, with `+` for a space, which is safe for every key.
    Url,
}

impl KeyEncoding {
    /// Returns the encoding that a checked `encoding-type` asks for.
    pub const fn of(encoding_type: Option<&str>) -> Self {
        if encoding_type.is_some() { Self::Url } else { Self::Plain }
    }
}

/// The owner of an object, part or bucket, or the initiator of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// The canonical user id.
    pub id: &'a str,
    /// The name for people. S3 sends it only for initiators.
    pub display_name: Option<&'a str>,
}

impl<'a> Owner<'a> {
    /// Makes an owner as S3 shows it, without a name.
    pub const fn new(id: &'a str) -> Self {
        Self { id, display_name: None }
    }
}

/// Returns `document` without its declaration.
///
/// CompleteMultipartUpload may answer 200 before it knows the outcome: it sends [`DECLARATION`],
/// then white space to keep the connection alive, then the rest of the result or of an `<Error>`,
/// which this function returns.
pub fn without_declaration(document: &str) -> &str {
    document.strip_prefix(DECLARATION).unwrap_or(document)
}
