//! Checksum headers: the values that a request gives or asks for, and the errors for wrong values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, HeaderName};
use s3_types::{Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue, ETag};

use super::text::{joined, lossless};
use crate::error::{ErrorCode, Result, S3Error};

const PREFIX: &str = "x-amz-checksum-";

/// The headers of a request about the checksum of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChecksumRequest {
    /// The algorithm of `value` or `trailer`; `None` if the client gives neither.
    pub algorithm: Option<ChecksumAlgorithm>,
    /// The value of `x-amz-checksum-*`.
    pub value: Option<ChecksumValue>,
    /// The algorithm whose value follows the body, as `x-amz-trailer` names it.
    pub trailer: Option<ChecksumAlgorithm>,
    /// The value of `Content-MD5`.
    pub content_md5: Option<[u8; 16]>,
}

impl ChecksumRequest {
    /// Reads the headers of PutObject, UploadPart, or any request with an XML body except
    /// CompleteMultipartUpload.
    pub fn parse(headers: &HeaderMap) -> Result<Self> {
        let content_md5 = content_md5(headers)?;
        let value = value_header(headers)?;
        let trailer = trailer(headers)?;
        if value.is_some() && trailer.is_some() {
            return Err(invalid("Expecting a single x-amz-checksum- header"));
        }
        let value = value.map(|(algorithm, text)| parse_value(algorithm, text)).transpose()?;
        let algorithm = value.map(|value| value.algorithm()).or(trailer);
        if let Some(announced) = lossless(headers, "x-amz-sdk-checksum-algorithm") {
            if algorithm.is_none() {
                return Err(invalid(
                    "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer \
                     headers were found.",
                ));
            }
            if ChecksumAlgorithm::from_name(&announced) != algorithm {
                return Err(invalid("Value for x-amz-sdk-checksum-algorithm header is invalid."));
            }
        }
        Ok(Self { algorithm, value, trailer, content_md5 })
    }

    /// Reads the headers of a request whose body S3 wants a digest of; `InvalidRequest` if there is
    /// none.
    pub fn required(headers: &HeaderMap) -> Result<Self> {
        let request = Self::parse(headers)?;
        if request.algorithm.is_none() && request.content_md5.is_none() {
            return Err(invalid("Missing required header for this request: Content-MD5 OR x-amz-checksum-*"));
        }
        Ok(request)
    }

    /// Reads only `Content-MD5`, for CompleteMultipartUpload: its `x-amz-checksum-*` are the
    /// object's, not the body's; see [`complete_checksum`].
    pub fn parse_content_md5(headers: &HeaderMap) -> Result<Self> {
        Ok(Self { content_md5: content_md5(headers)?, ..Self::default() })
    }
}

/// Reads the algorithm and type that CreateMultipartUpload chooses (`x-amz-checksum-algorithm`,
/// `x-amz-checksum-type`).
pub fn upload_checksum(headers: &HeaderMap) -> Result<Option<(ChecksumAlgorithm, ChecksumType)>> {
    let checksum_type = type_header(headers)?;
    let Some(algorithm) = algorithm_header(headers)? else {
        return match checksum_type {
            None => Ok(None),
            Some(_) => Err(invalid(
                "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.",
            )),
        };
    };
    let checksum_type = checksum_type.unwrap_or(algorithm.default_multipart_type());
    check_combination(algorithm, checksum_type)?;
    Ok(Some((algorithm, checksum_type)))
}

/// Reads the algorithm that CopyObject chooses (`x-amz-checksum-algorithm`).
pub fn copy_checksum(headers: &HeaderMap) -> Result<Option<ChecksumAlgorithm>> {
    algorithm_header(headers)
}

/// The headers of CompleteMultipartUpload about the whole object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompleteChecksum {
    /// The value of `x-amz-checksum-*`: composite if it ends in `-N` or the type says so.
    pub checksum: Option<Checksum>,
    /// The value of `x-amz-checksum-type`, which must be that of the upload.
    pub checksum_type: Option<ChecksumType>,
    /// The value of `x-amz-mp-object-size`.
    pub object_size_bytes: Option<u64>,
}

