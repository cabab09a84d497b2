//! Secrets in the targets of requests, which logs and spans leave out.

use std::borrow::Cow;

use memchr::memchr2;
use s3_types::hex;

/// The query parameters whose values are secret: with them a reader of the log could act as the
/// client, or decrypt what the client encrypted. The last two are parameters of STS's actions,
/// which may be in the query, too.
const SECRET: [&[u8]; 7] = [
    b"x-amz-signature",
    b"signature",
    b"x-amz-security-token",
    b"x-amz-server-side-encryption-customer-key",
    b"x-amz-copy-source-server-side-encryption-customer-key",
    b"ldappassword",
    b"webidentitytoken",
];
/// The text that replaces the values of secret parameters.
pub const REDACTED: &[u8] = b"REDACTED";

/// True if `name`, which is decoded, is in [`SECRET`].
pub fn is_secret(name: &[u8]) -> bool {
    // Most names of a presigned URL begin alike, but do not end alike.
    let ends_alike = |secret: &[u8]| {
        secret.len() == name.len() && secret.last() == name.last().map(u8::to_ascii_lowercase).as_ref()
    };
    SECRET.iter().any(|secret| ends_alike(secret) && name.eq_ignore_ascii_case(secret))
}

/// Returns the position after the first name of [`SECRET`] and its `=`, even if these are encoded,
/// that has a value other than [`REDACTED`].
pub fn misplaced_secret(text: &[u8]) -> Option<usize> {
    // Nearly all have none.
    memchr2(b'=', b'%', text)?;
    let mut name = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let encoded = (*byte == b'%').then(|| hex::decode(text.get(at + 1..at + 3)?)).flatten();
        at += if encoded.is_some() { 3 } else { 1 };
        let [byte] = encoded.unwrap_or([*byte]);
        let byte = byte.to_ascii_lowercase();
        let is_value = text.get(at).is_some_and(|_| !text[at..].starts_with(REDACTED));
        if byte == b'=' && is_value && SECRET.iter().any(|secret| name.ends_with(secret)) {
            return Some(at);
        }
        name.push(byte);
    }
    None
}

/// Returns a key or path up to a secret that does not belong there, which is replaced. A presigned
/// URL whose `?` was encoded once more has such a secret.
pub fn without_misplaced_secret(text: &str) -> Cow<'_, str> {
    match misplaced_secret(text.as_bytes()) {
        Some(value) => [text.get(..value).unwrap_or_default(), "REDACTED"].concat().into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_a_secret() {
        for (text, shown) in [
            ("k?x=1&X-Amz-Signature=abc&y=1", "k?x=1&X-Amz-Signature=REDACTED"),
            ("/k%3FX-Amz-Security-Token%3Dabc", "/k%3FX-Amz-Security-Token%3DREDACTED"),
            ("k?AWSAccessKeyId=a&Signature=abc", "k?AWSAccessKeyId=a&Signature=REDACTED"),
            ("signature", "signature"),
            ("a=b%", "a=b%"),
        ] {
            assert_eq!(without_misplaced_secret(text), shown);
        }
    }
}
