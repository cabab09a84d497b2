//! An HTTP/1.1 answer, read as it comes in (RFC 9112, section 6). Bodies are counted; of those that
//! matter the beginning is kept.

/// The longest head that is read.
const HEAD_MAX: usize = 64 << 10;
/// The most header fields.
const HEADERS_MAX: usize = 100;
/// The longest line of a chunk's size, and of a trailer.
const LINE_MAX: usize = 8 << 10;
/// How much of an error's document is kept, for its code.
const ERROR_MAX: usize = 4 << 10;

/// The reason why an answer is not HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// The parts of an answer that are wanted beyond its status.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// True if there is no body, whatever the head says: it answers HEAD.
    pub no_body: bool,
    /// The bytes of the body to keep. Of an error's body, the beginning is kept anyway.
    pub keep_bytes: usize,
    /// True for the ETag.
    pub etag: bool,
    /// True for `Retry-After`.
    pub retry_after: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    /// In the body: this many bytes are still to come.
    Length(u64),
    UntilClose,
    /// In the line that has a chunk's size: the size up to here, and the line's length.
    ChunkSize {
        size: u64,
        read: usize,
        extension: bool,
    },
    /// In a chunk's data, or its CRLF: this many bytes are still to come.
    Chunk(u64),
    ChunkEnd(usize),
    /// In the trailers: length of this line, and of all.
    Trailer {
        line: usize,
        all: usize,
    },
    Done,
}

/// An answer, as far as it has come in.
#[derive(Debug)]
pub struct Answer {
    wanted: Wanted,
    state: State,
    /// The beginning of a head that came in pieces.
    pending: Vec<u8>,
    /// The status; 0 until the head has come in.
    pub status: u16,
    /// True if the server lets the connection be used again.
    pub keep_alive: bool,
    /// The length of the body.
    pub body_bytes: u64,
    /// The beginning of the body, if wanted.
    pub kept: Vec<u8>,
    /// The ETag, if wanted.
    pub etag: Option<String>,
    /// `Retry-After` in seconds, if wanted.
    pub retry_after: Option<u64>,
}

impl Default for Answer {
    fn default() -> Self {
        Self::new()
    }
}

impl Answer {
    /// An answer of which nothing has come in.
    pub fn new() -> Self {
        Self {
            wanted: Wanted::default(),
            state: State::Head,
            pending: Vec::new(),
            status: 0,
            keep_alive: false,
            body_bytes: 0,
            kept: Vec::new(),
            etag: None,
            retry_after: None,
        }
    }

    /// Begins the next answer on a connection.
    pub fn begin(&mut self, wanted: Wanted) {
        self.wanted = wanted;
        self.state = State::Head;
        self.pending.clear();
        self.status = 0;
        self.body_bytes = 0;
        self.kept.clear();
        self.etag = None;
        self.retry_after = None;
    }