/// Reads the headers of CompleteMultipartUpload.
pub fn complete_checksum(headers: &HeaderMap) -> Result<CompleteChecksum> {
    let checksum_type = type_header(headers)?;
    let checksum = value_header(headers)?
        .map(|(algorithm, text)| parse_whole(algorithm, text, checksum_type))
        .transpose()?;
    let object_size_bytes = match lossless(headers, "x-amz-mp-object-size") {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| {
            let message = format!("Value for x-amz-mp-object-size header is invalid: '{text}'");
            S3Error::with_message(ErrorCode::InvalidRequest, message)
        })?),
    };
    Ok(CompleteChecksum { checksum, checksum_type, object_size_bytes })
}

/// True if the request asks for checksums (`x-amz-checksum-mode: ENABLED`). Any other value is
/// `InvalidRequest`.
pub fn checksum_mode_enabled(headers: &HeaderMap) -> Result<bool> {
    const NAME: HeaderName = HeaderName::from_static("x-amz-checksum-mode");
    match headers.get(NAME) {
        None => Ok(false),
        Some(mode) if mode.as_bytes().trim_ascii().eq_ignore_ascii_case(b"enabled") => Ok(true),
        Some(_) => Err(invalid_value("x-amz-checksum-mode")),
    }
}

/// The kind of a body, on which the wording of S3's error for its `Content-MD5` depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Md5Of {
    /// The body is an object: `ExpectedDigest` is in hexadecimal digits.
    Object,
    /// The body is a part or a document: both digests are in base64.
    Other,
}

/// Compares `Content-MD5` with the MD5 of the body: `BadDigest` if they differ.
pub fn verify_content_md5(expected: [u8; 16], calculated: [u8; 16], of: Md5Of) -> Result<()> {
    if expected == calculated {
        return Ok(());
    }
    let told = match of {
        Md5Of::Object => ETag::Md5(expected).to_string(),
        Md5Of::Other => BASE64.encode(expected),
    };
    Err(S3Error::new(ErrorCode::BadDigest)
        .detail("CalculatedDigest", BASE64.encode(calculated))
        .detail("ExpectedDigest", told))
}

/// Compares the value of an `x-amz-checksum-*` header or trailer with the checksum of the body:
/// `BadDigest` if they differ.
pub fn verify_checksum(expected: &ChecksumValue, calculated: &ChecksumValue) -> Result<()> {
    if expected == calculated {
        return Ok(());
    }
    let name = expected.algorithm().name();
    let message = format!("The {name} you specified did not match the calculated checksum.");
    Err(S3Error::with_message(ErrorCode::BadDigest, message))
}

fn invalid(message: &'static str) -> S3Error {
    S3Error::with_message(ErrorCode::InvalidRequest, message)
}

fn invalid_value(header: &str) -> S3Error {
    S3Error::with_message(ErrorCode::InvalidRequest, format!("Value for {header} header is invalid."))
}

/// Returns the algorithm and value of `x-amz-checksum-<algorithm>`. Several such headers are
/// `InvalidRequest`. So is an unknown algorithm, since the client relies on the check.
fn value_header(headers: &HeaderMap) -> Result<Option<(ChecksumAlgorithm, &str)>> {
    let mut found = None;
    for (name, value) in headers {
        let Some(rest) = name.as_str().strip_prefix(PREFIX) else { continue };
        if matches!(rest, "algorithm" | "mode" | "type") {
            continue;
        }
        let algorithm = ChecksumAlgorithm::from_name(rest).ok_or_else(|| {
            invalid("The algorithm type you specified in x-amz-checksum- header is invalid.")
        })?;
        let text = value.to_str().map_err(|_| invalid_value(name.as_str()))?;
        if found.replace((algorithm, text)).is_some() {
            return Err(invalid(
                "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
            ));
        }
    }
    Ok(found)
}

