use super::framing::Framing;
use super::malformed::Malformed;
use crate::limits::{HEAD_BYTES_MAX, HEADERS_MAX};

/// The facts that the reader of an answer needs from the answer's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The length of the head in bytes.
    pub bytes: usize,
    /// The status.
    pub status: u16,
    /// True if the server allows another request on the connection after this answer.
    pub keep_alive: bool,
    /// The framing of the body.
    pub framing: Framing,
}

impl Head {
    /// True for an interim answer, such as `100 Continue`, which another answer follows.
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }
}

/// Reads a head from the beginning of `input`, and calls `field` with each of its header fields.
/// Returns `None`, without calling `field`, if the end of the head has not come in. `no_body` is
/// true for the answer to HEAD, which has no body, whatever the head says.
pub fn read_head(
    input: &[u8],
    no_body: bool,
    mut field: impl FnMut(&str, &[u8]) -> Result<(), Malformed>,
) -> Result<Option<Head>, Malformed> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let bytes = match head.parse(input) {
        Err(_) => return Err(Malformed("the head of the answer is not HTTP")),
        Ok(httparse::Status::Partial) if input.len() > HEAD_BYTES_MAX => {
            return Err(Malformed("the head of the answer is too long"));
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Ok(httparse::Status::Complete(bytes)) => bytes,
    };
    let (status, http11) = (head.code.unwrap_or_default(), head.version == Some(1));
    let mut facts = Facts { length: None, encoding: None, keep_alive: http11 };
    for header in &*head.headers {
        let value = header.value.trim_ascii();
        facts.read(http11, header.name, value)?;
        field(header.name, value)?;
    }
    let Facts { length, encoding, keep_alive } = facts;
    let framing = match (encoding, length) {
        _ if no_body || matches!(status, 100..200 | 204 | 304) => Framing::length(0),
        (Some(Encoding::Chunked), _) => Framing::chunked(),
        (None, Some(bytes)) => Framing::length(bytes),
        (Some(Encoding::Other) | None, _) => Framing::until_close(),
    };
    // A length beside an encoding, or an encoding in HTTP/1.0: the server may think that another
    // answer begins elsewhere (RFC 9112, 6.1 and 6.3).
    let is_clear = encoding.is_none() || (length.is_none() && http11);
    let keep_alive = keep_alive && is_clear && framing != Framing::until_close();
    Ok(Some(Head { bytes, status, keep_alive, framing }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Chunked,
    Other,
}

struct Facts {
    length: Option<u64>,
    encoding: Option<Encoding>,
    keep_alive: bool,
}

impl Facts {
    fn read(&mut self, http11: bool, name: &str, value: &[u8]) -> Result<(), Malformed> {
        if name.eq_ignore_ascii_case("content-length") {
            let text = str::from_utf8(value).ok().filter(|t| t.bytes().all(|b| b.is_ascii_digit()));
            let bytes: u64 = text
                .and_then(|t| t.parse().ok())
                .ok_or(Malformed("a Content-Length that is not a number"))?;
            if self.length.is_some_and(|other| other != bytes) {
                return Err(Malformed("two Content-Lengths"));
            }
            self.length = Some(bytes);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            let last = value.rsplit(|&b| b == b',').next().unwrap_or_default().trim_ascii();
            let is_chunked = last.eq_ignore_ascii_case(b"chunked");
            self.encoding = Some(if is_chunked { Encoding::Chunked } else { Encoding::Other });
        } else if name.eq_ignore_ascii_case("connection") {
            let has =
                |word: &[u8]| value.split(|&b| b == b',').any(|w| w.trim_ascii().eq_ignore_ascii_case(word));
            self.keep_alive = if http11 { self.keep_alive && !has(b"close") } else { has(b"keep-alive") };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Option<Head>, Malformed> {
        read_head(text.as_bytes(), false, |_, _| Ok(()))
    }

    fn facts(text: &str) -> (u16, bool, Framing) {
        let head = head(text).unwrap().unwrap();
        (head.status, head.keep_alive, head.framing)
    }

    #[test]
    fn heads_say_where_bodies_end() {
        let length = Framing::length(3);
        assert_eq!(facts("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"), (200, true, length));
        assert_eq!(facts("HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\n"), (200, false, length));
        let kept = "HTTP/1.0 200 OK\r\ncontent-length: 3\r\nconnection: Keep-Alive\r\n\r\n";
        assert_eq!(facts(kept), (200, true, length));
        let closed = "HTTP/1.1 200 OK\r\nconnection: x\r\nconnection: close\r\nconnection: y\r\n\
                      content-length: 3\r\n\r\n";
        assert_eq!(facts(closed), (200, false, length));
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n";
        assert_eq!(facts(chunked), (200, true, Framing::chunked()));
        assert_eq!(facts("HTTP/1.1 200 OK\r\n\r\n"), (200, false, Framing::until_close()));
        assert_eq!(facts("HTTP/1.1 304 Not Modified\r\ncontent-length: 3\r\n\r\n").2, Framing::length(0));
        assert_eq!(facts("HTTP/1.1 204 No Content\r\n\r\n"), (204, true, Framing::length(0)));
    }

    #[test]
    fn after_an_unclear_end_the_connection_is_not_used_again() {
        let both = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n";
        assert_eq!(facts(both), (200, false, Framing::chunked()));
        let old = "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\nconnection: keep-alive\r\n\r\n";
        assert_eq!(facts(old), (200, false, Framing::chunked()));
    }

    #[test]
    fn too_many_fields_are_refused() {
        let many = |count| format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(count));
        assert!(head(&many(HEADERS_MAX)).is_ok());
        assert!(head(&many(HEADERS_MAX + 1)).is_err());
        assert_eq!(head("HTTP/1.1 200 OK\r\na: b\r\n").unwrap(), None);
    }
}
