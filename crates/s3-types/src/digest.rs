use aws_lc_rs::digest as sha;
use crc_fast::CrcAlgorithm;
use digest_lanes::Md5;
use xxhash_rust::{xxh3::Xxh3, xxh64::Xxh64};

use crate::checksum::{Checksum, ChecksumAlgorithm as A, ChecksumValue};
use crate::combine;
use crate::etag::ETag;

/// Computes the checksum of a stream, by one algorithm.
pub struct Checksummer {
    algorithm: A,
    state: State,
}

enum State {
    Crc(Box<crc_fast::Digest>),
    Sha(sha::Context),
    Md5(Md5),
    Xxh64(Box<Xxh64>),
    Xxh3(Box<Xxh3>),
}

impl Checksummer {
    /// Makes the checksum of no bytes yet.
    pub fn new(algorithm: A) -> Self {
        let crc = |crc| State::Crc(Box::new(crc_fast::Digest::new(crc)));
        let state = match algorithm {
            A::Crc32 => crc(CrcAlgorithm::Crc32IsoHdlc),
            A::Crc32c => crc(CrcAlgorithm::Crc32Iscsi),
            A::Crc64Nvme => crc(CrcAlgorithm::Crc64Nvme),
            A::Sha1 => State::Sha(sha::Context::new(&sha::SHA1_FOR_LEGACY_USE_ONLY)),
            A::Sha256 => State::Sha(sha::Context::new(&sha::SHA256)),
            A::Sha512 => State::Sha(sha::Context::new(&sha::SHA512)),
            A::Md5 => State::Md5(Md5::new()),
            A::Xxhash64 => State::Xxh64(Box::new(Xxh64::new(0))),
            A::Xxhash3 | A::Xxhash128 => State::Xxh3(Box::new(Xxh3::new())),
        };
        Self { algorithm, state }
    }

    /// Returns the algorithm.
    pub const fn algorithm(&self) -> A {
        self.algorithm
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Crc(digest) => digest.update(bytes),
            State::Sha(context) => context.update(bytes),
            State::Md5(md5) => md5.update(bytes),
            State::Xxh64(xxh) => xxh.update(bytes),
            State::Xxh3(xxh) => xxh.update(bytes),
        }
    }

    /// Returns the checksum of all bytes added.
    pub fn finish(self) -> ChecksumValue {
        let length = self.algorithm.length_bytes();
        let mut bytes = [0; 64];
        match self.state {
            State::Crc(digest) => {
                bytes[..length].copy_from_slice(&digest.finalize().to_be_bytes()[8 - length..]);
            }
            State::Sha(context) => bytes[..length].copy_from_slice(context.finish().as_ref()),
            State::Md5(md5) => bytes[..length].copy_from_slice(&md5.finish()),
            State::Xxh64(xxh) => bytes[..length].copy_from_slice(&xxh.digest().to_be_bytes()),
            State::Xxh3(xxh) if self.algorithm == A::Xxhash128 => {
                bytes[..length].copy_from_slice(&xxh.digest128().to_be_bytes());
            }
            State::Xxh3(xxh) => bytes[..length].copy_from_slice(&xxh.digest().to_be_bytes()),
        }
        ChecksumValue::from_array(self.algorithm, bytes)
    }

    /// Computes the checksum of `bytes`.
    pub fn of(algorithm: A, bytes: &[u8]) -> ChecksumValue {
        let mut checksummer = Self::new(algorithm);
        checksummer.update(bytes);
        checksummer.finish()
    }

    /// Computes the CRC of two consecutive pieces from the CRC of each; `None` unless both are CRCs
    /// of the same algorithm.
    pub fn combine(
        first: ChecksumValue,
        second: ChecksumValue,
        second_length_bytes: u64,
    ) -> Option<ChecksumValue> {
        let polynomial = match first.algorithm() {
            A::Crc32 => combine::CRC32,
            A::Crc32c => combine::CRC32C,
            A::Crc64Nvme => combine::CRC64NVME,
            _ => return None,
        };
        if first.algorithm() != second.algorithm() {
            return None;
        }
        let number = |value: ChecksumValue| value.as_bytes().iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        let combined = polynomial.combine(number(first), number(second), second_length_bytes);
        ChecksumValue::new(first.algorithm(), &combined.to_be_bytes()[8 - first.algorithm().length_bytes()..])
    }
}

