//! Tests with bodies that are cut at any place, and with wrong bodies.

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proptest::prelude::*;

use super::*;
use crate::auth::ChunkSigner;
use crate::auth::sign::{Signer, Unsigned};
use crate::time::parse_iso_basic;

const SIGNED: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
const SIGNED_TRAILER: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";

fn headers(list: &[(&str, &str)]) -> HeaderMap {
    list.iter()
        .map(|(name, value)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
        })
        .collect()
}

/// Makes a chunk signer whose seed is that of the examples in AWS's documentation.
fn signer(content_sha256: &str) -> ChunkSigner {
    let signer = Signer {
        access_key: "AKIAIOSFODNN7EXAMPLE",
        secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        security_token: None,
        region: "us-east-1",
    };
    let mut map = headers(&[
        ("host", "s3.amazonaws.com"),
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ("content-encoding", "aws-chunked"),
        ("x-amz-decoded-content-length", "66560"),
    ]);
    let extra = if content_sha256 == SIGNED {
        ("content-length", "66824")
    } else {
        ("x-amz-trailer", "x-amz-checksum-crc32c")
    };
    map.insert(extra.0, HeaderValue::from_static(extra.1));
    let request = Unsigned {
        method: &Method::PUT,
        raw_path: "/examplebucket/chunkObject.txt",
        raw_query: "",
        virtual_bucket: None,
    };
    signer
        .sign_headers(&request, &mut map, content_sha256, parse_iso_basic("20130524T000000Z").unwrap())
        .unwrap()
}

/// A framing of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Signed,
    SignedTrailer,
    UnsignedTrailer,
}

impl Form {
    const ALL: [Self; 3] = [Self::Signed, Self::SignedTrailer, Self::UnsignedTrailer];

    fn signer(self) -> Option<ChunkSigner> {
        match self {
            Self::Signed => Some(signer(SIGNED)),
            Self::SignedTrailer => Some(signer(SIGNED_TRAILER)),
            Self::UnsignedTrailer => None,
        }
    }

    fn has_trailer(self) -> bool {
        self != Self::Signed
    }

    fn encode(self, data: &[u8], chunk_size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = ChunkEncoder::new(self.signer());
        for chunk in data.chunks(chunk_size) {
            encoder.chunk(chunk, &mut out);
        }
        let trailers: &[(&str, &str)] = &[("x-amz-checksum-crc32c", "sOO8/Q==")];
        encoder.finish(self.has_trailer().then_some(trailers), &mut out);
        out
    }

    fn decoder(self, decoded_length: usize) -> BodyDecoder {
        let length = decoded_length.to_string();
        let mut map = headers(&[("x-amz-decoded-content-length", &length)]);
        if self.has_trailer() {
            map.insert("x-amz-trailer", HeaderValue::from_static("X-Amz-Checksum-Crc32c"));
        }
        let mode = PayloadMode::Streaming { signer: self.signer(), trailer: self.has_trailer() };
        BodyDecoder::new(mode, &map, None).unwrap()
    }
}

/// Decodes `body` in pieces of these sizes, which are repeated.
fn decode(mut decoder: BodyDecoder, body: &[u8], sizes: &[usize]) -> Result<(Vec<u8>, Trailers)> {
    let mut payload = Vec::new();
    let mut body = body;
    let mut sizes = sizes.iter().cycle();
    while !body.is_empty() {
        let (piece, rest) = body.split_at((*sizes.next().unwrap()).clamp(1, body.len()));
        body = rest;
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(data) = decoder.next_chunk()? {
            assert!(!data.is_empty());
            payload.extend_from_slice(&data);
        }
    }
    decoder.finish(None).map(|trailers| (payload, trailers))
}

fn whole(decoder: BodyDecoder, body: &[u8]) -> Result<(Vec<u8>, Trailers)> {
    decode(decoder, body, &[usize::MAX])
}

fn code(result: Result<(Vec<u8>, Trailers)>) -> ErrorCode {
    result.unwrap_err().code()
}

