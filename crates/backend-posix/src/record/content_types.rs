//! Content types that records hold as one byte.

/// The content types. The index of each is on disk: new ones are only appended.
const COMMON: [&str; 62] = [
    "binary/octet-stream",
    "application/octet-stream",
    "text/plain",
    "text/html",
    "text/css",
    "text/csv",
    "text/xml",
    "text/javascript",
    "text/markdown",
    "application/json",
    "application/xml",
    "application/javascript",
    "application/pdf",
    "application/zip",
    "application/gzip",
    "application/x-gzip",
    "application/x-tar",
    "application/x-bzip2",
    "application/x-xz",
    "application/zstd",
    "application/x-7z-compressed",
    "application/java-archive",
    "application/x-ndjson",
    "application/vnd.apache.parquet",
    "application/vnd.apache.arrow.file",
    "application/x-www-form-urlencoded",
    "application/x-directory",
    "application/x-directory; charset=UTF-8",
    "application/x-sh",
    "application/x-sqlite3",
    "application/x-hdf5",
    "application/wasm",
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/x-protobuf",
    "application/yaml",
    "text/yaml",
    "text/plain; charset=utf-8",
    "text/plain;charset=utf-8",
    "text/plain; charset=UTF-8",
    "text/html; charset=utf-8",
    "application/json; charset=utf-8",
    "image/jpeg",
    "image/png",
    "image/gif",
    "image/webp",
    "image/svg+xml",
    "image/tiff",
    "image/avif",
    "image/bmp",
    "audio/mpeg",
    "audio/ogg",
    "audio/x-wav",
    "video/mp4",
    "video/webm",
    "video/quicktime",
    "video/mp2t",
    "font/woff2",
    "application/vnd.docker.distribution.manifest.v2+json",
];
const _: () = assert!(COMMON.len() <= 256);

pub(super) fn index(content_type: &str) -> Option<u8> {
    COMMON.iter().position(|c| *c == content_type).and_then(|n| u8::try_from(n).ok())
}

pub(super) fn name(index: u8) -> Option<&'static str> {
    COMMON.get(usize::from(index)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_there_once() {
        for (n, content_type) in COMMON.iter().enumerate() {
            assert_eq!(index(content_type).map(usize::from), Some(n));
        }
    }
}
