use policy::Source;
use s3_types::NeededFacts;

/// The answer to a [`crate::Question`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A statement allows the action, and none denies it.
    Allow,
    /// A statement denies the action, whatever other statements allow.
    Deny,
    /// No statement allows the action, and none denies it.
    NoGrant,
    /// The decision depends on these facts of the object. The storage reads them, and the question
    /// is asked again with them. If this is the answer to a question that had the facts already, or
    /// that is not about an object, it allows nothing.
    NeedsObject(NeededFacts),
}

/// The origin of the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// The requester is the key that the server was started with.
    Root,
    /// The requester is the root of the account that owns the resource, and no statement denies it.
    AccountRoot,
    /// One or more statements of policies decide ([`Explained::statements`]).
    Statement,
    /// No statement allows the action.
    NoStatement,
    /// The policy of the bucket cannot be read, and may forbid anything.
    UnreadablePolicy,
}

/// A statement on which a decision rests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidingStatement {
    /// The kind of the policy that the statement is in.
    pub source: Source,
    /// The name of the statement's policy, if it has one.
    pub policy: Option<Box<str>>,
    /// The number of the statement's policy among those of the source, from 1.
    pub document: usize,
    /// The number of the statement in its policy, from 1.
    pub statement: usize,
    /// The `Sid` of the statement.
    pub sid: Option<Box<str>>,
}

/// A decision, with its origin and the statements that it depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The decision.
    pub decision: Decision,
    /// The origin of the decision.
    pub by: DecidedBy,
    /// The statements on which the decision rests: the first one that denies; otherwise, of each
    /// source that counts, the first one that allows.
    pub statements: Vec<DecidingStatement>,
    /// The kinds of policies that would have to allow the action, and have no statement that does.
    pub lacking: Vec<Source>,
}

impl Explained {
    /// Makes an explanation that names no statement.
    pub const fn without(decision: Decision, by: DecidedBy) -> Self {
        Self { decision, by, statements: Vec::new(), lacking: Vec::new() }
    }

    /// Returns the end of AWS's sentence about a refusal, such as `because no identity-based policy
    /// allows the s3:GetObject action`; `None` if no policy refuses the action. If several kinds of
    /// policies refuse it, the sentence names one, as AWS's does.
    ///
    /// Source: "Troubleshoot access denied error messages" in the IAM User Guide.
    pub fn why_not(&self, action: &str) -> Option<String> {
        match self.decision {
            Decision::Allow | Decision::NeedsObject(_) => None,
            Decision::Deny => {
                let kind = match self.statements.first()?.source {
                    Source::Identity => "an identity-based policy",
                    Source::Boundary => "a permissions boundary",
                    Source::Session => "a session policy",
                    Source::Resource => "a resource-based policy",
                };
                Some(format!("with an explicit deny in {kind}"))
            }
            Decision::NoGrant => {
                let kind = match self.lacking.first()? {
                    Source::Identity => "identity-based policy",
                    Source::Boundary => "permissions boundary",
                    Source::Session => "session policy",
                    Source::Resource => "resource-based policy",
                };
                Some(format!("because no {kind} allows the {action} action"))
            }
        }
    }
}
