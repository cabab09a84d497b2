//! Sizes, sweeps and mixes, in the form in which people write them and tables show them.

use std::time::Duration;

/// The largest number of requests at once. Each takes a file descriptor here and one in the server.
pub const CONCURRENCY_MAX: usize = 10_000;

/// Reads a size in bytes. `4096`, `4k`, `1m`, `64MiB` and `10g` have units that are powers of 1024;
/// `1MB` and similar units are powers of 1000.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let bad = || {
        format!(
            "{text:?} is not a size: expected one such as 512, 4k, 1m, 64MiB, 10g (powers of 1024), or 1MB (10^6)"
        )
    };
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &lower[digits.len()..] {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(bad()),
    };
    let number: u64 = digits.parse().map_err(|_| bad())?;
    number.checked_mul(unit).filter(|&bytes| bytes <= 1 << 50).ok_or_else(bad)
}

/// The number of bytes of a MiB, as a divisor.
pub(crate) const MIB: f64 = 1_048_576.0;

/// Reads several sizes, such as `1k,4k,1m`.
pub fn parse_sizes(text: &str) -> Result<Vec<u64>, String> {
    text.split(',').map(parse_size).collect()
}

/// Reads a sweep of numbers: in `1,2,4..64` the numbers double from 4 to 64, and in `100..350+50`
/// they grow by 50.
pub fn parse_sweep(text: &str) -> Result<Vec<usize>, String> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let (range, step) = match part.split_once('+') {
            Some((range, step)) => (range, Some(count(step)?)),
            None => (part, None),
        };
        let Some((from, to)) = range.split_once("..") else {
            if step.is_some() {
                return Err(format!("{part:?}: a step needs a range, such as 100..350+50"));
            }
            found.push(count(range)?);
            continue;
        };
        let (mut at, to) = (count(from)?, count(to)?);
        if at > to {
            return Err(format!("{part:?}: the first number must not be larger than the last"));
        }
        while at < to {
            found.push(at);
            at = step.map_or(at * 2, |step| at + step);
        }
        found.push(to);
    }
    found.dedup();
    if found.len() > 1000 { Err("more than 1000 numbers: use larger steps".to_owned()) } else { Ok(found) }
}

fn count(text: &str) -> Result<usize, String> {
    match text.trim().parse() {
        Ok(n @ 1..=CONCURRENCY_MAX) => Ok(n),
        _ => Err(format!("{text:?} is not a number from 1 to {CONCURRENCY_MAX}")),
    }
}

/// Reads a time: `10`, `10s`, `500ms`, `2m` or `1h`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is not a time of at most a day: expected one such as 10, 10s, 500ms, 2m");
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| bad())?;
    let milliseconds = match &lower[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err(bad()),
    };
    let most = 24 * 3_600_000;
    number.checked_mul(milliseconds).filter(|&ms| ms <= most).map(Duration::from_millis).ok_or_else(bad)
}

/// The rate of an open loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// A number of requests a second.
    PerSecond(u64),
    /// A share of the rate that each step reaches in a closed loop.
    OfPeak(f64),
}

/// Reads a rate: `5000` requests a second, or `70%` of the peak of each step.
pub fn parse_rate(text: &str) -> Result<Rate, String> {
    let bad = || {
        format!("{text:?} is not a rate: expected one such as 5000 (requests a second) or 70% (of the peak)")
    };
    if let Some(percent) = text.trim().strip_suffix('%') {
        let percent: f64 = percent.trim_end().parse().map_err(|_| bad())?;
        let is_some = (1.0..=200.0).contains(&percent);
        return if is_some {
            Ok(Rate::OfPeak(percent / 100.0))
        } else {
            Err("a share must be from 1% to 200%".to_owned())
        };
    }
    match text.trim().parse() {
        Ok(number @ 1..=10_000_000) => Ok(Rate::PerSecond(number)),
        Ok(_) => Err("a rate must be from 1 to 10000000".to_owned()),
        Err(_) => Err(bad()),
    }
}

/// The weight of each operation in a mixed load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    /// The weight of GetObject.
    pub get: u32,
    /// The weight of PutObject.
    pub put: u32,
    /// The weight of HeadObject.
    pub head: u32,
    /// The weight of DeleteObject.
    pub delete: u32,
    /// The weight of ListObjectsV2.
    pub list: u32,
}

impl Default for Mix {
    fn default() -> Self {
        Self { get: 45, put: 15, head: 30, delete: 10, list: 0 }
    }
}