/// The two chunked examples of the S3 API reference, byte for byte.
#[test]
fn known_answers() {
    let data = vec![b'a'; 65 << 10];
    let a64 = "a".repeat(64 << 10);
    let a1 = "a".repeat(1 << 10);
    let signed = format!(
        "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n{a64}\r\n\
         400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n{a1}\r\n\
         0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n"
    );
    assert_eq!(signed.len(), 66824);
    assert_eq!(Form::Signed.encode(&data, 64 << 10), signed.as_bytes());
    assert_eq!(
        whole(Form::Signed.decoder(66560), signed.as_bytes()).unwrap(),
        (data.clone(), Trailers::default())
    );

    let trailer =
        "x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n";
    let chunks = format!(
        "10000;chunk-signature=b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n{a64}\r\n\
         400;chunk-signature=1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n{a1}\r\n\
         0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n\
         x-amz-checksum-crc32c:sOO8/Q=="
    );
    assert_eq!(Form::SignedTrailer.encode(&data, 64 << 10), format!("{chunks}\r\n{trailer}\r\n").as_bytes());
    // The trailers as SDKs send them, and as minio-go does.
    for end in [format!("\r\n{trailer}\r\n"), format!("\n\r\n{trailer}\r\n")] {
        let (payload, trailers) =
            whole(Form::SignedTrailer.decoder(66560), format!("{chunks}{end}").as_bytes()).unwrap();
        assert_eq!(payload, data);
        assert_eq!(trailers.iter().collect::<Vec<_>>(), [("x-amz-checksum-crc32c", "sOO8/Q==")]);
    }
}

#[test]
fn unsigned_trailers() {
    let decode = |body: &str| whole(Form::UnsignedTrailer.decoder(5), body.as_bytes());
    for good in [
        "5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:sOO8/Q==\r\n\r\n",
        "5\r\nhello\r\n0\r\nX-Amz-Checksum-Crc32c : sOO8/Q== \r\n\r\n",
        "005;ext=1\r\nhello\r\n0;\r\nx-amz-checksum-crc32c:sOO8/Q==\n\r\n\r\n",
    ] {
        let (payload, trailers) = decode(good).unwrap();
        assert_eq!(payload, b"hello");
        assert_eq!(trailers.get("x-amz-checksum-crc32c"), Some("sOO8/Q=="));
    }
    for (bad, expected) in [
        ("5\r\nhello\r\n0\r\n\r\n", ErrorCode::MalformedTrailerError),
        ("5\r\nhello\r\n0\r\nx-amz-checksum-sha1:x\r\n\r\n", ErrorCode::MalformedTrailerError),
        ("5\r\nhello\r\n0\r\nx-amz-checksum-crc32c\r\n\r\n", ErrorCode::MalformedTrailerError),
        (
            "5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:a\r\nx-amz-checksum-crc32c:a\r\n\r\n",
            ErrorCode::MalformedTrailerError,
        ),
        (
            "5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:a\r\nx-amz-trailer-signature:b\r\n\r\n",
            ErrorCode::MalformedTrailerError,
        ),
        ("5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:a\r\n\n", ErrorCode::MalformedTrailerError),
        ("5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:a", ErrorCode::IncompleteBody),
        ("5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:a\r\n\r\nx", ErrorCode::IncompleteBody),
        ("5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:a\r\n\r\n\r\n", ErrorCode::IncompleteBody),
        ("2\r\nhe\r\n3\r\nllo\r\n0\r\n", ErrorCode::InvalidChunkSizeError),
        ("5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:a\r\n", ErrorCode::IncompleteBody),
        ("5\r\nhello\r\n0\r\n", ErrorCode::IncompleteBody),
        ("5\r\nhello\r\n0\r\n\r\n", ErrorCode::MalformedTrailerError),
        ("5\r\nhello\r\n", ErrorCode::IncompleteBody),
        ("5\r\nhello", ErrorCode::IncompleteBody),
        ("5\r\nhell", ErrorCode::IncompleteBody),
        ("5\r\nhelloo\r\n0\r\n", ErrorCode::IncompleteBody),
        ("5\r\nhello\n0\r\n", ErrorCode::IncompleteBody),
        ("5\nhello\r\n0\r\n", ErrorCode::IncompleteBody),
        ("6\r\nhello!\r\n0\r\n", ErrorCode::IncompleteBody),
        ("4\r\nhell\r\n0\r\n", ErrorCode::IncompleteBody),
        ("+5\r\nhello\r\n0\r\n", ErrorCode::IncompleteBody),
        ("-5\r\nhello\r\n0\r\n", ErrorCode::IncompleteBody),
        ("\r\nhello\r\n0\r\n", ErrorCode::IncompleteBody),
        ("ffffffffffffffff\r\nhello\r\n0\r\n", ErrorCode::IncompleteBody),
        ("10000000000000005\r\nhello\r\n0\r\n", ErrorCode::IncompleteBody),
        ("", ErrorCode::IncompleteBody),
    ] {
        assert_eq!(code(decode(bad)), expected, "{bad:?}");
    }
}

