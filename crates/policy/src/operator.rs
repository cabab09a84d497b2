/// The comparison of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Texts that are equal.
    Equals,
    /// Texts that are equal but for case.
    EqualsIgnoreCase,
    /// Texts with wildcards.
    Like,
    /// Numbers.
    Numeric(Order),
    /// Times.
    Date(Order),
    /// Truth values.
    Bool,
    /// Bytes.
    Binary,
    /// Addresses in networks.
    Address,
    /// ARNs with wildcards.
    Arn,
    /// Whether there is a value.
    Null,
}

/// The order of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The request's is the same.
    Equal,
    /// The request's is less.
    Less,
    /// The request's is less or the same.
    LessOrEqual,
    /// The request's is more.
    Greater,
    /// The request's is more or the same.
    GreaterOrEqual,
}

impl Order {
    /// True if a request's value is in this order to a policy's.
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

/// The treatment of several values of a request by a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantifier {
    /// `ForAllValues:`.
    All,
    /// `ForAnyValue:`.
    Any,
}

/// An operator with its prefix and suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operator {
    /// The name without both.
    pub name: &'static str,
    /// The comparison.
    pub comparison: Comparison,
    /// True if no value may match, for `...Not...`.
    pub negated: bool,
    /// The prefix.
    pub quantifier: Option<Quantifier>,
    /// True with the suffix `IfExists`.
    pub if_exists: bool,
}

/// Source: "IAM JSON policy elements: Condition operators" in the IAM User Guide.
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
    /// Finds an operator by its name, in which case matters. `Null` has neither prefix nor suffix.
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

    /// Returns all names without prefix and suffix.
    pub fn names() -> impl Iterator<Item = &'static str> {
        OPERATORS.into_iter().map(|(name, ..)| name)
    }
}
