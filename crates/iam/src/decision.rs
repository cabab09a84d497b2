use policy::Source;
use s3_types::NeededFacts;

/// The answer to a [`crate::Question`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A statement allows the action, and none denies it.
    Allow,
    /// A statement denies the action, whatever others allow.
    Deny,
    /// No statement allows the action, and none denies it.
    NoGrant,
    /// The decision depends on these facts of the object. The storage looks at them, and the
    /// question is asked again. As the answer to a question with the facts, or about something that
    /// is not an object, it allows nothing.
    NeedsObject(NeededFacts),
}

/// The origin of the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// The requester is the key that the server was started with.
    Root,
    /// The requester is the root of the account that owns the resource, and no statement denies it.
    AccountRoot,
    /// Statements of policies.
    Statement,
    /// No statement allows it.
    NoStatement,
    /// The policy of the bucket cannot be read, and may forbid anything.
    UnreadablePolicy,
}

/// A statement that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidingStatement {
    /// The source of its policy.
    pub source: Source,
    /// The name of its policy, if it has one.
    pub policy: Option<Box<str>>,
    /// The number of its policy among those of the source, from 1.
    pub document: usize,
    /// The number of the statement in the policy, from 1.
    pub statement: usize,
    /// Its `Sid`.
    pub sid: Option<Box<str>>,
}

/// A decision, and what decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The decision.
    pub decision: Decision,
    /// The origin of the decision.
    pub by: DecidedBy,
    /// The statements: the first that denies; or else, of each source that counts, the first that
    /// allows.
    pub statements: Vec<DecidingStatement>,
    /// The sources in which a statement that allows is missing.
    pub lacking: Vec<Source>,
}

impl Explained {
    /// Makes a decision that no statement made.
    pub const fn without(decision: Decision, by: DecidedBy) -> Self {
        Self { decision, by, statements: Vec::new(), lacking: Vec::new() }
    }
}
