//! Policies of MinIO, as they are to be written here to mean the same.
//!
//! The language is AWS's. MinIO's differs in this, by its code (minio/pkg, policy/statement.go):
//! - what is said of a bucket's objects, `bucket/*`, is said of the bucket, too;
//! - who may do `s3:GetObjectVersion` may do `s3:GetObject`;
//! - actions of its own (`admin:`, `kms:`, `sts:`, `s3tables:`), mostly without resources;
//! - `*` and `NotAction` never reach actions of IAM and STS, which it has not;
//! - `aws:userid` is the user's name.

use std::collections::BTreeSet;

use iam::model::Document;
use iam::{Policy, PolicyKind};
use serde_json::{Map, Value as Json, json};

/// The only version of the policy language that MinIO knows.
const VERSION: &str = "2012-10-17";
/// The patterns for actions of the services that this server has and MinIO does not.
const NOT_THERE: [&str; 3] = ["iam:*", "sts:*", "s3express:*"];

/// The translation of a policy.
pub struct Translated {
    /// The policy for this server; `None` if it concerns only MinIO; or the reason why it cannot be
    /// translated.
    pub document: Result<Option<Document>, String>,
    /// True if it denies something.
    pub denies: bool,
    /// A remark for the report; empty if there is none.
    pub note: String,
}

/// Translates a policy.
pub fn translate(theirs: &Json) -> Translated {
    let mut without = Vec::new();
    let statements = match statements(theirs, &mut without) {
        Ok(statements) => statements,
        // Whoever had it might do more without it.
        Err(why) => return Translated { document: Err(why), denies: true, note: String::new() },
    };
    without.sort_unstable();
    without.dedup();
    let note = if without.is_empty() { String::new() } else { format!("without {}", without.join(", ")) };
    let denies = statements.iter().any(|statement| statement["Effect"] != "Allow");
    if statements.is_empty() {
        return Translated { document: Ok(None), denies, note };
    }
    let text = json!({ "Version": VERSION, "Statement": statements }).to_string();
    Translated { document: checked(&text).map(Some), denies, note }
}

fn checked(text: &str) -> Result<Document, String> {
    let document = Document::new(text).map_err(|e| e.to_string())?;
    Policy::parse(text.as_bytes(), PolicyKind::Managed).map_err(|why| why.to_string())?;
    Ok(document)
}

fn statements(theirs: &Json, without: &mut Vec<String>) -> Result<Vec<Json>, String> {
    let policy = theirs.as_object().ok_or("it is no object")?;
    for name in policy.keys() {
        if !matches!(name.as_str(), "ID" | "Id" | "Version" | "Statement") {
            return Err(format!("there is no element {name:?}"));
        }
    }
    match policy.get("Version").and_then(Json::as_str) {
        None | Some("" | VERSION) => {}
        Some(_) => return Err(format!("its version is not {VERSION}")),
    }
    let all = match policy.get("Statement") {
        Some(Json::Array(all)) => all.iter().collect(),
        Some(one @ Json::Object(_)) => vec![one],
        _ => return Err("it has no statements".to_owned()),
    };
    let mut ours = Vec::new();
    for statement in all {
        let statement = statement.as_object().ok_or("a statement is no object")?;
        ours.extend(translate_statement(statement, without)?.map(Json::Object));
    }
    Ok(ours)
}

/// Translates a statement; `None` if nothing is left of it. Actions and elements that are left out
/// are added to `without`.
fn translate_statement(
    theirs: &Map<String, Json>,
    without: &mut Vec<String>,
) -> Result<Option<Map<String, Json>>, String> {
    let mut ours = Map::new();
    let is_allow = theirs.get("Effect").and_then(Json::as_str) == Some("Allow");
    for (name, value) in theirs {
        let value = match name.as_str() {
            // Nothing depends on it, and MinIO takes more characters.
            "Sid" => continue,
            "Effect" => value.clone(),
            "Action" => {
                let actions = actions(value, without)?;
                if actions.is_empty() {
                    return Ok(None);
                }
                json!(actions)
            }
            "NotAction" => {
                let mut actions = actions(value, &mut Vec::new())?;
                if is_allow {
                    actions.extend(NOT_THERE.map(str::to_owned));
                }
                json!(in_order(actions))
            }
            "Resource" => {
                let resources = resources(value)?;
                if resources.is_empty() {
                    return Ok(None);
                }
                json!(resources)
            }
            "NotResource" => json!(resources(value)?),
            // By its text: it may be a key, or in a variable.
            "Condition" => with_user_names(value)?,
            other => return Err(format!("there is no element {other:?}")),
        };
        ours.insert(name.clone(), value);
    }
    Ok(Some(ours))
}

