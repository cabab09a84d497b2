use jiff::Timestamp;

use crate::etag::ETag;

/// The value of `If-Match` or `If-None-Match`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ETagCondition {
    /// `*`: any existing object matches.
    Any,
    /// A list of ETags: an object with one of them matches. An empty list matches no object.
    OneOf(Vec<ETag>),
}

impl ETagCondition {
    fn matches(&self, etag: &ETag) -> bool {
        match self {
            Self::Any => true,
            Self::OneOf(list) => list.contains(etag),
        }
    }
}

/// The value of `If-Range` (RFC 9110, section 13.1.5): the range is served only if the object has
/// not changed since the client got another part of it. Otherwise the answer is the whole object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfRange {
    /// The object must have this ETag.
    ETag(ETag),
    /// The object must have been modified at this time, to the second.
    Unmodified(Timestamp),
    /// A value that no object matches: the whole object is served.
    Never,
}

/// The precondition that failed; S3's error names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// `If-Match`
    IfMatch,
    /// `If-None-Match`
    IfNoneMatch,
    /// `If-Modified-Since`
    IfModifiedSince,
    /// `If-Unmodified-Since`
    IfUnmodifiedSince,
    /// `x-amz-if-match-initiated-time`: the time at which an upload was begun.
    InitiatedTime,
}

/// Preconditions of a request. The backend evaluates them in the same atomic step in which it reads
/// or changes the object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The object must exist and have one of these ETags.
    pub if_match: Option<ETagCondition>,
    /// The object must not exist, or have none of these ETags.
    pub if_none_match: Option<ETagCondition>,
    /// The object must have been modified after this time, to the second. Only reads have this
    /// condition.
    pub if_modified_since: Option<Timestamp>,
    /// The object must not have been modified after this time, to the second. Only reads have this
    /// condition.
    pub if_unmodified_since: Option<Timestamp>,
    /// The condition for serving a requested range. Only reads have it.
    pub if_range: Option<IfRange>,
}

/// The outcome of a conditional read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadVerdict {
    /// The object is to be served: all conditions hold.
    Proceed,
    /// The object was not modified: the answer is 304.
    NotModified,
    /// A precondition failed: the answer is 412.
    Failed(Condition),
}

impl Conditions {
    /// True if there are no conditions.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Evaluates the conditions of a read, with the precedence of RFC 9110, section 13.2.2: an ETag
    /// condition makes the date condition of its kind irrelevant.
    pub fn evaluate_read(&self, etag: &ETag, last_modified: Timestamp) -> ReadVerdict {
        let modified = last_modified.as_second();
        match (&self.if_match, self.if_unmodified_since) {
            (Some(condition), _) if !condition.matches(etag) => {
                return ReadVerdict::Failed(Condition::IfMatch);
            }
            (None, Some(since)) if modified > since.as_second() => {
                return ReadVerdict::Failed(Condition::IfUnmodifiedSince);
            }
            _ => {}
        }
        match (&self.if_none_match, self.if_modified_since) {
            (Some(condition), _) if condition.matches(etag) => ReadVerdict::NotModified,
            (None, Some(since)) if modified <= since.as_second() => ReadVerdict::NotModified,
            _ => ReadVerdict::Proceed,
        }
    }

    /// True if a requested range is to be served, for an object with this ETag and time; false if
    /// the whole object is. The caller checks the other conditions before.
    pub fn range_counts(&self, etag: &ETag, last_modified: Timestamp) -> bool {
        match &self.if_range {
            None => true,
            Some(IfRange::ETag(wanted)) => wanted == etag,
            Some(IfRange::Unmodified(since)) => since.as_second() == last_modified.as_second(),
            Some(IfRange::Never) => false,
        }
    }

    /// Evaluates the conditions on a copy's source, for which "not modified" is a failure too.
    pub fn evaluate_copy_source(&self, etag: &ETag, last_modified: Timestamp) -> Result<(), Condition> {
        match self.evaluate_read(etag, last_modified) {
            ReadVerdict::Proceed => Ok(()),
            ReadVerdict::Failed(condition) => Err(condition),
            ReadVerdict::NotModified if self.if_none_match.is_some() => Err(Condition::IfNoneMatch),
            ReadVerdict::NotModified => Err(Condition::IfModifiedSince),
        }
    }

