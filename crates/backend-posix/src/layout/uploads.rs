//! Names of uploads, of their files, and of their receipts.

use super::keymap::RECORDS;

/// The directory of uploads, in `.slipway`.
pub(crate) const UPLOADS: &str = "uploads";

/// The directory of receipts, in `.slipway`.
pub(crate) const COMPLETED: &str = "completed";

/// The length of an upload's id, in characters.
pub(crate) const ID_LENGTH: usize = 48;

/// True for a text that can be the id of an upload.
pub(crate) fn is_id(id: &str) -> bool {
    id.len() == ID_LENGTH && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The file with the record of an upload, without which a directory is not an upload.
pub(crate) const DESCRIPTION: &str = "upload";

/// The name of the journal of a Complete, in the upload.
pub(crate) const JOURNAL: &str = "completing";

/// The numbers of the assemblies that an upload may have. Two are enough: if a short last part
/// comes first, it determines the slot size of the first assembly, and the other parts determine
/// that of the second.
pub(crate) const ASSEMBLIES: [u8; 2] = [1, 2];

/// The number in a journal that means a copy of all parts. Otherwise the journal has the number of
/// an assembly.
pub(crate) const WHOLE: u8 = 0;

/// The name of that copy, from the time when it is complete until it is published.
pub(crate) const WHOLE_NAME: &str = "whole";

/// Returns the name of an assembly's file.
pub(crate) fn assembly_name(assembly: u8) -> String {
    if assembly == WHOLE { WHOLE_NAME.to_owned() } else { format!("assembly{assembly}") }
}

/// Returns the name of an assembly's layout.
pub(crate) fn layout_name(assembly: u8) -> String {
    format!("layout{assembly}")
}

/// Returns the file name of a part.
pub(crate) fn part_name(number: u32) -> String {
    format!("{number:05}")
}

/// Returns the number of the part that has this file name.
pub(crate) fn part_number(name: &str) -> Option<u32> {
    name.parse().ok().filter(|number| part_name(*number) == name)
}

/// Returns the name of the claim to a part's slot.
pub(crate) fn claim_name(part_number: u32, assembly: u8) -> String {
    format!("{part_number:05}.{assembly}")
}

/// True for the name of a claim.
fn is_claim(name: &str) -> bool {
    let Some((number, assembly)) = name.split_once('.') else { return false };
    part_number(number).is_some() && ASSEMBLIES.into_iter().any(|known| assembly == known.to_string())
}

/// True for the names of an upload's files other than its parts.
pub(crate) fn is_own(name: &str) -> bool {
    matches!(name, RECORDS | DESCRIPTION | JOURNAL | WHOLE_NAME)
        || ASSEMBLIES
            .into_iter()
            .any(|assembly| name == assembly_name(assembly) || name == layout_name(assembly))
        || is_claim(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_upload_has_besides_its_parts() {
        let mut own = [RECORDS, DESCRIPTION, JOURNAL, WHOLE_NAME].map(str::to_owned).to_vec();
        for assembly in ASSEMBLIES {
            own.extend([assembly_name(assembly), layout_name(assembly)]);
            own.extend([1, 99_999].map(|number| claim_name(number, assembly)));
        }
        for name in own {
            assert!(is_own(&name), "{name}");
        }
        for name in ["00001", "00001.3", "1.1", "assembly3", "layout0", "layout", "Upload", ""] {
            assert!(!is_own(name), "{name}");
        }
    }
}
