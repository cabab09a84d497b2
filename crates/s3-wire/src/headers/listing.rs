//! The arguments of listings.

use http::HeaderMap;
use s3_types::BucketName;

use super::text::joined;
use super::token::ListStart;
use crate::error::{Result, S3Error};
use crate::limits::{LIST_BUCKETS_MAX, LIST_ITEMS_MAX};
use crate::query::Query;
use crate::regions::is_region;

const MAX_KEYS: &str = "max-keys";
const TOKEN: &str = "continuation-token";

/// The arguments of ListObjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListObjects<'q> {
    /// The text that keys must start with; may be empty.
    pub prefix: &'q str,
    /// The delimiter; never empty.
    pub delimiter: Option<&'q str>,
    /// The key after which the listing begins; may be empty.
    pub marker: &'q str,
    /// The `max-keys` as sent; [`page_items`] lowers it to the size of a page.
    pub max_keys: u32,
    /// The encoding as sent: `url` in any case.
    pub encoding_type: Option<&'q str>,
}

impl<'q> ListObjects<'q> {
    /// Refuses a query that S3 refuses before it looks for the bucket: because of a `max-keys` that
    /// is not a number, then arguments of ListObjectsV2.
    pub fn check(query: &Query<'_>) -> Result<()> {
        const OTHERS: [(&str, &str); 2] = [
            (TOKEN, "continuation-token only supported in REST.GET.BUCKET with list-type=2"),
            ("start-after", "startAfter only supported in REST.GET.BUCKET with list-type=2"),
        ];
        check_max_keys(query)?;
        OTHERS.into_iter().try_for_each(|(name, message)| refuse(query, name, message))
    }

    /// Reads the query. Its errors are those that S3 gives once it has found the bucket.
    pub fn parse(query: &'q Query<'_>) -> Result<Self> {
        let encoding_type = encoding_type(query)?;
        Ok(Self {
            prefix: query.get("prefix").unwrap_or_default(),
            delimiter: query.get_non_empty("delimiter"),
            marker: query.get("marker").unwrap_or_default(),
            max_keys: max_keys(query)?,
            encoding_type,
        })
    }

    /// Returns the position at which the listing begins; see [`ListStart::from_marker`].
    pub fn start(&self) -> Option<ListStart> {
        ListStart::from_marker(self.marker, self.prefix, self.delimiter)
    }
}

/// The arguments of ListObjectsV2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListObjectsV2<'q> {
    /// The text that keys must start with; may be empty.
    pub prefix: &'q str,
    /// The delimiter; never empty.
    pub delimiter: Option<&'q str>,
    /// The continuation token as sent, to be repeated in the answer.
    pub continuation_token: Option<&'q str>,
    /// The position that the continuation token stands for.
    pub continuation: Option<ListStart>,
    /// The key after which the listing begins; may be empty. `None` if there is a continuation
    /// token, since S3 then ignores this argument.
    pub start_after: Option<&'q str>,
    /// The `max-keys` as sent; [`page_items`] lowers it to the size of a page.
    pub max_keys: u32,
    /// The encoding as sent: `url` in any case.
    pub encoding_type: Option<&'q str>,
    /// True if the answer shows owners.
    pub fetch_owner: bool,
}

impl<'q> ListObjectsV2<'q> {
    /// Refuses a query that S3 refuses before it looks for the bucket: because of a `max-keys` that
    /// is not a number, then an argument of ListObjects.
    pub fn check(query: &Query<'_>) -> Result<()> {
        check_max_keys(query)?;
        refuse(query, "marker", "Marker unsupported with REST.GET.BUCKET in list-type=2")
    }

    /// Reads the query. Its errors are those that S3 gives once it has found the bucket.
    pub fn parse(query: &'q Query<'_>) -> Result<Self> {
        let encoding_type = encoding_type(query)?;
        let continuation_token = query.get(TOKEN);
        Ok(Self {
            prefix: query.get("prefix").unwrap_or_default(),
            delimiter: query.get_non_empty("delimiter"),
            continuation_token,
            continuation: continuation_token.map(ListStart::from_token).transpose()?,
            start_after: query.get("start-after").filter(|_| continuation_token.is_none()),
            max_keys: max_keys(query)?,
            encoding_type,
            fetch_owner: query.get("fetch-owner").is_some_and(|value| value.eq_ignore_ascii_case("true")),
        })
    }