impl Mix {
    /// Reads a mix such as `get=45,put=15,head=30,delete=10`. Operations that the text does not
    /// name do not occur.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut mix = Self { get: 0, put: 0, head: 0, delete: 0, list: 0 };
        for part in text.split(',') {
            let weight =
                part.split_once('=').and_then(|(name, n)| Some((name.trim(), n.trim().parse().ok()?)));
            let (name, weight) = weight
                .filter(|&(_, n)| n <= 1_000_000)
                .ok_or_else(|| format!("{part:?}: expected an operation and its weight, such as get=45"))?;
            *match name {
                "get" => &mut mix.get,
                "put" => &mut mix.put,
                "head" => &mut mix.head,
                "delete" => &mut mix.delete,
                "list" => &mut mix.list,
                _ => return Err(format!("{name:?}: a mix can contain only get, put, head, delete and list")),
            } = weight;
        }
        match mix {
            mix if mix.total() == 0 => Err("a mix needs a weight above 0".to_owned()),
            mix if mix.delete > mix.put => {
                Err("a mix cannot delete more than it puts, since it would run out of objects".to_owned())
            }
            mix => Ok(mix),
        }
    }

    pub(crate) fn total(self) -> u32 {
        self.get + self.put + self.head + self.delete + self.list
    }
}

/// Returns a number as a float. The result is exact below 2^53, which no count here reaches.
#[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

/// Rounds a float to a whole number, which is 0 for negative floats.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
pub(crate) fn whole(number: f64) -> u64 {
    number.clamp(0.0, 9e15).round() as u64
}

/// Writes a size for people, exact to the byte: `1 MiB`, `1.5 KiB`, `100 B`, `1500 B`.
pub fn show_size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        None => format!("{bytes} B"),
        Some((shift, unit)) if bytes.is_multiple_of(1 << shift) => format!("{} {unit}", bytes >> shift),
        Some((shift, unit)) if (bytes * 10).is_multiple_of(1 << shift) => {
            format!("{:.1} {unit}", float(bytes) / float(1 << shift))
        }
        // Results are told apart by it.
        Some(_) => format!("{bytes} B"),
    }
}

/// Writes microseconds for people, with three digits: `850us`, `1.25ms`, `3.10s`.
pub fn show_time(us: f64) -> String {
    match us {
        0.0 => "0".to_owned(),
        us if us < 10.0 => format!("{us:.2}us"),
        us if us < 100.0 => format!("{us:.1}us"),
        us if us < 1e3 => format!("{us:.0}us"),
        us if us < 1e4 => format!("{:.2}ms", us / 1e3),
        us if us < 1e5 => format!("{:.1}ms", us / 1e3),
        us if us < 1e6 => format!("{:.0}ms", us / 1e3),
        us => format!("{:.2}s", us / 1e6),
    }
}

/// Writes a share for people: `70 %`, `12.5 %`.
pub(crate) fn show_percent(share: f64) -> String {
    format!("{} %", (share * 1e3).round() / 10.0)
}

/// Writes a rate or another number, with about three digits.
pub fn show_number(number: f64) -> String {
    match number {
        0.0 => "0".to_owned(),
        n if n < 10.0 => format!("{n:.2}"),
        n if n < 100.0 => format!("{n:.1}"),
        n => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("4k", 4096),
            ("1MiB", 1 << 20),
            ("10G", 10 << 30),
            ("3kb", 3000),
            ("1MB", 1_000_000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes));
        }
        for bad in ["", "k", "1.5m", "-1", "1x", "99999999999t", "2048t", "1 k"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_sizes("1k,2k"), Ok(vec![1024, 2048]));
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1500, "1500 B"),
            (1536, "1.5 KiB"),
            (1 << 20, "1 MiB"),
            (5 << 40, "5 TiB"),
        ] {
            assert_eq!(show_size(bytes), text);
        }
    }

    #[test]
    fn sweeps() {
        assert_eq!(parse_sweep("1,2,4..64"), Ok(vec![1, 2, 4, 8, 16, 32, 64]));
        assert_eq!(parse_sweep("3..10"), Ok(vec![3, 6, 10]));
        assert_eq!(parse_sweep("100..350+100"), Ok(vec![100, 200, 300, 350]));
        assert_eq!(parse_sweep("5..5,5"), Ok(vec![5]));
        for bad in ["", "0", "8..4", "1..", "5+1", "1..4+0", "x", "20000", "1..10000+1"] {
            assert!(parse_sweep(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(parse_duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_mins(2)));
        for bad in ["", "s", "1d", "25h", "-1s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        assert_eq!(show_time(1.234), "1.23us");
        assert_eq!(show_time(12_345.0), "12.3ms");
        assert_eq!(show_time(2e6), "2.00s");
        assert_eq!((show_percent(0.07), show_percent(0.125)), ("7 %".to_owned(), "12.5 %".to_owned()));
    }

    #[test]
    fn rates() {
        assert_eq!(parse_rate("5000"), Ok(Rate::PerSecond(5000)));
        assert_eq!(parse_rate("70%"), Ok(Rate::OfPeak(0.7)));
        assert_eq!(parse_rate("12.5 %"), Ok(Rate::OfPeak(0.125)));
        for bad in ["", "0", "-1", "1.5", "10000001", "%", "0%", "201%", "NaN%", "x%"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn mixes() {
        assert_eq!(Mix::parse("get=45,put=15,head=30,delete=10"), Ok(Mix::default()));
        assert_eq!(Mix::parse("get=1").map(Mix::total), Ok(1));
        for bad in ["", "get", "get=x", "post=1", "get=0", "put=1,delete=2", "get=-1"] {
            assert!(Mix::parse(bad).is_err(), "{bad}");
        }
    }
}
