//! Runs a load: threads, each with its own runtime, lanes and counts.

pub(crate) mod churn;
pub(crate) mod lane;
pub(crate) mod multipart;
mod pace;
pub(crate) mod sets;
mod stop;
pub(crate) mod streams;
pub(crate) mod tally;
pub(crate) mod work;

pub use stop::Stop;

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::runtime::{Builder, Runtime};

use crate::connection::Shared;
use crate::endpoint::Endpoint;
use crate::error::Result;
use crate::report::Stored;
use crate::request::Block;
use crate::units;
use lane::{Context, Lane};
use multipart::{Crew, Uploads};
use pace::Pace;
use stop::LOOK;
use tally::{Live, Part, Tally, Window};
use work::{Picker, Work};

/// The time limit for connecting before the clock starts. After it, the clock starts even if
/// connections are missing.
const CONNECT: Duration = Duration::from_secs(5);
/// The time for which requests that were sent may go on after a stop, and for which an open loop
/// may send late requests after the end.
const GRACE: Duration = Duration::from_secs(2);
/// A time that is longer than any measurement.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// The settings of a load.
pub(crate) struct Load<'a> {
    pub endpoints: &'a [Endpoint],
    pub block: &'a Block,
    pub concurrency: usize,
    pub threads: usize,
    pub warm_up: Duration,
    pub duration: Duration,
    /// The rate in requests a second, if one is given.
    pub rate: Option<f64>,
    pub timeout: Duration,
    pub stop: &'a Stop,
}

/// The measured counts of a load.
pub(crate) struct Measured {
    pub tally: Tally,
    pub seconds: f64,
    /// The number of threads that sent requests.
    pub threads: usize,
    /// The objects that were stored, from the beginning of the warm-up on.
    pub stored: Stored,
}

/// The progress of a load. The thread that waits for the load's end reports it now and then.
pub(crate) struct Moment {
    /// True once measuring has begun.
    pub measuring: bool,
    /// True once the load has ended.
    pub over: bool,
    pub elapsed: Duration,
    pub answers: u64,
    pub errors: u64,
}

/// State that all threads of a load share.
struct Common<'a> {
    load: &'a Load<'a>,
    work: Job<'a>,
    live: Vec<Live>,
    /// A barrier that the threads wait at twice: until all have connected, and until the measured
    /// time is set.
    barrier: Barrier,
    window: OnceLock<(Instant, Window)>,
    /// The number of threads that have not ended. `watcher` is the thread that waits for them.
    running: AtomicUsize,
    watcher: Thread,
    /// State that the threads of a load of uploads share; `None` for other loads.
    crew: Option<Crew>,
}

/// A guard that each thread of the load holds. When the last one is dropped, it wakes the thread
/// that waits for all.
struct Running<'a>(&'a Common<'a>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.watcher.unpark();
        }
    }
}

/// The requests of a load.
#[derive(Clone, Copy)]
pub(crate) enum Job<'a> {
    Requests(&'a Work),
    Uploads(&'a Uploads<'a>),
}

/// Runs a load to its end. Calls `watch` at the load's beginning, at its end and now and then
/// between.
pub(crate) fn run(load: &Load<'_>, work: Job<'_>, watch: impl FnMut(&Moment)) -> Result<Measured> {
    run_watched(load, work, LOOK, watch)
}

