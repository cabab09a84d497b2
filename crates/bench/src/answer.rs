//! Reads an HTTP/1.1 answer as it comes in (RFC 9112, section 6). Counts the bytes of the body, and
//! keeps the beginning of the body if a request needs it.

use s3_client::http1::{Framing, Malformed, read_head};

/// The number of bytes of an error's document that are kept, to find the error's code.
const ERROR_MAX: usize = 4 << 10;

/// The parts of an answer that a request needs beyond the status.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted {
    /// True if the answer has no body, whatever its head says: the answer to HEAD.
    pub no_body: bool,
    /// The number of bytes of the body to keep. The beginning of an error's body is kept in any
    /// case.
    pub keep_bytes: usize,
    /// True if the ETag is needed.
    pub etag: bool,
}

/// The part of an answer that has come in.
#[derive(Debug)]
pub(crate) struct Answer {
    wanted: Wanted,
    /// The state of reading the body; `None` until the head has come in.
    body: Option<Framing>,
    /// The part of the head that has come in, if the head is not complete.
    pending: Vec<u8>,
    /// The status; 0 until the head has come in.
    pub status: u16,
    /// True if the server allows another request on the connection.
    pub keep_alive: bool,
    /// The number of bytes of the body that have come in.
    pub body_bytes: u64,
    /// The beginning of the body, if it is needed.
    pub kept: Vec<u8>,
    /// The ETag, if it is needed.
    pub etag: Option<String>,
}

impl Default for Answer {
    fn default() -> Self {
        Self::new()
    }
}

impl Answer {
    /// Makes an answer of which nothing has come in yet.
    pub fn new() -> Self {
        Self {
            wanted: Wanted::default(),
            body: None,
            pending: Vec::new(),
            status: 0,
            keep_alive: false,
            body_bytes: 0,
            kept: Vec::new(),
            etag: None,
        }
    }

    /// Prepares for the next answer on the connection.
    pub fn begin(&mut self, wanted: Wanted) {
        self.wanted = wanted;
        self.body = None;
        self.pending.clear();
        self.status = 0;
        self.body_bytes = 0;
        self.kept.clear();
        self.etag = None;
    }