    /// Returns the position at which the listing begins: the token's, or that of `start-after`.
    pub fn start(&self) -> Option<ListStart> {
        self.continuation
            .clone()
            .or_else(|| ListStart::from_start_after(self.start_after?, self.prefix, self.delimiter))
    }
}

/// The arguments of ListMultipartUploads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListUploads<'q> {
    /// The text that keys must start with; may be empty.
    pub prefix: &'q str,
    /// The delimiter; never empty.
    pub delimiter: Option<&'q str>,
    /// The key after which the listing begins, or at which it begins if there is an
    /// `upload_id_marker`; may be empty.
    pub key_marker: &'q str,
    /// The upload of the `key_marker` after which the listing begins. It may be empty, and is empty
    /// if the `key_marker` is.
    pub upload_id_marker: &'q str,
    /// The maximum number of uploads on the page: 0 to 1000.
    pub max_uploads: usize,
    /// The encoding as sent: `url` in any case.
    pub encoding_type: Option<&'q str>,
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
            max_uploads: limit(query, "max-uploads")?,
            encoding_type: encoding_type(query)?,
        })
    }

    /// Returns the position at which the listing begins if there is no `upload_id_marker`; see
    /// [`ListStart::from_marker`].
    pub fn start(&self) -> Option<ListStart> {
        ListStart::from_marker(self.key_marker, self.prefix, self.delimiter)
    }
}

/// The arguments of ListParts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListParts {
    /// The part number after which the listing begins.
    pub part_number_marker: u32,
    /// The maximum number of parts on the page: 0 to 1000.
    pub max_parts: usize,
}

impl ListParts {
    /// Reads the query.
    pub fn parse(query: &Query<'_>) -> Result<Self> {
        let marker = integer(query, "part-number-marker", "part-number-marker")?;
        Ok(Self { part_number_marker: marker.unwrap_or_default(), max_parts: limit(query, "max-parts")? })
    }
}

/// The arguments of ListBuckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListBuckets<'q> {
    /// The text that names must start with; may be empty.
    pub prefix: Option<&'q str>,
    /// The name after which the listing begins, from the continuation token.
    pub after: Option<BucketName>,
    /// The maximum number of buckets on the page: 1 to 10,000.
    pub max_buckets: usize,
    /// True if the request asks for a page: then S3's answer also has regions and the prefix.
    pub is_paged: bool,
}

impl<'q> ListBuckets<'q> {
    /// Reads the query. All buckets are in `region`: another `bucket-region` is `InvalidArgument`.
    /// An empty token counts as missing.
    pub fn parse(query: &'q Query<'_>, region: &str) -> Result<Self> {
        const NAMES: [&str; 4] = ["prefix", TOKEN, "max-buckets", "bucket-region"];
        let max_buckets = max_buckets(query)?;
        check_bucket_region(query, region)?;
        Ok(Self {
            prefix: query.get("prefix"),
            after: query.get_non_empty(TOKEN).map(Self::after_token).transpose()?,
            max_buckets,
            is_paged: NAMES.iter().any(|name| query.has(name)),
        })
    }

    fn after_token(token: &str) -> Result<BucketName> {
        match ListStart::from_token(token)? {
            ListStart::AfterKey(name) => BucketName::new(&name).ok(),
            ListStart::AfterPrefix(_) => None,
        }
        .ok_or_else(ListStart::refusal)
    }

    /// Returns the token for the page after the bucket `last`.
    pub fn token(last: &BucketName) -> String {
        ListStart::AfterKey(last.as_str().to_owned()).to_token()
    }
}

