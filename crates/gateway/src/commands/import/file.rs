//! Reads files with identities, which contain secrets.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::marker::PhantomData;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use zeroize::Zeroizing;

/// The largest size of a file, in bytes. The document of an account may have as many.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Reads a file.
pub fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    let mut bytes = Zeroizing::new(Vec::new());
    let file = std::fs::File::open(path).map_err(|e| e.to_string())?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    Ok(bytes)
}

/// Returns the place of an error in JSON. The error's own text may contain a value, which may be a
/// secret.
pub fn place(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

struct Entries<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
    type Value = BTreeMap<String, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((name, value)) = entries.next_entry()? {
            if map.insert(name, value).is_some() {
                return Err(A::Error::custom("a name is there twice"));
            }
        }
        Ok(map)
    }

    // Go writes a map that is not there so.
    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(BTreeMap::new())
    }
}

/// Deserializes an object, and refuses a name that occurs twice: serde's own maps keep the last
/// value.
pub fn unique<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, V>, D::Error> {
    deserializer.deserialize_any(Entries(PhantomData))
}
