//! Decides what limited a step, from the resources that were measured during it; does no I/O.
//! `docs/BENCHMARKING.md` says how it decides, and what it can't see.

use serde::{Deserialize, Serialize};

use crate::system::LinkUse;
use crate::units::{MIB, show_number, whole};

/// The share of use from which on a resource counts as full. The rest is lost to the scheduler, and
/// to clocks that count in steps of 10 ms.
const FULL: f64 = 0.9;
/// The share from which on all processors together count as full. Their idle time is counted in
/// steps of 10 ms, too.
const MACHINE_FULL: f64 = 0.95;
/// The share of a machine's processors from which on the work of other programs disturbs a
/// measurement.
const OTHERS: f64 = 0.25;
/// The factor by which the servers must use more of a full machine than the load generator, or the
/// reverse, to be the limit.
const CLEARLY_MORE: f64 = 2.0;
/// The share of busy processors above which tasks that wait for storage do not show that storage is
/// the limit: other tasks use the processors in the meantime.
const STALLED_BELOW: f64 = 0.7;
/// The smallest share of the time for which a device must be busy to count as the storage that
/// tasks wait for.
const DEVICE_USED: f64 = 0.5;
/// The shortest measured time, in seconds, for a verdict: below it, clocks that count in steps of
/// 10 ms are too coarse.
const LONG_ENOUGH: f64 = 0.5;
/// The share of the requested rate that must be answered for the rate to count as kept.
const KEPT: f64 = 0.98;

/// The resource that limited a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The load generator, which is `slipway bench` itself.
    Client,
    /// The CPU time of the servers.
    Gateway,
    /// The storage of the servers.
    Storage,
    /// The network link to the servers.
    Network,
    /// The rate that the user gave was kept: nothing limited the step.
    Rate,
    /// A limit that is not clear from the evidence.
    NotClear,
}

impl Limit {
    /// Returns the name of the limit in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Gateway => "gateway",
            Self::Storage => "storage",
            Self::Network => "network",
            Self::Rate => "the rate asked for",
            Self::NotClear => "not clear",
        }
    }
}

/// The limit of a step, and the reasons for that verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The resource that limited the step.
    pub limit: Limit,
    /// The evidence that decided the verdict.
    pub reason: String,
    /// All evidence, in words.
    pub evidence: Vec<String>,
}

impl Verdict {
    /// Returns the verdict in one sentence, without all the evidence.
    pub fn sentence(&self) -> String {
        match self.limit {
            Limit::NotClear => format!("what limits it is not clear: {}", self.reason),
            limit => format!("limited by {}: {}", limit.name(), self.reason),
        }
    }
}

/// The number of processors that were used, and of those that may be used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    pub used: f64,
    pub of: f64,
}

impl Share {
    fn part(self) -> f64 {
        if self.of > 0.0 { self.used / self.of } else { 0.0 }
    }

    fn shown(self) -> String {
        let processors = if (self.of - 1.0).abs() < 1e-9 { "processor" } else { "processors" };
        let of =
            if self.of.fract().abs() < 1e-9 { whole(self.of).to_string() } else { format!("{:.2}", self.of) };
        format!("{:.2} of {of} {processors}", self.used)
    }
}

/// The measurements of a step from which the verdict is made.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    /// The processors that the load's own threads used.
    pub client: Share,
    /// The processors that each server used, with the server's name; `None` if the servers are not
    /// known, or one has ended.
    pub servers: Option<Vec<(String, Share)>>,
    /// The processors that all programs of this machine used.
    pub machine: Share,
    /// The share of the time in which each device was busy.
    pub devices: Vec<(String, f64)>,
    /// The share of the time in which a task waited for storage.
    pub io_stalled: Option<f64>,
    pub link: Option<LinkUse>,
    /// The rates of an open loop in requests a second: the requested rate, and the rate of answers.
    pub rate: Option<(f64, f64)>,
    pub answers: u64,
    /// The measured time in seconds.
    pub seconds: f64,
}