#[test]
fn lines_have_limits() {
    let mut decoder = Form::UnsignedTrailer.decoder(5);
    for _ in 0..crate::limits::CHUNK_HEADER_BYTES_MAX - 1 {
        decoder.push(Bytes::from_static(b"0"));
        assert!(decoder.next_chunk().unwrap().is_none());
    }
    decoder.push(Bytes::from_static(b"0"));
    assert_eq!(decoder.next_chunk().unwrap_err().code(), ErrorCode::IncompleteBody);

    let long = format!(
        "5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:{}\r\n\r\n",
        "x".repeat(crate::limits::TRAILER_BYTES_MAX)
    );
    for sizes in [&[1][..], &[usize::MAX]] {
        let verdict = decode(Form::UnsignedTrailer.decoder(5), long.as_bytes(), sizes);
        assert_eq!(code(verdict), ErrorCode::MalformedTrailerError);
    }
    let empty_lines = format!("5\r\nhello\r\n0\r\n{}", "x-amz-checksum-crc32c:a\n\r\n".repeat(500));
    assert_eq!(
        code(whole(Form::UnsignedTrailer.decoder(5), empty_lines.as_bytes())),
        ErrorCode::MalformedTrailerError
    );
}

#[test]
fn all_trailers_together_have_a_limit() {
    let mut headers = HeaderMap::new();
    headers.insert("x-amz-trailer", HeaderValue::from_static("x-amz-checksum-crc32c"));
    let mut section = trailers::TrailerSection::new(&headers, false).unwrap();
    let (room, line) = (section.room(), b"x-amz-checksum-crc32c:aaaaaa==\r\n");
    assert!(!section.line(line).unwrap());
    assert_eq!(section.room(), room - line.len());
}

#[test]
fn lengths_are_told() {
    let error = whole(Form::UnsignedTrailer.decoder(5), b"4\r\nhell\r\n0\r\n").unwrap_err();
    assert_eq!(
        error.details(),
        [("NumberBytesExpected", "5".to_owned()), ("NumberBytesProvided", "4".to_owned())]
    );
    let error = whole(Form::UnsignedTrailer.decoder(5), b"ff\r\nhell").unwrap_err();
    assert_eq!((error.message(), error.details()), ("The request body terminated unexpectedly", &[][..]));
}

#[test]
fn a_wrong_chunk_fails_when_it_ends() {
    let data = vec![b'a'; 65 << 10];
    let mut body = Form::Signed.encode(&data, 64 << 10);
    body[100] ^= 1;
    let mut decoder = Form::Signed.decoder(data.len());
    let first_chunk = 87 + (64 << 10);
    decoder.push(Bytes::copy_from_slice(&body[..first_chunk]));
    assert_eq!(decoder.next_chunk().unwrap().map(|piece| piece.len()), Some((64 << 10) - 1));
    assert!(decoder.next_chunk().unwrap().is_none());
    decoder.push(Bytes::copy_from_slice(&body[first_chunk..]));
    let error = decoder.next_chunk().unwrap_err();
    assert_eq!(error.code(), ErrorCode::SignatureDoesNotMatch);
    let names: Vec<_> = error.details().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["AWSAccessKeyId", "StringToSign", "SignatureProvided", "StringToSignBytes"]);
    assert!(
        error.details()[1].1.starts_with("AWS4-HMAC-SHA256-PAYLOAD\n20130524T000000Z\n20130524/us-east-1/")
    );
}

#[test]
fn signatures_cannot_be_left_out() {
    let data = b"hello";
    let good = String::from_utf8(Form::SignedTrailer.encode(data, 100)).unwrap();
    let check = |body: &str| code(whole(Form::SignedTrailer.decoder(5), body.as_bytes()));
    assert_eq!(check(&good.replacen("5;chunk-signature=", "5;chunk=", 1)), ErrorCode::IncompleteBody);
    assert_eq!(check("5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:sOO8/Q==\r\n\r\n"), ErrorCode::IncompleteBody);
    let (start, _) = good.split_once("x-amz-trailer-signature").unwrap();
    assert_eq!(check(start), ErrorCode::IncompleteBody);
    assert_eq!(check(&format!("{start}\r\n")), ErrorCode::MalformedTrailerError);
    assert_eq!(check(&good.replace("sOO8", "AAAA")), ErrorCode::SignatureDoesNotMatch);
    let twice = format!("{}x-amz-trailer-signature:x\r\n\r\n", good.strip_suffix("\r\n").unwrap());
    assert_eq!(check(&twice), ErrorCode::MalformedTrailerError);
    // A body that was cut after a whole chunk is noticed even if its length was changed to fit.
    let (start, _) = good.split_once("0;chunk").unwrap();
    assert_eq!(check(start), ErrorCode::IncompleteBody);
}

