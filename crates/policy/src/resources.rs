//! The resources that statements name.

use crate::arn::split;
use crate::catalogue::Key;
use crate::facts::{Certainty, Facts};
use crate::fault::Fault;
use crate::pattern::{Pattern, Special};

/// The resource that an action is done with.
#[derive(Debug, Clone, Copy)]
pub enum Resource<'a> {
    /// The service S3 as a whole. Only a pattern with a `*` matches it.
    Service,
    /// A bucket.
    Bucket(&'a str),
    /// An object: its bucket and key.
    Object(&'a str, &'a str),
    /// A resource of another service, by its ARN; `*` for an action that is not done with one
    /// resource.
    Arn(&'a str),
}

/// The number of bytes of the longest bucket name, a slash and the longest key, and some more.
const PATH_BYTES_MAX: usize = 63 + 1 + 1024 + 8;

/// A resource in the form that patterns are compared with. It is made once for each decision.
pub struct Subject<'a> {
    form: Form<'a>,
}

#[allow(clippy::large_enum_variant, reason = "it is on the stack, so that a decision allocates nothing")]
enum Form<'a> {
    /// `bucket` or `bucket/key`.
    Short([u8; PATH_BYTES_MAX], usize),
    Long(Vec<u8>),
    Arn([&'a str; 6]),
    /// A text that is not an ARN: only the pattern `*` matches.
    Nothing,
}

impl<'a> Subject<'a> {
    /// Makes the form of a resource.
    pub fn new(resource: Resource<'a>) -> Self {
        let path = |parts: &[&str]| {
            let length = parts.iter().map(|part| part.len()).sum();
            let mut bytes = [0; PATH_BYTES_MAX];
            let Some(mut rest) = bytes.get_mut(..length) else {
                return Form::Long(parts.concat().into_bytes());
            };
            for part in parts {
                let (these, others) = rest.split_at_mut(part.len());
                these.copy_from_slice(part.as_bytes());
                rest = others;
            }
            Form::Short(bytes, length)
        };
        let form = match resource {
            Resource::Service => path(&["*"]),
            Resource::Bucket(bucket) => path(&[bucket]),
            Resource::Object(bucket, key) => path(&[bucket, "/", key]),
            Resource::Arn(arn) => split(arn).map_or(Form::Nothing, Form::Arn),
        };
        Self { form }
    }
}

/// A pattern for ARNs of resources.
#[derive(Debug, Clone)]
pub struct ResourcePattern {
    /// The patterns of partition, service, region and account; `None` if the whole pattern is `*`.
    head: Option<Box<[Pattern; 4]>>,
    /// True if these patterns match S3's resources.
    is_s3: bool,
    tail: Pattern,
}

impl ResourcePattern {
    /// Reads a pattern. Variables are allowed only after the fifth colon.
    pub fn new(text: &str, variables: bool) -> Result<Self, Fault> {
        let special = Special { variables, wildcards: true, any_case: false };
        if text == "*" {
            return Ok(Self { head: None, is_s3: true, tail: Pattern::new("*", special)? });
        }
        let wrong = || Fault::Resource(text.chars().take(200).collect());
        let mut parts: Vec<&str> = text.splitn(6, ':').collect();
        // A `*` at the end of a part stands for those that are missing, too.
        if parts.len() >= 4 && text.ends_with('*') {
            parts.resize(6, "*");
        }
        let [arn, partition, service, region, account, tail] = parts[..] else { return Err(wrong()) };
        let head = [partition, service, region, account];
        let is_service =
            !service.is_empty() && service.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if arn != "arn" || !is_service || tail.is_empty() || head.iter().any(|part| part.contains("${")) {
            return Err(wrong());
        }
        let plain = Special { variables: false, ..special };
        let mut compiled = Vec::with_capacity(4);
        for part in head {
            compiled.push(Pattern::new(part, plain)?);
        }
        let head: Box<[Pattern; 4]> = Box::new(compiled.try_into().map_err(|_| wrong())?);
        if !head[0].matches_plain("aws") {
            return Err(wrong());
        }
        let is_s3 = head.iter().zip(["aws", "s3", "", ""]).all(|(part, of_s3)| part.matches_plain(of_s3));
        Ok(Self { head: Some(head), is_s3, tail: Pattern::new(tail, special)? })
    }

    /// Returns whether the pattern matches a resource.
    pub fn matches(&self, subject: &Subject<'_>, facts: &dyn Facts) -> Certainty {
        let Some(head) = &self.head else { return Certainty::Yes };
        match &subject.form {
            Form::Short(..) | Form::Long(_) if !self.is_s3 => Certainty::No,
            Form::Short(bytes, length) => self.tail.matches(&bytes[..*length], facts),
            Form::Long(bytes) => self.tail.matches(bytes, facts),
            Form::Arn([_, partition, service, region, account, resource]) => {
                let parts = head.iter().zip([partition, service, region, account]);
                let is_head = parts.into_iter().all(|(pattern, part)| pattern.matches_plain(part));
                if is_head { self.tail.matches(resource.as_bytes(), facts) } else { Certainty::No }
            }
            Form::Nothing => Certainty::No,
        }
    }

    /// Returns the keys of the variables that have no default: if one has no value, the pattern
    /// matches no resource.
    pub fn needed_keys(&self) -> impl Iterator<Item = &Key> {
        self.tail.needed_keys()
    }

    /// True if the value of a variable is a tag of the object.
    pub fn needs_object(&self) -> bool {
        self.tail.needs_object()
    }
}

/// The extent to which a pattern in a bucket policy matches its bucket and the objects in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// True if it matches the bucket itself.
    pub bucket: bool,
    /// True if it matches objects in the bucket.
    pub objects: bool,
}

/// Determines what a pattern matches in a bucket; `None` if it cannot match anything there.
pub fn reach(text: &str, bucket: &str) -> Option<Reach> {
    let wild = Special { variables: false, wildcards: true, any_case: false };
    let tail = match text {
        "*" => "*",
        _ => text.splitn(6, ':').last()?,
    };
    let matches =
        |pattern: &str, text: &str| Pattern::new(pattern, wild).is_ok_and(|p| p.matches_plain(text));
    match tail.split_once('/') {
        Some((name, _)) => matches(name, bucket).then_some(Reach {
            // `buck*/x` matches no bucket: names have no slash.
            bucket: false,
            objects: true,
        }),
        None => matches(tail, bucket)
            // A `*` stands for slashes, too.
            .then_some(Reach { bucket: true, objects: tail.contains('*') }),
    }
}
