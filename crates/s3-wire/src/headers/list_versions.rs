use super::listing::{encoding, max_keys};
use super::token::ListStart;
use crate::error::S3Error;
use crate::xml::KeyEncoding;
use crate::{Query, Result};

/// What ListObjectVersions asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListVersions<'q> {
    /// Only keys that start so; may be empty.
    pub prefix: &'q str,
    /// Never empty.
    pub delimiter: Option<&'q str>,
    /// Only keys after this one, or equal to it where there is a `version_id_marker`; may be empty.
    pub key_marker: &'q str,
    /// Only versions of the `key_marker` after this one; may be empty.
    pub version_id_marker: &'q str,
    /// 0 to 1000.
    pub max_keys: usize,
    /// How to write keys.
    pub encoding: KeyEncoding,
}

impl<'q> ListVersions<'q> {
    /// Reads the query. A version id without a key is `InvalidArgument`.
    pub fn parse(query: &'q Query<'_>) -> Result<Self> {
        const VERSION_MARKER: &str = "version-id-marker";
        let key_marker = query.get("key-marker").unwrap_or_default();
        let version_id_marker = query.get(VERSION_MARKER).unwrap_or_default();
        if key_marker.is_empty() && !version_id_marker.is_empty() {
            let message = "A version-id marker cannot be specified without a key marker.";
            return Err(S3Error::invalid_argument(VERSION_MARKER, version_id_marker, message));
        }
        Ok(Self {
            prefix: query.get("prefix").unwrap_or_default(),
            delimiter: query.get_non_empty("delimiter"),
            key_marker,
            version_id_marker,
            max_keys: max_keys(query)?,
            encoding: encoding(query)?,
        })
    }

    /// Where the listing begins if each key has one version; see [`ListStart::from_marker`].
    pub fn start(&self) -> Option<ListStart> {
        ListStart::from_marker(self.key_marker, self.prefix, self.delimiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    #[test]
    fn a_version_needs_its_key() {
        let query = Query::parse("versions&version-id-marker=x").unwrap();
        assert_eq!(ListVersions::parse(&query).unwrap_err().code(), ErrorCode::InvalidArgument);
        let query = Query::parse("versions&key-marker=a/&version-id-marker=null&delimiter=/").unwrap();
        let asked = ListVersions::parse(&query).unwrap();
        assert_eq!(asked.start(), Some(ListStart::AfterPrefix("a/".into())));
        assert_eq!(asked.version_id_marker, "null");
    }
}
