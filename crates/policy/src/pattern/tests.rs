use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use Certainty::{No, Yes};

const WILD: Special = Special { variables: false, wildcards: true, any_case: false };
const ALL: Special = Special { variables: true, wildcards: true, any_case: false };

struct One(&'static str, &'static str);

impl Facts for One {
    fn value(&self, key: &Key) -> Value<'_> {
        if key.to_string() == self.0 { Value::text(self.1) } else { Value::Absent }
    }
}

/// Matches a pattern by backtracking, slowly and simply.
fn slow(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        (['*', rest @ ..], _) => (0..=text.len()).any(|at| slow(rest, &text[at..])),
        (['?', rest @ ..], [_, others @ ..]) => slow(rest, others),
        ([one, rest @ ..], [other, others @ ..]) => one == other && slow(rest, others),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]
    #[test]
    fn matches_what_the_slow_one_does(pattern in "[ab?*é]{0,9}", text in "[abé?*]{0,12}") {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let wanted = slow(&chars(&pattern), &chars(&text));
        prop_assert_eq!(Pattern::new(&pattern, WILD).unwrap().matches_plain(&text), wanted);
    }
}

#[test]
fn variables_are_texts() {
    let matches = |pattern: &str, text: &str, value| {
        Pattern::new(pattern, ALL).unwrap().matches(text.as_bytes(), &One("aws:username", value))
    };
    assert_eq!(matches("home/${aws:username}/*", "home/ann/x", "ann"), Yes);
    assert_eq!(matches("home/${aws:username}/*", "home/ann", "ann"), No);
    assert_eq!(matches("home/${AWS:UserName}/*", "home/bob/x", "ann"), No);
    assert_eq!(matches("home/${aws:username}/*", "home/bob/x", "*"), No);
    assert_eq!(matches("home/${aws:username}/*", "home/*/x", "*"), Yes);
    assert_eq!(matches("*-${aws:username}", "x-ann", "ann"), Yes);
    assert_eq!(matches("*${aws:username}*${aws:username}?", "--ann--annx", "ann"), Yes);
    assert_eq!(matches("${aws:userid}", "", "ann"), No);
    assert_eq!(matches("${aws:userid, 'nobody'}", "nobody", "ann"), Yes);
    assert_eq!(matches("${aws:username, 'nobody'}", "nobody", "ann"), No);
    assert_eq!(matches("a${*}${?}${$}{b}", "a*?${b}", ""), Yes);
    assert_eq!(matches("a${*}", "ab", ""), No);
    assert_eq!(matches("$a$", "$a$", ""), Yes);
    let plain = Pattern::new("${aws:username}", WILD).unwrap();
    assert_eq!(plain.matches(b"${aws:username}", &One("aws:username", "ann")), Yes);
    let folded = Special { any_case: true, ..ALL };
    let folded = Pattern::new("É-${aws:username}", folded).unwrap();
    assert_eq!(folded.matches("é-ann".as_bytes(), &One("aws:username", "ANN")), Yes);
}

#[test]
fn what_is_no_variable_is_refused() {
    for wrong in [
        "${",
        "${aws:username",
        "${}",
        "${aws:nothing}",
        "${username}",
        "${aws:TagKeys}",
        "${aws:username,x}",
        "${aws:username 'x'}",
        "${aws:username, 'x}",
        "${aws:username, 'x' }",
    ] {
        assert!(matches!(Pattern::new(wrong, ALL), Err(Fault::Variable(_))), "{wrong}");
    }
    let many: Vec<_> = (0..9).map(|n| format!("${{aws:username, '{n}'}}")).collect();
    assert_eq!(Pattern::new(&many.concat(), ALL).unwrap_err(), Fault::Pattern);
    assert!(Pattern::new(&"${aws:username}".repeat(20), ALL).is_ok());
}

#[test]
fn what_would_be_slow_is_refused() {
    let long = "a".repeat(FLOATING_CHARS_MAX);
    assert_eq!(Pattern::new(&format!("*?{long}*"), WILD).unwrap_err(), Fault::Pattern);
    assert!(Pattern::new(&format!("*?{}*", &long[1..]), WILD).is_ok());
    assert!(Pattern::new(&format!("{long}?*?{long}"), WILD).is_ok());
    assert!(Pattern::new(&format!("*{long}{long}*"), WILD).is_ok());
}

/// Patterns that take others exponential or cubic time.
#[test]
fn hostile_patterns_take_no_longer() {
    let text = "a".repeat(8192);
    let begun = Instant::now();
    for pattern in [
        "a*".repeat(5000) + "b",
        "*a".repeat(5000) + "*b*",
        "a?*".repeat(3000) + "b",
        format!("*{}b*", "a".repeat(8000)),
        format!("*{}?b*", "a".repeat(100)),
    ] {
        assert!(!Pattern::new(&pattern, WILD).unwrap().matches_plain(&text));
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

/// The time does not grow with the product of the lengths of part and text: a part of 128 elements
/// takes not much longer than one of 20.
#[test]
fn long_parts_take_no_longer() {
    let text = "y".repeat(500_000);
    let fastest = |length: usize| {
        let hostile = Pattern::new(&format!("*{}z*", "?".repeat(length - 1)), WILD).unwrap();
        let one = || {
            let begun = Instant::now();
            assert!(!hostile.matches_plain(&text));
            begun.elapsed()
        };
        (0..7).map(|_| one()).min().unwrap()
    };
    let (short, long) = (fastest(20), fastest(FLOATING_CHARS_MAX));
    assert!(long < short * 3, "{long:?} and {short:?}");
}
