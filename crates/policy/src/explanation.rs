use std::fmt;

use crate::condition::Condition;
use crate::document::{Effect, Policy, Statement};
use crate::evaluate::{Documents, Finding, Recorder, Request, Source, Sums, Verdict, evaluate};
use crate::facts::Certainty;
use crate::principals::Bond;

/// The result for one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// The source of the statement's document.
    pub source: Source,
    /// The number of the document among those of its source, from 0.
    pub document: usize,
    /// The number of the statement in the document, from 0.
    pub statement: usize,
    /// The result.
    pub finding: Finding,
}

/// A decision, with the result for each statement of each document.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The decision: that of [`crate::decide`].
    pub verdict: Verdict,
    /// The sums over all documents.
    pub sums: Sums,
    /// The results for all statements, in the order of evaluation.
    pub notes: Vec<Note>,
}

#[derive(Default)]
struct Notes(Vec<Note>);

impl Recorder for Notes {
    const WANTS_ALL: bool = true;

    fn note(&mut self, source: Source, document: usize, statement: usize, finding: Finding) {
        self.0.push(Note { source, document, statement, finding });
    }
}

impl Explanation {
    /// Decides about a request, and explains the decision.
    pub fn new(request: &Request<'_>, documents: &Documents<'_>) -> Self {
        let mut notes = Notes::default();
        let (verdict, sums) = evaluate(request, documents, &mut notes);
        Self { verdict, sums, notes: notes.0 }
    }

    /// Returns the statements on which the decision rests: those that deny, or else those that
    /// allow.
    pub fn decisive(&self) -> impl Iterator<Item = &Note> {
        let wanted = if self.verdict == Verdict::Deny { Effect::Deny } else { Effect::Allow };
        self.notes.iter().filter(move |note| {
            matches!(note.finding, Finding::Applies(effect, certainty, _) if effect == wanted && certainty != Certainty::No)
        })
    }
}

impl Note {
    /// Returns the statement, from the documents that were evaluated.
    pub fn statement<'d>(&self, documents: &Documents<'d>) -> Option<&'d Statement> {
        let policy: &Policy = match self.source {
            Source::Identity => documents.identity.get(self.document)?,
            Source::Boundary => documents.boundary?,
            Source::Session => documents.session?.get(self.document)?,
            Source::Resource => documents.resource?,
        };
        policy.statements.get(self.statement)
    }

    /// Returns a sentence with the place of the statement and the result.
    pub fn sentence(&self, documents: &Documents<'_>) -> String {
        let source = match self.source {
            Source::Identity => format!("policy {}", self.document + 1),
            Source::Boundary => "boundary".to_owned(),
            Source::Session => format!("session policy {}", self.document + 1),
            Source::Resource => "resource policy".to_owned(),
        };
        let statement = self.statement(documents);
        let name = match statement.and_then(|statement| statement.sid.as_deref()) {
            Some(sid) => format!("statement {} ({sid})", self.statement + 1),
            None => format!("statement {}", self.statement + 1),
        };
        let line = statement.map_or(0, |statement| statement.line);
        let found = self.found(documents);
        format!("{source}, {name}, line {line}: {found}")
    }

    /// Returns the result in words, without the place.
    pub fn found(&self, documents: &Documents<'_>) -> String {
        match self.condition(documents) {
            Some(condition) => format!("does not apply: {condition} does not hold"),
            None => self.finding.to_string(),
        }
    }

    /// Returns the condition that does not hold, if that is the result.
    pub fn condition<'d>(&self, documents: &Documents<'d>) -> Option<&'d Condition> {
        let Finding::Condition(number) = self.finding else { return None };
        self.statement(documents)?.conditions.get(number)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bond = |bond: Option<Bond>| match bond {
            None => "",
            Some(Bond::Everyone) => ", as it does everybody",
            Some(Bond::Own) => ", by name",
            Some(Bond::Issuer) => ", by its role or the user who federated",
            Some(Bond::Account) => ", by its account",
        };
        match self {
            Self::Applies(effect, certainty, named) => {
                let verb = if *effect == Effect::Allow { "allows" } else { "denies" };
                let perhaps =
                    if *certainty == Certainty::Perhaps { " depending on the object's tags" } else { "" };
                write!(f, "{verb} it{perhaps}{}", bond(*named))
            }
            Self::OtherAction => f.write_str("does not apply: other actions"),
            Self::OtherPrincipal => f.write_str("does not apply: other principals"),
            Self::OtherResource => f.write_str("does not apply: other resources"),
            Self::Condition(number) => write!(f, "does not apply: condition {} does not hold", number + 1),
            Self::Restricted => f.write_str("does not apply: the public access block keeps others out"),
            Self::Repair => f.write_str("does not apply: the owner's root may always repair the policy"),
        }
    }
}