    /// Reads bytes that came in. Returns true once the answer is complete. Bytes after its end are
    /// an error, since only one request is sent at a time.
    pub fn push(&mut self, input: &[u8]) -> Result<bool, Malformed> {
        if let Some(framing) = self.body {
            return self.read_body(framing, input);
        }
        if self.pending.is_empty() {
            return self.read_head(input);
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(input);
        self.read_head(&pending)
    }

    /// True if the answer is complete when the server closes the connection now.
    pub fn end(&self) -> bool {
        self.body.is_some_and(Framing::may_end)
    }

    /// True once the head has come in, so that the status is known.
    pub fn has_head(&self) -> bool {
        self.body.is_some()
    }

    fn read_head(&mut self, mut input: &[u8]) -> Result<bool, Malformed> {
        loop {
            let (wanted, etag) = (self.wanted, &mut self.etag);
            let head = read_head(input, wanted.no_body, |name, value| {
                if wanted.etag && name.eq_ignore_ascii_case("etag") {
                    *etag = Some(String::from_utf8_lossy(value).into_owned());
                }
                Ok(())
            })?;
            let Some(head) = head else {
                self.pending = input.to_vec();
                return Ok(false);
            };
            input = input.get(head.bytes..).unwrap_or_default();
            // Interim answers come before the real one.
            if !head.is_interim() {
                (self.status, self.keep_alive) = (head.status, head.keep_alive);
                return self.read_body(head.framing, input);
            }
            if input.is_empty() {
                return Ok(false);
            }
        }
    }

    fn read_body(&mut self, mut framing: Framing, mut input: &[u8]) -> Result<bool, Malformed> {
        loop {
            let data = framing.take(&mut input)?;
            if data.is_empty() {
                break;
            }
            self.keep(data);
        }
        self.body = Some(framing);
        if framing.is_done() && !input.is_empty() {
            return Err(Malformed("bytes after the end of the answer"));
        }
        Ok(framing.is_done())
    }

    /// Counts bytes of the body, and keeps those that are needed.
    fn keep(&mut self, data: &[u8]) {
        let keep =
            if self.status >= 300 { self.wanted.keep_bytes.max(ERROR_MAX) } else { self.wanted.keep_bytes };
        let room = keep.saturating_sub(self.kept.len());
        if room > 0 {
            self.kept.extend_from_slice(data.get(..room).unwrap_or(data));
        }
        self.body_bytes += data.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use s3_client::limits::HEAD_BYTES_MAX;

    const KEEP: Wanted = Wanted { no_body: false, keep_bytes: 1000, etag: true };

    /// Reads an answer in pieces that end at `cuts`; returns it, and whether it was complete.
    fn read(text: &[u8], cuts: &[usize], wanted: Wanted) -> Result<(Answer, bool), Malformed> {
        let mut answer = Answer::new();
        answer.begin(wanted);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut complete = false;
        for piece in cuts.windows(2) {
            complete = answer.push(&text[piece[0]..piece[1]])?;
        }
        Ok((answer, complete))
    }

    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nETag: \"x\"\r\n\r\n\
        5\r\nhello\r\n00a;name=\"v\"\r\n, and more!\r\n0\r\nx-trailer: 1\r\n\r\n";
    const PLAIN: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\
        Connection: foo, close\r\n\r\nhello";

    proptest! {
        #[test]
        fn the_pieces_make_no_difference(cuts in prop::collection::vec(0usize..500, 0..30)) {
            // The second chunk has 10 bytes, so the text above is one longer: it must be refused
            // wherever it is cut.
            prop_assert!(read(CHUNKED, &cuts, KEEP).is_err());
            let text = String::from_utf8(CHUNKED.to_vec()).unwrap().replace("00a;", "00B;");
            let (answer, complete) = read(text.as_bytes(), &cuts, KEEP).unwrap();
            prop_assert!(complete && answer.keep_alive);
            prop_assert_eq!((answer.status, answer.body_bytes), (200, 16));
            prop_assert_eq!(answer.kept, b"hello, and more!");
            prop_assert_eq!(answer.etag.as_deref(), Some("\"x\""));
            let (answer, complete) = read(PLAIN, &cuts, Wanted::default()).unwrap();
            prop_assert!(complete && !answer.keep_alive);
            prop_assert_eq!((answer.status, &answer.kept[..]), (404, &b"hello"[..]));
        }

        #[test]
        fn anything_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", &bytes[..]].concat();
            let _ = read(&text, &[50, 60, 70], KEEP);
            let _ = read(&bytes, &[5], KEEP);
        }
    }

    fn whole(text: &str, wanted: Wanted) -> Result<(Answer, bool), Malformed> {
        read(text.as_bytes(), &[], wanted)
    }

    #[test]
    fn some_have_no_body() {
        let head = Wanted { no_body: true, ..KEEP };
        assert!(whole("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", head).unwrap().1);
        assert!(whole("HTTP/1.1 204 No Content\r\n\r\n", KEEP).unwrap().1);
        assert!(whole("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", KEEP).unwrap().1);
        assert!(!whole("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n12345678", KEEP).unwrap().1);
    }

    #[test]
    fn the_end_may_be_the_end() {
        let (answer, complete) = whole("HTTP/1.0 200 OK\r\n\r\nabc", KEEP).unwrap();
        assert!(!complete && answer.end() && !answer.keep_alive);
        assert_eq!(answer.body_bytes, 3);
        let (answer, _) = whole("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc", KEEP).unwrap();
        assert!(!answer.end());
    }

    #[test]
    fn bad_answers_are_refused() {
        for bad in [
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n11111111111111111\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        ] {
            assert!(whole(bad, KEEP).is_err(), "{bad}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(HEAD_BYTES_MAX));
        assert!(whole(&endless, KEEP).is_err());
    }
}