    /// Evaluates the conditions on replacing or deleting an existing object with this ETag. For an
    /// object that does not exist, see [`Conditions::need_existing`].
    pub fn evaluate_replace(&self, etag: &ETag) -> Result<(), Condition> {
        if self.if_match.as_ref().is_some_and(|c| !c.matches(etag)) {
            return Err(Condition::IfMatch);
        }
        if self.if_none_match.as_ref().is_some_and(|c| c.matches(etag)) {
            return Err(Condition::IfNoneMatch);
        }
        Ok(())
    }

    /// Returns the ETag condition that decides whether a write is allowed, if the request has one.
    pub fn decided_by(&self) -> Option<Condition> {
        let none_match = self.if_none_match.as_ref().map(|_| Condition::IfNoneMatch);
        self.if_match.as_ref().map(|_| Condition::IfMatch).or(none_match)
    }

    /// True if the request requires an existing object (S3 answers `NoSuchKey` if it does not
    /// exist).
    pub fn need_existing(&self) -> bool {
        self.if_match.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn etag(n: u8) -> ETag {
        ETag::Md5([n; 16])
    }

    fn one(n: u8) -> ETagCondition {
        ETagCondition::OneOf(vec![etag(n)])
    }

    #[test]
    fn etags_win_over_dates() {
        let t = |s| Timestamp::from_second(s).unwrap();
        let read = |c: Conditions| c.evaluate_read(&etag(1), t(100));
        let none = Conditions::default;
        assert_eq!(read(none()), ReadVerdict::Proceed);
        assert_eq!(
            read(Conditions { if_match: Some(one(2)), ..none() }),
            ReadVerdict::Failed(Condition::IfMatch)
        );
        assert_eq!(
            read(Conditions { if_match: Some(one(1)), if_unmodified_since: Some(t(50)), ..none() }),
            ReadVerdict::Proceed
        );
        assert_eq!(
            read(Conditions { if_unmodified_since: Some(t(50)), ..none() }),
            ReadVerdict::Failed(Condition::IfUnmodifiedSince)
        );
        assert_eq!(read(Conditions { if_none_match: Some(one(1)), ..none() }), ReadVerdict::NotModified);
        assert_eq!(
            read(Conditions { if_none_match: Some(one(2)), if_modified_since: Some(t(200)), ..none() }),
            ReadVerdict::Proceed
        );
        assert_eq!(read(Conditions { if_modified_since: Some(t(100)), ..none() }), ReadVerdict::NotModified);
        assert_eq!(read(Conditions { if_modified_since: Some(t(99)), ..none() }), ReadVerdict::Proceed);
    }

    #[test]
    fn a_range_counts_of_the_object_that_it_was_part_of() {
        let t = |s| Timestamp::from_second(s).unwrap();
        let counts = |if_range| {
            let conditions = Conditions { if_range, ..Conditions::default() };
            conditions.range_counts(&etag(1), Timestamp::new(100, 900_000_000).unwrap())
        };
        assert!(counts(None));
        assert!(counts(Some(IfRange::ETag(etag(1)))));
        assert!(!counts(Some(IfRange::ETag(etag(2)))));
        assert!(counts(Some(IfRange::Unmodified(t(100)))));
        assert!(!counts(Some(IfRange::Unmodified(t(99)))));
        assert!(!counts(Some(IfRange::Unmodified(t(101)))));
        assert!(!counts(Some(IfRange::Never)));
    }

    #[test]
    fn a_read_rounds_the_time_down_to_what_the_client_saw() {
        let modified = Timestamp::new(100, 900_000_000).unwrap();
        let seen = Timestamp::from_second(100).unwrap();
        let unmodified = Conditions { if_unmodified_since: Some(seen), ..Conditions::default() };
        assert_eq!(unmodified.evaluate_read(&etag(1), modified), ReadVerdict::Proceed);
    }
}
