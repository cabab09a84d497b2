//! Tests with signatures of other programs: the examples in AWS's documentation, and botocore's.

use super::*;

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const HOST: (&str, &str) = ("Host", "examplebucket.s3.amazonaws.com");
const DATE: (&str, &str) = ("x-amz-date", "20130524T000000Z");

/// The examples of the S3 API reference, "Signature calculations for the Authorization header:
/// transferring payload in a single chunk".
fn examples() -> [Request; 4] {
    let hash = ("x-amz-content-sha256", EMPTY);
    let put_hash = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    let put = [
        HOST,
        ("Date", "Fri, 24 May 2013 00:00:00 GMT"),
        DATE,
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ("x-amz-content-sha256", put_hash),
    ];
    [
        Request::new("GET", "/test.txt", &[HOST, ("Range", "bytes=0-9"), hash, DATE]).signed(
            "host;range;x-amz-content-sha256;x-amz-date",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        // The path is sent in this form, but signed as `/test%24file.text`.
        Request::new("PUT", "/test$file.text", &put).signed(
            "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        Request::new("GET", "/?lifecycle", &[HOST, hash, DATE]).signed(
            "host;x-amz-content-sha256;x-amz-date",
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        Request::new("GET", "/?max-keys=2&prefix=J", &[HOST, hash, DATE]).signed(
            "host;x-amz-content-sha256;x-amz-date",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ]
}

#[test]
fn sigv4_headers() {
    let keys = SigningKeyCache::new();
    for example in examples() {
        // The first round makes a key, the second takes it from the cache.
        for _ in 0..2 {
            let mode = example.verify_as(&policy(SigV2::Off), &keys).unwrap();
            assert!(matches!(mode, PayloadMode::Sha256(_)), "{mode:?}");
        }
    }
}

#[test]
fn anything_signed_that_changes_is_noticed() {
    for example in examples() {
        let refused = |change: &dyn Fn(&mut Request)| {
            let mut changed = example.clone();
            change(&mut changed);
            assert_eq!(changed.refusal().0, ErrorCode::SignatureDoesNotMatch, "{changed:?}");
        };
        refused(&|r| r.method = Method::DELETE);
        refused(&|r| r.uri = r.uri.replacen('/', "/x", 1));
        refused(&|r| r.uri.push_str(if r.uri.contains('?') { "&acl" } else { "?acl" }));
        refused(&|r| r.set("host", "otherbucket.s3.amazonaws.com"));
        refused(&|r| r.set("x-amz-content-sha256", "UNSIGNED-PAYLOAD"));
        refused(&|r| r.set("x-amz-date", "20130524T000001Z"));
    }
}

/// The example of the S3 API reference, "Authenticating requests: using query parameters".
#[test]
fn sigv4_presigned() {
    let uri = "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2F\
               us-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&\
               X-Amz-SignedHeaders=host&X-Amz-Signature=\
               aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
    let mut request = Request::new("GET", uri, &[HOST]);
    assert!(matches!(request.verify(), Ok(PayloadMode::Unsigned)));
    request.now = at("20130525T000000Z");
    assert!(request.verify().is_ok());
    request.now = at("20130525T000001Z");
    assert_eq!(request.refusal().1, "Request has expired");
}

/// The examples of the S3 API reference, "... transferring payload in multiple chunks" and "...
/// trailing headers".
#[test]
fn sigv4_chunks() {
    let data = vec![b'a'; 65 << 10];
    let example = |content_sha256: &str, headers: &[(&str, &str)], signed: &str, seed: &str| {
        let mut request = Request::new("PUT", "/examplebucket/chunkObject.txt", headers);
        request.set("host", "s3.amazonaws.com");
        request.set("x-amz-date", "20130524T000000Z");
        request.set("x-amz-storage-class", "REDUCED_REDUNDANCY");
        request.set("x-amz-content-sha256", content_sha256);
        request.set("content-encoding", "aws-chunked");
        request.set("x-amz-decoded-content-length", "66560");
        match request.signed(signed, seed).verify().unwrap() {
            PayloadMode::Streaming { signer, .. } => signer.unwrap(),
            mode => panic!("{mode:?}"),
        }
    };
    let signatures = |signer: &mut ChunkSigner| {
        [&data[..64 << 10], &data[64 << 10..], b""].map(|chunk| {
            let signature = signer.sign_chunk(&encoding::sha256(chunk));
            String::from_utf8(signature.to_vec()).unwrap()
        })
    };

    let mut signer = example(
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        &[("content-length", "66824")],
        "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;\
         x-amz-storage-class",
        "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
    );
    assert_eq!(
        signatures(&mut signer),
        [
            "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
            "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
            "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
        ]
    );

    let mut signer = example(
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
        &[("x-amz-trailer", "x-amz-checksum-crc32c")],
        "content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;\
         x-amz-trailer",
        "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
    );
    assert_eq!(
        signatures(&mut signer),
        [
            "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
            "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
            "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
        ]
    );
    assert_eq!(
        signer.sign_trailers(b"x-amz-checksum-crc32c:sOO8/Q==\n").as_slice(),
        b"d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"
    );
}

type Sigv2Example =
    (&'static str, &'static str, Option<&'static str>, &'static [(&'static str, &'static str)], &'static str);

/// The examples of the S3 user guide, "Signing and authenticating REST requests": method, URI,
/// bucket in the host, headers, signature.
#[test]
fn sigv2_headers() {
    let examples: [Sigv2Example; 7] = [
        (
            "GET",
            "/photos/puppy.jpg",
            Some("johnsmith"),
            &[("Date", "Tue, 27 Mar 2007 19:36:42 +0000")],
            "bWq2s1WEIj+Ydj0vQ697zp+IXMU=",
        ),
        (
            "PUT",
            "/photos/puppy.jpg",
            Some("johnsmith"),
            &[("Content-Type", "image/jpeg"), ("Date", "Tue, 27 Mar 2007 21:15:45 +0000")],
            "MyyxeRY7whkBe+bq8fHCL/2kKUg=",
        ),
        (
            "GET",
            "/?prefix=photos&max-keys=50&marker=puppy",
            Some("johnsmith"),
            &[("Date", "Tue, 27 Mar 2007 19:42:41 +0000")],
            "htDYFYduRNen8P9ZfE/s9SuKy0U=",
        ),
        (
            "GET",
            "/?acl",
            Some("johnsmith"),
            &[("Date", "Tue, 27 Mar 2007 19:44:46 +0000")],
            "c2WLPFtWHVgbEmeEG93a4cG37dM=",
        ),
        (
            "PUT",
            "/db-backup.dat.gz",
            Some("static.johnsmith.net"),
            &[
                ("Date", "Tue, 27 Mar 2007 21:06:08 +0000"),
                ("x-amz-acl", "public-read"),
                ("content-type", "application/x-download"),
                ("Content-MD5", "4gJE4saaMU4BqNR0kLY+lw=="),
                ("X-Amz-Meta-ReviewedBy", "joe@johnsmith.net"),
                ("X-Amz-Meta-ReviewedBy", "jane@johnsmith.net"),
                ("X-Amz-Meta-FileChecksum", "0x02661779"),
                ("X-Amz-Meta-ChecksumAlgorithm", "crc32"),
            ],
            "ilyl83RwaSoYIEdixDQcA4OnAnc=",
        ),
        ("GET", "/", None, &[("Date", "Wed, 28 Mar 2007 01:29:59 +0000")], "qGdzdERIC03wnaRNKh6OqZehG9s="),
        (
            "GET",
            "/dictionary/fran%C3%A7ais/pr%c3%a9f%c3%a8re",
            None,
            &[("Date", "Wed, 28 Mar 2007 01:49:49 +0000")],
            "DNEZGsoieTZ92F3bUfSPQcbGmlM=",
        ),
    ];
    for (method, uri, bucket, headers, signature) in examples {
        let mut request = Request::new(method, uri, headers);
        request.now =
            crate::time::parse_http_date(headers.iter().find(|h| h.0 == "Date").unwrap().1).unwrap();
        request.virtual_bucket = bucket;
        request.set("authorization", &format!("AWS {ACCESS_KEY}:{signature}"));
        assert!(matches!(request.verify(), Ok(PayloadMode::Unsigned)), "{uri}: {:?}", request.verify());
        request.uri.push_str(if request.uri.contains('?') { "&uploads" } else { "?uploads" });
        assert_eq!(request.refusal().0, ErrorCode::SignatureDoesNotMatch, "{uri}");
    }
}

#[test]
fn sigv2_presigned() {
    let uri = "/photos/puppy.jpg?AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&\
               Expires=1175139620";
    let mut request = Request::new("GET", uri, &[("Host", "johnsmith.s3.amazonaws.com")]);
    request.virtual_bucket = Some("johnsmith");
    request.now = Timestamp::from_second(1_175_139_620).unwrap();
    assert!(request.verify().is_ok());
    request.method = Method::PUT;
    assert_eq!(request.refusal().0, ErrorCode::SignatureDoesNotMatch);
}

/// The signatures were made with botocore 1.43 (`generate_presigned_url`, 2013-05-24T00:00:00Z,
/// path style), in both versions.
#[test]
fn keys_that_need_encoding() {
    // Path, SigV4 signature, SigV2 signature.
    let answers = [
        (
            "/bucket/a%20b",
            "6381f63ba3b31179f2c2381215996fe21d5df867bf825eb15d40b664be7c9436",
            "6ubvEQcLwY0au%2B%2FoO5tToNMd1q8%3D",
        ),
        (
            "/bucket/~x%2By%3Dz%26%281%29%2A%27%21",
            "73609bd10e76314920f27419b267874378e03ef1f7f363ed4d6195d75a56b733",
            "YntuAbXXVmoIWf9y4YxG3vZI5AE%3D",
        ),
        (
            "/bucket/%C3%A9/%E6%97%A5%E6%9C%AC",
            "089244c2316fab49c1b29f518ddd313f04a3f2e40b61e647fd245eb8c2aeec66",
            "sPHt8R5x5effkSyO4MVkw1J5sKg%3D",
        ),
        (
            "/bucket/a//b/../c",
            "8bc63fb045b43d84983e68b1fcf32fe6b0b59a7a55c8d468308d2815f5932924",
            "PArf4GpSbBBhLQ%2FrmgmXt%2BB7B4c%3D",
        ),
        (
            "/bucket/a%252Fb",
            "b9a59ee5715ad2f804895495120eec43989cfcdfbb4bd675cad9d16efb2dd040",
            "au3IpO9zgneJSBQEKEsdvDlvk1s%3D",
        ),
        (
            "/bucket/%40%3A%24%2C%3B%3F%23%5B%5D",
            "2b1b4c2e36ea38c137331f8034d3fcddcdbd206bfc103cbce9292696674fc3d9",
            "NsK7tFhqv1ZivMTJtJfrlczT0Fc%3D",
        ),
    ];
    let disposition = "response-content-disposition=attachment%3B%20filename%3D%22a%2Bb%20%C3%A9.txt%22";
    for (path, v4, v2) in answers {
        let v4 = format!(
            "{path}?{disposition}&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={ACCESS_KEY}%2F20130524%2F\
             us-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=3600&\
             X-Amz-SignedHeaders=host&X-Amz-Signature={v4}"
        );
        let v2 =
            format!("{path}?{disposition}&AWSAccessKeyId={ACCESS_KEY}&Signature={v2}&Expires=1369357200");
        for uri in [v4, v2] {
            let request = |uri: &str| Request::new("GET", uri, &[("Host", "s3.example.org:9000")]);
            assert!(request(&uri).verify().is_ok(), "{uri}: {:?}", request(&uri).refusal());
            let wrong = uri.replace("attachment", "inline");
            assert_eq!(request(&wrong).refusal().0, ErrorCode::SignatureDoesNotMatch);
            // Clients and proxies may change the encoding on the way: it is the same key.
            let lower = uri.replacen(path, &path.replace("%C3%A9", "%c3%a9").replace("%2A", "*"), 1);
            assert!(request(&lower).verify().is_ok(), "{lower}");
        }
    }
}

/// botocore moves the headers that it signed into the query of a SigV2 URL. The client that uses
/// the URL may send these headers or not.
#[test]
fn sigv2_headers_in_the_query() {
    let uri = "/k?AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Signature=McWLMVVfpclwav%2F0%2B9y8tX8j7R0%3D&\
               content-type=text%2Fplain&x-amz-acl=public-read&x-amz-meta-a=b&Expires=1369357200";
    let mut request = Request::new("PUT", uri, &[("Host", "bucket.s3.example.org:9000")]);
    request.virtual_bucket = Some("bucket");
    assert!(request.verify().is_ok(), "{:?}", request.refusal());
    request.set("content-type", "text/plain");
    request.set("x-amz-acl", "public-read");
    assert!(request.verify().is_ok());
    request.set("x-amz-acl", "private");
    assert_eq!(request.refusal().0, ErrorCode::SignatureDoesNotMatch);
}

/// If a value that somebody else chose is signed, the string to sign must not equal that of another
/// request.
#[test]
fn sigv2_lines_cannot_be_moved() {
    let request = |uri: &str| Request::new("GET", uri, &[("Host", "s3.example.org:9000")]);
    // A server signs a download, which has already expired, with a file name chosen by somebody
    // else.
    let chosen = "x%0A1369357200%0A/bucket/secret";
    let to_sign = "GET\n\ntext/a\n1\n/bucket/k?response-content-disposition=x\n1369357200\n/bucket/secret";
    let signature = v2::sign(SECRET_KEY, to_sign.as_bytes());
    let mut signature_encoded = String::new();
    encoding::encode_query(&signature, &mut signature_encoded);
    let authorization = format!("AWSAccessKeyId={ACCESS_KEY}&Signature={signature_encoded}");
    let mut honest =
        request(&format!("/bucket/k?response-content-disposition={chosen}&{authorization}&Expires=1"));
    honest.now = Timestamp::UNIX_EPOCH;
    honest.set("content-type", "text/a");
    assert!(honest.verify().is_ok());
    for moved in ["content-type=text/a%0A1%0A", "content-md5=%0Atext/a%0A1%0A"] {
        let uri = format!(
            "/bucket/secret?{moved}/bucket/k?response-content-disposition%3Dx&{authorization}&Expires=1369357200"
        );
        assert_eq!(request(&uri).refusal().0, ErrorCode::InvalidArgument, "{uri}");
    }
}

#[test]
fn sigv4_presigned_with_headers() {
    let uri = "/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2F\
               s3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=3600&\
               X-Amz-SignedHeaders=content-type%3Bhost%3Bx-amz-acl%3Bx-amz-meta-a&\
               X-Amz-Signature=496a25e89777950e299b9ac28a1c82b8c710402617848ae24e04992b85959e7b";
    let sent = [("content-type", "text/plain"), ("x-amz-acl", "public-read"), ("x-amz-meta-a", "b")];
    let mut request = Request::new("PUT", uri, &sent);
    request.set("host", "bucket.s3.example.org:9000");
    assert!(request.verify().is_ok(), "{:?}", request.refusal());
    for (name, _) in sent {
        let mut without = request.clone();
        without.headers.remove(name);
        assert_eq!(without.refusal().0, ErrorCode::SignatureDoesNotMatch);
    }
}

#[test]
fn sigv2_subresources() {
    for (method, uri, bucket) in [
        (
            "PUT",
            "/bucket/k?uploadId=a%2Fb%2Bc&partNumber=3&AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&\
             Signature=bxKAnqB58MNcZGswqIh0vKAsfps%3D&Expires=1369357200",
            None,
        ),
        (
            "POST",
            "/bucket/k?uploads&AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Signature=Lr%2BKIsddMx66w7z1nEmNJay3n0U%3D&\
             Expires=1369357200",
            None,
        ),
        (
            "GET",
            "/?list-type=2&prefix=a%20b&encoding-type=url&AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&\
             Signature=yKu3coAPevCxwTl5RaphIKOHyWY%3D&Expires=1369357200",
            Some("bucket"),
        ),
    ] {
        let mut request = Request::new(method, uri, &[("Host", "s3.example.org:9000")]);
        request.virtual_bucket = bucket;
        assert!(request.verify().is_ok(), "{uri}: {:?}", request.refusal());
    }
}
