/// The kind of comparison that an operator makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Texts are equal.
    Equals,
    /// Texts are equal without regard to case.
    EqualsIgnoreCase,
    /// A text matches a pattern with wildcards.
    Like,
    /// Numbers are in this order.
    Numeric(Order),
    /// Times are in this order.
    Date(Order),
    /// Truth values are equal.
    Bool,
    /// Bytes are equal.
    Binary,
    /// An address is in a network.
    Address,
    /// An ARN matches a pattern with wildcards.
    Arn,
    /// The request has no value, or has one.
    Null,
}

/// The order of the request's value and the policy's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The request's value is equal.
    Equal,
    /// The request's value is less.
    Less,
    /// The request's value is less or equal.
    LessOrEqual,
    /// The request's value is greater.
    Greater,
    /// The request's value is greater or equal.
    GreaterOrEqual,
}

impl Order {
    /// True if the request's value is in this order relative to the policy's value.
    pub fn holds<T: PartialOrd>(self, of_request: &T, of_policy: &T) -> bool {
        match self {
            Self::Equal => of_request == of_policy,
            Self::Less => of_request < of_policy,
            Self::LessOrEqual => of_request <= of_policy,
            Self::Greater => of_request > of_policy,
            Self::GreaterOrEqual => of_request >= of_policy,
        }
    }
}

/// The rule for a condition key that has several values in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantifier {
    /// `ForAllValues:`: each value of the request has to match.
    All,
    /// `ForAnyValue:`: one value of the request has to match.
    Any,
}

/// An operator, with the prefix and the suffix of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operator {
    /// The name without prefix and suffix.
    pub name: &'static str,
    /// The comparison.
    pub comparison: Comparison,
    /// True for `...Not...` operators: the condition holds if no value in the policy matches.
    pub negated: bool,
    /// The prefix.
    pub quantifier: Option<Quantifier>,
    /// True if the operator has the suffix `IfExists`.
    pub if_exists: bool,
}

/// The operators: name, comparison, and whether it is negated. Source: "IAM JSON policy elements:
/// Condition operators" in the IAM User Guide.
const OPERATORS: [(&str, Comparison, bool); 27] = {
    use Comparison as C;
    [
        ("StringEquals", C::Equals, false),
        ("StringNotEquals", C::Equals, true),
        ("StringEqualsIgnoreCase", C::EqualsIgnoreCase, false),
        ("StringNotEqualsIgnoreCase", C::EqualsIgnoreCase, true),
        ("StringLike", C::Like, false),
        ("StringNotLike", C::Like, true),
        ("NumericEquals", C::Numeric(Order::Equal), false),
        ("NumericNotEquals", C::Numeric(Order::Equal), true),
        ("NumericLessThan", C::Numeric(Order::Less), false),
        ("NumericLessThanEquals", C::Numeric(Order::LessOrEqual), false),
        ("NumericGreaterThan", C::Numeric(Order::Greater), false),
        ("NumericGreaterThanEquals", C::Numeric(Order::GreaterOrEqual), false),
        ("DateEquals", C::Date(Order::Equal), false),
        ("DateNotEquals", C::Date(Order::Equal), true),
        ("DateLessThan", C::Date(Order::Less), false),
        ("DateLessThanEquals", C::Date(Order::LessOrEqual), false),
        ("DateGreaterThan", C::Date(Order::Greater), false),
        ("DateGreaterThanEquals", C::Date(Order::GreaterOrEqual), false),
        ("Bool", C::Bool, false),
        ("BinaryEquals", C::Binary, false),
        ("IpAddress", C::Address, false),
        ("NotIpAddress", C::Address, true),
        ("ArnEquals", C::Arn, false),
        ("ArnLike", C::Arn, false),
        ("ArnNotEquals", C::Arn, true),
        ("ArnNotLike", C::Arn, true),
        ("Null", C::Null, false),
    ]
};

impl Operator {
    /// Finds an operator by its name, whose case matters. `Null` has neither prefix nor suffix.
    pub fn named(written: &str) -> Option<Self> {
        let (quantifier, rest) = match written.split_once(':') {
            Some(("ForAllValues", rest)) => (Some(Quantifier::All), rest),
            Some(("ForAnyValue", rest)) => (Some(Quantifier::Any), rest),
            Some(_) => return None,
            None => (None, written),
        };
        let (rest, if_exists) = match rest.strip_suffix("IfExists") {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let (name, comparison, negated) = OPERATORS.into_iter().find(|(name, ..)| *name == rest)?;
        let bare = quantifier.is_none() && !if_exists;
        (bare || comparison != Comparison::Null).then_some(Self {
            name,
            comparison,
            negated,
            quantifier,
            if_exists,
        })
    }

    /// Returns the names of all operators, without prefix and suffix.
    pub fn names() -> impl Iterator<Item = &'static str> {
        OPERATORS.into_iter().map(|(name, ..)| name)
    }
}
