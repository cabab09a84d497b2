//! Finds out who the client is if proxies stand between it and the gateway (decision 0025).

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::HeaderMap;
use ipnet::{IpNet, Ipv4Net};

use crate::choices::ClientAddress;
use crate::forwarded::elements_from_the_end;
use crate::peer::Peer;

/// A peer that is trusted to say where a connection or a request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustedProxy {
    /// Peers with these addresses.
    Net(IpNet),
    /// Peers that connect to a unix socket.
    Unix,
}

impl TrustedProxy {
    /// Reads the same forms as [`Self::parse_any`], but refuses networks of all addresses.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.parse::<IpNet>().is_ok_and(|net| canonical(net).prefix_len() == 0) {
            return Err(
                "this network contains all addresses, so that every client could forge its address: give the \
                 proxies' addresses, or their network".to_owned()
            );
        }
        Self::parse_any(text)
    }

    /// Reads `10.0.0.0/8`, an address, or `unix`.
    pub fn parse_any(text: &str) -> Result<Self, String> {
        if text == "unix" {
            return Ok(Self::Unix);
        }
        if let Ok(address) = IpAddr::from_str(text) {
            return Ok(Self::Net(address.to_canonical().into()));
        }
        let net = text.parse::<IpNet>();
        let net = net.map_err(|_| "expected a network such as 10.0.0.0/8, an address, or unix".to_owned())?;
        let net = canonical(net);
        if net.addr() != net.network() {
            let (address, network) = (net.addr(), net.trunc());
            return Err(format!(
                "ambiguous: give {address} for the one address, or {network} for the whole network"
            ));
        }
        Ok(Self::Net(net))
    }
}

/// Converts a network of IPv4-mapped IPv6 addresses to IPv4, since addresses are compared in that
/// form. An IPv6 network that is larger than IPv4 matches no IPv4 address.
fn canonical(net: IpNet) -> IpNet {
    let IpNet::V6(v6) = net else { return net };
    let v4 = v6.addr().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(96));
    v4.and_then(|(address, prefix)| Ipv4Net::new(address, prefix).ok()).map_or(net, IpNet::V4)
}

/// The trusted peers; none by default.
#[derive(Debug, Clone, Default)]
pub struct Trusted {
    nets: Vec<IpNet>,
    unix: bool,
}

impl Trusted {
    /// Trusts the listed peers.
    pub fn new(listed: &[TrustedProxy]) -> Self {
        let nets = listed.iter().filter_map(|proxy| match proxy {
            TrustedProxy::Net(net) => Some(*net),
            TrustedProxy::Unix => None,
        });
        Self { nets: nets.collect(), unix: listed.contains(&TrustedProxy::Unix) }
    }

    /// True if no peer is trusted.
    pub fn is_empty(&self) -> bool {
        self.nets.is_empty() && !self.unix
    }

    /// True if a peer with this address is trusted. Peers on unix sockets have no address.
    pub fn contains(&self, address: Option<IpAddr>) -> bool {
        match address.map(|address| address.to_canonical()) {
            Some(address) => self.nets.iter().any(|net| net.contains(&address)),
            None => self.unix,
        }
    }
}

/// Finds the client of a connection or a request. By default it is the peer of the connection.
#[derive(Debug, Clone, Default)]
pub struct Clients {
    told_by: ClientAddress,
    trusted: Trusted,
}

impl Clients {
    /// Makes the search: `told_by` is the source of the client's address, which the trusted proxies
    /// set. It is an error if only one of the two is given.
    pub fn new(told_by: ClientAddress, trusted: &[TrustedProxy]) -> Result<Self, String> {
        let (asks, lists) = (told_by != ClientAddress::Connection, !trusted.is_empty());
        if asks != lists {
            return Err(if asks {
                "--client-address has no effect without --trusted-proxy, which names the proxies that are trusted to \
                 set the client's address: give both, or neither".to_owned()
            } else {
                "--trusted-proxy has no effect without --client-address, which names the header or protocol with the \
                 client's address: give both, or neither".to_owned()
            });
        }
        Ok(Self { told_by, trusted: Trusted::new(trusted) })
    }

