//! The reason why a question to the directory has no answer.

/// The reason why a question to the directory has no answer.
#[derive(Debug)]
pub enum Failure {
    /// The directory cannot be asked: whoever asks next does not find it either.
    Away(String),
    /// This question has no answer, others may have: a person in too many groups, an error of the
    /// directory's.
    Odd(String),
}

/// The results of operations that are worth a name (RFC 4511, 4.1.9 and A.2).
const NAMES: [(u32, &str); 22] = [
    (1, "operationsError"),
    (2, "protocolError"),
    (3, "timeLimitExceeded"),
    (4, "sizeLimitExceeded"),
    (7, "authMethodNotSupported"),
    (8, "strongerAuthRequired"),
    (10, "referral"),
    (11, "adminLimitExceeded"),
    (12, "unavailableCriticalExtension"),
    (13, "confidentialityRequired"),
    (16, "noSuchAttribute"),
    (18, "inappropriateMatching"),
    (19, "constraintViolation"),
    (32, "noSuchObject"),
    (34, "invalidDNSyntax"),
    (48, "inappropriateAuthentication"),
    (49, "invalidCredentials"),
    (50, "insufficientAccessRights"),
    (51, "busy"),
    (52, "unavailable"),
    (53, "unwillingToPerform"),
    (80, "other"),
];

/// Writes the result of an operation: its number and name, and what the server says of it.
pub fn result(code: u32, text: &str) -> String {
    let name = NAMES.iter().find(|(known, _)| *known == code).map_or("an unknown result", |(_, name)| name);
    let text = text.trim();
    if text.is_empty() { format!("{code} {name}") } else { format!("{code} {name} ({text})") }
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Away(why)
    }
}
