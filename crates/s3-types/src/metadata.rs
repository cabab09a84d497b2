/// The metadata that a client sends with an object, and gets back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectMetadata {
    /// `Content-Type`; S3 answers `binary/octet-stream` if it was not sent.
    pub content_type: Option<String>,
    /// `Content-Encoding`, without `aws-chunked`.
    pub content_encoding: Option<String>,
    /// `Content-Language`.
    pub content_language: Option<String>,
    /// `Content-Disposition`.
    pub content_disposition: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Expires`, verbatim: S3 returns any text that was sent.
    pub expires: Option<String>,
    /// `x-amz-website-redirect-location`.
    pub website_redirect_location: Option<String>,
    /// `x-amz-meta-*`: lower-case names without the prefix, with values, in the order given.
    pub user: Vec<(String, String)>,
}

impl ObjectMetadata {
    /// Returns the values of all headers except the user metadata, in the order of the fields.
    pub fn headers(&self) -> [Option<&str>; 7] {
        // The pattern names all fields, so that none is forgotten when one is added.
        let Self {
            content_type,
            content_encoding,
            content_language,
            content_disposition,
            cache_control,
            expires,
            website_redirect_location,
            user: _,
        } = self;
        [
            content_type,
            content_encoding,
            content_language,
            content_disposition,
            cache_control,
            expires,
            website_redirect_location,
        ]
        .map(Option::as_deref)
    }
}