    /// True if connections from `address` begin with a header of the PROXY protocol.
    pub fn announces(&self, address: Option<SocketAddr>) -> bool {
        self.told_by == ClientAddress::ProxyProtocol
            && self.trusted.contains(address.map(|address| address.ip()))
    }

    /// Returns the client of a request with these headers, on a connection from `peer`.
    pub fn of_request(&self, peer: Peer, headers: &HeaderMap) -> Peer {
        let told = match self.told_by {
            ClientAddress::Connection | ClientAddress::ProxyProtocol => return peer,
            _ if !self.trusted.contains(peer.address.map(|address| address.ip())) => return peer,
            ClientAddress::XForwardedFor => self.by_x_forwarded(headers),
            ClientAddress::Forwarded => self.by_forwarded(headers),
        };
        let ProxyReport { address, secure } = told;
        // The port is not told by all, and nobody asks for it.
        let address = address.map(|address| SocketAddr::new(address, 0)).or(peer.address);
        Peer { address, secure: secure.unwrap_or(peer.secure), proxied: true, ..peer }
    }

    fn by_x_forwarded(&self, headers: &HeaderMap) -> ProxyReport {
        let hops = from_the_end(headers, "x-forwarded-for").map(|hop| (hop.and_then(node), None));
        // Only the nearest proxy is known to have said it.
        let secure = from_the_end(headers, "x-forwarded-proto").next().flatten().and_then(is_secure);
        ProxyReport { secure, ..self.farthest(hops) }
    }

    fn by_forwarded(&self, headers: &HeaderMap) -> ProxyReport {
        let values = headers.get_all("forwarded").into_iter().rev();
        let elements = values.flat_map(|value| elements_from_the_end(value.as_bytes()));
        self.farthest(elements.map(|element| {
            let said = element.unwrap_or_default();
            (said.node.and_then(node), said.scheme.and_then(is_secure))
        }))
    }

    /// Returns the farthest client that is known. Each proxy appends the address from which it got
    /// the request. So the last entry, which the nearest proxy wrote, is true; an entry before it
    /// is true if the entry after it is the address of a trusted proxy. An address that can't be
    /// read ends the search.
    fn farthest(&self, from_the_end: impl Iterator<Item = (Option<IpAddr>, Option<bool>)>) -> ProxyReport {
        let mut told = ProxyReport::default();
        for (address, secure) in from_the_end {
            let Some(address) = address else { break };
            told = ProxyReport { address: Some(address), secure };
            if !self.trusted.contains(Some(address)) {
                break;
            }
        }
        told
    }
}

/// The facts that proxies report about a client.
#[derive(Debug, Default)]
struct ProxyReport {
    address: Option<IpAddr>,
    secure: Option<bool>,
}

/// Returns the elements of a comma-separated list that may be spread over several headers, the last
/// one first. `None` is an element that is not UTF-8.
fn from_the_end<'h>(headers: &'h HeaderMap, name: &'static str) -> impl Iterator<Item = Option<&'h str>> {
    let values = headers.get_all(name).into_iter().rev();
    let elements = values.flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
    elements.map(|element| std::str::from_utf8(element).ok().map(str::trim))
}

fn is_secure(scheme: &str) -> Option<bool> {
    match scheme {
        _ if scheme.eq_ignore_ascii_case("https") => Some(true),
        _ if scheme.eq_ignore_ascii_case("http") => Some(false),
        _ => None,
    }
}

