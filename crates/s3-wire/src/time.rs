//! The formats of time in S3's protocol: ISO 8601 (basic, and extended with and without a fraction)
//! and HTTP dates.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use s3_types::Timestamp;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// A time in the format of signatures: `20130524T000000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IsoBasic([u8; 16]);

impl IsoBasic {
    /// Formats a time, cut down to the second.
    pub fn new(time: Timestamp) -> Self {
        let time = Offset::UTC.to_datetime(time);
        let mut text = *b"00000000T000000Z";
        digits(&mut text[0..4], time.year().into());
        digits(&mut text[4..6], time.month().into());
        digits(&mut text[6..8], time.day().into());
        digits(&mut text[9..11], time.hour().into());
        digits(&mut text[11..13], time.minute().into());
        digits(&mut text[13..15], time.second().into());
        Self(text)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        // The text has digits and letters only.
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the day alone: `20130524`.
    pub fn date(&self) -> &str {
        self.as_str().get(..8).unwrap_or_default()
    }
}

/// Reads `20130524T000000Z`, and no other format.
pub fn parse_iso_basic(text: &str) -> Option<Timestamp> {
    let bytes: &[u8; 16] = text.as_bytes().try_into().ok()?;
    if bytes[8] != b'T' || bytes[15] != b'Z' {
        return None;
    }
    let date = parse_basic_date(text.get(..8)?)?;
    let time = time_of(number(&bytes[9..11])?, number(&bytes[11..13])?, number(&bytes[13..15])?)?;
    timestamp(date, time)
}

/// Reads `20130524`, the format of a date in a credential scope.
pub fn parse_basic_date(text: &str) -> Option<Date> {
    let bytes: &[u8; 8] = text.as_bytes().try_into().ok()?;
    date_of(number(&bytes[0..4])?, number(&bytes[4..6])?, number(&bytes[6..8])?)
}

/// Reads an ISO 8601 time with its offset (`2009-10-12T17:50:30.000Z`), as XML bodies carry it.
pub fn parse_iso8601(text: &str) -> Option<Timestamp> {
    text.trim().parse().ok()
}

/// Appends `2009-10-12T17:50:30.000Z`, the format of S3's XML. It is cut down to the second, since
/// S3 keeps no fractions.
pub(crate) fn push_iso8601_of_xml(out: &mut String, time: Timestamp) {
    let mut text = *b"0000-00-00T00:00:00.000Z";
    extended(&mut text[..19], Offset::UTC.to_datetime(time));
    // The text is ASCII.
    out.push_str(str::from_utf8(&text).unwrap_or_default());
}

/// Writes `2009-10-12T17:50:30Z`, the format of times in S3's errors.
pub fn format_iso8601(time: Timestamp) -> String {
    let mut text = *b"0000-00-00T00:00:00Z";
    extended(&mut text[..19], Offset::UTC.to_datetime(time));
    owned(&text)
}

/// Writes `2009-10-12T17:50:30.000Z`, the format of dates that are kept to the millisecond.
pub fn format_iso8601_millis(time: Timestamp) -> String {
    let time = Offset::UTC.to_datetime(time);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    extended(&mut text[..19], time);
    digits(&mut text[20..23], i32::from(time.millisecond()));
    owned(&text)
}

/// Writes `Tue Dec 31 16:00:00 PST 2019`, the format that Java gives a time. S3 shows some times in
/// its errors so, in the time of Seattle. Here it is without daylight saving.
pub(crate) fn format_java(time: Timestamp) -> String {
    let local = Offset::constant(-8).to_datetime(time);
    let weekday = WEEKDAYS[usize::from(local.weekday().to_monday_zero_offset().unsigned_abs()) % 7];
    let month = MONTHS[usize::from(local.month().unsigned_abs()).saturating_sub(1) % 12];
    let (day, hour, minute, second) = (local.day(), local.hour(), local.minute(), local.second());
    format!("{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02} PST {}", local.year())
}

/// A time to the microsecond, in the format of logs: `2009-10-12T17:50:30.123456Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IsoMicros([u8; 27]);

impl IsoMicros {
    /// Formats a time, cut down to the microsecond.
    pub fn new(time: Timestamp) -> Self {
        let time = Offset::UTC.to_datetime(time);
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        extended(&mut text[..19], time);
        digits(&mut text[20..26], time.subsec_nanosecond() / 1000);
        Self(text)
    }