/// Decides what limited a step.
pub(crate) fn decide(evidence: &Evidence) -> Verdict {
    let (limit, reason) = limit(evidence);
    Verdict { limit, reason, evidence: facts(evidence) }
}

fn limit(evidence: &Evidence) -> (Limit, String) {
    if evidence.answers == 0 {
        return (Limit::NotClear, "nothing was answered".to_owned());
    }
    if evidence.seconds < LONG_ENOUGH {
        return (Limit::NotClear, format!("it took {:.2} s, which is too short to tell", evidence.seconds));
    }
    if let Some((asked, answered)) = evidence.rate
        && answered >= asked * KEPT
    {
        return (Limit::Rate, format!("{} a second were kept", show_number(asked)));
    }
    let full = full(evidence);
    match full.as_slice() {
        [] => {}
        [one] => return one.clone(),
        several => {
            let all: Vec<&str> = several.iter().map(|(_, reason)| reason.as_str()).collect();
            return (Limit::NotClear, format!("more than one is full: {}", all.join(", ")));
        }
    }
    if evidence.machine.part() >= MACHINE_FULL {
        return of_full_machine(evidence);
    }
    if is_stalled(evidence) {
        return (Limit::Storage, "programs waited for storage, and processors were idle".to_owned());
    }
    let unknown = if evidence.servers.is_none() {
        "nothing on this machine is full, and the servers' processes are not known (give --server-pid on their \
         machine)"
    } else {
        "nothing is full; more requests at once may show what is"
    };
    (Limit::NotClear, unknown.to_owned())
}

/// Returns the limits that were reached according to the measurements of each resource, with the
/// reasons.
fn full(evidence: &Evidence) -> Vec<(Limit, String)> {
    let mut full = Vec::new();
    if evidence.client.part() >= FULL {
        full.push((Limit::Client, "the load generator's threads have no time left".to_owned()));
    }
    let servers = evidence.servers.iter().flatten();
    if let Some((name, _)) = servers.clone().find(|(_, share)| share.part() >= FULL) {
        full.push((Limit::Gateway, format!("{name} uses all processors that it may")));
    }
    if let Some((name, busy)) = evidence.devices.iter().find(|(_, busy)| *busy >= FULL) {
        full.push((Limit::Storage, format!("{name} is busy for {} of the time", percent(*busy))));
    }
    let link = evidence.link.as_ref().filter(|link| !link.is_loopback());
    if let Some((link, share)) = link.and_then(|link| Some((link, link.share()?))).filter(|(_, s)| *s >= FULL)
    {
        full.push((Limit::Network, format!("{} is at {} of its rate", link.name, percent(share))));
    }
    full
}

/// Returns the limit for a machine whose processors are all busy: the servers or the load
/// generator, if one of them uses clearly more than the other.
fn of_full_machine(evidence: &Evidence) -> (Limit, String) {
    let client = evidence.client.used;
    let not_clear = |reason: &str| (Limit::NotClear, format!("this machine's processors are full, {reason}"));
    let Some(servers) = &evidence.servers else {
        return not_clear("and the servers' processes are not known");
    };
    let servers: f64 = servers.iter().map(|(_, share)| share.used).sum();
    let others = evidence.machine.used - client - servers;
    if others > OTHERS * evidence.machine.of {
        return not_clear("in part with other work");
    }
    let shared = |who: &str| format!("this machine's processors are full, most of them with {who}");
    if servers >= CLEARLY_MORE * client {
        return (Limit::Gateway, shared("the servers"));
    }
    if client >= CLEARLY_MORE * servers {
        return (Limit::Client, shared("the load generator"));
    }
    not_clear("shared by servers and load generator: run the load generator on another machine")
}

fn is_stalled(evidence: &Evidence) -> bool {
    // Without a device that may be meant, it is one of which nothing is known.
    let can_be_it =
        evidence.devices.is_empty() || evidence.devices.iter().any(|(_, busy)| *busy >= DEVICE_USED);
    let local = evidence.servers.is_some();
    local
        && can_be_it
        && evidence.machine.part() < STALLED_BELOW
        && evidence.io_stalled.is_some_and(|share| share >= FULL)
}