/// Checks `x-amz-optional-object-attributes`: only `RestoreStatus` exists, and no object here has
/// one.
pub fn check_optional_attributes(headers: &HeaderMap) -> Result<()> {
    const NAME: &str = "x-amz-optional-object-attributes";
    let Some(names) = joined(headers, NAME) else { return Ok(()) };
    let strange = names.split(',').map(str::trim).find(|name| !matches!(*name, "" | "RestoreStatus"));
    match strange {
        Some(name) => Err(S3Error::invalid_argument(NAME, name, "Invalid attribute name specified.")),
        None => Ok(()),
    }
}

/// Returns `encoding-type` as sent; `InvalidArgument` if it is unknown.
pub(super) fn encoding_type<'q>(query: &'q Query<'_>) -> Result<Option<&'q str>> {
    match query.get("encoding-type") {
        Some(text) if !text.eq_ignore_ascii_case("url") => Err(S3Error::invalid_argument(
            "encoding-type",
            text,
            "Invalid Encoding Method specified in Request",
        )),
        valid => Ok(valid),
    }
}

/// Returns the maximum number of keys and common prefixes on a page, for a request that asks for
/// `max_keys`.
pub fn page_items(max_keys: u32) -> usize {
    usize::try_from(max_keys).unwrap_or(usize::MAX).min(LIST_ITEMS_MAX)
}

const DEFAULT_ITEMS: u32 = 1000;
const _: () = assert!(DEFAULT_ITEMS as usize == LIST_ITEMS_MAX);

/// Refuses a `max-keys` that is not a number.
pub(super) fn check_max_keys(query: &Query<'_>) -> Result<()> {
    check_integer(query, MAX_KEYS)
}

/// Reads `max-keys`. S3's error names it `max-keys` if it is not a number, and `maxKeys` if it is
/// negative.
fn max_keys(query: &Query<'_>) -> Result<u32> {
    Ok(integer(query, MAX_KEYS, "maxKeys")?.unwrap_or(DEFAULT_ITEMS))
}

/// Reads `max-keys` of ListObjectVersions, for which S3 has another sentence.
pub(super) fn max_versions(query: &Query<'_>) -> Result<u32> {
    let Some(text) = query.get_non_empty(MAX_KEYS) else { return Ok(DEFAULT_ITEMS) };
    u32::try_from(java_int(MAX_KEYS, text)?)
        .map_err(|_| S3Error::argument_named(MAX_KEYS, "max-keys cannot be negative"))
}

fn limit(query: &Query<'_>, name: &'static str) -> Result<usize> {
    Ok(integer(query, name, name)?.map_or(LIST_ITEMS_MAX, page_items))
}

/// Reads an integer that fits a Java `int` and is not negative; `None` if it is missing or empty.
fn integer(query: &Query<'_>, name: &'static str, name_of_negative: &'static str) -> Result<Option<u32>> {
    let Some(text) = query.get_non_empty(name) else { return Ok(None) };
    let number = java_int(name, text)?;
    u32::try_from(number).map(Some).map_err(|_| {
        let message = format!("Argument {name_of_negative} must be an integer between 0 and 2147483647");
        S3Error::invalid_argument(name_of_negative, number.to_string(), message)
    })
}

/// Refuses a parameter that is not an integer. S3 does so before it checks the signature. The range
/// is checked later.
pub(crate) fn check_integer(query: &Query<'_>, name: &'static str) -> Result<()> {
    query.get_non_empty(name).map_or(Ok(()), |text| java_int(name, text).map(drop))
}

/// Refuses an argument, empty or not. S3's error does not repeat the value.
fn refuse(query: &Query<'_>, name: &'static str, message: &'static str) -> Result<()> {
    if query.has(name) { Err(S3Error::argument_named(name, message)) } else { Ok(()) }
}

/// Reads a Java `int`: digits with an optional minus, and no plus.
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
    let asked = java_int(NAME, text)?;
    if let Ok(number @ 1..=LIST_BUCKETS_MAX) = usize::try_from(asked) {
        return Ok(number);
    }
    let message = format!("Argument max-buckets must be an integer between 1 and {LIST_BUCKETS_MAX}");
    Err(S3Error::invalid_argument(NAME, asked.to_string(), message))
}

