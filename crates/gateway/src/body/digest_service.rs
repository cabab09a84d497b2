//! The MD5 and SHA-256 of bodies, many at once.
//!
//! A stream hands over the bytes that it receives ([`DigestStream::push`]), without waiting for
//! their digest. They wait until there are many of them, or the stream ends: then it is *due*, and
//! a *pass* on a thread of the blocking pool digests them, along with the bytes of other streams,
//! each in a lane of the processor's vectors. The others cost almost nothing in that pass, and need
//! none of their own later: the more uploads there are, the less CPU each takes. A stream that is
//! alone becomes due like any other, and never waits for others.
//!
//! Back-pressure: a stream with too many waiting bytes is stopped until a pass has caught up.
//!
//! # The states of a stream
//! ```text
//!                  bytes                  due_bytes wait, or it has ended
//!      +-------+ --------> +---------+ ---------------------------------> +-----+
//!      | empty |           | waiting |                                    | due |
//!      +-------+           +---------+                                    +-----+
//!          ^                |       ^                                        |
//!          |   a lane is    |       | leave: no lane is due any more,        | enter: it takes a free lane,
//!          |   left over in |       | or one that is due takes its lane      | or that of one that is not due
//!          |   a pass       v       | (if it has become due: to `due`)       v
//!          |               +-----------------------------------------------------+
//!          +---------------| in a lane of a pass: due, or only along with others |
//!            settle: all   +-----------------------------------------------------+
//!            is digested
//! ```
//! `note` moves a stream that got bytes or has ended from the upper left to the right; `fill` moves
//! down, `settle` and `leave` move up. Only a lane's pass touches a stream in it: more bytes are
//! queued behind it, and `settle` takes them. By the fields:
//!
//! | state | `Stream::digest` | `Stream::chunks` | named in |
//! |---|---|---|---|
//! | empty | here | none | nothing |
//! | waiting | here | some | `State::others` |
//! | due | here | some | `State::due` (`Stream::due`) |
//! | in a lane | in the lane | what came since | the pass's lanes |
//!
//! A stream ends in any of them. `finish` returns the digest of one that has ended and is empty;
//! one that is dropped is forgotten, and its lane is freed by the next `settle`. A pass that panics
//! forgets those in its lanes, whose `finish` then returns nothing. While any stream is due there
//! is a pass (`start_pass`).

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::poll_fn;
use std::mem;
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use bytes::{Buf as _, Bytes};
use digest_lanes::{Algorithm, LANES, Stream as Digest, Update, update_together};

use crate::limits::{
    DIGEST_CORES_PER_PASS, DIGEST_DUE_BYTES, DIGEST_STREAM_BYTES_MAX, DIGEST_STREAM_BYTES_MIN,
    DIGEST_WAITING_BYTES_MAX,
};

/// Computes digests of streams.
pub struct DigestService<A: Algorithm> {
    state: Mutex<State<A>>,
    passes_max: usize,
}

struct State<A: Algorithm> {
    streams: HashMap<u64, Stream<A>>,
    last_id: u64,
    /// The ids of the streams that are due, in the order in which they became due. A stream that no
    /// longer exists may still be in the list.
    due: VecDeque<u64>,
    /// The ids of streams with waiting bytes that are not due.
    others: BTreeSet<u64>,
    passes: usize,
}

struct Stream<A: Algorithm> {
    /// The digest so far; `None` while it is in a lane.
    digest: Option<Digest<A>>,
    chunks: VecDeque<Bytes>,
    /// The bytes in `chunks` and in a lane.
    waiting_bytes: usize,
    ended: bool,
    /// True if it is in `State::due`.
    due: bool,
    /// Wakes the task that waits for room, or for the digest.
    waker: Option<Waker>,
}

/// The lane of a pass, with the stream that it digests.
struct Lane<A: Algorithm> {
    id: u64,
    digest: Digest<A>,
    chunks: VecDeque<Bytes>,
    digested_bytes: usize,
    due: bool,
}