    /// Changes the text to that of another time in the same second, from 1970 on.
    pub fn set_fraction(&mut self, time: Timestamp) {
        digits(&mut self.0[20..26], time.subsec_nanosecond() / 1000);
    }

    /// Returns the text: digits, letters and punctuation of ASCII.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Writes `06/Nov/1994:08:49:37 +0000`, the format of Amazon's access logs (and of Apache's).
pub fn format_log_time(time: Timestamp) -> String {
    let time = Offset::UTC.to_datetime(time);
    let mut text = *b"00/Jan/0000:00:00:00 +0000";
    digits(&mut text[0..2], time.day().into());
    text[3..6].copy_from_slice(name(&MONTHS, time.month() - 1));
    digits(&mut text[7..11], time.year().into());
    digits(&mut text[12..14], time.hour().into());
    digits(&mut text[15..17], time.minute().into());
    digits(&mut text[18..20], time.second().into());
    owned(&text)
}

/// Writes `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
pub fn format_http_date(time: Timestamp) -> String {
    let time = Offset::UTC.to_datetime(time);
    let mut text = *b"Mon, 00 Jan 0000 00:00:00 GMT";
    text[0..3].copy_from_slice(name(&WEEKDAYS, time.weekday().to_monday_zero_offset()));
    digits(&mut text[5..7], time.day().into());
    text[8..11].copy_from_slice(name(&MONTHS, time.month() - 1));
    digits(&mut text[12..16], time.year().into());
    digits(&mut text[17..19], time.hour().into());
    digits(&mut text[20..22], time.minute().into());
    digits(&mut text[23..25], time.second().into());
    owned(&text)
}

/// Reads the three formats of RFC 9110, section 5.6.7, and their usual misspellings: the weekday
/// may be missing or wrong, the day may have one digit, and `UTC` or `+0000` may stand for `GMT`.
/// Returns `None` for other texts.
pub fn parse_http_date(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let text = text.split_once(',').map_or(text, |(_weekday, rest)| rest);
    let mut tokens = text.split([' ', '-']).filter(|token| !token.is_empty());
    let first = tokens.next()?;
    let (day, month, year, clock);
    if first.starts_with(|c: char| c.is_ascii_digit()) {
        (day, month, year, clock) = (first, tokens.next()?, tokens.next()?, tokens.next()?);
        if !matches!(tokens.next(), None | Some("GMT" | "UTC" | "UT" | "Z" | "+0000" | "0000")) {
            return None;
        }
    } else {
        // asctime: `Sun Nov  6 08:49:37 1994`.
        (month, day, clock, year) = (tokens.next()?, tokens.next()?, tokens.next()?, tokens.next()?);
    }
    if tokens.next().is_some() || day.len() > 2 {
        return None;
    }
    let month = MONTHS.iter().zip(1..).find(|(name, _)| name.eq_ignore_ascii_case(month))?.1;
    let date = date_of(full_year(year)?, month, number(day.as_bytes())?)?;
    timestamp(date, parse_clock(clock)?)
}

/// Reads a year of four or two digits. Two stand for 1970 to 2069 (RFC 850's format).
fn full_year(text: &str) -> Option<i16> {
    let year = number(text.as_bytes())?;
    match text.len() {
        4 => Some(year),
        2 if year < 70 => Some(2000 + year),
        2 => Some(1900 + year),
        _ => None,
    }
}

fn parse_clock(text: &str) -> Option<Time> {
    let mut parts = text.split(':');
    let mut part = || parts.next().filter(|p| p.len() == 2).and_then(|p| number(p.as_bytes()));
    let time = time_of(part()?, part()?, part()?)?;
    parts.next().is_none().then_some(time)
}

fn number(digits: &[u8]) -> Option<i16> {
    if digits.is_empty() || digits.len() > 4 {
        return None;
    }
    digits.iter().try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + i16::from(b - b'0')))
}

