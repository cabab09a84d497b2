use s3_types::VersionId;

use super::listing::{check_max_keys, encoding_type, max_versions};
use super::token::ListStart;
use crate::error::{Result, S3Error};
use crate::query::Query;

const VERSION_MARKER: &str = "version-id-marker";

/// The arguments of ListObjectVersions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListVersions<'q> {
    /// The text that keys must start with; may be empty.
    pub prefix: &'q str,
    /// The delimiter as sent. An empty one is repeated in the answer, and groups nothing.
    pub delimiter: Option<&'q str>,
    /// The key after which the listing begins, or at which it begins if there is a
    /// `version_id_marker`; may be empty.
    pub key_marker: &'q str,
    /// The version of the `key_marker` after which the listing begins.
    pub version_id_marker: Option<VersionId>,
    /// The `max-keys` as sent; [`super::page_items`] lowers it to the size of a page.
    pub max_keys: u32,
    /// The encoding as sent: `url` in any case.
    pub encoding_type: Option<&'q str>,
}

impl<'q> ListVersions<'q> {
    /// Refuses a query that S3 refuses before it looks for the bucket: because of a `max-keys` that
    /// is not a number, then a version marker without a key marker, then an empty version marker.
    pub fn check(query: &Query<'_>) -> Result<()> {
        check_max_keys(query)?;
        let message = match query.get(VERSION_MARKER) {
            Some(_) if !query.has("key-marker") => {
                "A version-id marker cannot be specified without a key marker."
            }
            Some("") => "A version-id marker cannot be empty.",
            _ => return Ok(()),
        };
        let marker = query.get(VERSION_MARKER).unwrap_or_default();
        Err(S3Error::invalid_argument(VERSION_MARKER, marker, message))
    }

    /// Reads the query. Its errors are those that S3 gives once it has found the bucket. If the
    /// bucket never kept versions (`has_versions`), `null` is its only version id.
    pub fn parse(query: &'q Query<'_>, has_versions: bool) -> Result<Self> {
        let id = |text| VersionId::new(text).ok().filter(|id| has_versions || id.is_null());
        let read = |text| id(text).ok_or_else(|| invalid_version_marker(text));
        let version_id_marker = query.get(VERSION_MARKER).map(read).transpose()?;
        let encoding_type = encoding_type(query)?;
        Ok(Self {
            prefix: query.get("prefix").unwrap_or_default(),
            delimiter: query.get("delimiter"),
            key_marker: query.get("key-marker").unwrap_or_default(),
            version_id_marker,
            max_keys: max_versions(query)?,
            encoding_type,
        })
    }

    /// Returns the delimiter that groups keys; never empty.
    pub fn grouping(&self) -> Option<&'q str> {
        self.delimiter.filter(|delimiter| !delimiter.is_empty())
    }

    /// True if the listing is empty: S3 answers an empty key marker with a version marker in this
    /// way.
    pub fn is_past_the_end(&self) -> bool {
        self.key_marker.is_empty() && self.version_id_marker.is_some()
    }

    /// Returns the position at which the listing begins if each key has one version; see
    /// [`ListStart::from_marker`].
    pub fn start(&self) -> Option<ListStart> {
        ListStart::from_marker(self.key_marker, self.prefix, self.grouping())
    }
}

/// Makes S3's error for a version marker that no version can have.
pub fn invalid_version_marker(marker: &str) -> S3Error {
    S3Error::invalid_argument(VERSION_MARKER, marker, "Invalid version id specified")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns message and details.
    fn refusal<T: std::fmt::Debug>(read: Result<T>) -> (String, Vec<String>) {
        let error = read.unwrap_err();
        (error.message().to_owned(), error.details().iter().map(|(_, value)| value.clone()).collect())
    }

    fn details(message: &str, details: &[&str]) -> (String, Vec<String>) {
        (message.to_owned(), details.iter().map(|text| (*text).to_owned()).collect())
    }

    #[test]
    fn a_version_needs_its_key() {
        let check = |text| refusal(ListVersions::check(&Query::parse(text).unwrap()));
        let message = "A version-id marker cannot be specified without a key marker.";
        assert_eq!(check("version-id-marker=x"), details(message, &[VERSION_MARKER, "x"]));
        assert_eq!(check("version-id-marker="), details(message, &[VERSION_MARKER, ""]));
        let message = "A version-id marker cannot be empty.";
        assert_eq!(check("key-marker=&version-id-marker="), details(message, &[VERSION_MARKER, ""]));
        let message = "Provided max-keys not an integer or within integer range";
        assert_eq!(check("max-keys=x&version-id-marker=x"), details(message, &["max-keys", "x"]));
        assert!(ListVersions::check(&Query::parse("key-marker=&version-id-marker=x").unwrap()).is_ok());
    }

    #[test]
    fn what_is_asked_for() {
        let query = Query::parse("versions&key-marker=a/&version-id-marker=null&delimiter=/").unwrap();
        let asked = ListVersions::parse(&query, false).unwrap();
        assert_eq!(asked.start(), Some(ListStart::AfterPrefix("a/".into())));
        assert!(!asked.is_past_the_end() && asked.version_id_marker.unwrap().is_null());
        let query = Query::parse("delimiter=&key-marker=&version-id-marker=null&max-keys=2000").unwrap();
        let asked = ListVersions::parse(&query, false).unwrap();
        assert_eq!((asked.delimiter, asked.grouping(), asked.max_keys), (Some(""), None, 2000));
        assert!(asked.is_past_the_end());
        assert!(!ListVersions::parse(&Query::default(), true).unwrap().is_past_the_end());
        let query = Query::parse("key-marker=a&version-id-marker=17f2").unwrap();
        let marker = ListVersions::parse(&query, true).unwrap().version_id_marker.unwrap();
        assert_eq!(marker.as_str(), "17f2");
    }

    /// The version is checked first, then the encoding, then the number.
    #[test]
    fn what_is_refused() {
        let parse_in = |text, has| refusal(ListVersions::parse(&Query::parse(text).unwrap(), has));
        let parse = |text| parse_in(text, false);
        let message = "Invalid version id specified";
        assert_eq!(
            parse("version-id-marker=NULL&encoding-type=x"),
            details(message, &[VERSION_MARKER, "NULL"])
        );
        assert_eq!(
            parse_in("version-id-marker=a%20b&encoding-type=x", true),
            details(message, &[VERSION_MARKER, "a b"])
        );
        let message = "Invalid Encoding Method specified in Request";
        assert_eq!(parse("max-keys=-1&encoding-type=x"), details(message, &["encoding-type", "x"]));
        assert_eq!(parse("max-keys=-1"), details("max-keys cannot be negative", &["max-keys"]));
    }
}
