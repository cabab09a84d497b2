//! The keys that requests are signed with. The keys appear in no log and no message.

use s3_wire::auth::sign::Signer;
use zeroize::Zeroizing;

/// Keys, and the region that signatures name.
#[derive(Clone)]
pub struct Credentials {
    /// The id of the access key.
    pub access_key: String,
    /// The secret key.
    pub secret_key: Zeroizing<String>,
    /// The session token of temporary credentials.
    pub security_token: Option<Zeroizing<String>>,
    /// The region that signatures name.
    pub region: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "keys for {}", self.region)
    }
}

impl Credentials {
    /// Returns a signer that uses these keys. It signs headers, and makes presigned URLs.
    pub fn signer(&self) -> Signer<'_> {
        Signer {
            access_key: &self.access_key,
            secret_key: &self.secret_key,
            security_token: self.security_token.as_ref().map(|token| token.as_str()),
            region: &self.region,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_out_of_logs() {
        let credentials = Credentials {
            access_key: "AKID".to_owned(),
            secret_key: "hush".to_owned().into(),
            security_token: Some("token".to_owned().into()),
            region: "eu-lab-1".to_owned(),
        };
        assert_eq!(format!("{credentials:?}"), "keys for eu-lab-1");
    }
}
