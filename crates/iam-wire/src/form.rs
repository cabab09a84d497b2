use std::borrow::Cow;
use std::fmt;

use s3_types::hex;

use crate::error::{QueryCode, QueryError};
use crate::limits::{FORM_BYTES_MAX, PARAMETERS_MAX};

/// The parameters of a request, from its query and its body together, decoded once.
///
/// Its debug output has only the names, since values may be secrets.
#[derive(Clone, Default)]
pub struct Form<'a> {
    /// The names and values, sorted by name; each name occurs once.
    parameters: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// The prefix of the parameters of a presigned URL, which do not belong to the action.
const OF_SIGNATURES: &str = "X-Amz-";

impl<'a> Form<'a> {
    /// Decodes the query (without its `?`) and the body, which are both
    /// `application/x-www-form-urlencoded`. The parameters of a presigned URL are left out.
    /// Everything that two readers could understand differently is `ValidationError`: a name that
    /// occurs twice, a `%` without two digits, bytes that are not UTF-8. So is a form that is too
    /// large.
    pub fn parse(query: &'a [u8], body: &'a [u8]) -> Result<Self, QueryError> {
        if query.len() + body.len() > FORM_BYTES_MAX {
            let message = format!("A request has at most {FORM_BYTES_MAX} bytes of parameters.");
            return Err(QueryError::new(QueryCode::ValidationError, message));
        }
        let mut parameters = Vec::new();
        let mut count = 0;
        for (raw, is_query) in [(query, true), (body, false)] {
            for pair in raw.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
                count += 1;
                if count > PARAMETERS_MAX {
                    let message = format!("A request has at most {PARAMETERS_MAX} parameters.");
                    return Err(QueryError::new(QueryCode::ValidationError, message));
                }
                let (name, value) = cut(pair);
                let (name, value) = (decode(name)?, decode(value)?);
                if !(is_query && name.starts_with(OF_SIGNATURES)) {
                    parameters.push((name, value));
                }
            }
        }
        parameters.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        let twice = parameters.array_windows::<2>().find(|[(left, _), (right, _)]| left == right);
        if let Some([(name, _), _]) = twice {
            let message = format!("The parameter {} was sent more than once.", shown(name));
            return Err(QueryError::new(QueryCode::ValidationError, message));
        }
        Ok(Self { parameters })
    }

    /// Returns the form with a parameter added, which replaces one of the same name.
    #[must_use]
    pub fn with(&self, name: &'a str, value: String) -> Self {
        let mut all = self.clone();
        all.parameters.retain(|(there, _)| there != name);
        all.parameters.push((name.into(), value.into()));
        all.parameters.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        all
    }

    /// A form without parameters.
    pub(crate) const EMPTY: &'static Form<'static> = &Form { parameters: Vec::new() };

    /// Returns the value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.find(name).and_then(|at| self.at(at)).map(|(_, value)| value)
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|(name, _)| &**name)
    }

    /// Returns the number of parameters.
    pub fn len(&self) -> usize {
        self.parameters.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// Returns the index of a parameter.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.parameters.binary_search_by(|(there, _)| (**there).cmp(name)).ok()
    }

    /// Returns the name and value of the parameter at an index.
    pub(crate) fn at(&self, at: usize) -> Option<(&str, &str)> {
        self.parameters.get(at).map(|(name, value)| (&**name, &**value))
    }

    /// Returns the indexes of all parameters whose names begin with a text. They are contiguous,
    /// since parameters are sorted.
    pub(crate) fn beginning_with(&self, text: &str) -> std::ops::Range<usize> {
        let start = self.parameters.partition_point(|(name, _)| &**name < text);
        let rest = self.parameters.get(start..).unwrap_or_default();
        let count = rest.iter().take_while(|(name, _)| name.starts_with(text)).count();
        start..start + count
    }
}

impl fmt::Debug for Form<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// Splits at the first `=`. If there is none, the value is empty.
fn cut(pair: &[u8]) -> (&[u8], &[u8]) {
    match pair.iter().position(|byte| *byte == b'=') {
        Some(at) => (&pair[..at], &pair[at + 1..]),
        None => (pair, b""),
    }
}

fn decode(raw: &[u8]) -> Result<Cow<'_, str>, QueryError> {
    if !raw.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return str::from_utf8(raw).map(Cow::Borrowed).map_err(|_| not_utf8());
    }
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let (digits, after) = rest.split_at_checked(2).ok_or_else(bad_escape)?;
                rest = after;
                let [byte] = hex::decode(digits).ok_or_else(bad_escape)?;
                byte
            }
            byte => *byte,
        });
    }
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| not_utf8())
}