impl<A: Algorithm> DigestService<A> {
    /// Makes a service for all bodies of a gateway.
    pub fn new() -> Arc<Self> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let passes_max = cores.div_ceil(DIGEST_CORES_PER_PASS);
        let state = State {
            streams: HashMap::new(),
            last_id: 0,
            due: VecDeque::new(),
            others: BTreeSet::new(),
            passes: 0,
        };
        Arc::new(Self { state: Mutex::new(state), passes_max })
    }

    /// Starts a stream with no bytes.
    pub fn stream(self: &Arc<Self>) -> DigestStream<A> {
        let mut state = self.lock();
        state.last_id += 1;
        let id = state.last_id;
        let stream = Stream {
            digest: Some(Digest::new()),
            chunks: VecDeque::new(),
            waiting_bytes: 0,
            ended: false,
            due: false,
            waker: None,
        };
        state.streams.insert(id, stream);
        DigestStream { service: Arc::clone(self), id }
    }

    fn lock(&self) -> MutexGuard<'_, State<A>> {
        // What a panic elsewhere left is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a pass if there is work for one.
    fn start_pass(self: &Arc<Self>, state: &mut State<A>) {
        let wanted = state.passes == 0 || (state.passes < self.passes_max && state.due.len() >= LANES);
        if wanted && !state.due.is_empty() {
            state.passes += 1;
            let service = Arc::clone(self);
            tokio::task::spawn_blocking(move || service.pass());
        }
    }

    /// Digests until no stream is due.
    fn pass(self: Arc<Self>) {
        let mut pass = Pass { service: Arc::clone(&self), lanes: Vec::with_capacity(LANES), done: false };
        loop {
            let (mut wakers, mut used) = (Vec::new(), Vec::new());
            let mut state = self.lock();
            pass.lanes.retain_mut(|lane| state.settle(lane, &mut wakers, &mut used));
            state.fill(&mut pass.lanes);
            if !pass.lanes.iter().any(|lane| lane.due) {
                pass.lanes.drain(..).for_each(|lane| state.leave(lane));
                // Nobody else would see to what is due once there is no pass.
                if state.due.is_empty() {
                    pass.done = true;
                    state.passes -= 1;
                }
            }
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
            drop(used);
            if pass.done {
                return;
            }
            digest(&mut pass.lanes);
        }
    }
}

/// A pass. If it is dropped before it is done, it has panicked: the digests in its lanes are lost,
/// and the tasks that wait for them are woken.
struct Pass<A: Algorithm> {
    service: Arc<DigestService<A>>,
    lanes: Vec<Lane<A>>,
    done: bool,
}

impl<A: Algorithm> Drop for Pass<A> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut state = self.service.lock();
        state.passes -= 1;
        let lost: Vec<_> = self.lanes.iter().filter_map(|lane| state.streams.remove(&lane.id)).collect();
        self.service.start_pass(&mut state);
        drop(state);
        lost.into_iter().filter_map(|stream| stream.waker).for_each(Waker::wake);
    }
}

/// Digests the first chunk of each lane, until the chunk of one lane is used up.
fn digest<A: Algorithm>(lanes: &mut [Lane<A>]) {
    let mut updates: Vec<_> = lanes
        .iter_mut()
        .map(|lane| Update {
            stream: &mut lane.digest,
            bytes: lane.chunks.front().map_or(&[], |chunk| chunk),
        })
        .collect();
    update_together(&mut updates);
    let left: Vec<_> = updates.iter().map(|update| update.bytes.len()).collect();
    for (lane, left) in lanes.iter_mut().zip(left) {
        if let Some(chunk) = lane.chunks.front_mut() {
            lane.digested_bytes += chunk.len() - left;
            chunk.advance(chunk.len() - left);
        }
    }
}

impl<A: Algorithm> State<A> {
    /// Returns the number of bytes that may wait for a stream: its share of those that may wait for
    /// all streams.
    fn room_bytes(&self) -> usize {
        let share = DIGEST_WAITING_BYTES_MAX / self.streams.len().max(1);
        share.clamp(DIGEST_STREAM_BYTES_MIN, DIGEST_STREAM_BYTES_MAX)
    }

    /// Returns the number of waiting bytes from which on a stream is due.
    fn due_bytes(&self) -> usize {
        (self.room_bytes() / 2).min(DIGEST_DUE_BYTES)
    }

    /// Records that a stream has more bytes waiting, or has ended.
    fn note(&mut self, id: u64) {
        let due_bytes = self.due_bytes();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        // Whoever has it in a lane looks for more.
        if stream.digest.is_none() || stream.due {
            return;
        }
        if stream.ended || stream.waiting_bytes >= due_bytes {
            stream.due = true;
            self.others.remove(&id);
            self.due.push_back(id);
        } else if stream.waiting_bytes > 0 {
            self.others.insert(id);
        }
    }

