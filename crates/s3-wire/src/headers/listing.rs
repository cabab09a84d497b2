use http::HeaderMap;
use s3_types::BucketName;

use super::joined;
use super::token::ListStart;
use crate::error::S3Error;
use crate::limits::{LIST_BUCKETS_MAX, LIST_ITEMS_MAX};
use crate::xml::KeyEncoding;
use crate::{Query, Result};

/// What ListObjects asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListObjects<'q> {
    /// Only keys that start so; may be empty.
    pub prefix: &'q str,
    /// Never empty.
    pub delimiter: Option<&'q str>,
    /// Only keys after this one; may be empty.
    pub marker: &'q str,
    /// 0 to 1000.
    pub max_keys: usize,
    /// How to write keys.
    pub encoding: KeyEncoding,
}

impl<'q> ListObjects<'q> {
    /// Reads the query.
    pub fn parse(query: &'q Query<'_>) -> Result<Self> {
        Ok(Self {
            prefix: query.get("prefix").unwrap_or_default(),
            delimiter: query.get_non_empty("delimiter"),
            marker: query.get("marker").unwrap_or_default(),
            max_keys: max_keys(query)?,
            encoding: encoding(query)?,
        })
    }

    /// Where the listing begins; see [`ListStart::from_marker`].
    pub fn start(&self) -> Option<ListStart> {
        ListStart::from_marker(self.marker, self.prefix, self.delimiter)
    }
}

/// What ListObjectsV2 asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListObjectsV2<'q> {
    /// Only keys that start so; may be empty.
    pub prefix: &'q str,
    /// Never empty.
    pub delimiter: Option<&'q str>,
    /// As sent, to be echoed.
    pub continuation_token: Option<&'q str>,
    /// What the token means.
    pub continuation: Option<ListStart>,
    /// Only keys after this one; without meaning where there is a token.
    pub start_after: Option<&'q str>,
    /// 0 to 1000.
    pub max_keys: usize,
    /// How to write keys.
    pub encoding: KeyEncoding,
    /// Whether to show owners.
    pub fetch_owner: bool,
}

impl<'q> ListObjectsV2<'q> {
    /// Reads the query.
    pub fn parse(query: &'q Query<'_>) -> Result<Self> {
        let continuation_token = query.get("continuation-token");
        // An empty one is echoed, and means the beginning.
        let given = continuation_token.filter(|token| !token.is_empty());
        Ok(Self {
            prefix: query.get("prefix").unwrap_or_default(),
            delimiter: query.get_non_empty("delimiter"),
            continuation_token,
            continuation: given.map(ListStart::from_token).transpose()?,
            start_after: query.get_non_empty("start-after"),
            max_keys: max_keys(query)?,
            encoding: encoding(query)?,
            fetch_owner: query.get("fetch-owner").is_some_and(|value| value.eq_ignore_ascii_case("true")),
        })
    }

    /// Where the listing begins: the token's position, or that of `start-after`.
    pub fn start(&self) -> Option<ListStart> {
        self.continuation
            .clone()
            .or_else(|| ListStart::from_marker(self.start_after?, self.prefix, self.delimiter))
    }
}

/// What ListMultipartUploads asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListUploads<'q> {
    /// Only keys that start so; may be empty.
    pub prefix: &'q str,
    /// Never empty.
    pub delimiter: Option<&'q str>,
    /// Only keys after this one, or equal to it where there is an `upload_id_marker`; may be empty.
    pub key_marker: &'q str,
    /// Only uploads of the `key_marker` after this one; may be empty, and is where that is.
    pub upload_id_marker: &'q str,
    /// 0 to 1000.
    pub max_uploads: usize,
    /// How to write keys.
    pub encoding: KeyEncoding,
}

