//! The names of entries of a directory (DNs), as texts that can be compared.

/// Returns a form of a DN (RFC 4514) that is the same for all its spellings: in lower case, without
/// needless spaces, escaped in one way, and with the parts of a name of several parts sorted. A
/// text that is not a DN is returned in lower case.
///
/// For some attributes directories tell upper from lower case; names of groups do not use these.
pub fn folded_dn(text: &str) -> Box<str> {
    let parsed: Option<Vec<String>> = split(text, ',').map(folded_rdn).collect();
    parsed.map_or_else(|| text.trim().to_lowercase(), |parts| parts.join(",")).into()
}

/// True for a text that is a DN (RFC 4514) other than the empty one.
pub fn is_dn(text: &str) -> bool {
    split(text, ',').all(|rdn| folded_rdn(rdn).is_some())
}

/// Splits at a character that is not escaped.
fn split(text: &str, at: char) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c: char| {
        let is_end = c == at && !escaped;
        escaped = c == '\\' && !escaped;
        is_end
    })
}

fn folded_rdn(text: &str) -> Option<String> {
    let mut parts = split(text, '+').map(folded_part).collect::<Option<Vec<_>>>()?;
    parts.sort_unstable();
    Some(parts.join("+"))
}

fn folded_part(text: &str) -> Option<String> {
    let (attribute, value) = text.split_once('=')?;
    let attribute = attribute.trim().to_ascii_lowercase();
    let value = unescaped(value)?.to_lowercase();
    let words: Vec<_> = value.split(' ').filter(|word| !word.is_empty()).collect();
    let escaped = words.join(" ").chars().fold(String::new(), |mut out, c| {
        if matches!(c, ',' | '+' | '\\') {
            out.push('\\');
        }
        out.push(c);
        out
    });
    (!attribute.is_empty()).then(|| format!("{attribute}={escaped}"))
}

/// Returns a value with its escapes (`\,`, `\2C`) resolved; `None` if an escape is cut off, or the
/// result is not UTF-8.
fn unescaped(text: &str) -> Option<String> {
    let (bytes, mut out) = (text.as_bytes(), Vec::new());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let code = bytes.get(at..at + 2).and_then(|two| std::str::from_utf8(two).ok());
        let code = code.filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
        if let Some(code) = code.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            out.push(code);
            at += 2;
        } else {
            out.push(*bytes.get(at)?);
            at += 1;
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name() {
        let wanted = "cn=data\\, people,ou=groups,dc=lab";
        for text in [
            "cn=data\\, people,ou=groups,dc=lab",
            "CN=Data\\2C People,OU=Groups,DC=lab",
            "cn = Data\\2c  people , ou=Groups, dc=LAB",
            "cn=data\\,\\20people,ou=groups,dc=lab",
        ] {
            assert_eq!(&*folded_dn(text), wanted, "{text}");
        }
        assert_eq!(folded_dn("uid=ANN+cn=Ann,dc=lab"), folded_dn("CN=ann+UID=ann,dc=lab"));
        assert_eq!(folded_dn("cn=Z\\C3\\BCge"), folded_dn("cn=zÜge"));
    }

    #[test]
    fn other_names_are_others() {
        let texts = [
            "cn=a,dc=lab",
            "cn=a\\,dc=lab",
            "cn=a\\\\,dc=lab",
            "cn=a+dc=lab",
            "cn=a\\+dc=lab",
            "ou=a,dc=lab",
            "dc=lab,cn=a",
            "cn=a",
            "",
            "no name",
            "cn=a\\",
        ];
        for (at, text) in texts.iter().enumerate() {
            for other in &texts[at + 1..] {
                assert_ne!(folded_dn(text), folded_dn(other), "{text} {other}");
            }
        }
    }
}
