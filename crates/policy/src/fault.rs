use std::fmt;

use crate::limits::{DEPTH_MAX, FLOATING_CHARS_MAX, VARIABLES_MAX};

/// The reason why a document, or a part of it, is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The document does not begin with `{`.
    NotAnObject,
    /// The document is not JSON; the text says why.
    Json(&'static str),
    /// Objects and arrays are nested too deeply.
    TooDeep,
    /// The document is larger than it may be, in bytes or in characters.
    TooLong {
        /// The size of the document, in the unit of the limit.
        size: usize,
        /// The limit, in bytes or in characters ([`Kind::size_max`](crate::Kind::size_max)).
        max: usize,
    },
    /// A name appears twice in an object, or two names differ only in case.
    Duplicate(String),
    /// The language has no element with this name.
    UnknownElement(String),
    /// An element is missing, which is required.
    Missing(&'static str),
    /// A statement has an element twice: in its plain and in its `Not...` form.
    Both(&'static str),
    /// A document of this kind may not have the element.
    Prohibited(&'static str),
    /// The value of an element has the wrong type.
    Type(&'static str),
    /// A list or an object is empty.
    Empty,
    /// The version is neither of the two that exist, or is missing where it is required.
    Version,
    /// The effect is neither `Allow` nor `Deny`.
    Effect(String),
    /// The id of a statement has characters that are neither letters nor digits.
    SidCharacters,
    /// Two statements have the same id.
    SidTwice(String),
    /// An action has no service, or several colons.
    ActionForm(String),
    /// The service does not have the action, or has none that the pattern matches.
    UnknownAction(String),
    /// A document of this kind may not name actions of that service.
    ForeignAction(String),
    /// A principal is not one that a document of this kind can name.
    Principal(String),
    /// A statement has `NotPrincipal` with `Allow`.
    NotPrincipalAllow,
    /// A resource is not an ARN that a document of this kind can name.
    Resource(String),
    /// A resource is neither the document's bucket nor in it.
    ForeignResource(String),
    /// An action cannot be done with any of the resources in its statement.
    NotApplicable(String),
    /// The operator does not exist.
    UnknownOperator(String),
    /// The condition key does not exist, or not for this statement.
    UnknownKey(String),
    /// The value of a condition does not fit its operator.
    Value {
        /// The operator.
        operator: &'static str,
        /// The value.
        value: String,
    },
    /// A variable is malformed, or its name is not that of a condition key with a single value.
    Variable(String),
    /// A pattern has too many variables, or a part of a slow kind is too long.
    Pattern,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("a policy is a JSON object and begins with {"),
            Self::Json(why) => write!(f, "this is not JSON: {why}"),
            Self::TooDeep => write!(f, "values are nested more than {DEPTH_MAX} deep"),
            Self::TooLong { size, max } => write!(f, "the policy has a size of {size}, and may have {max}"),
            Self::Duplicate(name) => write!(f, "{name:?} is there twice"),
            Self::UnknownElement(name) => write!(f, "there is no element {name:?}"),
            Self::Missing(name) => write!(f, "{name} is missing"),
            Self::Both(name) => write!(f, "{name} and Not{name} exclude each other"),
            Self::Prohibited(name) => write!(f, "a policy of this kind must not have {name}"),
            Self::Type(wanted) => write!(f, "this must be {wanted}"),
            Self::Empty => f.write_str("this must not be empty"),
            Self::Version => f.write_str("the version must be 2012-10-17 or 2008-10-17"),
            Self::Effect(effect) => write!(f, "the effect {effect:?} is neither Allow nor Deny"),
            Self::SidCharacters => f.write_str("a Sid has letters and digits only"),
            Self::SidTwice(sid) => write!(f, "two statements have the Sid {sid:?}"),
            Self::ActionForm(action) => write!(f, "the action {action:?} is not of the form service:name"),
            Self::UnknownAction(action) => write!(f, "there is no action {action:?}"),
            Self::ForeignAction(action) => {
                write!(f, "a policy of this kind must not name the action {action:?}")
            }
            Self::Principal(principal) => write!(f, "{principal:?} is not a principal"),
            Self::NotPrincipalAllow => f.write_str("NotPrincipal must be used with Deny"),
            Self::Resource(resource) => write!(f, "{resource:?} is not the ARN of a resource"),
            Self::ForeignResource(resource) => write!(f, "{resource:?} is not in the policy's bucket"),
            Self::NotApplicable(action) => {
                write!(f, "{action:?} cannot be done with any of the statement's resources")
            }
            Self::UnknownOperator(operator) => write!(f, "there is no operator {operator:?}"),
            Self::UnknownKey(key) => write!(f, "there is no condition key {key:?} for this statement"),
            Self::Value { operator, value } => write!(f, "{value:?} is not a value for {operator}"),
            Self::Variable(variable) => write!(f, "{variable:?} is not a variable that can be used"),
            Self::Pattern => write!(
                f,
                "a value has at most {VARIABLES_MAX} variables, and at most {FLOATING_CHARS_MAX} characters \
                 between two * if there is a ? or a variable among them"
            ),
        }
    }
}

/// The error for a document that is refused, with the reason and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The reason.
    pub fault: Fault,
    /// The place in the document, such as `Statement[1].Condition.StringLike`; empty for the whole.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Malformed {
    /// Returns the sentence with which S3 refuses a bucket policy (`MalformedPolicy`).
    ///
    /// The sentences are those of S3 that users have quoted. A fault for which no quote was found
    /// gets S3's general sentence.
    pub fn s3_message(&self) -> String {
        match &self.fault {
            Fault::NotAnObject => "Policies must be valid JSON and the first byte must be '{'".to_owned(),
            Fault::Json(_) | Fault::TooDeep | Fault::Duplicate(_) => {
                "This policy contains invalid Json".to_owned()
            }
            Fault::TooLong { max, .. } => {
                format!("Normalized policy document exceeds the maximum allowed size of {max} bytes")
            }
            Fault::UnknownElement(name) => format!("Unknown field {name}"),
            Fault::Missing(name) => format!("Missing required field {name}"),
            Fault::Version => "The policy must contain a valid version string".to_owned(),
            Fault::Effect(effect) => format!("Invalid effect: {effect}"),
            Fault::ActionForm(_) | Fault::UnknownAction(_) | Fault::ForeignAction(_) => {
                "Policy has invalid action".to_owned()
            }
            Fault::Principal(_) | Fault::NotPrincipalAllow => "Invalid principal in policy".to_owned(),
            Fault::Resource(_) | Fault::ForeignResource(_) => "Policy has invalid resource".to_owned(),
            Fault::NotApplicable(_) => "Action does not apply to any resource(s) in statement".to_owned(),
            Fault::UnknownOperator(operator) => format!("Invalid Condition type : {operator}"),
            Fault::UnknownKey(_) => "Policy has an invalid condition key".to_owned(),
            _ => "Invalid policy syntax.".to_owned(),
        }
    }

    /// Returns the sentence with which IAM and STS refuse a document (`MalformedPolicyDocument`).
    pub fn iam_message(&self) -> String {
        match &self.fault {
            Fault::TooLong { max, .. } => format!("Cannot exceed quota for PolicySize: {max}"),
            Fault::Version => "Policy document must be version 2012-10-17 or greater.".to_owned(),
            Fault::SidTwice(_) => "Statement IDs (SID) in a single policy must be unique.".to_owned(),
            Fault::SidCharacters => {
                "Statement IDs (SID) must be alpha-numeric. Check that your input satisfies \
                 the regular expression [0-9A-Za-z]*"
                    .to_owned()
            }
            Fault::Prohibited("Principal" | "NotPrincipal") => {
                "Policy document should not specify a principal.".to_owned()
            }
            Fault::Prohibited(name) => format!("Has prohibited field {name}"),
            Fault::Missing("Action") => "Policy statement must contain actions.".to_owned(),
            Fault::Missing("Resource") => "Policy statement must contain resources.".to_owned(),
            Fault::Missing(name) => format!("Missing required field {name}"),
            Fault::ActionForm(action) if action.matches(':').count() > 1 => {
                "Actions/Condition can contain only one colon.".to_owned()
            }
            Fault::ActionForm(action) if action.contains(':') => {
                let vendor = action.split(':').next().unwrap_or_default();
                format!("Vendor {vendor} is not valid")
            }
            Fault::ActionForm(_) => {
                "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.".to_owned()
            }
            Fault::ForeignAction(_) => {
                "AssumeRole policy may only specify STS AssumeRole actions.".to_owned()
            }
            Fault::Principal(principal) => format!("Invalid principal in policy: {principal}"),
            Fault::Resource(resource) => format!("Resource {resource} must be in ARN format or \"*\"."),
            _ => "Syntax errors in policy.".to_owned(),
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fault, path, line, column } = self;
        let at = if path.is_empty() { "" } else { ", at " };
        write!(f, "line {line}, column {column}{at}{path}: {fault}")
    }
}

impl std::error::Error for Malformed {}
