//! A lane: one connection, which carries one request at a time.

use std::cell::RefCell;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use super::tally::{Done, Live, Part, Tally, Window};
use crate::connection::{Connection, Shared, Trouble};
use crate::endpoint::Endpoint;
use crate::request::{Body, Operation, Prepared};
use crate::xml;

/// The time that a lane waits after it failed to connect, before it tries again.
const RECONNECT: Duration = Duration::from_millis(100);

/// State that the lanes of a thread share.
pub(crate) struct Context<'a> {
    pub endpoints: &'a [Endpoint],
    pub shared: Shared,
    pub window: Window,
    pub timeout: Duration,
    pub tally: RefCell<Tally>,
    pub live: &'a Live,
}

pub(crate) struct Lane {
    pub endpoint: usize,
    part: Part,
    pub connection: Option<Connection>,
    /// The body of the last answer, if the request needed it. The field `etag` has the answer's
    /// ETag in the same way.
    pub kept: Vec<u8>,
    pub etag: Option<String>,
    /// The timer that wakes up a lane whose server does not answer. It is set again only when it
    /// goes off, not for each request.
    watchdog: Pin<Box<Sleep>>,
}

impl Lane {
    pub fn new(endpoint: usize, part: Part, timeout: Duration) -> Self {
        let watchdog = Box::pin(tokio::time::sleep(timeout));
        Self { endpoint, part, connection: None, kept: Vec::new(), etag: None, watchdog }
    }

    /// Connects, if the lane has no connection. Callers may ignore an error: the next request tries
    /// again, and reports it.
    pub async fn connect(&mut self, endpoints: &[Endpoint]) -> Result<(), Trouble> {
        if self.connection.is_none() {
            self.connection = Some(Connection::open(&endpoints[self.endpoint]).await?);
        }
        Ok(())
    }

    /// Sends a request whose time is counted from `began`, and counts its result. Returns the time
    /// at which it ended, and true if it succeeded.
    pub async fn perform(
        &mut self,
        context: &Context<'_>,
        request: &Prepared,
        began: Instant,
    ) -> (Instant, bool) {
        let outcome = self.attempt(context, request).await;
        let ended = Instant::now();
        let mut tally = context.tally.borrow_mut();
        let done = Done { operation: request.operation, part: self.part, began, ended };
        match outcome {
            Ok(bytes) => {
                Live::count(&context.live.answers);
                if request.operation.stores() {
                    Live::count(&context.live.stored);
                    Live::add(&context.live.stored_bytes, bytes);
                }
                tally.success(context.window, &done, bytes);
                (ended, true)
            }
            Err(name) => {
                Live::count(&context.live.errors);
                tally.failure(context.window, &done, name);
                (ended, false)
            }
        }
    }

    /// Sends a request. Returns the number of bytes of bodies to count, or the name of the error.
    async fn attempt(&mut self, context: &Context<'_>, request: &Prepared) -> Result<u64, String> {
        let sent_at = Instant::now();
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => match tokio::time::timeout(
                context.timeout,
                Connection::open(&context.endpoints[self.endpoint]),
            )
            .await
            {
                Ok(Ok(connection)) => connection,
                Ok(Err(trouble)) => {
                    tokio::time::sleep(RECONNECT).await;
                    return Err(trouble.name());
                }
                Err(_) => return Err(Trouble::TimedOut.name()),
            },
        };
        let exchanged = {
            let exchange = std::pin::pin!(connection.exchange(request, &context.shared));
            self.in_time(exchange, sent_at, context.timeout).await
        };
        exchanged.map_err(|trouble| trouble.name())?;
        let outcome = judge(&connection, request);
        if request.wanted.keep_bytes > 0 {
            std::mem::swap(&mut self.kept, &mut connection.answer.kept);
        }
        self.etag = connection.answer.etag.take();
        if connection.reusable {
            self.connection = Some(connection);
        }
        outcome
    }

    async fn in_time(
        &mut self,
        mut exchange: Pin<&mut impl Future<Output = Result<(), Trouble>>>,
        began: Instant,
        timeout: Duration,
    ) -> Result<(), Trouble> {
        loop {
            tokio::select! {
                biased;
                outcome = &mut exchange => return outcome,
                () = self.watchdog.as_mut() => {
                    let late = began.elapsed() >= timeout;
                    let next = if late { Instant::now() } else { began } + timeout;
                    self.watchdog.as_mut().reset(next.into());
                    if late {
                        return Err(Trouble::TimedOut);
                    }
                }
            }
        }
    }
}

/// Returns `text` if it has the form of S3's error codes, and otherwise a fixed name: such texts
/// could have any length, and all differ.
fn error_code(text: &str) -> String {
    let is_code = text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.');
    if is_code { text.to_owned() } else { "(no code of S3's)".to_owned() }
}

/// Checks that an answer is a correct answer to the request. Returns the number of bytes of bodies
/// to count, or the name of the error.
fn judge(connection: &Connection, request: &Prepared) -> Result<u64, String> {
    let answer = &connection.answer;
    let code = || xml::first(&answer.kept, "Code").map(|code| error_code(&code));
    if answer.status >= 300 {
        let code = code().map(|code| format!(" {code}")).unwrap_or_default();
        return Err(format!("{}{code}", answer.status));
    }
    // Long operations may fail after their status was sent.
    if request.operation == Operation::CompleteMultipartUpload
        && xml::root(&answer.kept).is_some_and(|name| name == "Error")
    {
        return Err(format!("{} {}", answer.status, code().unwrap_or_default()));
    }
    if request.expected_bytes.is_some_and(|expected| expected != answer.body_bytes) {
        return Err("an answer of the wrong length".to_owned());
    }
    Ok(match request.body {
        Body::Block(length) if request.operation.stores() => length,
        _ => answer.body_bytes,
    })
}
