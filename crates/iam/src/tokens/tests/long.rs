//! A search for tokens that are accepted though nobody gave them out (tests/README.md).

use super::*;

/// The inputs of the long search, some ten minutes.
const INPUTS: u32 = 10_000_000;

/// Random numbers that a seed determines (xorshift).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most);
        (0..length).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

fn change(bytes: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    let at = chance.below(bytes.len() + 1);
    match chance.below(6) {
        0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        1 => bytes.truncate(at),
        2 => bytes.insert(at, chance.next().to_le_bytes()[0]),
        3 => {
            let to = (at + chance.below(20)).min(bytes.len());
            drop(bytes.drain(at..to));
        }
        4 => {
            bytes.truncate(at);
            bytes.extend_from_slice(&other[at.min(other.len())..]);
        }
        _ => bytes.extend(chance.bytes(8)),
    }
}

/// Opens what is mutated outside, which has to be refused, and what is mutated inside and sealed
/// again, which has to be refused or be claims that are sealed as they are.
fn search(inputs: u32, seed: u64) {
    let (keys, mut chance) = (keys(&[FIRST, SECOND]), Chance(seed));
    let issued: Vec<_> = [small(), full()].map(|claims| keys.seal(&claims, &system_random).unwrap()).into();
    let tokens: Vec<_> =
        issued.iter().map(|one| URL_SAFE_NO_PAD.decode(one.token.expose()).unwrap()).collect();
    let inner = [small(), full()].map(|claims| serde_json::to_vec(&claims).unwrap());
    for input in 0..inputs {
        let which = chance.below(2);
        let access_key = issued[which].access_key.as_str();
        let (mut token, mut json) = (tokens[which].clone(), inner[which].clone());
        for _ in 0..=chance.below(3) {
            change(&mut token, &tokens[1 - which], &mut chance);
            change(&mut json, &inner[1 - which], &mut chance);
        }
        if token != tokens[which] {
            assert!(keys.open(access_key, &URL_SAFE_NO_PAD.encode(&token)).is_err(), "{token:02x?}");
        }
        let text = String::from_utf8_lossy(&token).into_owned();
        assert!(keys.open(access_key, &text).is_err(), "{text:?}");
        let random = chance.bytes(200);
        assert!(keys.open(access_key, &URL_SAFE_NO_PAD.encode(&random)).is_err(), "{random:02x?}");
        let compressed = if input % 2 == 0 { deflate(&json).unwrap() } else { random };
        if let Ok((claims, _)) = keys.open(access_key, &sealed(&keys, access_key, 1, &compressed)) {
            let again = serde_json::to_vec(&claims).unwrap();
            assert_eq!(serde_json::from_slice::<Claims>(&again).unwrap(), claims);
        }
    }
}

#[test]
fn changed_tokens_are_refused() {
    search(2_000, 88_172_645_463_325_252);
}

#[test]
#[ignore = "it takes some ten minutes"]
fn changed_tokens_are_refused_for_long() {
    let mut seed = [0; 8];
    system_random(&mut seed).unwrap();
    let seed = u64::from_le_bytes(seed) | 1;
    eprintln!("seed {seed}");
    search(INPUTS, seed);
}
