use std::io::BufRead;

use s3_types::{DefaultRetention, Retention, RetentionMode, RetentionPeriod, Timestamp};

use super::malformed::malformed;
use super::reader::{Document, is_empty, set_once};
use super::writer::Writer;
use crate::error::{ErrorCode, Result, S3Error};
use crate::headers::IN_THE_PAST;
use crate::limits::XML_BODY_BYTES_MAX;
use crate::time::{format_iso8601_millis, format_java, parse_iso8601};

const CONFIGURATION: &str = "ObjectLockConfiguration";
const RETENTION: &str = "Retention";
const LEGAL_HOLD: &str = "LegalHold";

/// Reads the body of PutObjectLockConfiguration, and returns the default retention, if there is
/// one. What is not in S3's schema is `MalformedXML`, and so is a rule without a whole retention.
pub fn parse_lock_configuration(body: &mut dyn BufRead) -> Result<Option<DefaultRetention>> {
    let mut document = Document::open(body, CONFIGURATION, XML_BODY_BYTES_MAX)?;
    let (mut enabled, mut rule) = (None, None);
    while let Some(child) = document.child()? {
        match child {
            "ObjectLockEnabled" => set_once(&mut enabled, document.text()?)?,
            "Rule" => set_once(&mut rule, lock_rule(&mut document)?)?,
            _ => return Err(malformed()),
        }
    }
    if enabled.as_deref() != Some("Enabled") {
        return Err(malformed());
    }
    Ok(rule)
}

fn lock_rule(document: &mut Document<'_>) -> Result<DefaultRetention> {
    let mut default = None;
    while let Some(child) = document.child()? {
        match child {
            "DefaultRetention" => set_once(&mut default, default_retention(document)?)?,
            _ => return Err(malformed()),
        }
    }
    default.ok_or_else(malformed)
}

fn default_retention(document: &mut Document<'_>) -> Result<DefaultRetention> {
    let (mut mode, mut period) = (None, None);
    while let Some(child) = document.child()? {
        match child {
            "Mode" => set_once(&mut mode, mode_of(&document.text()?)?)?,
            "Days" => set_once(&mut period, RetentionPeriod::Days(number(&document.text()?)?))?,
            "Years" => set_once(&mut period, RetentionPeriod::Years(number(&document.text()?)?))?,
            "DefaultEventHold" => return Err(no_event_holds()),
            _ => return Err(malformed()),
        }
    }
    let (mode, period) = mode.zip(period).ok_or_else(malformed)?;
    DefaultRetention::new(mode, period).ok_or_else(|| {
        let message = match period {
            RetentionPeriod::Days(0) | RetentionPeriod::Years(0) => {
                "Default retention period must be a positive integer value."
            }
            RetentionPeriod::Days(_) | RetentionPeriod::Years(_) => "Default retention period too large.",
        };
        S3Error::with_message(ErrorCode::InvalidArgument, message)
    })
}

/// Reads a number; one that is negative or too large for S3 becomes 0 or the largest, so that the
/// error is about the period.
fn number(text: &str) -> Result<u32> {
    let number: i64 = text.trim().parse().map_err(|_| malformed())?;
    Ok(u32::try_from(number.max(0)).unwrap_or(u32::MAX))
}

fn mode_of(text: &str) -> Result<RetentionMode> {
    RetentionMode::of(text).ok_or_else(malformed)
}

/// Returns the error for a document that is about event holds, which are not implemented: whoever
/// sets one would take an object for safer than it is.
fn no_event_holds() -> S3Error {
    S3Error::with_message(ErrorCode::NotImplemented, "Event holds of Object Lock are not implemented.")
}

/// Writes the answer of GetObjectLockConfiguration.
pub fn lock_configuration(default: Option<DefaultRetention>) -> String {
    let mut writer = Writer::document(CONFIGURATION, 192);
    writer.text("ObjectLockEnabled", "Enabled");
    if let Some(default) = default {
        writer.open("Rule");
        writer.open("DefaultRetention");
        writer.text("Mode", default.mode.as_str());
        match default.period() {
            RetentionPeriod::Days(days) => writer.text("Days", &days.to_string()),
            RetentionPeriod::Years(years) => writer.text("Years", &years.to_string()),
        }
        writer.close("DefaultRetention");
        writer.close("Rule");
    }
    writer.finish()
}