/// The digests that are stored in the record of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digests {
    /// The ETag.
    pub etag: ETag,
    /// The checksum, if one is stored.
    pub checksum: Option<Checksum>,
}

impl Digests {
    /// Returns the digests for a storage that computes none, if the client did not ask for any
    /// either. The ETag consists of zeros, since each answer needs one.
    pub const fn none() -> Self {
        Self { etag: ETag::Md5([0; 16]), checksum: None }
    }
}

/// The source of the ETag of an object or part that was written in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ETagSource {
    /// The MD5 of the bytes, as in S3.
    #[default]
    Md5,
    /// The CRC64NVME of the bytes, for clients that need no MD5 ([`ETag::of_crc64nvme`]).
    Checksum,
}

crate::words!(ETagSource {
    Md5 "md5",
    Checksum "checksum",
});

/// Computes the digests of a stream that are stored: the ETag, and a checksum.
pub struct Digester {
    md5: Option<Md5>,
    checksums: Checksums,
    length_bytes: u64,
}

impl Digester {
    /// Makes the digests of no bytes yet.
    pub fn new(algorithm: Option<A>, etag: ETagSource) -> Self {
        let checksums = Checksums::new(algorithm, etag, false);
        Self { md5: checksums.needs_md5().then(Md5::new), checksums, length_bytes: 0 }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.length_bytes += bytes.len() as u64;
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        self.checksums.update(bytes);
    }

    /// Returns the number of bytes added.
    pub const fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// Returns the digests of all bytes added.
    pub fn finish(self) -> Digests {
        self.checksums.finish(self.md5.map(Md5::finish).unwrap_or_default(), None)
    }
}

/// Computes the same digests as [`Digester`], for a caller that computes the MD5 itself, and
/// perhaps the SHA-256. No digest is computed twice.
pub struct Checksums {
    algorithm: Option<A>,
    etag: ETagSource,
    /// The checksum, unless the caller provides its value.
    checksum: Option<Checksummer>,
    /// The CRC64NVME for the ETag, unless the checksum is a CRC64NVME.
    crc: Option<Checksummer>,
}

impl Checksums {
    /// Makes the digests of no bytes yet. `knows_sha256` is true if the caller provides the SHA-256
    /// when that is the algorithm.
    pub fn new(algorithm: Option<A>, etag: ETagSource, knows_sha256: bool) -> Self {
        let elsewhere = |a: &A| *a == A::Md5 || (*a == A::Sha256 && knows_sha256);
        let checksum = algorithm.filter(|a| !elsewhere(a)).map(Checksummer::new);
        let crc = (etag == ETagSource::Checksum && algorithm != Some(A::Crc64Nvme))
            .then(|| Checksummer::new(A::Crc64Nvme));
        Self { algorithm, etag, checksum, crc }
    }

    /// True if [`Checksums::finish`] needs the MD5.
    pub fn needs_md5(&self) -> bool {
        self.etag == ETagSource::Md5 || self.algorithm == Some(A::Md5)
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        for checksum in [&mut self.checksum, &mut self.crc].into_iter().flatten() {
            checksum.update(bytes);
        }
    }