impl<'q> ListUploads<'q> {
    /// Reads the query. S3 ignores `upload-id-marker` without `key-marker`.
    pub fn parse(query: &'q Query<'_>) -> Result<Self> {
        let key_marker = query.get("key-marker").unwrap_or_default();
        Ok(Self {
            prefix: query.get("prefix").unwrap_or_default(),
            delimiter: query.get_non_empty("delimiter"),
            key_marker,
            upload_id_marker: query
                .get("upload-id-marker")
                .filter(|_| !key_marker.is_empty())
                .unwrap_or_default(),
            max_uploads: limit(query, "max-uploads", "max-uploads")?,
            encoding: encoding(query)?,
        })
    }

    /// Where the listing begins if there is no `upload_id_marker`. A marker in a group of keys that
    /// the delimiter rolls up is behind all of the group, as is the group's common prefix itself.
    pub fn start(&self) -> Option<ListStart> {
        let group = self.delimiter.and_then(|delimiter| {
            let (step, _) = self.key_marker.strip_prefix(self.prefix)?.split_once(delimiter)?;
            self.key_marker.get(..self.prefix.len() + step.len() + delimiter.len())
        });
        match group {
            Some(group) => Some(ListStart::AfterPrefix(group.to_owned())),
            None => ListStart::from_marker(self.key_marker, self.prefix, self.delimiter),
        }
    }
}

/// What ListParts asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListParts {
    /// Only numbers above this.
    pub part_number_marker: u32,
    /// 0 to 1000.
    pub max_parts: usize,
}

impl ListParts {
    /// Reads the query.
    pub fn parse(query: &Query<'_>) -> Result<Self> {
        let marker = integer(query, "part-number-marker", "part-number-marker")?;
        Ok(Self {
            part_number_marker: marker.unwrap_or_default(),
            max_parts: limit(query, "max-parts", "max-parts")?,
        })
    }
}

/// What ListBuckets asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListBuckets<'q> {
    /// Only names that start so; may be empty.
    pub prefix: &'q str,
    /// Only names after this one, from the token.
    pub after: Option<BucketName>,
    /// 1 to 10,000.
    pub max_buckets: usize,
    /// Only buckets of this region.
    pub bucket_region: Option<&'q str>,
    /// True if the request is a paged one, to which S3 answers with regions and prefix too.
    pub is_paged: bool,
}

impl<'q> ListBuckets<'q> {
    /// Reads the query.
    pub fn parse(query: &'q Query<'_>) -> Result<Self> {
        const NAMES: [&str; 4] = ["prefix", "continuation-token", "max-buckets", "bucket-region"];
        let after = query.get("continuation-token").map(Self::after_token).transpose()?;
        Ok(Self {
            prefix: query.get("prefix").unwrap_or_default(),
            after,
            max_buckets: max_buckets(query)?,
            bucket_region: query.get_non_empty("bucket-region"),
            is_paged: NAMES.iter().any(|name| query.has(name)),
        })
    }

    fn after_token(token: &str) -> Result<BucketName> {
        match ListStart::from_token(token)? {
            ListStart::AfterKey(name) => BucketName::new(&name).ok(),
            ListStart::AfterPrefix(_) => None,
        }
        .ok_or_else(|| {
            S3Error::invalid_argument(
                "continuation-token",
                token,
                "The continuation token provided is incorrect",
            )
        })
    }

    /// The token with which the next page begins after this bucket.
    pub fn token(last: &BucketName) -> String {
        ListStart::AfterKey(last.as_str().to_owned()).to_token()
    }
}

/// Checks `x-amz-optional-object-attributes`: `RestoreStatus` is all there is, and no object of ours has one.
pub fn check_optional_attributes(headers: &HeaderMap) -> Result<()> {
    const NAME: &str = "x-amz-optional-object-attributes";
    let Some(names) = joined(headers, NAME) else { return Ok(()) };
    let strange = names.split(',').map(str::trim).find(|name| !matches!(*name, "" | "RestoreStatus"));
    match strange {
        Some(name) => Err(S3Error::invalid_argument(NAME, name, "Invalid attribute name specified.")),
        None => Ok(()),
    }
}

