//! A search for documents that are read or decided wrongly, for as long as one likes
//! (tests/README.md).
//!
//! A document that is refused for a reason, or at a place, as none was before, or that is taken in
//! a form as none was, is kept and changed further.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use policy::{
    Action, Documents, Explanation, Facts, Fault, Key, Kind, Party, PartyKind, Policy, Request, Resource,
    Value as Fact, decide,
};

/// The variable with the length of the search, in seconds.
const SECONDS: &str = "SLIPWAY_FUZZ_SECONDS";
const INPUT_BYTES_MAX: usize = 4 << 10;

const KINDS: [Kind<'static>; 4] = [Kind::Managed, Kind::Bucket("bucket"), Kind::Trust, Kind::Session];

/// Numbers that look like chance, the same ones for a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0) % end
    }

    fn of<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[self.below(list.len())]
    }
}

/// Documents that are taken, of each kind.
const GOOD: [&str; 6] = [
    r#"{"Version":"2012-10-17","Id":"x","Statement":[{"Sid":"A","Effect":"Allow","Action":["s3:Get*","s3:PutObject"],"Resource":["arn:aws:s3:::bucket/home/${aws:username}/*","arn:aws:s3:::b?c*t"],"Condition":{"StringLike":{"s3:prefix":["a*b?c","${aws:userid, 'x'}"]},"NumericLessThan":{"s3:max-keys":10}}},{"Effect":"Deny","NotAction":"iam:*","NotResource":"*","Condition":{"Null":{"aws:TokenIssueTime":true}}}]}"#,
    r#"{"Statement":{"Effect":"Allow","Principal":{"AWS":["111122223333","arn:aws:iam::111122223333:user/ann"],"Service":"x.amazonaws.com"},"Action":"s3:*","Resource":["arn:aws:s3:::bucket","arn:aws:s3:::bucket/*"],"Condition":{"IpAddress":{"aws:SourceIp":["10.0.0.0/8","2001:db8::/32"]},"Bool":{"aws:SecureTransport":"true"}}}}"#,
    r#"{"Version":"2012-10-17","Statement":[{"Effect":"Deny","NotPrincipal":{"AWS":"arn:aws:iam::111122223333:root","CanonicalUser":"6906902c2fe356a8f148460733938d0c4d6a7a0489ea72af3564e5c5808a032e"},"Action":"*","Resource":"*","Condition":{"ForAllValues:StringNotEquals":{"aws:TagKeys":["a","b"]},"ArnNotLike":{"aws:PrincipalArn":"arn:aws:iam::*:role/${s3:ExistingObjectTag/t}"}}}]}"#,
    r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Federated":"arn:aws:iam::111122223333:oidc-provider/a.example"},"Action":"sts:AssumeRoleWithWebIdentity","Condition":{"StringEqualsIfExists":{"a.example:sub":"x"},"DateLessThan":{"aws:CurrentTime":"2030-01-01T00:00:00Z"}}}}"#,
    r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["ec2:*","sts:AssumeRole"],"Resource":"arn:aws:iam::111122223333:role/*","Condition":{"BinaryEquals":{"ec2:X":"QUJD"},"StringEqualsIgnoreCase":{"s3:x-amz-acl":"Private"}}}]}"#,
    "{\n \"Version\": \"2008-10-17\",\n \"Statement\": []}",
];

const WORDS: [&str; 34] = [
    "\"Action\"",
    "\"NotAction\"",
    "\"Resource\"",
    "\"NotResource\"",
    "\"Principal\"",
    "\"NotPrincipal\"",
    "\"Condition\"",
    "\"Effect\"",
    "\"Deny\"",
    "\"*\"",
    "*",
    "?",
    "${",
    "}",
    "${aws:username}",
    "${*}",
    ", 'x'",
    "\"s3:GetObject\"",
    "arn:aws:s3:::bucket/",
    "\"StringNotLike\"",
    "\"ForAnyValue:ArnLike\"",
    "IfExists",
    "\"Null\"",
    "\"aws:SourceIp\"",
    "\"s3:ExistingObjectTag/t\"",
    "[",
    "]",
    "{",
    "{}",
    ":",
    ",",
    "\\u0000",
    "\\ud800",
    "1e400",
];

/// Changes an input in one of several ways.
fn change(input: &mut String, known: &[String], chance: &mut Chance) {
    let place = |input: &str, chance: &mut Chance| {
        let at = chance.below(input.len() + 1);
        (0..=at).rev().find(|at| input.is_char_boundary(*at)).unwrap_or(0)
    };
    let at = place(input, chance);
    let to = input[at..].char_indices().map(|(by, _)| at + by).nth(chance.below(24)).unwrap_or(input.len());
    match chance.below(7) {
        0 => input.replace_range(at..to, ""),
        1 => input.insert_str(at, chance.of::<&str>(&WORDS)),
        2 => input.replace_range(at..to, chance.of::<&str>(&WORDS)),
        3 => {
            let again = input[at..to].to_owned();
            input.insert_str(at, &again);
        }
        4 => {
            let other = chance.of(known);
            let from = place(other, chance);
            input.truncate(at);
            input.push_str(&other[from..]);
        }
        5 => input.insert(at, *chance.of(&['\0', '"', '\\', 'é', '0', '-', 'A', '\u{1f600}', ' ', '\n'])),
        _ => {
            // A part of another one in the middle, where it often still is JSON.
            let other = chance.of(known);
            let from = place(other, chance);
            let end = other[from..].find([',', '}', ']']).map_or(other.len(), |by| from + by);
            input.replace_range(at..to, &other[from..end]);
        }
    }
    while input.len() > INPUT_BYTES_MAX {
        input.pop();
    }
}