fn parse_value(algorithm: ChecksumAlgorithm, text: &str) -> Result<ChecksumValue> {
    ChecksumValue::from_base64(algorithm, text).ok_or_else(|| invalid_value(algorithm.header()))
}

/// Reads `value` or `value-N`; with a number of parts the checksum is composite.
fn parse_whole(algorithm: ChecksumAlgorithm, text: &str, named: Option<ChecksumType>) -> Result<Checksum> {
    let (text, parts) = match text.trim().rsplit_once('-') {
        None => (text, None),
        Some((text, parts)) => (text, Some(parts.parse().map_err(|_| invalid_value(algorithm.header()))?)),
    };
    let value = parse_value(algorithm, text)?;
    let assumed = if parts.is_some() { ChecksumType::Composite } else { ChecksumType::FullObject };
    let checksum_type = named.unwrap_or(assumed);
    if parts.is_some() && checksum_type == ChecksumType::FullObject {
        return Err(invalid_value(algorithm.header()));
    }
    if named.is_some() {
        check_combination(algorithm, checksum_type)?;
    }
    Ok(Checksum { value, checksum_type, parts })
}

/// Returns the algorithm of the checksum that `x-amz-trailer` names.
fn trailer(headers: &HeaderMap) -> Result<Option<ChecksumAlgorithm>> {
    let Some(names) = joined(headers, "x-amz-trailer") else { return Ok(None) };
    let mut found = None;
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let algorithm = ChecksumAlgorithm::ALL
            .into_iter()
            .find(|a| a.header().eq_ignore_ascii_case(name))
            .ok_or_else(|| invalid("The value specified in the x-amz-trailer header is not supported"))?;
        if found.replace(algorithm).is_some() {
            return Err(invalid(
                "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
            ));
        }
    }
    Ok(found)
}

fn content_md5(headers: &HeaderMap) -> Result<Option<[u8; 16]>> {
    // Two values, joined, are not a valid digest.
    let Some(text) = joined(headers, "content-md5") else { return Ok(None) };
    match BASE64.decode(text.trim().as_bytes()).ok().and_then(|bytes| bytes.try_into().ok()) {
        Some(md5) => Ok(Some(md5)),
        None => Err(S3Error::new(ErrorCode::InvalidDigest).detail("Content-MD5", text)),
    }
}

fn algorithm_header(headers: &HeaderMap) -> Result<Option<ChecksumAlgorithm>> {
    let Some(name) = lossless(headers, "x-amz-checksum-algorithm") else { return Ok(None) };
    ChecksumAlgorithm::from_name(&name).map(Some).ok_or_else(|| {
        let mut known = ChecksumAlgorithm::ALL.map(ChecksumAlgorithm::name);
        known.sort_unstable();
        let known = known.join(", ");
        let message = format!(
            "Checksum algorithm provided is unsupported. Please try again with any of the valid types: [{known}]"
        );
        S3Error::with_message(ErrorCode::InvalidRequest, message)
    })
}

fn type_header(headers: &HeaderMap) -> Result<Option<ChecksumType>> {
    let Some(name) = lossless(headers, "x-amz-checksum-type") else { return Ok(None) };
    ChecksumType::from_name(&name).map(Some).ok_or_else(|| invalid_value("x-amz-checksum-type"))
}

