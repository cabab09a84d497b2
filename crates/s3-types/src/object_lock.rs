use std::fmt;

use jiff::{SignedDuration, Timestamp, ToSpan as _, tz::TimeZone};

use crate::limits::{RETENTION_DAYS_MAX, RETENTION_YEARS_MAX};

/// The mode of a retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetentionMode {
    /// The retention can be bypassed with the permission for that.
    Governance,
    /// Nobody may shorten the retention, or delete the version before its end.
    Compliance,
}

impl RetentionMode {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Governance => "GOVERNANCE",
            Self::Compliance => "COMPLIANCE",
        }
    }

    /// Returns the mode with this name, whose case matters.
    pub fn of(name: &str) -> Option<Self> {
        [Self::Governance, Self::Compliance].into_iter().find(|mode| mode.as_str() == name)
    }
}

/// The retention of a version: until when it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The mode.
    pub mode: RetentionMode,
    until: Timestamp,
}

impl Retention {
    /// Makes a retention. Its end is moved to the next millisecond, which is the precision of
    /// answers: a client that sets what it was shown does not shorten it.
    pub fn new(mode: RetentionMode, until: Timestamp) -> Self {
        let beyond = until.as_nanosecond().rem_euclid(1_000_000);
        let rest = if beyond == 0 { 0 } else { 1_000_000 - beyond };
        let rest = SignedDuration::from_nanos(i64::try_from(rest).unwrap_or(0));
        Self { mode, until: until.checked_add(rest).unwrap_or(until) }
    }

    /// Returns the time from which on the version is kept no longer.
    pub const fn until(self) -> Timestamp {
        self.until
    }
}

/// The lock of a version: retention and legal hold, which do not depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObjectLock {
    /// The retention. It may have ended.
    pub retention: Option<Retention>,
    /// The legal hold; `None` if none was ever set.
    pub legal_hold: Option<bool>,
}

/// The strength of a lock at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockStrength {
    /// The version may be deleted.
    None,
    /// The version may be deleted by who may bypass a retention in GOVERNANCE mode.
    Governed,
    /// Nobody may delete the version.
    Firm,
}

impl ObjectLock {
    /// True if nothing was ever set.
    pub const fn is_empty(&self) -> bool {
        self.retention.is_none() && self.legal_hold.is_none()
    }

    /// Returns the strength of the lock at a time.
    pub fn strength(&self, now: Timestamp) -> LockStrength {
        let in_force = self.retention.filter(|retention| retention.until > now);
        match (self.legal_hold, in_force.map(|retention| retention.mode)) {
            (Some(true), _) | (_, Some(RetentionMode::Compliance)) => LockStrength::Firm,
            (_, Some(RetentionMode::Governance)) => LockStrength::Governed,
            (_, None) => LockStrength::None,
        }
    }

    /// Returns what is needed to give the version another retention at a time: [`LockStrength`]
    /// `None` for a retention that is at least as strict. The legal hold does not matter.
    pub fn needed_for(&self, wanted: Option<Retention>, now: Timestamp) -> LockStrength {
        let Some(present) = self.retention.filter(|retention| retention.until > now) else {
            return LockStrength::None;
        };
        let is_stricter = |wanted: Retention| {
            let keeps_mode = wanted.mode == present.mode || wanted.mode == RetentionMode::Compliance;
            keeps_mode && wanted.until >= present.until
        };
        match present.mode {
            _ if wanted.is_some_and(is_stricter) => LockStrength::None,
            RetentionMode::Governance => LockStrength::Governed,
            RetentionMode::Compliance => LockStrength::Firm,
        }
    }
}

/// The length of a default retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionPeriod {
    /// Days of 24 hours.
    Days(u32),
    /// Years of the calendar.
    Years(u32),
}

/// The retention that new versions of a bucket get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultRetention {
    /// The mode.
    pub mode: RetentionMode,
    period: RetentionPeriod,
}

impl DefaultRetention {
    /// Makes a default retention; `None` for a period of zero, or a longer one than S3 allows.
    pub fn new(mode: RetentionMode, period: RetentionPeriod) -> Option<Self> {
        let fits = match period {
            RetentionPeriod::Days(days) => (1..=RETENTION_DAYS_MAX).contains(&days),
            RetentionPeriod::Years(years) => (1..=RETENTION_YEARS_MAX).contains(&years),
        };
        fits.then_some(Self { mode, period })
    }

    /// Returns the period.
    pub const fn period(self) -> RetentionPeriod {
        self.period
    }

    /// Returns the retention of a version that is made at a time.
    pub fn from(self, now: Timestamp) -> Retention {
        let until = match self.period {
            RetentionPeriod::Days(days) => now.checked_add(SignedDuration::from_hours(24 * i64::from(days))),
            RetentionPeriod::Years(years) => {
                let now = now.to_zoned(TimeZone::UTC);
                now.checked_add(i64::from(years).years()).map(|until| until.timestamp())
            }
        };
        Retention::new(self.mode, until.unwrap_or(Timestamp::MAX))
    }
}

