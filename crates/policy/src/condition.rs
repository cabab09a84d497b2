//! Conditions of statements.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;
use s3_types::Timestamp;

use crate::arn::ArnPattern;
use crate::catalogue::Key;
use crate::facts::{Certainty, Facts, Value};
use crate::fault::Fault;
use crate::operator::{Comparison, Operator, Order, Quantifier};
use crate::pattern::{Pattern, Special};

/// A condition: a key, the values that it is compared with, and the operator.
#[derive(Debug, Clone)]
pub struct Condition {
    operator: Operator,
    key: Key,
    expected: Expected,
}

/// The values in the policy, one of which has to match.
#[derive(Debug, Clone)]
enum Expected {
    Texts(Box<[Pattern]>),
    TextsOfAnyCase(Box<[Pattern]>),
    Arns(Box<[ArnPattern]>),
    Numbers(Order, Box<[f64]>),
    Times(Order, Box<[Timestamp]>),
    Bools(Box<[bool]>),
    Bytes(Box<[Box<[u8]>]>),
    Networks(Box<[IpNet]>),
    IsNull(Box<[bool]>),
}

impl Condition {
    /// Compiles a condition. `variables` is true if the version of the document has variables.
    pub fn new(
        operator: Operator,
        key: Key,
        values: &[Cow<'_, str>],
        variables: bool,
    ) -> Result<Self, Fault> {
        let expected = expected(operator, values, variables)?;
        Ok(Self { operator, key, expected })
    }

    /// Returns the key.
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the operator.
    pub const fn operator(&self) -> Operator {
        self.operator
    }

    /// True if the result may depend on the tags of the object.
    pub fn needs_object(&self) -> bool {
        self.key.is_of_object()
            || match &self.expected {
                Expected::Texts(patterns) | Expected::TextsOfAnyCase(patterns) => {
                    patterns.iter().any(Pattern::needs_object)
                }
                Expected::Arns(patterns) => patterns.iter().any(ArnPattern::needs_object),
                _ => false,
            }
    }

    /// True if the condition compares with texts or ARNs without wildcards and variables, or with
    /// networks for each of which `narrow` returns true.
    pub fn has_fixed_values(&self, narrow: impl Fn(&IpNet) -> bool) -> bool {
        match &self.expected {
            Expected::Texts(patterns) | Expected::TextsOfAnyCase(patterns) => {
                patterns.iter().all(Pattern::is_fixed)
            }
            Expected::Arns(patterns) => patterns.iter().all(ArnPattern::is_fixed),
            Expected::Networks(networks) => networks.iter().all(narrow),
            _ => false,
        }
    }

    /// Returns whether the condition holds for a request.
    pub fn holds(&self, facts: &dyn Facts) -> Certainty {
        let value = facts.value(&self.key);
        if let Expected::IsNull(wanted) = &self.expected {
            let is_null = match value {
                Value::Unknown => return Certainty::Perhaps,
                Value::Absent => true,
                Value::One(_) => false,
                Value::Many(values) => values.is_empty(),
            };
            return wanted.contains(&is_null).into();
        }
        match value {
            Value::Unknown => Certainty::Perhaps,
            Value::Absent => self.without_value(),
            Value::One(value) => self.of_values(&[value], facts),
            Value::Many(values) => self.of_values(&values, facts),
        }
    }

    fn without_value(&self) -> Certainty {
        let holds = self.operator.if_exists
            || match self.operator.quantifier {
                Some(Quantifier::All) => true,
                Some(Quantifier::Any) => false,
                None => self.operator.negated,
            };
        holds.into()
    }

    fn of_values(&self, values: &[Cow<'_, str>], facts: &dyn Facts) -> Certainty {
        let alone = |value: &Cow<'_, str>| {
            let matches = self.matches(value, facts);
            if self.operator.negated { matches.inverted() } else { matches }
        };
        match self.operator.quantifier {
            // Values that are all empty are none, for these two.
            Some(_) if values.iter().all(|value| value.is_empty()) => self.without_value(),
            Some(Quantifier::All) => Certainty::all(values.iter().map(alone)),
            Some(Quantifier::Any) => Certainty::any(values.iter().map(alone)),
            None if values.is_empty() => self.without_value(),
            None => {
                let any = Certainty::any(values.iter().map(|value| self.matches(value, facts)));
                if self.operator.negated { any.inverted() } else { any }
            }
        }
    }

    /// Returns whether one of the policy's values matches a value of the request.
    fn matches(&self, value: &str, facts: &dyn Facts) -> Certainty {
        match &self.expected {
            Expected::Texts(patterns) => {
                Certainty::any(patterns.iter().map(|pattern| pattern.matches(value.as_bytes(), facts)))
            }
            Expected::TextsOfAnyCase(patterns) => {
                let value = value.to_lowercase();
                Certainty::any(patterns.iter().map(|pattern| pattern.matches(value.as_bytes(), facts)))
            }
            Expected::Arns(patterns) => {
                Certainty::any(patterns.iter().map(|pattern| pattern.matches(value, facts)))
            }
            Expected::Numbers(order, numbers) => number(value)
                .is_some_and(|value| numbers.iter().any(|number| order.holds(&value, number)))
                .into(),
            Expected::Times(order, times) => {
                time(value).is_some_and(|value| times.iter().any(|time| order.holds(&value, time))).into()
            }
            Expected::Bools(bools) => truth(value).is_some_and(|value| bools.contains(&value)).into(),
            Expected::Bytes(all) => all.iter().any(|bytes| **bytes == *value.as_bytes()).into(),
            Expected::Networks(networks) => address(value)
                .is_some_and(|value| networks.iter().any(|network| network.contains(&value)))
                .into(),
            // Decided before values are looked at.
            Expected::IsNull(_) => Certainty::No,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operator { name, quantifier, if_exists, .. } = self.operator;
        f.write_str(match quantifier {
            Some(Quantifier::All) => "ForAllValues:",
            Some(Quantifier::Any) => "ForAnyValue:",
            None => "",
        })?;
        write!(f, "{name}{} {}", if if_exists { "IfExists" } else { "" }, self.key)
    }
}

fn expected(operator: Operator, values: &[Cow<'_, str>], variables: bool) -> Result<Expected, Fault> {
    let patterns = |wildcards, any_case| {
        let special = Special { variables, wildcards, any_case };
        values.iter().map(|value| Pattern::new(value, special)).collect::<Result<_, Fault>>()
    };
    Ok(match operator.comparison {
        Comparison::Equals => Expected::Texts(patterns(false, false)?),
        Comparison::EqualsIgnoreCase => Expected::TextsOfAnyCase(patterns(false, true)?),
        Comparison::Like => Expected::Texts(patterns(true, false)?),
        Comparison::Arn => {
            let pattern = |value: &Cow<'_, str>| {
                ArnPattern::new(value, variables)?.ok_or_else(|| misfit(operator, value))
            };
            Expected::Arns(values.iter().map(pattern).collect::<Result<_, _>>()?)
        }
        Comparison::Numeric(order) => Expected::Numbers(order, each(operator, values, number)?),
        Comparison::Date(order) => Expected::Times(order, each(operator, values, time)?),
        Comparison::Bool => Expected::Bools(each(operator, values, truth)?),
        Comparison::Binary => {
            let bytes = |value: &str| STANDARD.decode(value).ok().map(Vec::into_boxed_slice);
            Expected::Bytes(each(operator, values, bytes)?)
        }
        Comparison::Address => Expected::Networks(each(operator, values, network)?),
        Comparison::Null => Expected::IsNull(each(operator, values, truth)?),
    })
}

fn each<T>(
    operator: Operator,
    values: &[Cow<'_, str>],
    read: impl Fn(&str) -> Option<T>,
) -> Result<Box<[T]>, Fault> {
    values.iter().map(|value| read(value).ok_or_else(|| misfit(operator, value))).collect()
}

fn misfit(operator: Operator, value: &str) -> Fault {
    Fault::Value { operator: operator.name, value: value.chars().take(80).collect() }
}

/// Reads an integer or decimal number.
fn number(text: &str) -> Option<f64> {
    let is_number = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E'));
    text.parse().ok().filter(|number: &f64| is_number && number.is_finite())
}

/// Reads a date or time in ISO 8601, or seconds since 1970.
fn time(text: &str) -> Option<Timestamp> {
    if let Ok(seconds) = text.parse() {
        return Timestamp::from_second(seconds).ok();
    }
    if let Some(time) = text.parse().ok().filter(|_| text.contains(['T', 't', ' '])) {
        return Some(time);
    }
    let day = match text.len() {
        7 => format!("{text}-01"),
        _ => text.to_owned(),
    };
    format!("{day}T00:00:00Z").parse().ok()
}

fn truth(text: &str) -> Option<bool> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("true") { Some(true) } else { is("false").then_some(false) }
}

fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// Reads a network, or an address, which is a network of one address.
fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse().ok().map(|address: IpAddr| IpNet::from(address)))
}