/// Reads an address, with a port or without: `192.0.2.7`, `192.0.2.7:80`, `2001:db8::7`,
/// `[2001:db8::7]`, `[2001:db8::7]:80` (RFC 7239, section 6).
fn node(text: &str) -> Option<IpAddr> {
    let address = text
        .parse::<IpAddr>()
        .ok()
        .or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
        .or_else(|| text.strip_prefix('[')?.strip_suffix(']')?.parse().ok());
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn clients(told_by: ClientAddress) -> Clients {
        let trusted: Vec<_> = ["10.0.0.0/8", "2001:db8:1::/48"]
            .into_iter()
            .map(|net| TrustedProxy::parse(net).unwrap())
            .collect();
        Clients::new(told_by, &trusted).unwrap()
    }

    /// The client's address and whether it speaks TLS, of a request that came from `from`.
    fn client(
        told_by: ClientAddress,
        from: &str,
        headers: &[(&'static str, &'static str)],
    ) -> (String, bool) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            // As a client may send it: not all of it has to be UTF-8.
            let value: Vec<u8> = value.chars().map(|character| u8::try_from(character).unwrap()).collect();
            map.append(*name, HeaderValue::from_bytes(&value).unwrap());
        }
        let peer = Peer {
            address: Some(SocketAddr::new(from.parse().unwrap(), 9)),
            tls: None,
            secure: false,
            proxied: false,
        };
        let peer = clients(told_by).of_request(peer, &map);
        (peer.address.unwrap().ip().to_string(), peer.secure)
    }

    #[test]
    fn x_forwarded_for() {
        let of = |from, value| client(ClientAddress::XForwardedFor, from, &[("x-forwarded-for", value)]).0;
        for (from, value, expected) in [
            ("10.0.0.1", "192.0.2.7", "192.0.2.7"),
            // What a client says of itself does not count.
            ("10.0.0.1", "1.1.1.1, 192.0.2.7", "192.0.2.7"),
            ("10.0.0.1", "1.1.1.1, 192.0.2.7, 10.0.0.2", "192.0.2.7"),
            ("10.0.0.1", "10.9.9.9,10.0.0.2", "10.9.9.9"),
            ("10.0.0.1", "192.0.2.7:1234", "192.0.2.7"),
            ("10.0.0.1", "[2001:db8:2::1]:80", "2001:db8:2::1"),
            ("10.0.0.1", "1.1.1.1, unknown", "10.0.0.1"),
            ("10.0.0.1", "1.1.1.1, nonsense, 10.0.0.2", "10.0.0.2"),
            // Nor does it make the proxy the client.
            ("10.0.0.1", "\u{ff}, 192.0.2.7", "192.0.2.7"),
            ("10.0.0.1", "", "10.0.0.1"),
            ("::ffff:10.0.0.1", "::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1::5", "2001:db8:2::1", "2001:db8:2::1"),
            // Who is not trusted is believed nothing.
            ("192.0.2.9", "1.1.1.1", "192.0.2.9"),
        ] {
            assert_eq!(of(from, value), expected, "{from} {value}");
        }
        let twice = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "192.0.2.7")];
        assert_eq!(client(ClientAddress::XForwardedFor, "10.0.0.1", &twice).0, "192.0.2.7");
        let tls = [("x-forwarded-for", "192.0.2.7"), ("x-forwarded-proto", "https")];
        assert_eq!(client(ClientAddress::XForwardedFor, "10.0.0.1", &tls), ("192.0.2.7".to_owned(), true));
        assert!(!client(ClientAddress::XForwardedFor, "192.0.2.9", &tls).1);
    }

    #[test]
    fn forwarded() {
        let of = |value| client(ClientAddress::Forwarded, "10.0.0.1", &[("forwarded", value)]);
        assert_eq!(of("for=192.0.2.7;proto=https"), ("192.0.2.7".to_owned(), true));
        assert_eq!(of("For=\"[2001:db8:2::1]:4711\""), ("2001:db8:2::1".to_owned(), false));
        assert_eq!(of("for=1.1.1.1;proto=https, for=192.0.2.7;by=10.0.0.1"), ("192.0.2.7".to_owned(), false));
        assert_eq!(of("for=192.0.2.7;proto=https, for=10.0.0.2;proto=http"), ("192.0.2.7".to_owned(), true));
        assert_eq!(of("for=_hidden"), ("10.0.0.1".to_owned(), false));
        // What is quoted is no element and no parameter: a proxy may tell the client's Host there.
        for value in [
            "for=192.0.2.7;host=\"x, for=6.6.6.6;proto=https\"",
            "for=192.0.2.7;host=\"x;for=6.6.6.6\"",
            "proto=http;host=\"x;for=6.6.6.6;proto=https\";for=192.0.2.7",
            "host=\", for=192.0.2.7",
            "host=\u{ff}, for=192.0.2.7",
        ] {
            assert_eq!(of(value), ("192.0.2.7".to_owned(), false), "{value}");
        }
        for value in ["for=192.0.2.7;for=6.6.6.6", "for=\"6.6.6.6", "for=\"_x, for=6.6.6.6\"", "for=6.6.6.6,"]
        {
            assert_eq!(of(value), ("10.0.0.1".to_owned(), false), "{value}");
        }
        // Before it is what the last proxy's word does not lead to.
        assert_eq!(of("for=6.6.6.6;for=6.6.6.6, for=10.0.0.2").0, "10.0.0.2");
        let twice = [("forwarded", "for=6.6.6.6"), ("forwarded", "for=192.0.2.7, for=10.0.0.2")];
        assert_eq!(client(ClientAddress::Forwarded, "10.0.0.1", &twice).0, "192.0.2.7");
    }

    /// A header that the options do not name is ignored, since the client may have sent it.
    #[test]
    fn the_other_header_does_not_count() {
        let both = [("x-forwarded-for", "1.1.1.1"), ("forwarded", "for=192.0.2.7")];
        assert_eq!(client(ClientAddress::Forwarded, "10.0.0.1", &both).0, "192.0.2.7");
        assert_eq!(client(ClientAddress::XForwardedFor, "10.0.0.1", &both).0, "1.1.1.1");
        for told_by in [ClientAddress::ProxyProtocol, ClientAddress::XForwardedFor] {
            assert_eq!(client(told_by, "10.0.0.1", &both[1..]).0, "10.0.0.1");
        }
    }

    #[test]
    fn one_option_needs_the_other() {
        assert!(Clients::new(ClientAddress::Forwarded, &[]).is_err());
        assert!(Clients::new(ClientAddress::Connection, &[TrustedProxy::Unix]).is_err());
        assert!(Clients::new(ClientAddress::Connection, &[]).is_ok());
        for (bad, says) in [
            ("", "expected"),
            ("10.0.0.0/33", "expected"),
            ("localhost", "expected"),
            ("10.0.0", "expected"),
            ("*", "expected"),
            ("10.0.0.9/8", "give 10.0.0.9 for the one address, or 10.0.0.0/8"),
            ("2001:db8::1/32", "give 2001:db8::1 for the one address, or 2001:db8::/32"),
            ("0.0.0.0/0", "give the proxies' addresses"),
            ("::/0", "give the proxies' addresses"),
            ("10.0.0.9/0", "give the proxies' addresses"),
            ("::ffff:0:0/96", "give the proxies' addresses"),
            ("::ffff:10.0.0.9/104", "give 10.0.0.9 for the one address, or 10.0.0.0/8"),
        ] {
            assert!(TrustedProxy::parse(bad).unwrap_err().contains(says), "{bad}");
        }
        for good in ["10.0.0.9", "10.0.0.9/32", "10.0.0.0/8", "::1", "2001:db8::/32", "::ffff:10.0.0.9"] {
            assert!(TrustedProxy::parse(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn networks_of_ipv4_written_as_ipv6() {
        let has = |net: &str, address: &str| {
            let trusted = Trusted::new(&[TrustedProxy::parse_any(net).unwrap()]);
            trusted.contains(Some(address.parse().unwrap()))
        };
        for address in ["127.0.0.9", "::ffff:127.0.0.9"] {
            assert!(has("::ffff:127.0.0.0/104", address), "{address}");
            assert!(has("::ffff:127.0.0.9/128", address), "{address}");
            assert!(has("::ffff:0:0/96", address), "{address}");
            assert!(!has("::/0", address) && !has("::/95", address), "{address}");
        }
        assert!(!has("::ffff:127.0.0.0/104", "10.0.0.1") && !has("::ffff:127.0.0.0/104", "::1"));
        assert!(has("::/0", "::1"));
    }
}