#[test]
fn small_chunks_are_refused_but_for_the_last() {
    let data = vec![7; 20_000];
    let error = whole(Form::Signed.decoder(data.len()), &Form::Signed.encode(&data, 8191)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidChunkSizeError);
    assert_eq!(error.details(), [("Chunk", "2".to_owned()), ("BadChunkSize", "8191".to_owned())]);
    assert!(whole(Form::Signed.decoder(data.len()), &Form::Signed.encode(&data, 8192)).is_ok());
    let unsigned = Form::UnsignedTrailer;
    let error = whole(unsigned.decoder(data.len()), &unsigned.encode(&data, 100)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidChunkSizeError);
}

#[test]
fn declarations() {
    let streaming = |list: &[(&str, &str)], trailer| {
        BodyDecoder::new(PayloadMode::Streaming { signer: None, trailer }, &headers(list), Some(9))
            .map(|d| d.decoded_length())
    };
    let length = ("x-amz-decoded-content-length", "5");
    assert_eq!(streaming(&[length], true).unwrap(), 5);
    for bad in [&[][..], &[("x-amz-decoded-content-length", "x")]] {
        assert_eq!(streaming(bad, true).unwrap_err().code(), ErrorCode::MissingContentLength);
    }
    let negative = streaming(&[("x-amz-decoded-content-length", "-5")], true).unwrap_err();
    assert_eq!(negative.code(), ErrorCode::InvalidArgument);
    let unsupported = streaming(&[length, ("x-amz-trailer", "x-amz-meta-a")], true).unwrap_err();
    assert_eq!(unsupported.code(), ErrorCode::InvalidRequest);
    assert_eq!(unsupported.message(), "The value specified in the x-amz-trailer header is not supported");
    let refused = streaming(&[length, ("x-amz-trailer", "x-amz-checksum-crc32")], false).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::MalformedTrailerError);

    let plain =
        |list: &[(&str, &str)], length| BodyDecoder::new(PayloadMode::Unsigned, &headers(list), length);
    assert_eq!(plain(&[], Some(7)).unwrap().decoded_length(), 7);
    assert_eq!(plain(&[], None).err().unwrap().code(), ErrorCode::MissingContentLength);
    let te = plain(&[("transfer-encoding", "chunked")], None).err().unwrap();
    assert_eq!((te.code(), te.details()[0].1.as_str()), (ErrorCode::NotImplemented, "Transfer-Encoding"));
}