/// Refuses a combination that S3 does not have (`InvalidRequest`). Only a CRC of a whole object can
/// be computed from those of its parts; for CRC64NVME, S3 has only that type.
fn check_combination(algorithm: ChecksumAlgorithm, checksum_type: ChecksumType) -> Result<()> {
    let possible = match checksum_type {
        ChecksumType::FullObject => algorithm.is_crc(),
        ChecksumType::Composite => algorithm != ChecksumAlgorithm::Crc64Nvme,
    };
    if possible {
        return Ok(());
    }
    let message = format!(
        "The {} checksum type cannot be used with the {} checksum algorithm.",
        checksum_type.name(),
        algorithm.name().to_ascii_lowercase()
    );
    Err(S3Error::with_message(ErrorCode::InvalidRequest, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    const CRC32: &str = "y/Q5Jg==";
    const SHA256: &str = "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSyJaI=";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        map
    }

    fn parse(pairs: &[(&'static str, &str)]) -> Result<ChecksumRequest> {
        ChecksumRequest::parse(&headers(pairs))
    }

    fn complete(pairs: &[(&'static str, &str)]) -> Result<CompleteChecksum> {
        complete_checksum(&headers(pairs))
    }

    fn refusal<T: std::fmt::Debug>(result: Result<T>) -> (&'static str, String) {
        let error = result.unwrap_err();
        (error.code().into(), error.message().to_owned())
    }

    fn invalid_request(message: &str) -> (&'static str, String) {
        ("InvalidRequest", message.to_owned())
    }

    #[test]
    fn a_value_or_a_trailer() {
        assert_eq!(parse(&[]).unwrap(), ChecksumRequest::default());
        let value =
            parse(&[("x-amz-checksum-crc32", CRC32), ("x-amz-sdk-checksum-algorithm", "crc32")]).unwrap();
        assert_eq!(value.algorithm, Some(ChecksumAlgorithm::Crc32));
        assert_eq!(value.value.unwrap().to_string(), CRC32);
        let pairs =
            [("x-amz-trailer", "X-Amz-Checksum-Crc64nvme"), ("x-amz-sdk-checksum-algorithm", "CRC64NVME")];
        let trailer = parse(&pairs).unwrap();
        assert_eq!(trailer.trailer, Some(ChecksumAlgorithm::Crc64Nvme));
        assert_eq!((trailer.algorithm, trailer.value), (trailer.trailer, None));
        // These headers only look like values.
        let others = [("x-amz-checksum-mode", "ENABLED"), ("x-amz-checksum-type", "FULL_OBJECT")];
        assert_eq!(parse(&others).unwrap(), ChecksumRequest::default());
    }

    #[test]
    fn more_than_one_is_too_many() {
        let several = "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.";
        for pairs in [
            &[("x-amz-checksum-crc32", CRC32), ("x-amz-checksum-sha256", SHA256)][..],
            &[("x-amz-checksum-crc32", CRC32), ("x-amz-checksum-crc32", CRC32)],
            &[("x-amz-checksum-crc32", ""), ("x-amz-checksum-sha1", "")],
            &[("x-amz-trailer", "x-amz-checksum-crc32,x-amz-checksum-sha1")],
            &[("x-amz-trailer", "x-amz-checksum-crc32"), ("x-amz-trailer", "x-amz-checksum-crc32")],
        ] {
            assert_eq!(refusal(parse(pairs)), invalid_request(several));
        }
        let both = [("x-amz-checksum-crc32", CRC32), ("x-amz-trailer", "x-amz-checksum-crc32")];
        assert_eq!(refusal(parse(&both)), invalid_request("Expecting a single x-amz-checksum- header"));
    }

    #[test]
    fn values_that_are_none_are_refused() {
        for (name, value) in [
            ("x-amz-checksum-crc32", ""),
            ("x-amz-checksum-crc32", "AAAA"),
            ("x-amz-checksum-crc32", "not base64"),
            ("x-amz-checksum-sha256", CRC32),
        ] {
            let message = format!("Value for {name} header is invalid.");
            assert_eq!(refusal(parse(&[(name, value)])), invalid_request(&message));
        }
        assert_eq!(
            refusal(parse(&[("x-amz-checksum-crc16", "AAA=")])),
            invalid_request("The algorithm type you specified in x-amz-checksum- header is invalid.")
        );
        for trailer in ["x-amz-checksum-crc16", "x-amz-meta-x", "x-amz-checksum-"] {
            assert_eq!(
                refusal(parse(&[("x-amz-trailer", trailer)])),
                invalid_request("The value specified in the x-amz-trailer header is not supported")
            );
        }
    }

    #[test]
    fn the_sdk_must_mean_the_same() {
        let sdk = "x-amz-sdk-checksum-algorithm";
        let wrong = invalid_request("Value for x-amz-sdk-checksum-algorithm header is invalid.");
        assert_eq!(refusal(parse(&[(sdk, "CRC32C"), ("x-amz-checksum-crc32", CRC32)])), wrong);
        assert_eq!(refusal(parse(&[(sdk, "CRC16"), ("x-amz-checksum-crc32", CRC32)])), wrong);
        assert_eq!(refusal(parse(&[(sdk, "SHA1"), ("x-amz-trailer", "x-amz-checksum-crc32")])), wrong);
        assert_eq!(
            refusal(parse(&[(sdk, "CRC32")])),
            invalid_request(
                "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers \
                 were found."
            )
        );
    }

    #[test]
    fn content_md5_is_sixteen_bytes() {
        let request = parse(&[("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")]).unwrap();
        assert_eq!(request.content_md5.unwrap()[..2], [0xd4, 0x1d]);
        let complete =
            headers(&[("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="), ("x-amz-checksum-crc32", "AAAAAA==-2")]);
        assert_eq!(ChecksumRequest::parse_content_md5(&complete).unwrap(), request);
        for bad in ["", "YWJj", "1B2M2Y8AsgTpgAmY7PhCfg", "d41d8cd98f00b204e9800998ecf8427e"] {
            let error = parse(&[("content-md5", bad)]).unwrap_err();
            assert_eq!(
                (error.code(), error.message()),
                (ErrorCode::InvalidDigest, "The Content-MD5 you specified was invalid.")
            );
            assert_eq!(error.details(), [("Content-MD5", bad.to_owned())]);
        }
    }

    #[test]
    fn uploads_choose_algorithm_and_type() {
        use ChecksumAlgorithm::{Crc32, Crc64Nvme, Sha256};
        use ChecksumType::{Composite, FullObject};
        let upload = |algorithm: Option<&str>, kind: Option<&str>| {
            let pairs = [("x-amz-checksum-algorithm", algorithm), ("x-amz-checksum-type", kind)];
            let given: Vec<_> = pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            upload_checksum(&headers(&given))
        };
        assert_eq!(upload(None, None).unwrap(), None);
        assert_eq!(upload(Some("crc32"), None).unwrap(), Some((Crc32, Composite)));
        assert_eq!(upload(Some("CRC32"), Some("FULL_OBJECT")).unwrap(), Some((Crc32, FullObject)));
        assert_eq!(upload(Some("CRC64NVME"), None).unwrap(), Some((Crc64Nvme, FullObject)));
        assert_eq!(upload(Some("SHA256"), Some("COMPOSITE")).unwrap(), Some((Sha256, Composite)));
        for (algorithm, kind, message) in [
            (
                Some("SHA256"),
                Some("FULL_OBJECT"),
                "The FULL_OBJECT checksum type cannot be used with the sha256 checksum algorithm.",
            ),
            (
                Some("CRC64NVME"),
                Some("COMPOSITE"),
                "The COMPOSITE checksum type cannot be used with the crc64nvme checksum algorithm.",
            ),
            (
                None,
                Some("COMPOSITE"),
                "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.",
            ),
            (Some("SHA1"), Some("PARTIAL"), "Value for x-amz-checksum-type header is invalid."),
        ] {
            assert_eq!(refusal(upload(algorithm, kind)), invalid_request(message));
        }
        let (code, message) = refusal(upload(Some("CRC16"), None));
        assert_eq!(code, "InvalidRequest");
        assert_eq!(
            message,
            "Checksum algorithm provided is unsupported. Please try again with any of the valid types: \
             [CRC32, CRC32C, CRC64NVME, MD5, SHA1, SHA256, SHA512, XXHASH128, XXHASH3, XXHASH64]"
        );
        assert_eq!(copy_checksum(&headers(&[("x-amz-checksum-algorithm", "SHA256")])).unwrap(), Some(Sha256));
    }

    #[test]
    fn completions_name_the_whole() {
        assert_eq!(complete(&[]).unwrap(), CompleteChecksum::default());
        let crc = ChecksumValue::from_base64(ChecksumAlgorithm::Crc32, CRC32).unwrap();
        let sha = ChecksumValue::from_base64(ChecksumAlgorithm::Sha256, SHA256).unwrap();
        let plain = complete(&[("x-amz-checksum-crc32", CRC32), ("x-amz-mp-object-size", "12")]).unwrap();
        assert_eq!(plain.checksum, Some(Checksum::full_object(crc)));
        assert_eq!(plain.object_size_bytes, Some(12));
        let counted = complete(&[("x-amz-checksum-sha256", &format!("{SHA256}-3"))]).unwrap();
        assert_eq!(counted.checksum, Some(Checksum::composite(sha, 3)));
        let named =
            complete(&[("x-amz-checksum-sha256", SHA256), ("x-amz-checksum-type", "COMPOSITE")]).unwrap();
        let uncounted = Checksum { value: sha, checksum_type: ChecksumType::Composite, parts: None };
        assert_eq!((named.checksum, named.checksum_type), (Some(uncounted), Some(ChecksumType::Composite)));
        let counted = format!("{CRC32}-3");
        assert_eq!(
            refusal(complete(&[("x-amz-checksum-crc32", &counted), ("x-amz-checksum-type", "FULL_OBJECT")])),
            invalid_request("Value for x-amz-checksum-crc32 header is invalid.")
        );
        for bad in [format!("{CRC32}-x"), format!("{CRC32}-"), "-3".to_owned()] {
            assert_eq!(
                refusal(complete(&[("x-amz-checksum-crc32", &bad)])),
                invalid_request("Value for x-amz-checksum-crc32 header is invalid.")
            );
        }
        for bad in ["size", "-1"] {
            let message = format!("Value for x-amz-mp-object-size header is invalid: '{bad}'");
            assert_eq!(refusal(complete(&[("x-amz-mp-object-size", bad)])), invalid_request(&message));
        }
    }

    #[test]
    fn what_differs_is_a_bad_digest() {
        for (of, expected) in
            [(Md5Of::Object, "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"), (Md5Of::Other, "CgoKCgoKCgoKCgoKCgoKCg==")]
        {
            assert!(verify_content_md5([1; 16], [1; 16], of).is_ok());
            let error = verify_content_md5([10; 16], [1; 16], of).unwrap_err();
            assert_eq!(error.code(), ErrorCode::BadDigest);
            assert_eq!(error.message(), "The Content-MD5 you specified did not match what we received.");
            assert_eq!(error.details()[0], ("CalculatedDigest", "AQEBAQEBAQEBAQEBAQEBAQ==".to_owned()));
            assert_eq!(error.details()[1], ("ExpectedDigest", expected.to_owned()));
        }
        let value = |byte| ChecksumValue::new(ChecksumAlgorithm::Crc64Nvme, &[byte; 8]).unwrap();
        assert!(verify_checksum(&value(1), &value(1)).is_ok());
        assert_eq!(
            refusal(verify_checksum(&value(1), &value(2))),
            ("BadDigest", "The CRC64NVME you specified did not match the calculated checksum.".to_owned())
        );
    }

    #[test]
    fn the_mode_is_a_word() {
        assert!(checksum_mode_enabled(&headers(&[("x-amz-checksum-mode", "enabled")])).unwrap());
        assert!(!checksum_mode_enabled(&HeaderMap::new()).unwrap());
        for bad in ["true", ""] {
            assert_eq!(
                refusal(checksum_mode_enabled(&headers(&[("x-amz-checksum-mode", bad)]))),
                invalid_request("Value for x-amz-checksum-mode header is invalid.")
            );
        }
    }
}