/// Returns all measurements in words.
fn facts(evidence: &Evidence) -> Vec<String> {
    let mut facts = vec![format!("load generator {}", evidence.client.shown())];
    match &evidence.servers {
        Some(servers) => {
            facts.extend(servers.iter().map(|(name, share)| format!("{name} {}", share.shown())));
        }
        None => facts.push("servers not known".to_owned()),
    }
    facts.push(format!("all programs of this machine {}", evidence.machine.shown()));
    facts.extend(evidence.devices.iter().map(|(name, busy)| format!("{name} busy for {}", percent(*busy))));
    facts.extend(evidence.io_stalled.map(|share| format!("waiting for storage {}", percent(share))));
    facts.extend(evidence.link.as_ref().map(|link| {
        let rate = |bytes: f64| format!("{} MiB/s", show_number(bytes / MIB));
        let moved = format!("{} in, {} out", rate(link.received_per_second), rate(link.sent_per_second));
        match link.share() {
            _ if link.is_loopback() => format!("loopback, {moved}"),
            Some(share) => format!("{} at {} of its rate, {moved}", link.name, percent(share)),
            None => format!("{} of unknown rate, {moved}", link.name),
        }
    }));
    if let Some((asked, answered)) = evidence.rate {
        facts.push(format!("{} a second of {}", show_number(answered), show_number(asked)));
    }
    facts
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A quiet machine of four processors, with a server and a load generator of one thread.
    fn quiet() -> Evidence {
        Evidence {
            client: Share { used: 0.2, of: 1.0 },
            servers: Some(vec![("slipway (pid 7)".to_owned(), Share { used: 0.5, of: 4.0 })]),
            machine: Share { used: 0.8, of: 4.0 },
            devices: vec![("vda".to_owned(), 0.1)],
            io_stalled: Some(0.1),
            link: Some(LinkUse { name: "lo".to_owned(), ..LinkUse::default() }),
            rate: None,
            answers: 1000,
            seconds: 10.0,
        }
    }

    fn link(share: f64) -> LinkUse {
        LinkUse {
            name: "eth0".to_owned(),
            received_per_second: 1e6,
            sent_per_second: share * 125e6,
            bits_per_second: Some(1e9),
        }
    }

    fn servers(used: f64) -> Vec<(String, Share)> {
        vec![("slipway (pid 7)".to_owned(), Share { used, of: 4.0 })]
    }

    #[track_caller]
    fn check(limit: Limit, reason: &str, evidence: &Evidence) {
        let found = decide(evidence);
        assert_eq!(found.limit, limit, "{found:?}");
        assert!(found.reason.contains(reason), "{found:?}");
    }

    #[test]
    fn what_alone_is_full_is_the_limit() {
        let client = Share { used: 0.95, of: 1.0 };
        check(Limit::Client, "no time left", &Evidence { client, ..quiet() });
        check(Limit::Gateway, "slipway (pid 7)", &Evidence { servers: Some(servers(3.7)), ..quiet() });
        let devices = vec![("sda".to_owned(), 0.2), ("sdb".to_owned(), 0.97)];
        check(Limit::Storage, "sdb is busy for 97 %", &Evidence { devices, ..quiet() });
        check(Limit::Network, "eth0 is at 94 %", &Evidence { link: Some(link(0.94)), ..quiet() });
    }

    #[test]
    fn what_is_full_beside_another_is_not_clear() {
        let both = Evidence { client: Share { used: 0.95, of: 1.0 }, servers: Some(servers(3.7)), ..quiet() };
        check(Limit::NotClear, "more than one", &both);
    }

    #[test]
    fn nothing_full_is_not_clear() {
        check(Limit::NotClear, "more requests at once", &quiet());
        check(Limit::NotClear, "--server-pid", &Evidence { servers: None, ..quiet() });
        check(Limit::NotClear, "more requests at once", &Evidence { link: Some(link(0.5)), ..quiet() });
        let unknown = Some(LinkUse { bits_per_second: None, ..link(5.0) });
        check(Limit::NotClear, "more requests at once", &Evidence { link: unknown, ..quiet() });
        // However much goes through it, a loopback is a matter of CPU.
        let loopback = Some(LinkUse { name: "lo".to_owned(), ..link(5.0) });
        check(Limit::NotClear, "more requests at once", &Evidence { link: loopback, ..quiet() });
        check(Limit::NotClear, "nothing was answered", &Evidence { answers: 0, ..quiet() });
        let short = Evidence { seconds: 0.04, servers: Some(servers(3.7)), ..quiet() };
        check(Limit::NotClear, "it took 0.04 s", &short);
    }

    #[test]
    fn a_full_machine_is_limited_by_who_fills_it() {
        let machine = Share { used: 3.9, of: 4.0 };
        let client = |used| Share { used, of: 2.0 };
        let full = Evidence { machine, client: client(1.0), servers: Some(servers(2.8)), ..quiet() };
        check(Limit::Gateway, "most of them with the servers", &full);
        let full = Evidence { client: client(1.7), servers: Some(servers(1.9)), ..full };
        check(Limit::NotClear, "on another machine", &full);
        let busy = Evidence { client: client(0.5), servers: Some(servers(1.5)), ..full.clone() };
        check(Limit::NotClear, "other work", &busy);
        check(Limit::NotClear, "not known", &Evidence { servers: None, ..full.clone() });
        let client = Share { used: 2.7, of: 4.0 };
        check(
            Limit::Client,
            "most of them with the load",
            &Evidence { client, servers: Some(servers(1.2)), ..full },
        );
    }

    #[test]
    fn waiting_for_storage_counts_where_processors_are_idle() {
        let waiting = Evidence { io_stalled: Some(0.96), devices: Vec::new(), ..quiet() };
        check(Limit::Storage, "waited for storage", &waiting);
        let busy = Share { used: 3.0, of: 4.0 };
        check(Limit::NotClear, "nothing is full", &Evidence { machine: busy, ..waiting.clone() });
        // It is another device that they wait for.
        let devices = vec![("vda".to_owned(), 0.1)];
        check(Limit::NotClear, "nothing is full", &Evidence { devices, ..waiting.clone() });
        check(Limit::NotClear, "--server-pid", &Evidence { servers: None, ..waiting });
    }

    #[test]
    fn a_rate_that_is_kept_is_the_limit() {
        let client = Share { used: 0.95, of: 1.0 };
        check(Limit::Rate, "100 a second", &Evidence { rate: Some((100.0, 99.0)), client, ..quiet() });
        check(Limit::Client, "no time left", &Evidence { rate: Some((100.0, 60.0)), client, ..quiet() });
    }

    #[test]
    fn a_quota_is_shown_as_it_is() {
        assert_eq!(Share { used: 0.049, of: 0.05 }.shown(), "0.05 of 0.05 processors");
        assert_eq!(Share { used: 1.5, of: 2.0 }.shown(), "1.50 of 2 processors");
    }

    #[test]
    fn a_verdict_shows_all_evidence() {
        let verdict = decide(&Evidence { link: Some(link(0.94)), rate: Some((100.0, 60.0)), ..quiet() });
        assert!(verdict.sentence().starts_with("limited by network: eth0 is at 94 %"), "{verdict:?}");
        let evidence = verdict.evidence.join("; ");
        for part in [
            "load generator 0.20 of 1 processor;",
            "slipway (pid 7) 0.50 of 4 processors",
            "all programs of this machine 0.80 of 4 processors",
            "vda busy for 10 %",
            "waiting for storage 10 %",
            "eth0 at 94 % of its rate",
            "60.0 a second of 100",
        ] {
            assert!(evidence.contains(part), "{evidence}");
        }
        let fast = LinkUse { received_per_second: 1_153_433_601.0, ..link(0.0) };
        let evidence = decide(&Evidence { link: Some(fast), ..quiet() }).evidence.join("; ");
        assert!(evidence.ends_with("1100 MiB/s in, 0 MiB/s out"), "{evidence}");
        assert!(decide(&quiet()).sentence().starts_with("what limits it is not clear: "));
    }
}
