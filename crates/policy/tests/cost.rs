//! Measures the cost of a decision, and tests that it allocates nothing.
//!
//! `cargo test --release -p policy --test cost -- --ignored --nocapture` prints the times.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy::{Action, Documents, Kind, Party, PartyKind, Policy, Request, Resource, Verdict, decide};
use support::{ACCOUNT, CANONICAL, bucket, parse};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Not counted while a thread ends.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as for the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as for the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn identity() -> Vec<Arc<Policy>> {
    let policy = |number: usize| {
        let document = format!(
            r#"{{"Version":"2012-10-17","Statement":[
            {{"Effect":"Allow","Action":["s3:ListBucket","s3:GetBucketLocation"],"Resource":"arn:aws:s3:::project-{number}",
              "Condition":{{"StringLike":{{"s3:prefix":["home/${{aws:username}}/*","shared/*"]}}}}}},
            {{"Effect":"Allow","Action":["s3:GetObject*","s3:PutObject","s3:DeleteObject"],
              "Resource":["arn:aws:s3:::project-{number}/home/${{aws:username}}/*","arn:aws:s3:::project-{number}/shared/*"]}},
            {{"Effect":"Deny","Action":"s3:*","Resource":"*","Condition":{{"Bool":{{"aws:SecureTransport":"false"}}}}}}]}}"#
        );
        Arc::new(parse(&document, Kind::Managed).unwrap())
    };
    (0..10).map(policy).collect()
}

fn of_bucket() -> Policy {
    let statement = |number: usize| {
        format!(
            r#"{{"Sid":"S{number}","Effect":"{}","Principal":{{"AWS":["arn:aws:iam::444455556666:user/u{number}","arn:aws:iam::111122223333:role/r{number}"]}},
            "Action":["s3:GetObject","s3:PutObject"],"Resource":"arn:aws:s3:::project-9/team-{number}/*",
            "Condition":{{"IpAddress":{{"aws:SourceIp":["10.0.0.0/8","192.168.{number}.0/24"]}}}}}}"#,
            if number.is_multiple_of(4) { "Deny" } else { "Allow" }
        )
    };
    let mut statements: Vec<_> = (0..19).map(statement).collect();
    statements.push(
        r#"{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":["arn:aws:s3:::project-9","arn:aws:s3:::project-9/*"],
        "Condition":{"NumericLessThan":{"s3:TlsVersion":"1.2"}}}"#
            .to_owned(),
    );
    bucket("project-9", &format!(r#"{{"Version":"2012-10-17","Statement":[{}]}}"#, statements.join(",")))
}

fn with_request(test: impl FnOnce(&dyn Fn() -> Verdict)) {
    let (identity, bucket) = (identity(), of_bucket());
    let documents = Documents {
        identity: &identity,
        resource: Some(&bucket),
        owner: Some(ACCOUNT),
        ..Documents::default()
    };
    let arn = "arn:aws:iam::111122223333:user/ann";
    let party = Party {
        kind: PartyKind::User,
        account: ACCOUNT,
        canonical_id: CANONICAL,
        arn,
        issuer: None,
        id: None,
        issuer_id: None,
    };
    let request = Request {
        party,
        action: Action::named("s3:GetObject").unwrap(),
        resource: Resource::Object("project-9", "home/ann/2026/11/report-of-the-month.pdf"),
        facts: &Fixed,
    };
    test(&|| decide(black_box(&request), black_box(&documents)));
}

/// As the gateway's, these values are found without an allocation.
struct Fixed;

impl policy::Facts for Fixed {
    fn value(&self, key: &policy::Key) -> policy::Value<'_> {
        policy::Value::text(match key.spec().map(|spec| spec.name) {
            Some("aws:username") => "ann",
            Some("aws:SecureTransport") => "true",
            Some("aws:SourceIp") => "192.0.2.9",
            Some("s3:TlsVersion") => "1.3",
            _ => return policy::Value::Absent,
        })
    }
}

#[test]
fn a_decision_allocates_nothing() {
    with_request(|decide| {
        assert_eq!(decide(), Verdict::Allow);
        let before = ALLOCATIONS.get();
        for _ in 0..100 {
            assert_eq!(decide(), Verdict::Allow);
        }
        assert_eq!(ALLOCATIONS.get() - before, 0);
    });
}

#[test]
#[ignore = "it measures"]
fn time_of_a_decision() {
    const ROUND: u32 = 1000;
    with_request(|decide| {
        let mut least = Duration::MAX;
        for _ in 0..500 {
            let begun = Instant::now();
            for _ in 0..ROUND {
                black_box(decide());
            }
            least = least.min(begun.elapsed());
        }
        println!("{:?} a decision: 10 policies of 3 statements, and a bucket policy of 20", least / ROUND);
    });
}
