//! Service accounts of MinIO: keys of a user, mostly with a policy of their own.

use std::collections::BTreeMap;

use iam::model::{Description, Document};
use s3_types::Timestamp;
use serde::Deserialize;
use serde_json::Value as Json;
use zeroize::Zeroizing;

use super::keys::WantedKey;
use super::minio_policy::{Translated, translate};

/// The policy of one that has none of its own: MinIO lets it do what its user may, but has neither
/// IAM nor STS.
const ALL_OF_S3: &str =
    r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}"#;

/// The claim that says whether it has a policy of its own, and what it says then.
const POLICY_CLAIM: &str = "sa-policy";
const HAS_POLICY: &str = "embedded-policy";

/// A service account, as it stands in the archive (madmin-go, `SRSvcAccCreate`).
#[derive(Deserialize)]
pub struct ServiceAccount {
    #[serde(default)]
    parent: String,
    #[serde(rename = "secretKey", default)]
    secret: Zeroizing<String>,
    #[serde(default)]
    groups: Option<Vec<String>>,
    #[serde(default)]
    claims: Option<BTreeMap<String, Json>>,
    #[serde(rename = "sessionPolicy", default)]
    policy: Option<Json>,
    #[serde(default)]
    status: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    expiration: Option<String>,
}

impl ServiceAccount {
    /// Says what is to be made of it, or why nothing is. `groups_of` has the groups of a user of
    /// the archive; `None` for somebody who is none.
    pub fn wanted(
        &self,
        access_key: &str,
        groups_of: impl FnOnce(&str) -> Option<Vec<String>>,
    ) -> Result<WantedKey, String> {
        let groups = groups_of(&self.parent).ok_or_else(|| self.whose().to_owned())?;
        if self.claim("parent").is_none_or(|parent| *parent != *self.parent) {
            return Err("its token does not name its parent: MinIO refuses it".to_owned());
        }
        // What one of them denies would be lost.
        let missing: Vec<_> = self.groups.iter().flatten().filter(|group| !groups.contains(*group)).collect();
        if let Some(group) = missing.first() {
            return Err(format!("it has a group in which {} is not: {group}", self.parent));
        }
        let mut notes = Vec::new();
        let policy = self.policy(&mut notes)?;
        let disabled = !matches!(self.status.as_str(), "on" | "enabled");
        if disabled {
            notes.push("disabled, as it was".to_owned());
        }
        Ok(WantedKey {
            access_key: access_key.to_owned(),
            secret: self.secret.clone(),
            user: self.parent.clone(),
            disabled,
            expires: self.end()?,
            policy,
            description: self.described(&mut notes),
            note: notes.join("; "),
        })
    }

    fn claim(&self, name: &str) -> Option<&str> {
        self.claims.as_ref()?.get(name)?.as_str()
    }