    /// Returns the digests of all bytes added. `md5` and `sha256` are the caller's digests of the
    /// same bytes. Each is used only if it is needed.
    pub fn finish(self, md5: [u8; 16], sha256: Option<[u8; 32]>) -> Digests {
        let computed = self.checksum.map(Checksummer::finish);
        let value = self.algorithm.and_then(|algorithm| match algorithm {
            A::Md5 => ChecksumValue::new(A::Md5, &md5),
            A::Sha256 => computed.or_else(|| ChecksumValue::new(A::Sha256, &sha256?)),
            _ => computed,
        });
        let etag = match (self.etag, self.crc.map(Checksummer::finish).or(value)) {
            (ETagSource::Checksum, Some(crc)) => ETag::of_crc64nvme(&crc),
            _ => ETag::Md5(md5),
        };
        Digests { etag, checksum: value.map(Checksum::full_object) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers for "123456789", the check string of the CRC catalogue, come from that
    /// catalogue and from the reference tools.
    #[test]
    fn known_answers() {
        let hex = |a| crate::hex::encode(Checksummer::of(a, b"123456789").as_bytes());
        assert_eq!(hex(A::Crc32), "cbf43926");
        assert_eq!(hex(A::Crc32c), "e3069283");
        assert_eq!(hex(A::Crc64Nvme), "ae8b14860a799888");
        assert_eq!(hex(A::Md5), "25f9e794323b453885f5181f1b624d0b");
        assert_eq!(hex(A::Sha1), "f7c3bc1d808e04732adf679965ccc34ca7ae3441");
        assert_eq!(hex(A::Sha256), "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225");
        assert_eq!(hex(A::Xxhash64), "8cb841db40e6ae83");
        assert_eq!(Checksummer::of(A::Xxhash3, b"").as_bytes(), 0x2d06_8005_38d3_94c2_u64.to_be_bytes());
        assert_eq!(
            Checksummer::of(A::Xxhash128, b"").as_bytes(),
            0x99aa_06d3_0147_98d8_6001_c324_468d_497f_u128.to_be_bytes()
        );
    }

    /// The digests are those of the bytes, whichever of them the caller computes.
    #[test]
    fn nothing_is_left_out() {
        let bytes = b"123456789";
        let of = |algorithm| Checksummer::of(algorithm, bytes);
        let md5: [u8; 16] = of(A::Md5).as_bytes().try_into().unwrap();
        let sha256: [u8; 32] = of(A::Sha256).as_bytes().try_into().unwrap();
        for etag in [ETagSource::Md5, ETagSource::Checksum] {
            let tag = match etag {
                ETagSource::Md5 => ETag::Md5(md5),
                ETagSource::Checksum => ETag::Opaque("crc64nvme-ae8b14860a799888".into()),
            };
            for algorithm in A::ALL.map(Some).into_iter().chain([None]) {
                let expected =
                    Digests { etag: tag.clone(), checksum: algorithm.map(|a| Checksum::full_object(of(a))) };
                let mut digester = Digester::new(algorithm, etag);
                bytes.chunks(4).for_each(|piece| digester.update(piece));
                assert_eq!((digester.length_bytes(), digester.finish()), (9, expected.clone()));
                for known in [None, Some(sha256)] {
                    let mut checksums = Checksums::new(algorithm, etag, known.is_some());
                    checksums.update(bytes);
                    // A digest that is not needed must not matter.
                    let md5 = if checksums.needs_md5() { md5 } else { [0; 16] };
                    assert_eq!(checksums.finish(md5, known), expected);
                }
            }
        }
    }

    #[test]
    fn crcs_combine() {
        let (a, b) = (vec![7u8; 100_000], vec![9u8; 77_777]);
        for algorithm in [A::Crc32, A::Crc32c, A::Crc64Nvme] {
            let whole = Checksummer::of(algorithm, &[a.clone(), b.clone()].concat());
            let parts = (Checksummer::of(algorithm, &a), Checksummer::of(algorithm, &b));
            assert_eq!(Checksummer::combine(parts.0, parts.1, b.len() as u64), Some(whole));
            // These lengths are too long for the bytes of a test: the slower implementation is the
            // reference.
            let crc = match algorithm {
                A::Crc32 => CrcAlgorithm::Crc32IsoHdlc,
                A::Crc32c => CrcAlgorithm::Crc32Iscsi,
                _ => CrcAlgorithm::Crc64Nvme,
            };
            let number = |c: ChecksumValue| c.as_bytes().iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
            for length in [0, 1, 8, 5 << 20, (5 << 30) + 1, 50 << 40] {
                let expected =
                    crc_fast::checksum_combine(crc, number(parts.0), number(parts.1), length).to_be_bytes();
                let combined = Checksummer::combine(parts.0, parts.1, length).unwrap();
                assert_eq!(combined.as_bytes(), &expected[8 - combined.as_bytes().len()..], "{length}");
            }
        }
        let sha = Checksummer::of(A::Sha256, b"");
        assert_eq!(Checksummer::combine(sha, sha, 0), None);
    }
}