impl fmt::Display for DefaultRetention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = match self.period {
            RetentionPeriod::Days(days) => (days, "days"),
            RetentionPeriod::Years(years) => (years, "years"),
        };
        write!(f, "{} {number} {unit}", self.mode.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[allow(clippy::unnecessary_wraps, reason = "some tests have none")]
    fn until(mode: RetentionMode, text: &str) -> Option<Retention> {
        Some(Retention::new(mode, at(text)))
    }

    #[test]
    fn a_retention_ends_with_a_millisecond() {
        let shown = |text| Retention::new(RetentionMode::Governance, at(text)).until().to_string();
        assert_eq!(shown("2030-01-01T00:00:00.000000001Z"), "2030-01-01T00:00:00.001Z");
        assert_eq!(shown("2030-01-01T00:00:00.001Z"), "2030-01-01T00:00:00.001Z");
        assert_eq!(Retention::new(RetentionMode::Governance, Timestamp::MAX).until(), Timestamp::MAX);
    }

    #[test]
    fn a_lock_holds_until_its_end() {
        use RetentionMode::{Compliance, Governance};
        let now = at("2030-01-01T00:00:00Z");
        let (before, after) = ("2029-12-31T23:59:59.999Z", "2030-01-01T00:00:00.001Z");
        for (retention, legal_hold, strength) in [
            (None, None, LockStrength::None),
            (None, Some(false), LockStrength::None),
            (None, Some(true), LockStrength::Firm),
            (until(Governance, before), None, LockStrength::None),
            (until(Compliance, before), None, LockStrength::None),
            (until(Compliance, "2030-01-01T00:00:00Z"), None, LockStrength::None),
            (until(Governance, after), None, LockStrength::Governed),
            (until(Compliance, after), Some(false), LockStrength::Firm),
            (until(Governance, after), Some(true), LockStrength::Firm),
            (until(Governance, before), Some(true), LockStrength::Firm),
        ] {
            assert_eq!(ObjectLock { retention, legal_hold }.strength(now), strength, "{retention:?}");
        }
    }

    #[test]
    fn a_retention_becomes_only_stricter() {
        use LockStrength::{Firm, Governed, None as Free};
        use RetentionMode::{Compliance, Governance};
        let (now, sooner, end, later) = (
            at("2030-01-01T00:00:00Z"),
            "2030-06-01T00:00:00Z",
            "2031-01-01T00:00:00Z",
            "2032-01-01T00:00:00Z",
        );
        for (present, wanted, needed) in [
            (None, None, Free),
            (None, until(Governance, sooner), Free),
            (until(Governance, end), until(Governance, end), Free),
            (until(Governance, end), until(Governance, later), Free),
            (until(Governance, end), until(Compliance, end), Free),
            (until(Governance, end), until(Compliance, sooner), Governed),
            (until(Governance, end), until(Governance, sooner), Governed),
            (until(Governance, end), None, Governed),
            (until(Compliance, end), until(Compliance, later), Free),
            (until(Compliance, end), until(Compliance, sooner), Firm),
            (until(Compliance, end), until(Governance, later), Firm),
            (until(Compliance, end), None, Firm),
            // One that has ended.
            (until(Compliance, "2029-01-01T00:00:00Z"), None, Free),
            (until(Compliance, "2029-01-01T00:00:00Z"), until(Governance, sooner), Free),
        ] {
            let lock = ObjectLock { retention: present, legal_hold: Some(true) };
            assert_eq!(lock.needed_for(wanted, now), needed, "{present:?} {wanted:?}");
        }
    }

    #[test]
    fn default_retentions_are_counted_from_the_write() {
        let from = |period, now| {
            let retention = DefaultRetention::new(RetentionMode::Compliance, period)?;
            Some(retention.from(at(now)).until().to_string())
        };
        let now = "2028-02-29T12:00:00Z";
        assert_eq!(from(RetentionPeriod::Days(1), now).unwrap(), "2028-03-01T12:00:00Z");
        assert_eq!(from(RetentionPeriod::Years(1), now).unwrap(), "2029-02-28T12:00:00Z");
        assert_eq!(from(RetentionPeriod::Years(4), now).unwrap(), "2032-02-29T12:00:00Z");
        assert!(from(RetentionPeriod::Years(RETENTION_YEARS_MAX), now).is_some());
        assert_eq!(from(RetentionPeriod::Days(36_500), "9999-01-01T00:00:00Z").unwrap(), {
            Retention::new(RetentionMode::Compliance, Timestamp::MAX).until().to_string()
        });
        for period in [RetentionPeriod::Days(0), RetentionPeriod::Years(0), RetentionPeriod::Years(101)] {
            assert_eq!(from(period, now), None, "{period:?}");
        }
    }
}
