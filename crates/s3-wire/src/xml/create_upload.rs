use super::writer::Writer;

/// The answer of CreateMultipartUpload.
#[derive(Debug, Clone, Copy)]
pub struct InitiateUploadResult<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// The key.
    pub key: &'a str,
    /// The upload's id.
    pub upload_id: &'a str,
}

impl InitiateUploadResult<'_> {
    /// Writes the document.
    pub fn render(&self) -> String {
        let mut writer = Writer::document("InitiateMultipartUploadResult", 256);
        writer.text("Bucket", self.bucket);
        writer.text("Key", self.key);
        writer.text("UploadId", self.upload_id);
        writer.finish()
    }
}
