//! The `Forwarded` header (RFC 7239), read from its end.
//!
//! Each proxy appends an element to the value that it received. The last element must be found
//! whatever a client put before it: an open quotation mark, for instance, would swallow everything
//! behind it if the value were read from its beginning.

/// The element in which one proxy describes a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Element<'h> {
    /// `for`: the address from which the proxy got the request.
    pub node: Option<&'h str>,
    /// `proto`: the scheme of the request to the proxy.
    pub scheme: Option<&'h str>,
}

/// Returns the elements of a header's value, the last one first. `None` is an element that is not
/// as RFC 7239 requires, or has a parameter twice.
pub fn elements_from_the_end(value: &[u8]) -> impl Iterator<Item = Option<Element<'_>>> {
    let mut left = Some(value);
    std::iter::from_fn(move || {
        let text = left?;
        let comma = last_comma(text);
        left = comma.map(|at| &text[..at]);
        Some(parse(&text[comma.map_or(0, |at| at + 1)..]))
    })
}

/// Returns the position of the last comma that is not in a quoted string.
fn last_comma(text: &[u8]) -> Option<usize> {
    let mut quoted = false;
    for (at, byte) in text.iter().enumerate().rev() {
        match byte {
            b'"' if quoted => {
                let escapes = text[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
                quoted = escapes % 2 == 1;
            }
            b'"' => quoted = true,
            b',' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Parses `[ pair ] *( ";" [ pair ] )`, also with white space between pairs, which some proxies
/// write.
fn parse(element: &[u8]) -> Option<Element<'_>> {
    let mut found = Element::default();
    let mut rest = element.trim_ascii();
    loop {
        let (name, behind) = rest.split_at(rest.iter().take_while(|byte| is_token(**byte)).count());
        rest = behind;
        if !name.is_empty() {
            let (value, behind) = value(behind.strip_prefix(b"=")?)?;
            rest = behind;
            let slot = match name {
                _ if name.eq_ignore_ascii_case(b"for") => Some(&mut found.node),
                _ if name.eq_ignore_ascii_case(b"proto") => Some(&mut found.scheme),
                _ => None,
            };
            // Twice, and nobody knows which of the two the proxy wrote.
            if slot.is_some_and(|slot| slot.replace(value).is_some()) {
                return None;
            }
        }
        match rest.trim_ascii_start().split_first() {
            None => return Some(found),
            Some((b';', more)) => rest = more.trim_ascii_start(),
            Some(_) => return None,
        }
    }
}

/// Returns a token or a quoted string, and the text after it. Addresses with a port are accepted
/// without quotation marks, as some proxies write them. Escapes are kept, since no address and no
/// scheme needs one.
fn value(text: &[u8]) -> Option<(&str, &[u8])> {
    let (value, behind) = if let Some(text) = text.strip_prefix(b"\"") {
        let mut escaped = false;
        let end = text.iter().position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        })?;
        (&text[..end], &text[end + 1..])
    } else {
        text.split_at(text.iter().take_while(|byte| is_token(**byte) || b":[]".contains(byte)).count())
    };
    // A value that is not text is a value all the same, from which nothing can be read.
    Some((std::str::from_utf8(value).unwrap_or_default(), behind))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(value: &str) -> Vec<Option<&str>> {
        elements_from_the_end(value.as_bytes()).map(|element| element.and_then(|said| said.node)).collect()
    }

    #[test]
    fn from_the_end() {
        assert_eq!(nodes("for=a, for=b;proto=http ,\tFor=\"c\""), [Some("c"), Some("b"), Some("a")]);
        assert_eq!(nodes("for=a;host=\"x, for=b\""), [Some("a")]);
        assert_eq!(nodes("proto=http;host=\"x;for=b\";for=a"), [Some("a")]);
        assert_eq!(nodes(r#"host="x\", for=b\\";for=a"#), [Some("a")]);
        assert_eq!(nodes(r#"for="[2001:db8::7]:80""#), [Some("[2001:db8::7]:80")]);
        assert_eq!(nodes("for=192.0.2.7:80 ; by=b;"), [Some("192.0.2.7:80")]);
    }

    /// The proxy's own element is found behind anything that a client wrote.
    #[test]
    fn behind_what_a_client_wrote() {
        for written in
            ["host=\"", "\"", "for=\"b", "x=\"\\", "\\\"", "for=b;;=", "a\"b\"c", "host=\"x, y=\\\\"]
        {
            for proxys in ["for=a", "for=a;host=\"h\"", "for=a;host=\"h, for=b\""] {
                let value = format!("{written}, {proxys}");
                assert_eq!(nodes(&value).first(), Some(&Some("a")), "{value}");
            }
        }
        let latin = [b"host=\xff, for=a".as_slice(), b"host=\"\xff\", for=a", b"for=a;host=\"\xff\""];
        for value in latin {
            let last = elements_from_the_end(value).next().flatten().unwrap();
            assert_eq!(last.node, Some("a"), "{value:?}");
        }
    }

    #[test]
    fn what_is_no_element() {
        for bad in [
            "for=\"a",
            "for=a\"",
            "for=a;for=b",
            "for=a;FOR=\"a\"",
            "proto=http;for=a;proto=https",
            "for=\"a\"b",
            "for =a",
            "for",
            "=a",
            "for=a b",
            "a\"b\"",
        ] {
            assert_eq!(elements_from_the_end(bad.as_bytes()).collect::<Vec<_>>(), [None], "{bad}");
        }
        assert_eq!(nodes(""), [None]);
    }
}