pub(super) fn encoding(query: &Query<'_>) -> Result<KeyEncoding> {
    match query.get("encoding-type") {
        None => Ok(KeyEncoding::Plain),
        Some(text) if text.eq_ignore_ascii_case("url") => Ok(KeyEncoding::Url),
        Some(text) => Err(S3Error::invalid_argument(
            "encoding-type",
            text,
            "Invalid Encoding Method specified in Request",
        )),
    }
}

/// S3 calls it `max-keys` where it is no number and `maxKeys` where it is negative.
pub(super) fn max_keys(query: &Query<'_>) -> Result<usize> {
    limit(query, "max-keys", "maxKeys")
}

fn limit(query: &Query<'_>, name: &'static str, name_of_negative: &'static str) -> Result<usize> {
    let number = integer(query, name, name_of_negative)?;
    Ok(number.and_then(|n| usize::try_from(n).ok()).map_or(LIST_ITEMS_MAX, |n| n.min(LIST_ITEMS_MAX)))
}

/// A number that Java would call an `int`; missing or empty is `None`.
fn integer(query: &Query<'_>, name: &'static str, name_of_negative: &'static str) -> Result<Option<u32>> {
    let Some(text) = query.get_non_empty(name) else { return Ok(None) };
    u32::try_from(java_int(name, text)?).map(Some).map_err(|_| {
        let message = format!("Argument {name_of_negative} must be an integer between 0 and 2147483647");
        S3Error::invalid_argument(name_of_negative, text, message)
    })
}

/// Refuses a parameter that is no integer. S3 does so before it looks at the signature; the range comes later.
pub(crate) fn check_integer(query: &Query<'_>, name: &'static str) -> Result<()> {
    query.get_non_empty(name).map_or(Ok(()), |text| java_int(name, text).map(drop))
}

/// Digits with an optional minus, and no plus.
fn java_int(name: &'static str, text: &str) -> Result<i32> {
    let number = if text.starts_with('+') { None } else { text.parse().ok() };
    number.ok_or_else(|| {
        let message = format!("Provided {name} not an integer or within integer range");
        S3Error::invalid_argument(name, text, message)
    })
}

