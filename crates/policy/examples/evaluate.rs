//! Reads requests from standard input, a line of JSON each, and writes the decision about each as a
//! line. tests/policies/compare.py uses it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufRead as _, Write as _};
use std::sync::Arc;

use policy::{
    Action, Documents, Explanation, Facts, Key, Kind, Party, PartyKind, Policy, Request, Resource, Value,
    Verdict,
};
use serde_json::Value as Json;

struct Context(HashMap<String, Vec<String>>);

impl Facts for Context {
    fn value(&self, key: &Key) -> Value<'_> {
        let Some(values) = self.0.get(&key.to_string().to_lowercase()) else { return Value::Absent };
        match &values[..] {
            [one] if !key.is_many() => Value::text(one),
            many => Value::Many(many.iter().map(|value| Cow::Borrowed(&**value)).collect()),
        }
    }
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let answer = answer(&line?).unwrap_or_else(|error| serde_json::json!({ "error": error }));
        writeln!(out, "{answer}")?;
    }
    Ok(())
}

fn text<'j>(json: &'j Json, name: &str) -> &'j str {
    json[name].as_str().unwrap_or_default()
}

fn policies(json: &Json, kind: Kind<'_>) -> Result<Vec<Arc<Policy>>, String> {
    let all = json.as_array().map(Vec::as_slice).unwrap_or_default();
    let parse = |one: &Json| match Policy::parse(one.to_string().as_bytes(), kind) {
        Ok(policy) => Ok(Arc::new(policy)),
        Err(error) => Err(error.to_string()),
    };
    all.iter().map(parse).collect()
}

fn answer(line: &str) -> Result<Json, String> {
    let json: Json = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let bucket = text(&json, "bucket");
    let identity = policies(&json["identity"], Kind::Role)?;
    let boundary = policies(&json["boundary"], Kind::Managed)?;
    let session = policies(&json["session"], Kind::Role)?;
    let resource = policies(&json["resource"], Kind::Bucket(bucket))?;
    let kind = match text(&json, "kind") {
        "anonymous" => PartyKind::Anonymous,
        "root" => PartyKind::Root,
        "user" => PartyKind::User,
        "role" => PartyKind::RoleSession,
        "federated" => PartyKind::FederatedUser,
        other => return Err(format!("no kind {other}")),
    };
    let context = json["context"].as_object().into_iter().flatten().map(|(key, values)| {
        let one = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let values = values.as_array().map_or_else(|| vec![one(values)], |all| all.iter().map(one).collect());
        (key.to_lowercase(), values)
    });
    let context = Context(context.collect());
    let party = Party {
        kind,
        account: text(&json, "account"),
        canonical_id: "",
        arn: text(&json, "arn"),
        issuer: json["issuer"].as_str(),
        id: None,
        issuer_id: None,
    };
    let action = Action::named(text(&json, "action")).ok_or("no such action")?;
    let resource_of = match (bucket, json["key"].as_str()) {
        ("", _) => Resource::Service,
        (bucket, None) => Resource::Bucket(bucket),
        (bucket, Some(key)) => Resource::Object(bucket, key),
    };
    let documents = Documents {
        identity: &identity,
        boundary: boundary.first().map(|policy| &**policy),
        session: json["session"].is_array().then_some(&session[..]),
        resource: resource.first().map(|policy| &**policy),
        owner: json["owner"].as_str(),
        is_trust: false,
        is_restricted: false,
    };
    let request = Request { party, action, resource: resource_of, facts: &context };
    let explanation = Explanation::new(&request, &documents);
    let verdict = match explanation.verdict {
        Verdict::Allow => "allow",
        Verdict::Deny => "deny",
        Verdict::NoGrant => "no grant",
        Verdict::NeedsTags => "needs tags",
    };
    let notes: Vec<_> = explanation.notes.iter().map(|note| note.sentence(&documents)).collect();
    Ok(serde_json::json!({ "verdict": verdict, "notes": notes }))
}