    /// Says whose it is, if it is nobody's of the archive.
    fn whose(&self) -> &'static str {
        let has = |name: &str| self.claims.as_ref().is_some_and(|claims| claims.contains_key(name));
        if has("ldapUser") || has("ldapUsername") {
            return "its parent logs in by LDAP: people of a directory have no keys of services here";
        }
        if has("roleArn") || has("sub") || has("iss") {
            return "its parent logs in by OpenID: people of a provider have no keys of services here";
        }
        "its parent is no user of the archive, as MinIO's root is none"
    }

    fn policy(&self, notes: &mut Vec<String>) -> Result<Document, String> {
        let Some(theirs) = self.policy.as_ref().filter(|policy| !policy.is_null()) else {
            if self.claim(POLICY_CLAIM) == Some(HAS_POLICY) {
                return Err("it has a policy of its own, which is not in the archive".to_owned());
            }
            return Document::new(ALL_OF_S3).map_err(|why| why.to_string());
        };
        let Translated { document, note, .. } = translate(theirs);
        notes.extend((!note.is_empty()).then_some(note));
        let document = document.map_err(|why| format!("its policy cannot be taken over: {why}"))?;
        document.ok_or_else(|| "its policy allows nothing that is here".to_owned())
    }

    /// Returns when it ends. MinIO writes the beginning of 1970, or of the first year, for never.
    fn end(&self) -> Result<Option<Timestamp>, String> {
        let Some(text) = self.expiration.as_deref().filter(|text| !text.is_empty()) else { return Ok(None) };
        let end: Timestamp = text.parse().map_err(|_| format!("its end is no time: {text}"))?;
        Ok(Some(end).filter(|end| end.as_second() > 0))
    }

    fn described(&self, notes: &mut Vec<String>) -> Option<Description> {
        let texts: Vec<_> =
            [&*self.name, &*self.description].into_iter().filter(|text| !text.is_empty()).collect();
        if texts.is_empty() {
            return None;
        }
        let made = Description::new(&texts.join(": ")).ok();
        if made.is_none() {
            notes.push("without its description".to_owned());
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted(members: &[(&str, Json)]) -> Result<WantedKey, String> {
        let mut account = json!({ "parent": "ann", "accessKey": "SVC", "secretKey": "a-secret-of-a-service",
            "groups": null, "claims": { "parent": "ann", "sa-policy": "inherited-policy" }, "sessionPolicy": null,
            "status": "on", "name": "", "description": "", "expiration": "1970-01-01T00:00:00Z" });
        for (name, value) in members {
            account[*name] = value.clone();
        }
        let account: ServiceAccount = serde_json::from_value(account).unwrap();
        account.wanted("SVC", |name| (name == "ann").then(|| vec!["staff".to_owned()]))
    }

    fn refused(members: &[(&str, Json)]) -> String {
        wanted(members).map(|_| ()).unwrap_err()
    }

    #[test]
    fn what_they_say() {
        let plain = wanted(&[]).unwrap();
        assert!(!plain.disabled && plain.expires.is_none() && plain.description.is_none());
        assert_eq!((plain.policy.as_str(), &*plain.note), (ALL_OF_S3, ""));
        let all = wanted(&[
            ("status", json!("off")),
            ("groups", json!(["staff"])),
            ("name", json!("backup")),
            ("description", json!("each night")),
            ("expiration", json!("2027-01-31T13:00:00.5+01:00")),
        ]);
        let all = all.unwrap();
        assert!(all.disabled);
        assert_eq!(all.expires.unwrap().as_second(), 1_801_396_800);
        assert_eq!(all.description.unwrap().as_str(), "backup: each night");
        assert!(wanted(&[("expiration", json!("0001-01-01T00:00:00Z"))]).unwrap().expires.is_none());
        // A status that is not known is none.
        assert!(wanted(&[("status", json!(""))]).unwrap().disabled);
    }

    #[test]
    fn what_cannot_be_taken() {
        let claims = |more: Json| ("claims", more);
        let of = |parent: &str| ("parent", json!(parent));
        let ldap = claims(json!({ "parent": "cn=eve", "ldapUser": "cn=eve" }));
        assert!(refused(&[of("cn=eve"), ldap]).contains("LDAP"));
        let openid = claims(json!({ "parent": "x", "sub": "x", "iss": "https://idp" }));
        assert!(refused(&[of("x"), openid]).contains("OpenID"));
        assert!(refused(&[of("minioadmin")]).contains("root"));
        assert!(refused(&[claims(json!({ "parent": "bob" }))]).contains("token"));
        assert!(refused(&[claims(json!(null))]).contains("token"));
        assert!(refused(&[("groups", json!(["staff", "closed"]))]).contains("closed"));
        let lost = claims(json!({ "parent": "ann", "sa-policy": "embedded-policy" }));
        assert!(refused(&[lost]).contains("not in the archive"));
        assert!(
            refused(&[("sessionPolicy", json!({ "Version": "", "Statement": null }))]).contains("policy")
        );
        let admin = json!({ "Version": "2012-10-17",
            "Statement": [{ "Effect": "Allow", "Action": ["admin:*"] }] });
        assert!(refused(&[("sessionPolicy", admin)]).contains("nothing that is here"));
        assert!(refused(&[("expiration", json!("soon"))]).contains("soon"));
    }
}
