use crate::facts::{Certainty, Facts};
use crate::fault::Fault;
use crate::pattern::{Pattern, Special};

/// The number of parts of an ARN: `arn:partition:service:region:account:resource`.
const PARTS: usize = 6;

/// Splits an ARN into its parts; `None` if there are fewer. Colons after the fifth belong to the
/// resource.
pub fn split(arn: &str) -> Option<[&str; PARTS]> {
    let mut parts = arn.splitn(PARTS, ':');
    let all = [(); PARTS].map(|()| parts.next());
    let [Some(arn), Some(partition), Some(service), Some(region), Some(account), Some(resource)] = all else {
        return None;
    };
    (arn == "arn").then_some([arn, partition, service, region, account, resource])
}

/// A pattern for ARNs, whose parts are compared one by one.
#[derive(Debug, Clone)]
pub enum ArnPattern {
    /// One pattern for each part.
    Parts(Box<[Pattern; PARTS]>),
    /// One pattern for the whole ARN, since a variable stands for several parts.
    Whole(Pattern),
}

impl ArnPattern {
    /// Reads the value of a condition; `None` if it cannot be a pattern for ARNs. If the text has
    /// fewer than six parts and ends with `*`, the `*` stands for the missing parts, too.
    pub fn new(text: &str, variables: bool) -> Result<Option<Self>, Fault> {
        let special = Special { variables, wildcards: true, any_case: false };
        let mut parts = outside_variables(text, variables);
        if parts.len() < PARTS {
            if text.ends_with('*') {
                parts.resize(PARTS, "*");
            } else if variables && text.contains("${") {
                return Ok(Some(Self::Whole(Pattern::new(text, special)?)));
            } else {
                return Ok(None);
            }
        }
        let mut compiled = Vec::with_capacity(PARTS);
        for part in parts {
            compiled.push(Pattern::new(part, special)?);
        }
        Ok(compiled.try_into().ok().map(|parts| Self::Parts(Box::new(parts))))
    }

    /// Compares the pattern with an ARN. A pattern of parts does not match a text that is not an
    /// ARN.
    pub fn matches(&self, arn: &str, facts: &dyn Facts) -> Certainty {
        match self {
            Self::Whole(pattern) => pattern.matches(arn.as_bytes(), facts),
            Self::Parts(patterns) => {
                let Some(parts) = split(arn) else { return Certainty::No };
                let all = patterns.iter().zip(parts);
                Certainty::all(all.map(|(pattern, part)| pattern.matches(part.as_bytes(), facts)))
            }
        }
    }

    /// True if the pattern has no wildcards and variables.
    pub fn is_fixed(&self) -> bool {
        match self {
            Self::Whole(pattern) => pattern.is_fixed(),
            Self::Parts(patterns) => patterns.iter().all(Pattern::is_fixed),
        }
    }

    /// True if the value of a variable is a tag of the object.
    pub fn needs_object(&self) -> bool {
        match self {
            Self::Whole(pattern) => pattern.needs_object(),
            Self::Parts(patterns) => patterns.iter().any(Pattern::needs_object),
        }
    }
}

/// Splits at the first five colons that are not in a variable.
fn outside_variables(text: &str, variables: bool) -> Vec<&str> {
    let (mut parts, mut from, mut inside) = (Vec::with_capacity(PARTS), 0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' if variables && at > 0 && text.as_bytes()[at - 1] == b'$' => inside = true,
            b'}' => inside = false,
            b':' if !inside && parts.len() < PARTS - 1 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}