/// Does the same as [`run`], and calls `watch` at least once in each interval of the length
/// `every`.
fn run_watched(
    load: &Load<'_>,
    work: Job<'_>,
    every: Duration,
    mut watch: impl FnMut(&Moment),
) -> Result<Measured> {
    let threads = load.threads.min(load.concurrency);
    let common = Common {
        load,
        work,
        live: (0..threads).map(|_| Live::default()).collect(),
        barrier: Barrier::new(threads + 1),
        window: OnceLock::new(),
        running: AtomicUsize::new(threads),
        watcher: std::thread::current(),
        crew: match work {
            Job::Requests(_) => None,
            Job::Uploads(uploads) => Some(Crew::new(uploads, threads)),
        },
    };
    let runtimes = (0..threads)
        .map(|_| Builder::new_current_thread().enable_all().build())
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(|e| format!("cannot start a thread for the load: {e}"))?;
    let tally = std::thread::scope(|scope| {
        let common = &common;
        let running: Vec<_> = runtimes
            .into_iter()
            .enumerate()
            .map(|(index, runtime)| {
                scope.spawn(move || {
                    let _running = Running(common);
                    common.thread(index, &runtime)
                })
            })
            .collect();
        common.barrier.wait();
        let start = Instant::now();
        let from = start + load.warm_up;
        // Uploads are made to their end, whenever that is.
        let duration = if matches!(work, Job::Uploads(_)) { FOREVER } else { load.duration };
        let _ = common.window.set((start, Window { from, until: from + duration }));
        common.barrier.wait();
        common.watch_until(from, every, &mut watch);
        let mut tally = Tally::default();
        for thread in running {
            match thread.join() {
                Ok(theirs) => tally.merge(theirs),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        tally
    });
    let stopped = load.stop.is_stopped();
    let window = common.window.get().map(|(_, window)| *window).ok_or("the load could not be started")?;
    let seconds = tally.elapsed(window, stopped || matches!(work, Job::Uploads(_))).as_secs_f64();
    let sum =
        |of: fn(&Live) -> &AtomicU64| common.live.iter().map(|live| of(live).load(Ordering::Relaxed)).sum();
    let stored = Stored { objects: sum(|live| &live.stored), bytes: sum(|live| &live.stored_bytes) };
    Ok(Measured { tally, seconds, threads, stored })
}

impl Common<'_> {
    fn watch_until(&self, from: Instant, every: Duration, watch: &mut impl FnMut(&Moment)) {
        let until = match self.work {
            Job::Requests(_) => Some(from + self.load.duration),
            Job::Uploads(_) => None,
        };
        let mut measuring = false;
        loop {
            let now = Instant::now();
            let ended = self.running.load(Ordering::Acquire) == 0;
            let over = ended || until.is_some_and(|until| now >= until);
            let sum = |of: fn(&Live) -> u64| self.live.iter().map(of).sum();
            measuring |= now >= from || over;
            watch(&Moment {
                measuring,
                over,
                elapsed: now.saturating_duration_since(from),
                answers: sum(|live| live.answers.load(Ordering::Relaxed)),
                errors: sum(|live| live.errors.load(Ordering::Relaxed)),
            });
            if over {
                return;
            }
            let next = if measuring { until } else { Some(from) };
            let left = next.map_or(every, |next| next.saturating_duration_since(Instant::now()).min(every));
            std::thread::park_timeout(left);
        }
    }

    fn thread(&self, index: usize, runtime: &Runtime) -> Tally {
        runtime.block_on(async {
            let mut lanes = self.connect(index).await;
            self.barrier.wait();
            self.barrier.wait();
            let Some(&(start, window)) = self.window.get() else { return Tally::default() };
            let context = Context {
                endpoints: self.load.endpoints,
                shared: Shared::new(self.load.block),
                window,
                timeout: self.load.timeout,
                tally: RefCell::default(),
                live: &self.live[index],
            };
            let end = async {
                self.load.stop.wait().await;
                tokio::time::sleep(GRACE).await;
            };
            match self.work {
                Job::Requests(work) => {
                    let running = lanes
                        .iter_mut()
                        .map(|(number, lane)| self.lane(&context, work, *number, lane, start));
                    tokio::select! { _ = join_all(running) => {}, () = end => {} }
                }
                Job::Uploads(uploads) => {
                    let lanes = lanes.into_iter().map(|(_, lane)| lane).collect();
                    let Some(crew) = &self.crew else { return Tally::default() };
                    let running = uploads.run(&context, crew, lanes, index == 0, self.load.stop);
                    tokio::select! { () = running => {}, () = end => {} }
                }
            }
            context.tally.into_inner()
        })
    }

    /// Makes this thread's lanes, and connects them. A lane that can't connect now tries again with
    /// its first request, and counts an error if it fails again.
    async fn connect(&self, index: usize) -> Vec<(usize, Lane)> {
        let numbers = (index..self.load.concurrency).step_by(self.live.len());
        let mut lanes: Vec<_> = numbers.map(|number| (number, self.new_lane(number))).collect();
        let connecting = lanes.iter_mut().map(|(_, lane)| lane.connect(self.load.endpoints));
        let _ = tokio::time::timeout(CONNECT, join_all(connecting)).await;
        lanes
    }

    fn new_lane(&self, number: usize) -> Lane {
        let endpoints = self.load.endpoints.len();
        let endpoint = number % endpoints;
        let is_stream = matches!(self.work, Job::Requests(work) if work.is_streams());
        // Of one endpoint there is nothing to say beyond the sum.
        let part =
            Part { endpoint: (endpoints > 1).then_some(endpoint), stream: is_stream.then_some(number) };
        Lane::new(endpoint, part, self.load.timeout)
    }

    async fn lane(&self, context: &Context<'_>, work: &Work, number: usize, lane: &mut Lane, start: Instant) {
        let mut picker = Picker::new(work, number);
        let mut pace = match self
            .load
            .rate
            .map(|rate| Pace::new(start, rate, number, self.load.concurrency))
            .transpose()
        {
            Ok(pace) => pace,
            Err(e) => {
                let mut tally = context.tally.borrow_mut();
                *tally.outside.entry(format!("no timer: {e}")).or_default() += 1;
                return;
            }
        };
        let mut began = Instant::now();
        while !self.load.stop.is_stopped() {
            if let Some(pace) = &mut pace {
                began = pace.due();
                if began < context.window.until && pace.wait().await.is_err() {
                    return;
                }
            }
            let until = context.window.until;
            if began >= until {
                return;
            }
            if let Some(pace) = &pace
                && Instant::now() >= until + GRACE
            {
                let mut tally = context.tally.borrow_mut();
                let unsent = pace.due_before(began, until);
                *tally.outside.entry("due, and never sent".to_owned()).or_default() += unsent;
                return;
            }
            let Some(request) = picker.next(lane.endpoint) else {
                context.tally.borrow_mut().exhausted = true;
                return;
            };
            (began, _) = lane.perform(context, request, began).await;
        }
    }
}

/// Returns the number of threads that send requests: one for each two processors, at most 8, since
/// the server may be on the same machine.
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get().div_ceil(2)).min(8)
}

