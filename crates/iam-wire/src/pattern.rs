//! The regular expressions of IAM's and STS's API models, each as a function: there are few, and
//! all are simple.

use std::fmt;

/// A regular expression: its text, which errors show, and a function that does the same.
#[derive(Clone, Copy)]
pub struct Pattern {
    /// The text, exactly as the API model has it.
    pub text: &'static str,
    fits: fn(&str) -> bool,
}

impl Pattern {
    /// True if the whole text matches.
    pub fn fits(&self, text: &str) -> bool {
        (self.fits)(text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

macro_rules! patterns {
    ($($(#[$doc:meta])* $name:ident $text:literal $fits:expr;)*) => {$(
        $(#[$doc])*
        pub const $name: Pattern = Pattern { text: $text, fits: $fits };
    )*};
}

patterns! {
    /// The pattern of names of users, groups, roles and policies.
    NAME r"[\w+=,.@-]+" |text| some(text, is_of_name);
    /// The same pattern as `NAME`, for members whose model allows an empty name, and limits the
    /// length separately.
    NAME_OR_EMPTY r"[\w+=,.@-]*" |text| text.bytes().all(is_of_name);
    /// Ids of keys (wider than the models').
    KEY_ID r"[\w.@+-]+" |text| some(text, |byte| is_word(byte) || b".@+-".contains(&byte));
    /// The pattern of account ids (not in AWS).
    ACCOUNT_ID r"[0-9]+" |text| some(text, |byte| byte.is_ascii_digit());
    /// The pattern of paths of users, groups and roles.
    PATH r"(\u002F)|(\u002F[\u0021-\u007E]+\u002F)" |text| {
        let inner = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        text == "/" || inner.is_some_and(|inner| some(inner, |b| (0x21..=0x7e).contains(&b)))
    };
    /// The pattern of path prefixes.
    PATH_PREFIX r"\u002F[\u0021-\u007F]*" |text| {
        text.strip_prefix('/').is_some_and(|rest| rest.bytes().all(|b| (0x21..=0x7f).contains(&b)))
    };
    /// The pattern of paths of policies, and of their prefixes.
    POLICY_PATH r"((/[A-Za-z0-9\.,\+@=_-]+)*)/" |text| {
        let segment = |text: &str| some(text, |b| b.is_ascii_alphanumeric() || b".,+@=_-".contains(&b));
        match text.strip_suffix('/') {
            Some("") => true,
            Some(rest) => rest.strip_prefix('/').is_some_and(|rest| rest.split('/').all(segment)),
            None => false,
        }
    };
    /// The pattern of policy documents.
    DOCUMENT r"[\u0009\u000A\u000D\u0020-\u00FF]+" |text| {
        !text.is_empty() && text.chars().all(|c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{ff}'))
    };
    /// The pattern of descriptions of roles.
    DESCRIPTION r"[\u0009\u000A\u000D\u0020-\u007E\u00A1-\u00FF]*" |text| {
        text.chars().all(|c| matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{a1}'..='\u{ff}'))
    };
    /// The pattern of keys of tags.
    TAG_KEY r"[\p{L}\p{Z}\p{N}_.:/=+\-@]+" |text| !text.is_empty() && text.chars().all(is_of_tag);
    /// The pattern of values of tags.
    TAG_VALUE r"[\p{L}\p{Z}\p{N}_.:/=+\-@]*" |text| text.chars().all(is_of_tag);
    /// The pattern of markers.
    MARKER r"[\u0020-\u00FF]+" |text| {
        !text.is_empty() && text.chars().all(|c| matches!(c, ' '..='\u{ff}'))
    };
    /// The pattern of versions of policies.
    VERSION r"v[1-9][0-9]*(\.[A-Za-z0-9-]*)?" |text| {
        let Some(rest) = text.strip_prefix('v') else { return false };
        let (number, suffix) = rest.split_once('.').unwrap_or((rest, ""));
        some(number, |b| b.is_ascii_digit()) && !number.starts_with('0')
            && suffix.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    /// The pattern of aliases of accounts.
    ALIAS r"^[a-z0-9]([a-z0-9]|-(?!-)){1,61}[a-z0-9]$" |text| {
        (3..=63).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !text.starts_with('-') && !text.ends_with('-') && !text.contains("--")
    };
    /// The pattern of ARNs in STS.
    ARN r"[\u0009\u000A\u000D\u0020-\u007E\u0085\u00A0-\uD7FF\uE000-\uFFFD\u10000-\u10FFFF]+" |text| {
        let allowed = |c| matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}'
            | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        !text.is_empty() && text.chars().all(allowed)
    };
    /// The pattern of external ids.
    EXTERNAL_ID r"[\w+=,.@:\/-]*" |text| text.bytes().all(|b| is_of_name(b) || b":/".contains(&b));
}

fn some(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(allowed)
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_of_name(byte: u8) -> bool {
    is_word(byte) || b"+=,.@-".contains(&byte)
}

/// True for the characters of the pattern, and besides for combining marks, which the letters of
/// some alphabets need, and for U+200B. The crate `iam`, which keeps tags, allows both, too.
fn is_of_tag(c: char) -> bool {
    let is_separator = (c.is_whitespace() && !c.is_control()) || c == '\u{200b}';
    c.is_alphanumeric() || is_separator || "_.:/=+-@".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_says_what_its_text_says() {
        let cases: [(Pattern, &[&str], &[&str]); 14] = [
            (NAME, &["a", "A_1+=,.@-"], &["", "a b", "ä", "a/b", "a\n"]),
            (NAME_OR_EMPTY, &["", "a"], &[":"]),
            (KEY_ID, &["AKIA_1", "a.b@c+d-e"], &["", "a/b", "a,b", "a=b", "a b", "ä"]),
            (PATH, &["/", "/a/", "/a//b/", "//a/"], &["", "a", "//", "/a", "a/", "/a b/", "/\u{7f}/"]),
            (PATH_PREFIX, &["/", "/a", "/\u{7f}"], &["", "a", "/ "]),
            (POLICY_PATH, &["/", "/a/", "/a/b.,+@=_-/"], &["", "a/", "/a", "//", "/a//b/", "/a*/"]),
            (DOCUMENT, &["{}\r\n\t", "ÿ"], &["", "\0", "\u{100}"]),
            (DESCRIPTION, &["", "a b\n", "¡"], &["\u{a0}", "\u{7f}"]),
            (TAG_KEY, &["a b", "é", "部", "_.:/=+-@1"], &["", "*", "a,b", "\n"]),
            (TAG_VALUE, &["", "a"], &["*"]),
            (VERSION, &["v1", "v10", "v1.", "v1.a-B9"], &["", "v", "v0", "v01", "1", "v1.*", "v1.a.b"]),
            (ALIAS, &["abc", "a-1", "a-b-c"], &["ab", "-ab", "ab-", "a--b", "aBc", "a_b"]),
            (ARN, &["arn:a", "é", "\u{1f600}"], &["", "\0", "\u{7f}", "\u{fffe}"]),
            (EXTERNAL_ID, &["", "a:/b"], &[" ", "\\"]),
        ];
        for (pattern, good, bad) in cases {
            for (texts, fits) in [(good, true), (bad, false)] {
                assert!(texts.iter().all(|text| pattern.fits(text) == fits), "{pattern:?} {texts:?}");
            }
        }
        assert!(MARKER.fits("a b") && !MARKER.fits("") && !MARKER.fits("\n"));
    }
}
