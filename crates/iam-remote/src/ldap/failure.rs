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

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Away(why)
    }
}