fn bad_escape() -> QueryError {
    let message = "The parameters are not form-encoded: a % is not followed by two hexadecimal digits.";
    QueryError::new(QueryCode::ValidationError, message)
}

fn not_utf8() -> QueryError {
    QueryError::new(QueryCode::ValidationError, "The parameters are not form-encoded UTF-8.")
}

/// Returns the beginning of a name, for an error message.
fn shown(name: &str) -> String {
    name.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(query: &[u8], body: &[u8]) -> String {
        Form::parse(query, body).unwrap_err().message().to_owned()
    }

    #[test]
    fn query_and_body_are_one_form() {
        let form =
            Form::parse(b"Action=A&X-Amz-Date=1&X-Amz-Signature=s", b"&b=%C3%a9+x%2B&c&X-Amz-Body=1&d=e=f&")
                .unwrap();
        assert_eq!(form.names().collect::<Vec<_>>(), ["Action", "X-Amz-Body", "b", "c", "d"]);
        assert_eq!(form.get("b"), Some("é x+"));
        assert_eq!((form.get("c"), form.get("d"), form.get("e")), (Some(""), Some("e=f"), None));
        assert_eq!(format!("{form:?}"), "{\"Action\", \"X-Amz-Body\", \"b\", \"c\", \"d\"}");
    }

    #[test]
    fn nothing_comes_twice() {
        for (query, body) in [("a=1&a=1", ""), ("", "a&a=2"), ("a=1", "a=2"), ("a=1", "%61=2")] {
            let message = message(query.as_bytes(), body.as_bytes());
            assert_eq!(message, "The parameter a was sent more than once.");
        }
        assert!(Form::parse(b"a=1", b"A=1").is_ok());
    }

    #[test]
    fn what_is_not_form_encoded_is_refused() {
        for bad in ["a=%", "a=%4", "a=%zz", "a=%+1", "%=1", "a=%%41", "a=%-1"] {
            assert!(message(b"", bad.as_bytes()).contains('%'), "{bad}");
        }
        for bad in [&b"a=\xff"[..], b"a=%FF", b"%c3=1", b"\x80", b"a=%c3%28", b"a=%ed%a0%80"] {
            assert!(message(b"", bad).contains("UTF-8"), "{bad:?}");
        }
        assert_eq!(Form::parse(b"", b"a=%00").unwrap().get("a"), Some("\0"));
    }

    #[test]
    fn a_form_has_its_limits() {
        let body = |bytes: usize| [b"a=".to_vec(), vec![b'x'; bytes - 2]].concat();
        assert!(Form::parse(b"", &body(FORM_BYTES_MAX)).is_ok());
        assert!(Form::parse(b"b", &body(FORM_BYTES_MAX - 1)).is_ok());
        assert!(message(b"b", &body(FORM_BYTES_MAX)).contains("65536 bytes"));
        let many = |count: usize| (0..count).map(|n| format!("a{n}")).collect::<Vec<_>>().join("&");
        assert_eq!(Form::parse(b"", many(1_000).as_bytes()).unwrap().len(), 1_000);
        assert!(message(b"", many(1_001).as_bytes()).contains("1000 parameters"));
        assert!(message(b"x", many(1_000).as_bytes()).contains("1000 parameters"));
    }

    #[test]
    fn parameters_of_a_list_follow_each_other() {
        let form = Form::parse(b"", b"T.member.1=a&T.member.2=b&T=c&Tx=d&T.member=e&S=f").unwrap();
        let names = |text| form.beginning_with(text).filter_map(|at| form.at(at)).map(|(name, _)| name);
        assert_eq!(names("T.member.").collect::<Vec<_>>(), ["T.member.1", "T.member.2"]);
        assert_eq!(names("U").count(), 0);
        assert_eq!(names("").count(), 6);
    }

    proptest! {
        #[test]
        fn nothing_panics(query in prop::collection::vec(any::<u8>(), 0..60), body in "[a-c=&%+0-9A-F.]{0,60}") {
            let _ = Form::parse(&query, body.as_bytes());
        }

        #[test]
        fn what_is_encoded_is_decoded(pairs in prop::collection::btree_map(".{0,8}", ".{0,8}", 0..12)) {
            let encode = |text: &str| {
                percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
                    .to_string().replace("%20", "+")
            };
            let all: Vec<String> =
                pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
            for at in 0..=all.len() {
                let (query, body) = (all[..at].join("&"), all[at..].join("&"));
                let form = Form::parse(query.as_bytes(), body.as_bytes()).unwrap();
                prop_assert_eq!(form.len(), pairs.len());
                for (name, value) in &pairs {
                    prop_assert_eq!(form.get(name), Some(&**value));
                }
            }
        }
    }
}
