//! The trailer section of an aws-chunked body.

use http::HeaderMap;
use s3_types::ChecksumAlgorithm;

use crate::error::{ErrorCode, Result, S3Error};
use crate::limits::TRAILER_BYTES_MAX;

const DECLARED: &str = "x-amz-trailer";
const SIGNATURE: &str = "x-amz-trailer-signature";

/// The trailers that came after a body: names in lower case, and values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trailers {
    list: Vec<(String, String)>,
}

impl Trailers {
    /// Returns the value of the trailer with this lower-case name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// Returns all trailers in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.list.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// True if there are no trailers.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// A trailer section that is being read, line by line.
#[derive(Debug)]
pub(super) struct TrailerSection {
    declared: Vec<String>,
    signed: bool,
    received: Trailers,
    signature: Option<String>,
    /// True if the last line ended with a bare line feed; see [`TrailerSection::line`].
    bare: bool,
    bytes: usize,
}

impl TrailerSection {
    /// Reads `x-amz-trailer`, which names the trailers that will follow. Other names than those of
    /// checksums are `InvalidRequest`.
    pub(super) fn new(headers: &HeaderMap, signed: bool) -> Result<Self> {
        let mut declared = Vec::new();
        for value in headers.get_all(DECLARED) {
            let names = value.to_str().map_err(|_| unsupported())?;
            for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                let name = name.to_ascii_lowercase();
                // S3 has no other trailers.
                if !ChecksumAlgorithm::ALL.iter().any(|algorithm| algorithm.header() == name) {
                    return Err(unsupported());
                }
                declared.push(name);
            }
        }
        Ok(Self { declared, signed, received: Trailers::default(), signature: None, bare: false, bytes: 0 })
    }

    /// Returns the maximum length of the next line, in bytes.
    pub(super) fn room(&self) -> usize {
        TRAILER_BYTES_MAX - self.bytes
    }

    /// Reads a line with its end. Returns true if it was the last one.
    ///
    /// Lines end with CRLF. minio-go ends those before the signature with `LF CRLF`, which S3
    /// accepts, and AWS's own description can be read as if it required that: an empty line after a
    /// bare line feed ends that line, not the section.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<bool> {
        self.bytes += line.len();
        let ended = line.strip_suffix(b"\r\n");
        let after_bare = std::mem::replace(&mut self.bare, ended.is_none());
        let text = ended.or_else(|| line.strip_suffix(b"\n")).unwrap_or(line);
        if text.is_empty() {
            return match ended {
                Some(_) => Ok(!after_bare),
                None => Err(malformed()),
            };
        }
        let text = str::from_utf8(text).map_err(|_| malformed())?;
        let (name, value) = text.split_once(':').ok_or_else(malformed)?;
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
        if self.signed && name == SIGNATURE {
            return match self.signature.replace(value) {
                None => Ok(false),
                Some(_) => Err(malformed()),
            };
        }
        // The signature comes last: it could not cover a later trailer.
        let expected = self.declared.contains(&name) && self.received.get(&name).is_none();
        if !expected || self.signature.is_some() {
            return Err(malformed());
        }
        self.received.list.push((name, value));
        Ok(false)
    }

    /// Returns the canonical form of the trailers, and their signature; `None` if they need not be
    /// signed.
    pub(super) fn signed_form(&self) -> Result<Option<(String, &str)>> {
        if !self.signed {
            return Ok(None);
        }
        let signature = self.signature.as_deref().ok_or_else(malformed)?;
        Ok(Some((canonical(self.received.iter()), signature)))
    }

    /// Returns the trailers: `MalformedTrailerError` if one that was announced is missing.
    pub(super) fn finish(self) -> Result<Trailers> {
        let whole = self.declared.iter().all(|name| self.received.get(name).is_some());
        if whole { Ok(self.received) } else { Err(malformed()) }
    }
}

/// Returns the trailers' canonical form: `name:value\n` for each, sorted by name.
pub(super) fn canonical<'a>(trailers: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut sorted: Vec<_> = trailers.collect();
    sorted.sort_unstable();
    let mut out = String::new();
    for (name, value) in sorted {
        out.extend([name, ":", value, "\n"]);
    }
    out
}

/// Refuses `x-amz-trailer` for a body whose mode has no trailers (`IncompleteBody`).
pub(super) fn refuse_declared(headers: &HeaderMap) -> Result<()> {
    if headers.contains_key(DECLARED) { Err(malformed()) } else { Ok(()) }
}

fn unsupported() -> S3Error {
    let message = "The value specified in the x-amz-trailer header is not supported";
    S3Error::with_message(ErrorCode::InvalidRequest, message)
}

pub(super) fn malformed() -> S3Error {
    S3Error::new(ErrorCode::MalformedTrailerError)
}