fn check_bucket_region(query: &Query<'_>, region: &str) -> Result<()> {
    const NAME: &str = "bucket-region";
    match query.get(NAME) {
        Some(asked) if !asked.eq_ignore_ascii_case(region) => Err(S3Error::argument_named(
            NAME,
            if is_region(asked) {
                "Requests with bucket-region specified must be made to the corresponding regional endpoint"
                    .into()
            } else {
                format!("Argument value {asked} is not a valid AWS Region")
            },
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use http::HeaderValue;

    fn query(text: &'static str) -> Query<'static> {
        Query::parse(text).unwrap()
    }

    /// Returns code, message, ArgumentName and ArgumentValue.
    fn refusal<T: std::fmt::Debug>(result: Result<T>) -> (&'static str, String, String, String) {
        let error = result.unwrap_err();
        let detail = |index: usize| error.details()[index].1.clone();
        assert_eq!((error.details()[0].0, error.details()[1].0), ("ArgumentName", "ArgumentValue"));
        (error.code().into(), error.message().to_owned(), detail(0), detail(1))
    }

    /// Returns message and ArgumentName of an error without an ArgumentValue.
    fn named<T: std::fmt::Debug>(result: Result<T>) -> (String, String) {
        let error = result.unwrap_err();
        assert_eq!((error.code(), error.details().len()), (ErrorCode::InvalidArgument, 1));
        assert_eq!(error.details()[0].0, "ArgumentName");
        (error.message().to_owned(), error.details()[0].1.clone())
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
            encoding_type: Some("url"),
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
        assert_eq!((list.continuation_token, list.start_after), (Some(token.as_str()), None));
        assert_eq!(list.start(), Some(ListStart::AfterKey("k".into())));
        assert!(list.fetch_owner);
        let q = query("list-type=2&start-after=z&fetch-owner=false");
        let list = ListObjectsV2::parse(&q).unwrap();
        assert_eq!(list.start(), Some(ListStart::AfterKey("z".into())));
        assert!(!list.fetch_owner);
        let q = query("list-type=2&start-after=");
        let list = ListObjectsV2::parse(&q).unwrap();
        assert_eq!((list.start_after, list.start()), (Some(""), None));
        for text in ["continuation-token=x%26y", "continuation-token=", "continuation-token=x&max-keys=-1"] {
            let message = "The continuation token provided is incorrect".to_owned();
            assert_eq!(
                named(ListObjectsV2::parse(&query(text))),
                (message, "continuation-token".to_owned()),
                "{text}"
            );
        }
    }

    /// Each form of the listing refuses the arguments that only the other form has.
    #[test]
    fn what_is_refused_before_the_bucket_is_known() {
        let first = |text| named(ListObjects::check(&query(text)));
        let second = |text| named(ListObjectsV2::check(&query(text)));
        let expected = |message: &str, name: &str| (message.to_owned(), name.to_owned());
        let token = expected(
            "continuation-token only supported in REST.GET.BUCKET with list-type=2",
            "continuation-token",
        );
        assert_eq!(first("continuation-token=&start-after=x"), token);
        let after = expected("startAfter only supported in REST.GET.BUCKET with list-type=2", "start-after");
        assert_eq!(first("start-after"), after);
        let marker = expected("Marker unsupported with REST.GET.BUCKET in list-type=2", "marker");
        assert_eq!(second("marker=&encoding-type=x&max-keys=-1"), marker);
        let number = "Provided max-keys not an integer or within integer range";
        assert_eq!(
            refusal(ListObjects::check(&query("start-after=x&max-keys=abc"))),
            invalid(number, "max-keys", "abc")
        );
        // These errors come later.
        assert!(ListObjects::check(&query("max-keys=-1&encoding-type=x&marker=x")).is_ok());
        assert!(ListObjectsV2::check(&query("max-keys=-1&continuation-token=")).is_ok());
    }

    #[test]
    fn page_sizes() {
        let max_keys = |text: &'static str| ListObjectsV2::parse(&query(text)).map(|list| list.max_keys);
        assert_eq!(max_keys("").unwrap(), 1000);
        assert_eq!(max_keys("max-keys=0").unwrap(), 0);
        assert_eq!(max_keys("max-keys=-0").unwrap(), 0);
        assert_eq!(max_keys("max-keys=007").unwrap(), 7);
        assert_eq!(max_keys("max-keys=1001").unwrap(), 1001);
        assert_eq!(max_keys("max-keys=2147483647").unwrap(), 2_147_483_647);
        assert_eq!([0, 7, 1000, 1001, u32::MAX].map(page_items), [0, 7, 1000, 1000, 1000]);
        let range = "Argument maxKeys must be an integer between 0 and 2147483647";
        assert_eq!(refusal(max_keys("max-keys=-1")), invalid(range, "maxKeys", "-1"));
        assert_eq!(refusal(max_keys("max-keys=-01")), invalid(range, "maxKeys", "-1"));
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
        let encoding =
            |text: &'static str| encoding_type(&query(text)).map(|encoding| encoding.map(str::to_owned));
        assert_eq!(encoding("").unwrap(), None);
        assert_eq!(encoding("encoding-type=uRL").unwrap().as_deref(), Some("uRL"));
        let message = "Invalid Encoding Method specified in Request";
        assert_eq!(refusal(encoding("encoding-type=xml")), invalid(message, "encoding-type", "xml"));
        assert_eq!(refusal(encoding("encoding-type=")), invalid(message, "encoding-type", ""));
        let all = query("encoding-type=x&continuation-token=x&max-keys=-1");
        assert_eq!(refusal(ListObjectsV2::parse(&all)), invalid(message, "encoding-type", "x"));
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
        let parse = |text| {
            let query = Query::parse(text).unwrap();
            ListBuckets::parse(&query, "eu-west-1")
                .map(|list| (list.prefix.map(str::to_owned), list.after, list.max_buckets, list.is_paged))
        };
        assert_eq!(parse("x-id=ListBuckets").unwrap(), (None, None, 10_000, false));
        assert_eq!(parse("continuation-token=").unwrap(), (None, None, 10_000, true));
        assert_eq!(parse("prefix=").unwrap(), (Some(String::new()), None, 10_000, true));
        let bucket = BucketName::new("bkt").unwrap();
        let paged = format!(
            "max-buckets=1&prefix=b&bucket-region=EU-west-1&continuation-token={}",
            ListBuckets::token(&bucket)
        );
        assert_eq!(parse(&paged).unwrap(), (Some("b".to_owned()), Some(bucket), 1, true));
        let message = "Argument max-buckets must be an integer between 1 and 10000";
        for (text, value) in
            [("max-buckets=0", "0"), ("max-buckets=10001", "10001"), ("max-buckets=-01", "-1")]
        {
            assert_eq!(refusal(parse(text)), invalid(message, "max-buckets", value));
        }
        let message = "Provided max-buckets not an integer or within integer range";
        assert_eq!(refusal(parse("max-buckets=x&bucket-region=x")), invalid(message, "max-buckets", "x"));
        let foreign = format!("continuation-token={}", ListStart::AfterKey("Not_A_Bucket".into()).to_token());
        assert_eq!(named(parse(&foreign)).1, "continuation-token");
    }

    #[test]
    fn regions_of_buckets() {
        let region = |text| named(ListBuckets::parse(&query(text), "local"));
        let elsewhere =
            "Requests with bucket-region specified must be made to the corresponding regional endpoint";
        assert_eq!(region("bucket-region=US-east-1").0, elsewhere);
        assert_eq!(region("bucket-region=us-east-1").1, "bucket-region");
        for none in ["eu-east-1", "", " us-east-1"] {
            let text = format!("bucket-region={none}&continuation-token=x");
            let refused = named(ListBuckets::parse(&Query::parse(&text).unwrap(), "local"));
            assert_eq!(refused.0, format!("Argument value {none} is not a valid AWS Region"));
        }
        assert!(ListBuckets::parse(&query("bucket-region=LOCAL"), "local").is_ok());
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
