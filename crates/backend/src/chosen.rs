//! The rules that an upload's checksum sets for its parts and its completion. They are the same for
//! all storages, which call these functions with the checksum that the upload was created with.

use s3_types::{Checksum, ChecksumAlgorithm, ChecksumType};

use crate::error::{BackendError, Result};
use crate::upload::{ChosenChecksum, CompleteUpload};

/// Checks that the algorithm of a part's checksum, `given`, is the upload's. If the upload's
/// checksum is composite, each part needs one.
pub fn check_part_algorithm(chosen: ChosenChecksum, given: Option<ChecksumAlgorithm>) -> Result<()> {
    match (chosen, given) {
        (None, _) | (Some((_, ChecksumType::FullObject)), None) => Ok(()),
        (Some((expected, _)), Some(given)) if given == expected => Ok(()),
        (Some((expected, _)), given) => Err(BackendError::WrongPartAlgorithm { expected, given }),
    }
}

impl CompleteUpload {
    /// Makes the checks of a completion that S3 makes before it looks for the parts. Returns the
    /// checksum that the object is compared with, if there is one. `default` is the algorithm if
    /// the upload chose none.
    pub fn check(&self, chosen: ChosenChecksum, default: ChecksumAlgorithm) -> Result<Option<Checksum>> {
        let whole = self.whole_checksum(chosen, default)?;
        self.check_parts(chosen)?;
        Ok(whole)
    }

    /// Returns the checksum of the whole object, with its algorithm's default type if the client
    /// gave none. If the upload chose no algorithm, S3 compares nothing, but here the checksum that
    /// the object gets anyway is compared.
    fn whole_checksum(&self, chosen: ChosenChecksum, default: ChecksumAlgorithm) -> Result<Option<Checksum>> {
        let expected = chosen.map(|(_, checksum_type)| checksum_type);
        if self.checksum_type.is_some() && self.checksum_type != expected {
            return Err(BackendError::WrongChecksumType { expected });
        }
        let Some(given) = self.checksum else { return Ok(None) };
        let Some((algorithm, checksum_type)) = chosen else {
            let comparable = given.value.algorithm() == default && given.parts.is_none();
            return Ok(comparable.then_some(given));
        };
        let named = self.checksum_type.unwrap_or(algorithm.default_multipart_type());
        let counted = checksum_type == ChecksumType::FullObject && given.parts.is_some();
        if given.value.algorithm() != algorithm || named != checksum_type || counted {
            return Err(BackendError::WrongChecksum { algorithm });
        }
        Ok(Some(Checksum { checksum_type, ..given }))
    }

    /// Checks that there is at least one part, and checks the parts' checksums: they must be given
    /// if the whole's is made from them, must be of the upload's algorithm, and must not be given
    /// if the upload chose none.
    fn check_parts(&self, chosen: ChosenChecksum) -> Result<()> {
        if self.parts.is_empty() {
            return Err(BackendError::NoParts);
        }
        for part in &self.parts {
            let part_number = part.part_number;
            match (chosen, part.checksum.map(|checksum| checksum.algorithm())) {
                (Some((algorithm, ChecksumType::Composite)), None) => {
                    return Err(BackendError::PartWithoutChecksum { part_number, algorithm });
                }
                (Some((algorithm, _)), Some(given)) if given != algorithm => {
                    return Err(BackendError::WrongPartChecksum { part_number, algorithm: given });
                }
                (None, Some(_)) => {
                    return Err(BackendError::InvalidPart { part_number, etag: part.etag.to_string() });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use s3_types::{Checksummer, Conditions};

    use super::*;

    fn value(algorithm: ChecksumAlgorithm, parts: Option<u32>) -> Checksum {
        let checksum_type = if parts.is_some() { ChecksumType::Composite } else { ChecksumType::FullObject };
        Checksum { value: Checksummer::of(algorithm, b"whole"), checksum_type, parts }
    }

    fn compared(
        given: Checksum,
        named: Option<ChecksumType>,
        chosen: ChosenChecksum,
    ) -> Result<Option<Checksum>, String> {
        let asked = CompleteUpload {
            checksum: Some(given),
            checksum_type: named,
            conditions: Conditions::default(),
            ..CompleteUpload::default()
        };
        asked.whole_checksum(chosen, ChecksumAlgorithm::Crc64Nvme).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn a_value_without_a_type_has_its_algorithms_own() {
        use ChecksumAlgorithm::{Crc32c, Crc64Nvme, Sha256};
        use ChecksumType::{Composite, FullObject};
        let wrong = Err("WrongChecksum { algorithm: Crc32c }".to_owned());
        let whole = Some((Crc32c, FullObject));
        assert_eq!(compared(value(Crc32c, None), None, whole), wrong);
        assert_eq!(compared(value(Crc32c, Some(1)), None, whole), wrong);
        assert_eq!(compared(value(Crc64Nvme, None), None, whole), wrong);
        assert_eq!(compared(value(Sha256, None), Some(FullObject), whole), wrong);
        let right = value(Crc32c, None);
        assert_eq!(compared(right, Some(FullObject), whole), Ok(Some(right)));
        // The one algorithm whose default is the full object.
        let right = value(Crc64Nvme, None);
        assert_eq!(compared(right, None, Some((Crc64Nvme, FullObject))), Ok(Some(right)));
        let composite = Some((Sha256, Composite));
        for given in [value(Sha256, None), value(Sha256, Some(2))] {
            let expected = Checksum { checksum_type: Composite, ..given };
            for named in [None, Some(Composite)] {
                assert_eq!(compared(given, named, composite), Ok(Some(expected)));
            }
        }
    }

    #[test]
    fn an_upload_without_an_algorithm_has_no_type() {
        use ChecksumAlgorithm::{Crc32c, Crc64Nvme};
        for named in [ChecksumType::FullObject, ChecksumType::Composite] {
            let wrong = "WrongChecksumType { expected: None }".to_owned();
            assert_eq!(compared(value(Crc64Nvme, None), Some(named), None), Err(wrong));
        }
        assert_eq!(compared(value(Crc32c, None), None, None), Ok(None));
        assert_eq!(compared(value(Crc32c, Some(2)), None, None), Ok(None));
        assert_eq!(compared(value(Crc64Nvme, None), None, None), Ok(Some(value(Crc64Nvme, None))));
    }
}