fn max_buckets(query: &Query<'_>) -> Result<usize> {
    const NAME: &str = "max-buckets";
    let Some(text) = query.get_non_empty(NAME) else { return Ok(LIST_BUCKETS_MAX) };
    if let Ok(number @ 1..=LIST_BUCKETS_MAX) = usize::try_from(java_int(NAME, text)?) {
        return Ok(number);
    }
    let message = format!("Argument max-buckets must be an integer between 1 and {LIST_BUCKETS_MAX}");
    Err(S3Error::invalid_argument(NAME, text, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn query(text: &'static str) -> Query<'static> {
        Query::parse(text).unwrap()
    }

    /// Code, message, ArgumentName, ArgumentValue.
    fn refusal<T: std::fmt::Debug>(result: Result<T>) -> (&'static str, String, String, String) {
        let error = result.unwrap_err();
        let detail = |index: usize| error.details()[index].1.clone();
        assert_eq!((error.details()[0].0, error.details()[1].0), ("ArgumentName", "ArgumentValue"));
        (error.code().into(), error.message().to_owned(), detail(0), detail(1))
    }

    fn invalid(message: &str, name: &str, value: &str) -> (&'static str, String, String, String) {
        ("InvalidArgument", message.into(), name.into(), value.into())
    }

    #[test]
    fn objects_of_the_first_kind() {
        let q = query("prefix=a/&delimiter=/&marker=a/b/&max-keys=5&encoding-type=url");
        let list = ListObjects::parse(&q).unwrap();
        let expected = ListObjects {
            prefix: "a/",
            delimiter: Some("/"),
            marker: "a/b/",
            max_keys: 5,
            encoding: KeyEncoding::Url,
        };
        assert_eq!(list, expected);
        assert_eq!(list.start(), Some(ListStart::AfterPrefix("a/b/".into())));
        let q = query("delimiter=&prefix&marker&max-keys=");
        let list = ListObjects::parse(&q).unwrap();
        assert_eq!((list.delimiter, list.max_keys, list.start()), (None, 1000, None));
    }

    #[test]
    fn objects_of_the_second_kind() {
        let token = ListStart::AfterKey("k".into()).to_token();
        let text = format!("list-type=2&continuation-token={token}&start-after=z&fetch-owner=true");
        let q = Query::parse(&text).unwrap();
        let list = ListObjectsV2::parse(&q).unwrap();
        assert_eq!(list.continuation_token, Some(token.as_str()));
        assert_eq!(list.start(), Some(ListStart::AfterKey("k".into())));
        assert!(list.fetch_owner);
        let q = query("list-type=2&start-after=z&fetch-owner=false");
        let list = ListObjectsV2::parse(&q).unwrap();
        assert_eq!(list.start(), Some(ListStart::AfterKey("z".into())));
        assert!(!list.fetch_owner);
        let (code, message, name, _) =
            refusal(ListObjectsV2::parse(&query("list-type=2&continuation-token=x%26y")));
        assert_eq!(
            (code, message.as_str()),
            ("InvalidArgument", "The continuation token provided is incorrect")
        );
        assert_eq!(name, "continuation-token");
        let q = query("list-type=2&continuation-token=");
        let list = ListObjectsV2::parse(&q).unwrap();
        assert_eq!((list.continuation_token, list.start()), (Some(""), None));
    }

    #[test]
    fn page_sizes() {
        let max_keys = |text: &'static str| ListObjectsV2::parse(&query(text)).map(|list| list.max_keys);
        assert_eq!(max_keys("").unwrap(), 1000);
        assert_eq!(max_keys("max-keys=0").unwrap(), 0);
        assert_eq!(max_keys("max-keys=-0").unwrap(), 0);
        assert_eq!(max_keys("max-keys=007").unwrap(), 7);
        assert_eq!(max_keys("max-keys=1001").unwrap(), 1000);
        assert_eq!(max_keys("max-keys=2147483647").unwrap(), 1000);
        let range = "Argument maxKeys must be an integer between 0 and 2147483647";
        assert_eq!(refusal(max_keys("max-keys=-1")), invalid(range, "maxKeys", "-1"));
        let number = "Provided max-keys not an integer or within integer range";
        for text in ["blah", "2147483648", "-2147483649", " 5", "1.0", "99999999999999999999"] {
            let query = format!("max-keys={text}");
            let parsed = ListObjects::parse(&Query::parse(&query).unwrap()).map(|list| list.max_keys);
            assert_eq!(refusal(parsed), invalid(number, "max-keys", text));
        }
        assert_eq!(refusal(max_keys("max-keys=%2B5")), invalid(number, "max-keys", "+5"));
    }

    #[test]
    fn encodings() {
        let encoding = |text: &'static str| ListObjects::parse(&query(text)).map(|list| list.encoding);
        assert_eq!(encoding("").unwrap(), KeyEncoding::Plain);
        assert_eq!(encoding("encoding-type=url").unwrap(), KeyEncoding::Url);
        let message = "Invalid Encoding Method specified in Request";
        assert_eq!(refusal(encoding("encoding-type=xml")), invalid(message, "encoding-type", "xml"));
        assert_eq!(refusal(encoding("encoding-type=")), invalid(message, "encoding-type", ""));
    }

    #[test]
    fn uploads_and_parts() {
        let q = query("uploads&prefix=p&key-marker=k&upload-id-marker=u&max-uploads=3");
        let list = ListUploads::parse(&q).unwrap();
        assert_eq!((list.key_marker, list.upload_id_marker, list.max_uploads), ("k", "u", 3));
        assert_eq!(list.start(), Some(ListStart::AfterKey("k".into())));
        for (marker, expected) in [
            ("d/a", ListStart::AfterKey("d/a".into())),
            ("d/a/", ListStart::AfterPrefix("d/a/".into())),
            ("d/a/x", ListStart::AfterPrefix("d/a/".into())),
            ("d/a/x/y", ListStart::AfterPrefix("d/a/".into())),
            ("c/x/y", ListStart::AfterKey("c/x/y".into())),
        ] {
            let text = format!("uploads&prefix=d/&delimiter=/&key-marker={marker}&upload-id-marker=u");
            let q = Query::parse(&text).unwrap();
            assert_eq!(ListUploads::parse(&q).unwrap().start(), Some(expected), "{marker}");
        }
        let q = query("uploads&upload-id-marker=u");
        assert_eq!(ListUploads::parse(&q).unwrap().upload_id_marker, "");
        assert_eq!(
            refusal(ListUploads::parse(&query("max-uploads=-1"))),
            invalid("Argument max-uploads must be an integer between 0 and 2147483647", "max-uploads", "-1")
        );
        assert_eq!(
            refusal(ListUploads::parse(&query("max-uploads=2157483647"))),
            invalid(
                "Provided max-uploads not an integer or within integer range",
                "max-uploads",
                "2157483647"
            )
        );
        let parts = ListParts::parse(&query("part-number-marker=2&max-parts=5000")).unwrap();
        assert_eq!(parts, ListParts { part_number_marker: 2, max_parts: 1000 });
        assert_eq!(
            ListParts::parse(&query("")).unwrap(),
            ListParts { part_number_marker: 0, max_parts: 1000 }
        );
        assert_eq!(
            refusal(ListParts::parse(&query("part-number-marker=-2"))),
            invalid(
                "Argument part-number-marker must be an integer between 0 and 2147483647",
                "part-number-marker",
                "-2"
            )
        );
        assert_eq!(
            refusal(ListParts::parse(&query("max-parts=x"))),
            invalid("Provided max-parts not an integer or within integer range", "max-parts", "x")
        );
    }

    #[test]
    fn buckets() {
        let bare = query("x-id=ListBuckets");
        let list = ListBuckets::parse(&bare).unwrap();
        assert_eq!((list.prefix, list.after, list.max_buckets, list.is_paged), ("", None, 10_000, false));
        let bucket = BucketName::new("bkt").unwrap();
        let paged = format!(
            "max-buckets=1&prefix=b&bucket-region=r&continuation-token={}",
            ListBuckets::token(&bucket)
        );
        let q = Query::parse(&paged).unwrap();
        let list = ListBuckets::parse(&q).unwrap();
        let expected = ListBuckets {
            prefix: "b",
            after: Some(bucket),
            max_buckets: 1,
            bucket_region: Some("r"),
            is_paged: true,
        };
        assert_eq!(list, expected);
        let message = "Argument max-buckets must be an integer between 1 and 10000";
        for (text, value) in
            [("max-buckets=0", "0"), ("max-buckets=10001", "10001"), ("max-buckets=-1", "-1")]
        {
            assert_eq!(refusal(ListBuckets::parse(&query(text))), invalid(message, "max-buckets", value));
        }
        let message = "Provided max-buckets not an integer or within integer range";
        assert_eq!(
            refusal(ListBuckets::parse(&query("max-buckets=x"))),
            invalid(message, "max-buckets", "x")
        );
        let foreign = format!("continuation-token={}", ListStart::AfterKey("Not_A_Bucket".into()).to_token());
        assert!(ListBuckets::parse(&Query::parse(&foreign).unwrap()).is_err());
    }

    #[test]
    fn optional_attributes() {
        const NAME: &str = "x-amz-optional-object-attributes";
        let check = |value| {
            let mut headers = HeaderMap::new();
            headers.insert(NAME, HeaderValue::from_static(value));
            check_optional_attributes(&headers)
        };
        assert!(check_optional_attributes(&HeaderMap::new()).is_ok());
        assert!(check("RestoreStatus").is_ok());
        assert_eq!(
            refusal(check("RestoreStatus,Dummy")),
            invalid("Invalid attribute name specified.", NAME, "Dummy")
        );
    }
}