    /// Records what was digested in a lane, and gives the lane the next chunks of its stream.
    /// Returns false if the lane is free.
    fn settle(&mut self, lane: &mut Lane<A>, wakers: &mut Vec<Waker>, used: &mut Vec<Bytes>) -> bool {
        let (room_bytes, due_bytes) = (self.room_bytes(), self.due_bytes());
        let Some(stream) = self.streams.get_mut(&lane.id) else {
            used.extend(lane.chunks.drain(..));
            return false;
        };
        while lane.chunks.front().is_some_and(Bytes::is_empty) {
            used.extend(lane.chunks.pop_front());
        }
        stream.waiting_bytes -= mem::take(&mut lane.digested_bytes);
        if lane.chunks.is_empty() {
            lane.chunks = mem::take(&mut stream.chunks);
            lane.due = false;
        }
        // Once due, it remains so for all that it brought.
        lane.due |= stream.ended || stream.waiting_bytes >= due_bytes;
        let free = lane.chunks.is_empty();
        if free {
            stream.digest = Some(mem::take(&mut lane.digest));
        }
        if (free && stream.ended) || (!stream.ended && stream.waiting_bytes < room_bytes) {
            wakers.extend(stream.waker.take());
        }
        !free
    }

    /// Gives free lanes to streams that are due, and the remaining lanes to other streams.
    fn fill(&mut self, lanes: &mut Vec<Lane<A>>) {
        while let Some(id) = self.due.pop_front() {
            if lanes.len() == LANES {
                // Whoever only came along makes room.
                let Some(other) = lanes.iter().position(|lane| !lane.due) else {
                    self.due.push_front(id);
                    break;
                };
                let other = lanes.swap_remove(other);
                self.leave(other);
            }
            lanes.extend(self.enter(id, true));
        }
        if lanes.iter().any(|lane| lane.due) {
            while lanes.len() < LANES {
                let Some(id) = self.others.pop_first() else { break };
                lanes.extend(self.enter(id, false));
            }
        }
    }

    fn enter(&mut self, id: u64, due: bool) -> Option<Lane<A>> {
        let stream = self.streams.get_mut(&id)?;
        stream.due = false;
        if stream.chunks.is_empty() {
            return None;
        }
        Some(Lane {
            id,
            digest: stream.digest.take()?,
            chunks: mem::take(&mut stream.chunks),
            digested_bytes: 0,
            due,
        })
    }

    /// Puts back a stream that was not finished.
    fn leave(&mut self, mut lane: Lane<A>) {
        let Some(stream) = self.streams.get_mut(&lane.id) else { return };
        lane.chunks.append(&mut stream.chunks);
        stream.chunks = lane.chunks;
        stream.digest = Some(lane.digest);
        self.note(lane.id);
    }
}

/// The stream of one body. Dropping it discards its waiting bytes.
pub struct DigestStream<A: Algorithm> {
    service: Arc<DigestService<A>>,
    id: u64,
}