/// Returns the number of answers a second as text.
pub(crate) fn shown_rate(answers: u64, elapsed: Duration) -> String {
    units::show_number(units::float(answers) / elapsed.as_secs_f64().max(0.001))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;
    use crate::request::Operation;
    use s3_client::Trust;

    /// Starts a server that answers each piece that it reads with 200.
    fn server() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    while stream.read(&mut [0; 1024]).is_ok_and(|read| read > 0) {
                        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                    }
                });
            }
        });
        format!("http://{address}")
    }

    #[test]
    fn who_watches_is_woken_by_the_last_thread() {
        let endpoints = [Endpoint::new(&server(), &Trust::default()).unwrap()];
        let mut set = work::tests::set(Operation::GetObject, 5);
        for request in &mut set[0] {
            request.head = Box::from(&b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"[..]);
        }
        let work = Work::ring(set, Some(40));
        let load = Load {
            endpoints: &endpoints,
            block: &Block::new(),
            concurrency: 4,
            threads: 3,
            warm_up: Duration::ZERO,
            duration: FOREVER,
            rate: None,
            timeout: Duration::from_secs(10),
            stop: &Stop::default(),
        };
        let mut last = None;
        let began = Instant::now();
        // It looks at the beginning, and would at the end of this hour.
        let every = Duration::from_hours(1);
        let measured = run_watched(&load, Job::Requests(&work), every, |moment| {
            last = Some((moment.over, moment.answers));
        });
        assert_eq!(measured.unwrap().tally.answers(), 40);
        assert_eq!(last, Some((true, 40)));
        assert!(began.elapsed() < every / 2);
    }
}
