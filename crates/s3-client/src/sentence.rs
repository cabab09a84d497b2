/// A result whose error is a sentence for people: what is wrong with what they configured.
pub type Result<T> = std::result::Result<T, String>;
