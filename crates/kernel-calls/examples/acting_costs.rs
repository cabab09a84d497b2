//! Measures what it costs to act as a user: CPU time of a switch and back, with nothing in between.
//!
//!     cargo run --release -p kernel-calls --example acting_costs
//!
//! Needs the superuser. Users alternate, so that each switch sets the groups anew, or remain.

use std::time::Duration;

use kernel_calls::acting::{Identity, acting, as_self, ids_for_files};
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: u32 = 100_000;
const RUNS: usize = 9;

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Returns the least CPU time of a round, in microseconds.
fn cost(mut round: impl FnMut(u32)) -> f64 {
    let run = |_| {
        let began = cpu();
        (0..ROUNDS).for_each(&mut round);
        cpu().saturating_sub(began).as_secs_f64() * 1e6 / f64::from(ROUNDS)
    };
    (0..RUNS).map(run).fold(f64::INFINITY, f64::min)
}

fn main() -> std::io::Result<()> {
    for count in [0u32, 5, 16, 32] {
        let groups: [Vec<u32>; 2] = [20_000, 30_000].map(|first| (first..first + count).collect());
        let user = |number: usize| Identity {
            uid: 20_001 + u32::try_from(number).unwrap_or(0),
            gid: 20_010,
            groups: &groups[number % 2],
        };
        acting(user(0), ids_for_files)?;
        let other = cost(|round| drop(acting(user(round as usize % 2), || ())));
        let same = cost(|_| drop(acting(user(0), || ())));
        println!(
            "{count:2} groups: {other:.2} us, {same:.2} us where the thread acted as the same user before"
        );
    }
    let user = Identity { uid: 20_001, gid: 20_010, groups: &[] };
    let within = acting(user, || cost(|_| as_self(|| ())))?;
    println!("as_self within: {within:.2} us");
    println!("the ids of file calls, asked: {:.2} us", cost(|_| _ = std::hint::black_box(ids_for_files())));
    Ok(())
}