struct Made;

impl Facts for Made {
    fn value(&self, key: &Key) -> Fact<'_> {
        match key {
            Key::Known(at) if at % 3 == 0 => Fact::Absent,
            Key::Known(at) if at % 3 == 1 => Fact::text("ann"),
            Key::Known(_) if key.is_many() => Fact::Many(vec!["a".into(), "10.0.0.1".into()]),
            Key::Known(_) => Fact::text("arn:aws:iam::111122223333:role/ann"),
            Key::Tagged(..) => Fact::Unknown,
            Key::Foreign(_) => Fact::text("7"),
        }
    }
}

/// Reads an input as each kind, and describes how that went.
fn read(input: &str) -> Vec<String> {
    let theirs: Result<serde_json::Value, _> = serde_json::from_str(input);
    match (Policy::parse(input.as_bytes(), Kind::Role).map_err(|error| error.fault), theirs) {
        (Err(Fault::NotAnObject | Fault::TooDeep | Fault::Duplicate(_)), _)
        | (Err(Fault::Json(_)), Err(_)) => {}
        (Err(Fault::Json(why)), Ok(_)) => panic!("{why}: {input}"),
        // It was JSON.
        (_, Err(error)) => assert!(error.to_string().contains("out of range"), "{error}: {input}"),
        (_, Ok(_)) => {}
    }
    KINDS.iter().map(|kind| read_as(input, *kind)).collect()
}

fn read_as(input: &str, kind: Kind<'_>) -> String {
    let policy = match Policy::parse(input.as_bytes(), kind) {
        Ok(policy) => policy,
        Err(error) => {
            assert!(
                error.line <= input.lines().count().max(1) + 1 && error.column <= input.len() + 1,
                "{error}"
            );
            assert!(!error.s3_message().is_empty() && !error.iam_message().is_empty());
            let mut fault = format!("{:?}", error.fault);
            let end = fault.find(['(', ' ']).unwrap_or(fault.len());
            fault.truncate(end);
            return format!(
                "{kind:?} {fault} {}",
                error.path.chars().filter(|c| !c.is_ascii_digit()).collect::<String>()
            );
        }
    };
    let identity = [std::sync::Arc::new(policy)];
    let policy = &identity[0];
    let of_identity = kind.is_of_identity();
    let arn = "arn:aws:iam::111122223333:user/ann";
    let user = Party {
        kind: PartyKind::User,
        account: "111122223333",
        canonical_id: "",
        arn,
        issuer: None,
        id: None,
        issuer_id: None,
    };
    let mut found = format!("{kind:?}");
    for party in [user, Party::anonymous()] {
        for (action, resource) in [
            ("s3:GetObject", Resource::Object("bucket", "home/ann/ab")),
            ("s3:ListBucket", Resource::Bucket("bucket")),
            ("sts:AssumeRole", Resource::Arn("arn:aws:iam::111122223333:role/r")),
        ] {
            let action = Action::named(action).unwrap();
            let request = Request { party, action, resource, facts: &Made };
            let documents = Documents {
                identity: if of_identity { &identity } else { &[] },
                resource: (!of_identity).then_some(&**policy),
                owner: Some("111122223333"),
                ..Documents::default()
            };
            let explanation = Explanation::new(&request, &documents);
            assert_eq!(decide(&request, &documents), explanation.verdict, "{input}");
            let notes = explanation.notes.iter().take(3);
            let notes: Vec<_> = notes.map(|note| format!("{:?}", note.finding)).collect();
            write!(found, " {:?} {}", explanation.verdict, notes.join(" ")).unwrap();
        }
    }
    found
}

#[test]
fn good_ones_are_taken_as_one_kind() {
    for good in &GOOD[..5] {
        let taken = KINDS.iter().filter(|kind| Policy::parse(good.as_bytes(), **kind).is_ok()).count();
        assert!(taken > 0, "{good}");
    }
}

/// The same inputs each time, so that a failure is one of the change that was made.
#[test]
fn some_changes() {
    let known: Vec<_> = GOOD.map(str::to_owned).into();
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    for _ in 0..20_000 {
        let mut input = chance.of(&known).clone();
        for _ in 0..=chance.below(3) {
            change(&mut input, &known, &mut chance);
        }
        read(&input);
    }
}

#[test]
#[ignore = "it takes as long as one likes"]
fn search() {
    let seconds = std::env::var(SECONDS).map_or(60, |seconds| seconds.parse().unwrap());
    // Another search each time; what it finds is shown.
    let seed = RandomState::new().hash_one(0) | 1;
    let mut chance = Chance(seed);
    let mut known: Vec<_> = GOOD.map(str::to_owned).into();
    let mut met: HashSet<_> = known.iter().flat_map(|input| read(input)).collect();
    let begun = Instant::now();
    let (mut inputs, mut slowest) = (0_u64, (Duration::ZERO, String::new()));
    while begun.elapsed() < Duration::from_secs(seconds) {
        let mut input = chance.of(&known).clone();
        for _ in 0..=chance.below(4) {
            change(&mut input, &known, &mut chance);
        }
        let from = Instant::now();
        let traits = std::panic::catch_unwind(|| read(&input));
        let Ok(traits) = traits else { panic!("this is read wrongly: {input:?}") };
        if from.elapsed() > slowest.0 {
            slowest = (from.elapsed(), input.clone());
        }
        inputs += 1;
        let before = met.len();
        met.extend(traits);
        if met.len() > before && known.len() < 100_000 {
            known.push(input);
        }
    }
    eprintln!("the slowest took {:?}: {}", slowest.0, slowest.1);
    eprintln!("{inputs} inputs, {} kept, in {seconds} s (seed {seed})", known.len());
}
