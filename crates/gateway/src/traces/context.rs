//! Decides which trace a request belongs to, and whether its span is sent: W3C's Trace Context.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::HeaderMap;

use crate::clients::Trusted;
use crate::peer::Peer;
use crate::request_id::{RequestId, mixed};
use crate::trace_context::{SpanContext, SpanId, TraceId};

/// The number of bits of a trace's id that decide whether it is sent.
const RANDOM_BITS: u32 = 56;
const SAMPLED: u8 = 1;

/// The share of traces that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    /// The smallest random number, of [`RANDOM_BITS`], of traces that are sent.
    threshold: u64,
}

impl Ratio {
    /// Reads a number from 0 to 1.
    pub fn parse(text: &str) -> Result<Self, String> {
        let ratio = text.parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
        let ratio = ratio.ok_or_else(|| "expected a number from 0 to 1, such as 0.01".to_owned())?;
        #[expect(clippy::cast_precision_loss, reason = "a power of two")]
        let all = (1u64 << RANDOM_BITS) as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 2^56, as checked above"
        )]
        let threshold = ((1.0 - ratio) * all) as u64;
        Ok(Self { threshold })
    }

    fn takes(self, random: u64) -> bool {
        random & ((1 << RANDOM_BITS) - 1) >= self.threshold
    }
}

/// Begins and continues traces.
#[derive(Debug)]
pub struct Contexts {
    ratio: Ratio,
    /// The peers whose traces are continued.
    from: Trusted,
    seeds: [u64; 2],
    count: AtomicU64,
}

impl Contexts {
    /// Makes the decision for these settings: traces that begin here are sent with this
    /// probability, and traces of requests that come `from` these peers are continued.
    pub fn new(ratio: Ratio, from: Trusted) -> Self {
        let seed = |what: &str| RandomState::new().hash_one(what);
        Self { ratio, from, seeds: [seed("traces"), seed("sampling")], count: AtomicU64::new(0) }
    }

    /// Returns the place of a request in a trace; `None` if the request belongs to no trace.
    pub fn of_request(&self, id: RequestId, peer: Peer, headers: &HeaderMap) -> Option<SpanContext> {
        let span = SpanId(id.decoded());
        let trusted = !self.from.is_empty() && self.from.contains(peer.address.map(|address| address.ip()));
        if trusted && let Some(parent) = parent(headers) {
            let Parent { trace, span: parent, sampled } = parent;
            return Some(SpanContext { trace, span, parent: Some(parent), sampled });
        }
        let count = self.count.fetch_add(1, Relaxed);
        let low = mixed(self.seeds[1], count);
        if !self.ratio.takes(low) {
            return None;
        }
        let high = mixed(self.seeds[0], count);
        let id = u128::from(high) << 64 | u128::from(low);
        Some(SpanContext { trace: TraceId(id.to_be_bytes()), span, parent: None, sampled: true })
    }
}

/// The contents of `traceparent`.
#[derive(Debug, PartialEq, Eq)]
struct Parent {
    trace: TraceId,
    span: SpanId,
    sampled: bool,
}

/// Parses `traceparent` (W3C Trace Context, section 3.2). Returns `None` if it is malformed.
fn parent(headers: &HeaderMap) -> Option<Parent> {
    let mut all = headers.get_all("traceparent").into_iter();
    let (value, None) = (all.next()?, all.next()) else { return None };
    let value = value.as_bytes();
    let (known, rest) = value.split_at_checked(55)?;
    let [version, trace, span, flags] = [&known[..2], &known[3..35], &known[36..52], &known[53..]];
    let version: [u8; 1] = hex(version)?;
    // Later versions may append more.
    let ends = if version == [0] { rest.is_empty() } else { rest.first().is_none_or(|byte| *byte == b'-') };
    let divided = [2, 35, 52].iter().all(|at| known[*at] == b'-');
    if version == [0xFF] || !ends || !divided {
        return None;
    }
    let (trace, span) = (hex::<16>(trace)?, hex::<8>(span)?);
    let sampled = hex::<1>(flags)?[0] & SAMPLED != 0;
    let is_none = trace == [0; 16] || span == [0; 8];
    (!is_none).then_some(Parent { trace: TraceId(trace), span: SpanId(span), sampled })
}

/// Parses `N` bytes of two lower-case hexadecimal digits each.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::clients::TrustedProxy;
    use crate::request_id::RequestIds;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("traceparent", HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn peer(address: &str) -> Peer {
        Peer {
            address: Some(format!("{address}:1").parse().unwrap()),
            tls: None,
            secure: false,
            proxied: false,
        }
    }

    #[test]
    fn parents() {
        let read = parent(&headers(&[GOOD])).unwrap();
        assert_eq!(read.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((read.span.to_string().as_str(), read.sampled), ("00f067aa0ba902b7", true));
        assert!(!parent(&headers(&[&GOOD.replace("-01", "-02")])).unwrap().sampled);
        let later = GOOD.replacen("00-", "cc-", 1);
        for good in [later.clone(), format!("{later}-what-the-future-holds")] {
            assert!(parent(&headers(&[&good])).is_some(), "{good}");
        }
        for bad in [
            String::new(),
            GOOD.to_uppercase(),
            GOOD.replacen("00-", "ff-", 1),
            format!("{GOOD}-more"),
            format!("{later}x"),
            GOOD.replace('-', "_"),
            GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            GOOD.replace("00f067aa0ba902b7", &"0".repeat(16)),
            GOOD.replace("4bf9", "4bg9"),
            GOOD[..54].to_owned(),
        ] {
            assert_eq!(parent(&headers(&[&bad])), None, "{bad}");
        }
        assert_eq!(parent(&headers(&[GOOD, GOOD])), None);
    }

    #[test]
    fn only_those_who_are_trusted_continue_a_trace() {
        let trusted = Trusted::new(&[TrustedProxy::parse("10.0.0.0/8").unwrap()]);
        let contexts = Contexts::new(Ratio::parse("1").unwrap(), trusted);
        let (id, headers) = (RequestIds::new().next(), headers(&[GOOD]));
        let continued = contexts.of_request(id, peer("10.1.2.3"), &headers).unwrap();
        assert_eq!(continued.parent.unwrap().to_string(), "00f067aa0ba902b7");
        assert_eq!(continued.span.to_string().to_uppercase(), id.to_string());
        let begun = contexts.of_request(id, peer("192.0.2.7"), &headers).unwrap();
        assert!(begun.parent.is_none() && begun.trace != continued.trace);
        let nobody = Contexts::new(Ratio::parse("1").unwrap(), Trusted::default());
        assert_eq!(nobody.of_request(id, peer("10.1.2.3"), &headers).unwrap().parent, None);
    }

    #[test]
    fn a_share_is_told() {
        let ids = RequestIds::new();
        for (ratio, least, most) in [("0", 0, 0), ("0.25", 2200, 2800), ("1", 10_000, 10_000)] {
            let contexts = Contexts::new(Ratio::parse(ratio).unwrap(), Trusted::default());
            let begun = (0..10_000)
                .filter(|_| contexts.of_request(ids.next(), peer("10.1.2.3"), &HeaderMap::new()).is_some());
            assert!((least..=most).contains(&begun.count()), "{ratio}");
        }
        for bad in ["", "-0.1", "1.1", "NaN", "a", "10%"] {
            assert!(Ratio::parse(bad).is_err(), "{bad}");
        }
    }
}