/// Reads the body of PutObjectRetention; `None` if it has neither mode nor date, which removes the
/// retention. One without the other is `MalformedXML`.
pub fn parse_retention(body: &mut dyn BufRead) -> Result<Option<Retention>> {
    if is_empty(body)? {
        return Err(malformed());
    }
    let mut document = Document::open(body, RETENTION, XML_BODY_BYTES_MAX)?;
    let (mut mode, mut until) = (None, None);
    while let Some(child) = document.child()? {
        match child {
            "Mode" => set_once(&mut mode, mode_of(&document.text()?)?)?,
            "RetainUntilDate" => {
                let date = parse_iso8601(&document.text()?).ok_or_else(malformed)?;
                set_once(&mut until, date)?;
            }
            "EventHold" | "EventHoldDuration" => return Err(no_event_holds()),
            _ => return Err(malformed()),
        }
    }
    match (mode, until) {
        (None, None) => Ok(None),
        (Some(mode), Some(until)) => Ok(Some(Retention::new(mode, until))),
        _ => Err(malformed()),
    }
}

/// Fails if the retention that a body sets has ended already. S3 shows the date in the form of its
/// own programs.
pub fn check_retention(retention: Option<Retention>, now: Timestamp) -> Result<()> {
    match retention.map(Retention::until).filter(|until| *until <= now) {
        Some(until) => Err(S3Error::invalid_argument("RetainUntilDate", format_java(until), IN_THE_PAST)),
        None => Ok(()),
    }
}

/// Writes the answer of GetObjectRetention.
pub fn retention(retention: Retention) -> String {
    let mut writer = Writer::document(RETENTION, 96);
    writer.text("Mode", retention.mode.as_str());
    writer.text("RetainUntilDate", &format_iso8601_millis(retention.until()));
    writer.finish()
}

/// Reads the body of PutObjectLegalHold. As recorded at Amazon S3, no body is a malformed one.
pub fn parse_legal_hold(body: &mut dyn BufRead) -> Result<bool> {
    if is_empty(body)? {
        return Err(malformed());
    }
    let mut document = Document::open(body, LEGAL_HOLD, XML_BODY_BYTES_MAX)?;
    let mut held = None;
    while let Some(child) = document.child()? {
        match child {
            "Status" => {
                let status = match document.text()?.as_str() {
                    "ON" => true,
                    "OFF" => false,
                    _ => return Err(malformed()),
                };
                set_once(&mut held, status)?;
            }
            _ => return Err(malformed()),
        }
    }
    held.ok_or_else(malformed)
}