fn date_of(year: i16, month: i16, day: i16) -> Option<Date> {
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Makes a time of day. A leap second counts as the second before it.
fn time_of(hour: i16, minute: i16, second: i16) -> Option<Time> {
    let second = if second == 60 { 59 } else { second };
    Time::new(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, i8::try_from(second).ok()?, 0).ok()
}

fn timestamp(date: Date, time: Time) -> Option<Timestamp> {
    Offset::UTC.to_timestamp(date.to_datetime(time)).ok()
}

/// Returns a name of three letters. The index is always that of a name.
fn name(names: &[&'static str], index: i8) -> &'static [u8] {
    usize::try_from(index).ok().and_then(|i| names.get(i)).copied().unwrap_or("Mon").as_bytes()
}

fn extended(text: &mut [u8], time: DateTime) {
    digits(&mut text[0..4], time.year().into());
    digits(&mut text[5..7], time.month().into());
    digits(&mut text[8..10], time.day().into());
    digits(&mut text[11..13], time.hour().into());
    digits(&mut text[14..16], time.minute().into());
    digits(&mut text[17..19], time.second().into());
}

/// Writes `n` in decimal digits. Years before 0 are written as 0; they do not occur in the
/// protocol.
fn digits(out: &mut [u8], n: i32) {
    let mut n = n.max(0);
    for byte in out.iter_mut().rev() {
        *byte = b'0' + u8::try_from(n % 10).unwrap_or_default();
        n /= 10;
    }
}

/// Returns ASCII as text.
fn owned(text: &[u8]) -> String {
    str::from_utf8(text).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn forms() {
        let time = Timestamp::from_millisecond(784_111_777_123).unwrap();
        assert_eq!(IsoBasic::new(time).as_str(), "19941106T084937Z");
        assert_eq!(IsoBasic::new(time).date(), "19941106");
        let mut in_xml = String::new();
        push_iso8601_of_xml(&mut in_xml, time);
        assert_eq!(in_xml, "1994-11-06T08:49:37.000Z");
        assert_eq!(format_iso8601(time), "1994-11-06T08:49:37Z");
        assert_eq!(format_http_date(time), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(parse_iso8601("1994-11-06T08:49:37.123Z"), Some(time));
        assert_eq!(parse_iso8601("1994-11-06T10:49:37+02:00"), Some(at(784_111_777)));
    }

    #[test]
    fn http_dates_in_their_three_forms() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun Nov 6 08:49:37 1994",
            "Mon, 6 nov 1994 08:49:37 UTC",
            "06 Nov 1994 08:49:37 +0000",
            " Sun, 06 Nov 1994 08:49:37 -0000 ",
            "Sun, 06 Nov 1994 08:49:37",
        ] {
            assert_eq!(parse_http_date(text), Some(at(784_111_777)), "{text}");
        }
        assert_eq!(parse_http_date("Friday, 01-Jan-38 00:00:60 GMT"), Some(at(2_145_916_859)));
        assert_eq!(parse_http_date("Thursday, 01-Jan-70 00:00:00 GMT"), Some(at(0)));
        assert_eq!(parse_http_date("Tuesday, 01-Jan-69 00:00:00 GMT"), Some(at(3_124_224_000)));
    }

    #[test]
    fn garbage_is_no_date() {
        for text in [
            "",
            "0",
            "yesterday",
            "Sun, 06 Nov 1994",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 PST",
            "Sun, 06 Nov 1994 08:49:37 GMT x",
            "Sun, 06 Nov 19945 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 006 Nov 1994 08:49:37 GMT",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "1994-11-06T08:49:37Z",
            "Sun, é6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
        ] {
            assert_eq!(parse_http_date(text), None, "{text}");
        }
        for text in [
            "",
            "20130524",
            "20130524T000000",
            "20130524T000000Zx",
            "20131324T000000Z",
            "2013+524T000000Z",
            "20130524t000000Z",
            "20130524T0000é0Z",
        ] {
            assert_eq!(parse_iso_basic(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(second in 0i64..253_402_300_799, milli in 0i64..1000) {
            let exact = Timestamp::from_millisecond(second * 1000 + milli).unwrap();
            prop_assert_eq!(parse_iso_basic(IsoBasic::new(exact).as_str()), Some(at(second)));
            prop_assert_eq!(parse_http_date(&format_http_date(exact)), Some(at(second)));
            let mut in_xml = String::new();
            push_iso8601_of_xml(&mut in_xml, exact);
            prop_assert_eq!(parse_iso8601(&in_xml), Some(at(second)));
            prop_assert_eq!(parse_iso8601(&format_iso8601(exact)), Some(at(second)));
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,40}") {
            let _ = (parse_http_date(&text), parse_iso_basic(&text), parse_iso8601(&text), parse_basic_date(&text));
        }
    }
}