    /// Takes bytes that came in; true once the answer is complete. Nothing may come after that: no
    /// two requests are sent at once.
    pub fn push(&mut self, input: &[u8]) -> Result<bool, Malformed> {
        if self.state != State::Head {
            return self.body(input);
        }
        if self.pending.is_empty() {
            return self.head(input);
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(input);
        self.head(&pending)
    }

    /// The server has closed the connection: true if that ends the answer well.
    pub fn end(&self) -> bool {
        matches!(self.state, State::UntilClose | State::Done)
    }

    /// True once the status is known.
    pub fn has_head(&self) -> bool {
        self.state != State::Head
    }

    fn head(&mut self, mut input: &[u8]) -> Result<bool, Malformed> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let mut head = httparse::Response::new(&mut headers);
            match head.parse(input) {
                Err(_) => return Err(Malformed("the head of the answer is not HTTP")),
                Ok(httparse::Status::Partial) if input.len() > HEAD_MAX => {
                    return Err(Malformed("the head of the answer is too long"));
                }
                Ok(httparse::Status::Partial) => {
                    self.pending = input.to_vec();
                    return Ok(false);
                }
                Ok(httparse::Status::Complete(length)) => {
                    let status = head.code.unwrap_or_default();
                    input = input.get(length..).unwrap_or_default();
                    // Interim answers come before the real one.
                    if (100..200).contains(&status) && status != 101 {
                        if input.is_empty() {
                            return Ok(false);
                        }
                        continue;
                    }
                    self.read_fields(status, head.version == Some(1), head.headers)?;
                    return self.body(input);
                }
            }
        }
    }

    fn read_fields(
        &mut self,
        status: u16,
        http11: bool,
        fields: &[httparse::Header<'_>],
    ) -> Result<(), Malformed> {
        let (mut length, mut chunked, mut encoded) = (None, false, false);
        self.keep_alive = http11;
        for field in fields {
            let (name, value) = (field.name, field.value.trim_ascii());
            if name.eq_ignore_ascii_case("content-length") {
                let text = str::from_utf8(value).ok().filter(|t| t.bytes().all(|b| b.is_ascii_digit()));
                let bytes: u64 = text
                    .and_then(|t| t.parse().ok())
                    .ok_or(Malformed("a Content-Length that is not a number"))?;
                if length.is_some_and(|other| other != bytes) {
                    return Err(Malformed("two Content-Lengths"));
                }
                length = Some(bytes);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                encoded = true;
                chunked = value
                    .rsplit(|&b| b == b',')
                    .next()
                    .is_some_and(|last| last.trim_ascii().eq_ignore_ascii_case(b"chunked"));
            } else if name.eq_ignore_ascii_case("connection") {
                let has = |word: &[u8]| {
                    value.split(|&b| b == b',').any(|w| w.trim_ascii().eq_ignore_ascii_case(word))
                };
                self.keep_alive = if http11 { !has(b"close") } else { has(b"keep-alive") };
            } else if self.wanted.etag && name.eq_ignore_ascii_case("etag") {
                self.etag = Some(String::from_utf8_lossy(value).into_owned());
            } else if self.wanted.retry_after && name.eq_ignore_ascii_case("retry-after") {
                self.retry_after = str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            }
        }
        self.status = status;
        self.state = match length {
            _ if self.wanted.no_body || matches!(status, 204 | 304) => State::Length(0),
            _ if chunked => State::ChunkSize { size: 0, read: 0, extension: false },
            Some(bytes) if !encoded => State::Length(bytes),
            _ => State::UntilClose,
        };
        Ok(())
    }

    fn body(&mut self, mut input: &[u8]) -> Result<bool, Malformed> {
        loop {
            match self.state {
                State::Length(0) => self.state = State::Done,
                State::Done if input.is_empty() => return Ok(true),
                State::Done => return Err(Malformed("bytes after the end of the answer")),
                _ if input.is_empty() => return Ok(false),
                State::Length(left) => self.state = State::Length(left - self.take(&mut input, left)),
                State::UntilClose => {
                    self.take(&mut input, u64::MAX);
                }
                State::Chunk(left) => {
                    let left = left - self.take(&mut input, left);
                    self.state = if left == 0 { State::ChunkEnd(0) } else { State::Chunk(left) };
                }
                State::Head | State::ChunkSize { .. } | State::ChunkEnd(_) | State::Trailer { .. } => {
                    let Some((&byte, rest)) = input.split_first() else { return Ok(false) };
                    input = rest;
                    self.state = framing(self.state, byte)?;
                }
            }
        }
    }

    /// Takes up to `most` bytes of the body from the beginning of `input`.
    fn take(&mut self, input: &mut &[u8], most: u64) -> u64 {
        let length = usize::try_from(most).unwrap_or(usize::MAX).min(input.len());
        let (data, rest) = input.split_at(length);
        let keep =
            if self.status >= 300 { self.wanted.keep_bytes.max(ERROR_MAX) } else { self.wanted.keep_bytes };
        let room = keep.saturating_sub(self.kept.len());
        if room > 0 {
            self.kept.extend_from_slice(data.get(..room).unwrap_or(data));
        }
        *input = rest;
        self.body_bytes += data.len() as u64;
        data.len() as u64
    }
}

/// The state after a byte between the chunks.
fn framing(state: State, byte: u8) -> Result<State, Malformed> {
    const BAD: Malformed = Malformed("a chunk with wrong framing");
    Ok(match (state, byte) {
        (State::ChunkSize { read: 0, .. }, b'\r' | b'\n' | b';') => return Err(BAD),
        (State::ChunkSize { size: 0, .. }, b'\n') => State::Trailer { line: 0, all: 0 },
        (State::ChunkSize { size, .. }, b'\n') => State::Chunk(size),
        (State::ChunkSize { read, .. }, _) if read > LINE_MAX => return Err(BAD),
        (State::ChunkSize { size, read, extension }, byte) => {
            let digit = char::from(byte).to_digit(16).filter(|_| !extension);
            match digit {
                Some(_) if size >> 60 != 0 => return Err(BAD),
                Some(digit) => {
                    State::ChunkSize { size: size << 4 | u64::from(digit), read: read + 1, extension }
                }
                None if extension || matches!(byte, b';' | b'\r' | b' ' | b'\t') => {
                    State::ChunkSize { size, read: read + 1, extension: true }
                }
                None => return Err(BAD),
            }
        }
        (State::ChunkEnd(0), b'\r') => State::ChunkEnd(1),
        (State::ChunkEnd(_), b'\n') => State::ChunkSize { size: 0, read: 0, extension: false },
        (State::Trailer { line: 0, .. }, b'\n') => State::Done,
        (State::Trailer { all, .. }, b'\n') => State::Trailer { line: 0, all },
        (State::Trailer { line, all }, b'\r') => State::Trailer { line, all },
        (State::Trailer { all, .. }, _) if all > LINE_MAX => return Err(BAD),
        (State::Trailer { line, all }, _) => State::Trailer { line: line + 1, all: all + 1 },
        _ => return Err(BAD),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEEP: Wanted = Wanted { no_body: false, keep_bytes: 1000, etag: true, retry_after: true };

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
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(HEAD_MAX));
        assert!(whole(&endless, KEEP).is_err());
    }
}