/// Writes the answer of GetObjectLegalHold.
pub fn legal_hold(held: bool) -> String {
    let mut writer = Writer::document(LEGAL_HOLD, 32);
    writer.text("Status", if held { "ON" } else { "OFF" });
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T: std::fmt::Debug>(result: Result<T>) -> &'static str {
        result.unwrap_err().code().into()
    }

    fn configuration(inside: &str) -> Result<Option<DefaultRetention>> {
        let body = format!("<ObjectLockConfiguration>{inside}</ObjectLockConfiguration>");
        parse_lock_configuration(&mut body.as_bytes())
    }

    #[test]
    fn configurations() {
        let enabled = "<ObjectLockEnabled>Enabled</ObjectLockEnabled>";
        let rule =
            |inside: &str| format!("{enabled}<Rule><DefaultRetention>{inside}</DefaultRetention></Rule>");
        assert_eq!(configuration(enabled).unwrap(), None);
        let days = DefaultRetention::new(RetentionMode::Governance, RetentionPeriod::Days(1));
        assert_eq!(configuration(&rule("<Mode>GOVERNANCE</Mode><Days>1</Days>")).unwrap(), days);
        let years = DefaultRetention::new(RetentionMode::Compliance, RetentionPeriod::Years(100));
        assert_eq!(configuration(&rule("<Years>100</Years><Mode>COMPLIANCE</Mode>")).unwrap(), years);
        for default in [None, days, years] {
            let text = lock_configuration(default);
            assert_eq!(parse_lock_configuration(&mut text.as_bytes()).unwrap(), default, "{text}");
        }
        // Those up to the empty element were recorded at Amazon S3.
        for malformed in [
            rule("<Mode>GOVERNANCE</Mode><Days>1</Days>").replace(enabled, ""),
            String::new(),
            format!("{enabled}<Rule/>"),
            rule(""),
            rule("<Mode>GOVERNANCE</Mode>"),
            rule("<Mode>BAD-VALUE</Mode><Days>1</Days>"),
            rule("<Mode>GOVERNANCE</Mode><Days>1</Days><Years>1</Years>"),
            rule("<Mode>GOVERNANCE</Mode><Days/>"),
            format!("{enabled}<Other/>"),
            enabled.replace("Enabled<", "Disabled<"),
        ] {
            assert_eq!(code(configuration(&malformed)), "MalformedXML", "{malformed}");
        }
        for period in ["<Days>0</Days>", "<Days>-1</Days>", "<Days>36501</Days>", "<Years>101</Years>"] {
            let wrong = configuration(&rule(&format!("<Mode>GOVERNANCE</Mode>{period}")));
            assert_eq!(code(wrong), "InvalidArgument", "{period}");
        }
        let held =
            rule("<Mode>GOVERNANCE</Mode><Days>1</Days><DefaultEventHold><Days>1</Days></DefaultEventHold>");
        assert_eq!(code(configuration(&held)), "NotImplemented");
    }

    #[test]
    fn retentions() {
        let parse =
            |inside: &str| parse_retention(&mut format!("<Retention>{inside}</Retention>").as_bytes());
        assert_eq!(parse("").unwrap(), None);
        let (mode, date) =
            ("<Mode>COMPLIANCE</Mode>", "<RetainUntilDate>2020-01-01T00:00:00Z</RetainUntilDate>");
        let read = parse(&format!("{mode}{date}")).unwrap().unwrap();
        let text = retention(read);
        assert!(text.contains("<RetainUntilDate>2020-01-01T00:00:00.000Z</RetainUntilDate>"), "{text}");
        assert_eq!(parse_retention(&mut text.as_bytes()).unwrap(), Some(read));
        for malformed in [mode, date, "<Mode>x</Mode>", "<RetainUntilDate>x</RetainUntilDate>", "<Other/>"] {
            assert_eq!(code(parse(malformed)), "MalformedXML", "{malformed}");
        }
        for held in ["<EventHold>ON</EventHold>", "<EventHoldDuration><Days>1</Days></EventHoldDuration>"] {
            assert_eq!(code(parse(&format!("{mode}{date}{held}"))), "NotImplemented", "{held}");
        }
        // As recorded at Amazon S3.
        let past = check_retention(Some(read), "2026-01-01T00:00:00Z".parse().unwrap()).unwrap_err();
        assert_eq!(
            past.details(),
            [
                ("ArgumentName", "RetainUntilDate".to_owned()),
                ("ArgumentValue", "Tue Dec 31 16:00:00 PST 2019".to_owned())
            ]
        );
        assert!(check_retention(Some(read), "2019-01-01T00:00:00Z".parse().unwrap()).is_ok());
        assert!(check_retention(None, Timestamp::MAX).is_ok());
    }

    #[test]
    fn legal_holds() {
        for held in [false, true] {
            assert_eq!(parse_legal_hold(&mut legal_hold(held).as_bytes()).unwrap(), held);
        }
        for malformed in ["", "<LegalHold/>", "<LegalHold><Status>on</Status></LegalHold>", "<Retention/>"] {
            assert_eq!(code(parse_legal_hold(&mut malformed.as_bytes())), "MalformedXML", "{malformed}");
        }
    }
}