impl<A: Algorithm> DigestStream<A> {
    /// Adds bytes. Waits while too many bytes are waiting for this stream.
    pub async fn push(&self, mut chunk: Bytes) {
        poll_fn(|cx| {
            let mut state = self.service.lock();
            let room_bytes = state.room_bytes();
            let Some(stream) = state.streams.get_mut(&self.id) else { return Poll::Ready(()) };
            let room = stream.waiting_bytes < room_bytes;
            if room {
                stream.waiting_bytes += chunk.len();
                stream.chunks.push_back(mem::take(&mut chunk));
            } else {
                stream.waker = Some(cx.waker().clone());
            }
            state.note(self.id);
            self.service.start_pass(&mut state);
            if room { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Adds the rest, and returns the digest of all bytes; `None` if the service lost it by a fault
    /// of its own.
    pub async fn finish(self, mut rest: Bytes) -> Option<A::Output> {
        let digest = poll_fn(|cx| {
            let mut state = self.service.lock();
            let Some(stream) = state.streams.get_mut(&self.id) else { return Poll::Ready(None) };
            if !rest.is_empty() {
                stream.waiting_bytes += rest.len();
                stream.chunks.push_back(mem::take(&mut rest));
            }
            stream.ended = true;
            if stream.chunks.is_empty()
                && let Some(digest) = stream.digest.take()
            {
                return Poll::Ready(Some(digest));
            }
            stream.waker = Some(cx.waker().clone());
            state.note(self.id);
            self.service.start_pass(&mut state);
            Poll::Pending
        })
        .await;
        digest.map(Digest::finish)
    }
}

impl<A: Algorithm> Drop for DigestStream<A> {
    fn drop(&mut self) {
        let mut state = self.service.lock();
        let stream = state.streams.remove(&self.id);
        state.others.remove(&self.id);
        drop(state);
        // What may take long to drop is dropped by whoever waits for no one.
        drop(stream);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use digest_lanes::{Md5, Md5Steps, Sha256Steps};
    use tokio::task::{JoinSet, yield_now};
    use tokio::time::timeout;

    use super::*;

    /// Makes a body that is unlike all others, in chunks of various lengths.
    fn chunks(seed: usize, count: usize) -> Vec<Bytes> {
        let lengths = [1, 63, 64, 100, 5000, 65_536, 40_001, 8192];
        let chunk = |n: usize| -> Bytes {
            let length = lengths[(seed * 7 + n * 3) % lengths.len()] + n % 3;
            let byte = |at: usize| u8::try_from((at * 31 + seed * 7 + n) % 251).unwrap();
            (0..length).map(byte).collect()
        };
        (0..count).map(chunk).collect()
    }

    fn is_idle<A: Algorithm>(service: &DigestService<A>) -> bool {
        let state = service.lock();
        state.streams.is_empty() && state.others.is_empty() && state.passes == 0
    }

    async fn until_idle<A: Algorithm>(service: &DigestService<A>) {
        let idle = async {
            while !is_idle(service) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(20), idle).await.unwrap();
    }

    /// The CPU time that this thread has used.
    fn work_time() -> Duration {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
    }

    /// Digesting streams together takes no longer than one after the other, also in a build of
    /// which only digests are optimized: if vector instructions were not inlined, it would take
    /// thirty times as long, and so would tests of large bodies.
    #[test]
    fn streams_together_take_no_longer_than_alone() {
        let bytes = vec![7; 1 << 20];
        let time = |work: &dyn Fn() -> Vec<u8>| {
            let before = work_time();
            let first_bytes = work();
            (work_time().saturating_sub(before), first_bytes)
        };
        let alone = || (0..8).map(|_| Md5::of(&bytes)[0]).collect::<Vec<u8>>();
        let together = || {
            let mut streams: Vec<Md5> = (0..8).map(|_| Md5::default()).collect();
            let updates = streams.iter_mut().map(|stream| Update { stream, bytes: &bytes });
            update_together(&mut updates.collect::<Vec<_>>());
            streams.into_iter().map(|stream| stream.finish()[0]).collect()
        };
        let ((alone, expected), (together, found)) = (time(&alone), time(&together));
        assert_eq!(found, expected);
        assert!(together < alone * 3, "{together:?} {alone:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn many_streams_of_any_length() {
        many_streams::<Md5Steps>().await;
        many_streams::<Sha256Steps>().await;
    }

    async fn many_streams<A: Algorithm>() {
        let service = DigestService::<A>::new();
        let mut tasks = JoinSet::new();
        for seed in 0..200 {
            let stream = service.stream();
            tasks.spawn(async move {
                let body = chunks(seed, seed % 41);
                for (n, chunk) in body.iter().enumerate() {
                    stream.push(chunk.clone()).await;
                    if n % 5 == seed % 5 {
                        yield_now().await;
                    }
                    // A client that is gone.
                    if seed % 9 == 8 && n == 7 {
                        return;
                    }
                }
                let digest = stream.finish(Bytes::new()).await;
                assert_eq!(digest, Some(Digest::<A>::of(&body.concat())), "stream {seed}");
            });
        }
        timeout(Duration::from_mins(1), async {
            while tasks.join_next().await.transpose().unwrap().is_some() {}
        })
        .await
        .unwrap();
        until_idle(&service).await;
    }

    /// If nothing is digested, each stream takes its share of the memory, and stops.
    #[tokio::test]
    async fn a_stream_waits_for_room() {
        let service = DigestService::<Md5Steps>::new();
        service.lock().passes = service.passes_max;
        let mut streams: Vec<_> = (0..100).map(|_| service.stream()).collect();
        let chunk = Bytes::from(vec![7; 16 << 10]);
        for stream in &mut streams {
            let more = async {
                loop {
                    stream.push(chunk.clone()).await;
                }
            };
            assert!(timeout(Duration::from_millis(1), more).await.is_err());
        }
        let share = DIGEST_WAITING_BYTES_MAX / 100;
        assert!(share > DIGEST_STREAM_BYTES_MIN, "another number of streams is needed");
        let waiting: Vec<_> = service.lock().streams.values().map(|stream| stream.waiting_bytes).collect();
        assert!(waiting.iter().all(|bytes| (share..share + chunk.len()).contains(bytes)), "{waiting:?}");
        drop(streams.split_off(1));
        assert_eq!(service.lock().streams.len(), 1);
        // Somebody comes: the one that is left goes on.
        service.lock().passes = 0;
        let stream = streams.remove(0);
        stream.push(chunk.clone()).await;
        let expected = Md5::of(&vec![7; waiting[0] + chunk.len()]);
        assert_eq!(stream.finish(Bytes::new()).await, Some(expected));
        until_idle(&service).await;
        assert!(service.lock().due.is_empty());
    }

    /// A pass for a stream that is due also digests other streams, and leaves them when it is done.
    #[tokio::test]
    async fn others_come_along() {
        let service = DigestService::<Md5Steps>::new();
        let chunk = Bytes::from(vec![9; 16 << 10]);
        let mut streams: Vec<_> = (0..LANES).map(|_| service.stream()).collect();
        for stream in &mut streams[1..] {
            stream.push(chunk.clone()).await;
        }
        let others = service.lock().others.len();
        assert!(others == LANES - 1 && service.lock().passes == 0, "none is due");
        let first = streams.remove(0);
        for _ in 0..DIGEST_STREAM_BYTES_MAX / chunk.len() {
            first.push(chunk.clone()).await;
        }
        let digest = first.finish(Bytes::new()).await;
        assert_eq!(digest, Some(Md5::of(&vec![9; DIGEST_STREAM_BYTES_MAX])));
        while service.lock().passes > 0 {
            yield_now().await;
        }
        assert!(service.lock().streams.values().all(|stream| stream.waiting_bytes == 0));
        for stream in streams {
            assert_eq!(stream.finish(Bytes::new()).await, Some(Md5::of(&chunk)));
        }
    }

    /// If all lanes are taken, a stream that is due takes the lane of one that is not, which might
    /// otherwise keep it forever.
    #[tokio::test]
    async fn one_that_is_due_finds_a_lane() {
        let service = DigestService::<Md5Steps>::new();
        service.lock().passes = service.passes_max;
        let streams: Vec<_> = (0..LANES).map(|_| service.stream()).collect();
        let chunk = Bytes::from(vec![9; 16 << 10]);
        for _ in 0..DIGEST_DUE_BYTES / chunk.len() {
            streams[0].push(chunk.clone()).await;
        }
        for stream in &streams[1..] {
            stream.push(chunk.clone()).await;
        }
        let mut lanes = Vec::new();
        service.lock().fill(&mut lanes);
        assert!(lanes.len() == LANES && lanes[0].due && lanes[1..].iter().all(|lane| !lane.due));
        // While they are digested, one more is due, and the first brings a little more.
        let late = service.stream();
        let ended = tokio::spawn(late.finish(chunk.clone()));
        while service.lock().due.is_empty() {
            yield_now().await;
        }
        streams[0].push(chunk.clone()).await;
        lanes[0].digested_bytes = lanes[0].chunks.drain(..).map(|chunk| chunk.len()).sum();
        {
            let mut state = service.lock();
            lanes.retain_mut(|lane| state.settle(lane, &mut Vec::new(), &mut Vec::new()));
            assert!(lanes.len() == LANES && !lanes.iter().any(|lane| lane.due));
            state.fill(&mut lanes);
            assert_eq!(lanes.iter().filter(|lane| lane.due).count(), 1);
            lanes.drain(..).for_each(|lane| state.leave(lane));
            state.passes = 0;
            service.start_pass(&mut state);
        }
        let digest = timeout(Duration::from_secs(20), ended).await.unwrap().unwrap();
        assert_eq!(digest, Some(Md5::of(&chunk)));
        drop(streams);
        until_idle(&service).await;
    }

    /// If a panic loses a digest, the tasks that wait for it are woken.
    #[tokio::test]
    async fn lost_streams_are_told() {
        let service = DigestService::<Md5Steps>::new();
        let stream = service.stream();
        service.lock().passes = 1;
        stream.push(Bytes::from(vec![1; DIGEST_STREAM_BYTES_MIN])).await;
        let lane = service.lock().enter(stream.id, false).unwrap();
        let waiting = tokio::spawn(stream.finish(Bytes::new()));
        while service.lock().streams.values().any(|stream| stream.waker.is_none()) {
            yield_now().await;
        }
        drop(Pass { service: Arc::clone(&service), lanes: vec![lane], done: false });
        assert_eq!(waiting.await.unwrap(), None);
        assert!(is_idle(&service));
    }
}