/// Sorts texts, and removes repetitions. MinIO writes sets in changing order, and the import
/// recognizes a policy that it has made before by its text.
fn in_order(texts: Vec<String>) -> Vec<String> {
    texts.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

fn texts(value: &Json) -> Result<Vec<&str>, String> {
    let wrong = "a value is neither a text nor a list of texts";
    match value {
        Json::String(one) => Ok(vec![one]),
        Json::Array(all) => all.iter().map(|one| one.as_str().ok_or(wrong.to_owned())).collect(),
        _ => Err(wrong.to_owned()),
    }
}

/// Returns the actions that exist on this server. The others are added to `without`.
fn actions(value: &Json, without: &mut Vec<String>) -> Result<Vec<String>, String> {
    let mut ours = Vec::new();
    for action in texts(value)? {
        // MinIO takes it for all actions of S3.
        let action = if action == "*" { "s3:*" } else { action };
        if is_here(action) {
            ours.push(action.to_owned());
        } else {
            without.push(action.to_owned());
        }
    }
    if ours.iter().any(|action| action == "s3:GetObjectVersion") {
        ours.push("s3:GetObject".to_owned());
    }
    Ok(in_order(ours))
}

/// True for an action of S3 that exists on this server.
fn is_here(action: &str) -> bool {
    let statement = json!({ "Effect": "Allow", "Action": action, "Resource": "*" });
    let text = json!({ "Version": VERSION, "Statement": [statement] }).to_string();
    action.starts_with("s3:") && Policy::parse(text.as_bytes(), PolicyKind::Managed).is_ok()
}

/// Returns the resources of S3. For each that is all objects of a bucket, the bucket is added.
fn resources(value: &Json) -> Result<Vec<String>, String> {
    const PREFIX: &str = "arn:aws:s3:::";
    let mut ours = Vec::new();
    for resource in texts(value)? {
        let resource = resource.replace("aws:userid", "aws:username");
        match resource.strip_prefix(PREFIX) {
            // MinIO lets it match nothing.
            Some("") => {}
            Some(path) => {
                let bucket =
                    path.strip_suffix("/*").filter(|bucket| !bucket.is_empty() && !bucket.contains('/'));
                ours.extend(bucket.map(|bucket| format!("{PREFIX}{bucket}")));
                ours.push(resource);
            }
            None if resource == "*" => ours.push(resource),
            // A key of its KMS, a table: of what is not here.
            None => {}
        }
    }
    Ok(in_order(ours))
}

fn with_user_names(condition: &Json) -> Result<Json, String> {
    let text = condition.to_string().replace("aws:userid", "aws:username");
    let mut condition =
        serde_json::from_str(&text).map_err(|_| "its conditions cannot be read".to_owned())?;
    sort_values(&mut condition);
    Ok(condition)
}

/// Sorts the values of each condition.
fn sort_values(condition: &mut Json) {
    for operator in condition.as_object_mut().into_iter().flat_map(Map::values_mut) {
        for values in operator.as_object_mut().into_iter().flat_map(Map::values_mut) {
            if let Json::Array(values) = values {
                values.sort_by_key(Json::to_string);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(statement: &Json) -> Json {
        let translated = translate(&json!({ "ID": "", "Version": VERSION, "Statement": [statement] }));
        let document = translated.document.unwrap().unwrap();
        serde_json::from_str::<Json>(document.as_str()).unwrap()["Statement"][0].clone()
    }

    #[test]
    fn a_buckets_objects_are_the_bucket_too() {
        let theirs = json!({ "Sid": "a b", "Effect": "Deny", "Action": ["s3:*"],
            "Resource": ["arn:aws:s3:::lab/*", "arn:aws:s3:::home/${aws:userid}/*", "arn:aws:s3:::x*/*"] });
        let expected = json!({ "Effect": "Deny", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::home/${aws:username}/*",
            "arn:aws:s3:::lab", "arn:aws:s3:::lab/*", "arn:aws:s3:::x*", "arn:aws:s3:::x*/*"] });
        assert_eq!(ours(&theirs), expected);
    }

    #[test]
    fn nothing_reaches_what_minio_has_not() {
        let all = json!({ "Effect": "Allow", "Action": ["*"], "Resource": ["*"] });
        assert_eq!(ours(&all)["Action"], json!(["s3:*"]));
        let but =
            json!({ "Effect": "Allow", "NotAction": ["s3:DeleteObject", "admin:Heal"], "Resource": ["*"] });
        assert_eq!(ours(&but)["NotAction"], json!(["iam:*", "s3:DeleteObject", "s3express:*", "sts:*"]));
        let iam = json!({ "Effect": "Allow", "Action": ["iam:*", "sts:AssumeRole", "admin:*", "kms:*"] });
        let translated = translate(&json!({ "Version": VERSION, "Statement": [iam] }));
        assert!(matches!(translated.document, Ok(None)) && !translated.denies);
        assert_eq!(translated.note, "without admin:*, iam:*, kms:*, sts:AssumeRole");
        // The actions of its own that MinIO's `readonly` denies.
        let own = json!({ "Effect": "Deny", "Action": ["admin:CreateUser"], "Resource": ["arn:aws:s3:::*"] });
        assert!(!translate(&json!({ "Version": VERSION, "Statement": [own] })).denies);
    }

    #[test]
    fn a_version_of_an_object_is_the_object_too() {
        let theirs =
            json!({ "Effect": "Deny", "Action": ["s3:GetObjectVersion"], "Resource": ["arn:aws:s3:::a/b"] });
        assert_eq!(ours(&theirs)["Action"], json!(["s3:GetObject", "s3:GetObjectVersion"]));
    }

    #[test]
    fn the_order_of_sets_does_not_matter() {
        let [one, other] = [["a/*", "b"], ["b", "a/*"]].map(|names| {
            let resources = names.map(|name| format!("arn:aws:s3:::{name}"));
            let actions = names.map(|name| if name == "b" { "s3:GetObject" } else { "s3:PutObject" });
            ours(&json!({ "Effect": "Allow", "Action": actions, "Resource": resources,
                "Condition": { "StringEquals": { "s3:prefix": names } } }))
        });
        assert_eq!(one, other);
    }

    #[test]
    fn what_is_not_understood_is_refused_and_counts_as_a_denial() {
        let allow = json!({ "Effect": "Allow", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::*"] });
        let with = |name: &str, value: Json| {
            let mut statement = allow.clone();
            statement[name] = value;
            json!({ "Version": VERSION, "Statement": [statement] })
        };
        for bad in [
            json!(7),
            json!({ "Version": "2008-10-17", "Statement": [] }),
            json!({ "Version": VERSION }),
            json!({ "Version": VERSION, "Statement": [7] }),
            with("Principal", json!("*")),
            with("Action", json!({ "a": 1 })),
            with("Resource", json!([1])),
        ] {
            let translated = translate(&bad);
            assert!(translated.document.is_err() && translated.denies, "{bad}");
        }
        for bad in [
            with("Condition", json!({ "StringEquals": { "jwt:sub": ["x"] } })),
            with("Condition", json!({ "StringEquals": { "aws:groups": ["x"] } })),
            with("Effect", json!("allow")),
        ] {
            assert!(translate(&bad).document.is_err(), "{bad}");
        }
    }
}
