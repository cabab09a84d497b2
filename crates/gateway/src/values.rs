//! Parsers of the values of single options.

use std::ffi::OsString;
use std::time::Duration;

use iam::model::Posix;
use s3_types::UnixName;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Parses a mode for new files, which must include the server's own rights to read and write them.
pub(crate) fn file_mode(text: &str) -> Result<u32, String> {
    let mode = octal(text)?;
    if mode & 0o600 == 0o600 {
        return Ok(mode);
    }
    Err("give the owner read and write permission, such as 0640: the server needs both for its own files"
        .to_owned())
}

/// Parses a mode for new directories, which must include the server's own rights to use them.
pub(crate) fn directory_mode(text: &str) -> Result<u32, String> {
    let mode = octal(text)?;
    if mode & 0o700 == 0o700 {
        return Ok(mode);
    }
    Err("give the owner all permissions, such as 0750: the server needs them for its own directories"
        .to_owned())
}

/// Parses a switch's value, as given in the environment or in the file.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "t" | "yes" | "y" | "on" => Ok(true),
        "0" | "false" | "f" | "no" | "n" | "off" => Ok(false),
        _ => Err("expected 1, true, yes or on; or 0, false, no or off".to_owned()),
    }
}

/// Parses a directory's name, which need not be UTF-8.
pub(crate) fn directory(name: OsString) -> Result<OsString, &'static str> {
    if name.is_empty() { Err("the name is empty: name the directory to serve") } else { Ok(name) }
}

fn octal(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text.trim_start_matches("0o"), 8)
        .map_err(|_| "expected an octal number, such as 0640".to_owned())?;
    if mode <= 0o7777 { Ok(mode) } else { Err("expected at most four octal digits, such as 0640".to_owned()) }
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<u32>() {
        Ok(0) | Err(_) => Err(format!("expected a whole number of seconds, 1 to {}", u32::MAX)),
        Ok(seconds) => Ok(Duration::from_secs(seconds.into())),
    }
}

pub(crate) fn seconds_or_none(text: &str) -> Result<Duration, String> {
    let seconds: u32 =
        text.parse().map_err(|_| format!("expected a whole number of seconds, 0 to {}", u32::MAX))?;
    Ok(Duration::from_secs(seconds.into()))
}

/// Returns the known name that `name` is probably a misspelling of, if one is close. `alike` is the
/// length of the prefix that all known names share, and that does not count.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str], alike: usize) -> Option<&'a str> {
    let words = |name: &'a str| name.split(['_', '-']);
    // One with a word left out, rather than one with other letters: ACCESS_KEY is not ACCESS_LOG.
    let holds = |other: &&&'a str| {
        name.len() * 2 > other.len()
            && name.split(['_', '-']).all(|word| words(other).any(|other| other == word))
    };
    if let Some(longer) = known.iter().filter(holds).min_by_key(|other| other.len()) {
        return Some(*longer);
    }
    let distance = |other: &&'a str| strsim::damerau_levenshtein(name, other);
    let (distance, near) = known.iter().map(|other| (distance(other), *other)).min()?;
    (distance * 3 <= near.len() - alike).then_some(near)
}

/// Parses a whole number within bounds.
pub(crate) fn whole<T: TryFrom<u64>, const LEAST: u64, const MOST: u64>(text: &str) -> Result<T, String> {
    let number = text.parse::<u64>().ok().filter(|number| (LEAST..=MOST).contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("expected a whole number, {LEAST} to {MOST}"))
}

/// Parses a user of the system without supplementary groups: UID:GID, or a name.
pub(crate) fn unix_name(text: &str) -> Result<UnixName, &'static str> {
    const EXPECTED: &str = "expected UID:GID, or the name of an account";
    match text.parse::<Posix>()? {
        Posix::Ids { groups, .. } if !groups.is_empty() => Err(EXPECTED),
        posix => Ok(posix.unix_name()),
    }
}

pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    whole::<usize, 1, 1_000_000>(text)
}

pub(crate) fn region(text: &str) -> Result<String, String> {
    let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    if !text.is_empty() && text.bytes().all(known) {
        Ok(text.to_owned())
    } else {
        Err("a region's name may contain only letters, digits, hyphens and underscores".to_owned())
    }
}

/// Parses a name as in a `Host` header, without a port. Returns it in lower case, without dots
/// around it.
pub(crate) fn domain(text: &str) -> Result<String, String> {
    let name = text.trim_matches('.').to_ascii_lowercase();
    let label = |label: &str| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    if name.split('.').all(label) {
        Ok(name)
    } else {
        Err("expected a domain name such as s3.example.org, without scheme and port".to_owned())
    }
}

pub(crate) fn log_filter(text: &str) -> Result<String, String> {
    // EnvFilter takes a lone word for the name of a module, and an unknown level for "off".
    let level_of = |directive: &str| directive.rsplit('=').next().unwrap_or_default().to_owned();
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    if let Some(word) = text.split(',').map(level_of).find(|word| !is_level(word)) {
        return Err(format!(
            "{word:?} is not a log level; known are off, error, warn, info, debug and trace"
        ));
    }
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal() {
        assert_eq!(octal("0640"), Ok(0o640));
        assert!(octal("999").is_err());
        assert!(octal("17777").is_err());
    }

    #[test]
    fn modes_leave_the_server_its_own_rights() {
        assert_eq!((file_mode("0640"), directory_mode("2750")), (Ok(0o640), Ok(0o2750)));
        for bad in ["0", "0440", "0266", "0177"] {
            assert!(file_mode(bad).unwrap_err().contains("such as 0640"), "{bad}");
            assert!(directory_mode(bad).unwrap_err().contains("such as 0750"), "{bad}");
        }
        assert!(directory_mode("0644").is_err());
    }

    #[test]
    fn switches_have_their_words() {
        for (word, on) in [("1", true), ("TRUE", true), ("y", true), ("off", false), ("No", false)] {
            assert_eq!(switch(word), Ok(on));
        }
        assert!(switch("maybe").is_err() && switch("").is_err());
    }

    #[test]
    fn names_are_names() {
        assert_eq!(region("eu-lab-1").as_deref(), Ok("eu-lab-1"));
        assert!(region("").is_err() && region("a b").is_err());
        assert_eq!(domain(".S3.Example.org").as_deref(), Ok("s3.example.org"));
        for bad in ["", ".", "http://s3.example.org", "s3.example.org:9000", "a..b", "ex ample"] {
            assert!(domain(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn filters_have_known_levels() {
        for good in ["info", "INFO", "off", "warn,gateway::server=debug", "slipway=trace"] {
            assert!(log_filter(good).is_ok(), "{good}");
        }
        for bad in ["nonsense", "", "info,nonsense", "slipway=loud"] {
            assert!(log_filter(bad).is_err(), "{bad}");
        }
    }
}