#[test]
fn plain_bodies() {
    let hash = crate::auth::encoding::sha256(b"hello");
    let decode = |mode, length, body: &[u8]| {
        whole(BodyDecoder::new(mode, &HeaderMap::new(), Some(length)).unwrap(), body)
    };
    assert_eq!(decode(PayloadMode::Unsigned, 5, b"hello").unwrap().0, b"hello");
    assert_eq!(decode(PayloadMode::Sha256(hash), 5, b"hello").unwrap().0, b"hello");
    for (length, body) in [(5, &b"hell"[..]), (5, b"hello!"), (0, b"h"), (1, b"")] {
        assert_eq!(code(decode(PayloadMode::Unsigned, length, body)), ErrorCode::IncompleteBody);
    }
    let error = decode(PayloadMode::Sha256(hash), 5, b"hallo").unwrap_err();
    assert_eq!(error.code(), ErrorCode::XAmzContentSHA256Mismatch);
    let expected = [
        ("ClientComputedContentSHA256", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"),
        ("S3ComputedContentSHA256", "d3751d33f9cd5049c4af2b462735457e4d3baf130bcbb87f389e349fbaeb20b9"),
    ];
    assert_eq!(error.details(), expected.map(|(n, v)| (n, v.to_owned())));
    assert_eq!(code(decode(PayloadMode::Sha256(hash), 0, b"")), ErrorCode::XAmzContentSHA256Mismatch);
}

/// A hash that was not computed does not match.
#[test]
fn sha256_that_is_left_to_the_caller() {
    let hash = crate::auth::encoding::sha256(b"hello");
    let finish = |calculated| {
        let mut decoder = BodyDecoder::new(PayloadMode::Sha256(hash), &HeaderMap::new(), Some(5)).unwrap();
        assert!(decoder.leave_sha256());
        assert_eq!(decoder.sha256(), Some(hash));
        decoder.push(Bytes::from_static(b"hello"));
        assert_eq!(decoder.next_chunk().unwrap().unwrap(), "hello");
        assert!(!decoder.leave_sha256(), "the body has begun");
        decoder.finish(calculated).map_err(|error| error.code())
    };
    assert!(finish(Some(hash)).is_ok());
    assert_eq!(finish(Some([0; 32])).unwrap_err(), ErrorCode::XAmzContentSHA256Mismatch);
    assert_eq!(finish(None).unwrap_err(), ErrorCode::InternalError);

    let mut unsigned = BodyDecoder::new(PayloadMode::Unsigned, &HeaderMap::new(), Some(0)).unwrap();
    assert!(!unsigned.leave_sha256());
    let mut begun = BodyDecoder::new(PayloadMode::Sha256(hash), &HeaderMap::new(), Some(5)).unwrap();
    begun.push(Bytes::from_static(b"hello"));
    begun.next_chunk().unwrap();
    assert!(!begun.leave_sha256());
    assert!(begun.finish(Some([0; 32])).is_ok(), "what it computed itself counts");
}

#[test]
fn payload_that_is_left_behind_is_not_a_whole_body() {
    let mut decoder = BodyDecoder::new(PayloadMode::Unsigned, &HeaderMap::new(), Some(5)).unwrap();
    decoder.push(Bytes::from_static(b"hello"));
    assert_eq!(decoder.finish(None).unwrap_err().code(), ErrorCode::InternalError);
}

#[test]
fn pieces_are_slices_of_the_input() {
    let body = Bytes::from(Form::UnsignedTrailer.encode(&[7; 1000], 1000));
    let mut decoder = Form::UnsignedTrailer.decoder(1000);
    decoder.push(body.clone());
    let piece = decoder.next_chunk().unwrap().unwrap();
    assert_eq!(piece.as_ptr(), body[5..].as_ptr());
}

fn forms() -> impl Strategy<Value = Form> {
    prop::sample::select(Form::ALL.as_slice())
}

proptest! {
    #[test]
    fn cuts_do_not_matter(
        form in forms(),
        data in prop::collection::vec(any::<u8>(), 0..20_000),
        sizes in prop::collection::vec(1usize..2000, 1..8),
        chunk_size in 8192usize..30_000,
        damage in prop::option::of((any::<prop::sample::Index>(), 1u8..)),
    ) {
        let mut body = form.encode(&data, chunk_size);
        if let Some((at, mask)) = damage {
            let at = at.index(body.len());
            body[at] ^= mask;
        }
        let all = whole(form.decoder(data.len()), &body);
        let cut = decode(form.decoder(data.len()), &body, &sizes);
        let one_by_one = decode(form.decoder(data.len()), &body, &[1]);
        for other in [cut, one_by_one] {
            match (&all, other) {
                (Ok(all), Ok(other)) => prop_assert_eq!(all, &other),
                (Err(all), Err(other)) => {
                    prop_assert_eq!(all.code(), other.code());
                    prop_assert_eq!(all.details(), other.details());
                }
                (all, other) => prop_assert!(false, "{:?} {:?}", all.is_ok(), other.is_ok()),
            }
        }
        if damage.is_none() {
            let (payload, trailers) = all.unwrap();
            prop_assert_eq!(payload, data);
            prop_assert_eq!(trailers.is_empty(), form == Form::Signed);
        } else if form != Form::UnsignedTrailer && let Ok((payload, trailers)) = all {
            // Only a byte without a meaning can have changed: a bare line feed, a blank, the case
            // of a name.
            prop_assert_eq!(payload, data);
            prop_assert!(trailers.get("x-amz-checksum-crc32c").is_none_or(|value| value == "sOO8/Q=="));
        }
    }

    #[test]
    fn garbage_is_refused(
        form in forms(),
        body in prop::collection::vec(prop::sample::select(b"05a;\r\n:x=".as_slice()), 0..60),
    ) {
        let verdict = whole(form.decoder(5), &body);
        prop_assert!(verdict.is_err());
    }
}
