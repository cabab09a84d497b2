//! `slipway policy check`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::policy::{Malformed, Policy, Version};
use clap::Args;
use s3_types::BucketName;
use serde_json::{Value, json};

use super::files::{PolicyType, advice, bucket_of, fault, read, refusal, title, with_article};
use super::notes::{Note, notes};
use crate::commands::{Console, FAILED, FOUND, OK};

/// Options of `slipway policy check`.
#[derive(Debug, Clone, Args)]
pub struct CheckOptions {
    /// The files with the policy documents; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// The kind of policy that the documents are. It determines which elements a document must and
    /// may have
    #[arg(long = "type", value_name = "TYPE", default_value = "identity")]
    pub of: PolicyType,

    /// The bucket to which a bucket policy belongs [default: the bucket in the first Resource of
    /// the policy]
    #[arg(long, value_name = "NAME", value_parser = bucket)]
    pub bucket: Option<BucketName>,

    /// Exit with status 1 also if a document would be accepted, but the check has a remark about
    /// it, such as a part without effect
    #[arg(long)]
    pub strict: bool,

    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// The findings about a document.
struct Checked<'c> {
    path: &'c Path,
    of: PolicyType,
    bucket: Option<String>,
    document: Vec<u8>,
    outcome: Result<(Policy, Vec<Note>), Malformed>,
}

/// The bucket of a policy that names none.
const SOME_BUCKET: &str = "bucket";

fn bucket(text: &str) -> Result<BucketName, String> {
    BucketName::new(text).map_err(|e| e.to_string())
}

/// Checks documents, and prints what was found.
pub fn run(options: &CheckOptions) -> ExitCode {
    let console = Console::new();
    if options.bucket.is_some() && options.of != PolicyType::Resource {
        return console
            .fail("--bucket has an effect only with --type resource: give that as well, or leave it out");
    }
    if options.files.iter().filter(|path| *path == Path::new("-")).count() > 1 {
        return console.fail("-: standard input can be read once only");
    }
    let (mut status, mut were_read) = (OK, 0);
    for path in &options.files {
        let document = match read(path) {
            Ok(document) => document,
            Err(error) => {
                console.complain(&error);
                status = FOUND;
                continue;
            }
        };
        were_read += 1;
        let checked = check(path, document, options);
        if options.json {
            console.say(&as_json(&checked).to_string());
        } else {
            for line in as_lines(&checked) {
                console.say(&line);
            }
        }
        match &checked.outcome {
            Ok((_, notes)) if notes.is_empty() || !options.strict => {}
            _ => status = FOUND,
        }
    }
    if were_read == 0 { FAILED.into() } else { status.into() }
}

fn check<'c>(path: &'c Path, document: Vec<u8>, options: &CheckOptions) -> Checked<'c> {
    let of = options.of;
    let named = || match &options.bucket {
        Some(bucket) => bucket.as_str().to_owned(),
        None => bucket_of(&document).unwrap_or_else(|| SOME_BUCKET.to_owned()),
    };
    let bucket = (of == PolicyType::Resource).then(named);
    let kind = of.kind(bucket.as_deref().unwrap_or_default());
    let outcome = Policy::parse(&document, kind).map(|policy| {
        let notes = notes(&policy, &document);
        (policy, notes)
    });
    Checked { path, of, bucket, document, outcome }
}

const fn version(policy: &Policy) -> &'static str {
    match policy.version {
        Version::V2008 => "2008-10-17",
        Version::V2012 => "2012-10-17",
    }
}

impl Checked<'_> {
    fn size_max(&self) -> usize {
        self.of.kind("").size_max()
    }

    /// Returns a phrase about the kind of policy that the document was taken for.
    fn taken_for(&self) -> String {
        let bucket = self.bucket.as_ref().map(|bucket| format!(" of {bucket}"));
        format!("{}{}", self.of.title(), bucket.unwrap_or_default())
    }

    fn aws_message(&self, error: &Malformed) -> String {
        if self.of == PolicyType::Resource { error.s3_message() } else { error.iam_message() }
    }
}

fn as_lines(checked: &Checked<'_>) -> Vec<String> {
    let name = title(checked.path);
    let (policy, notes) = match &checked.outcome {
        Ok(accepted) => accepted,
        Err(error) => {
            let taken_for = with_article(&checked.taken_for());
            let why = refusal(error, checked.of, &checked.document);
            return vec![format!("{name}: refused as {taken_for}: {why}")];
        }
    };
    let statements = match policy.statements.len() {
        1 => "1 statement".to_owned(),
        count => format!("{count} statements"),
    };
    let accepted = format!(
        "{name}: accepted as {}: version {}, {statements}, {} of {} {}",
        with_article(&checked.taken_for()),
        version(policy),
        policy.size,
        checked.size_max(),
        checked.of.unit()
    );
    let note = |note: &Note| format!("{name}: note: line {}, at {}: {}", note.line, note.path, note.text);
    std::iter::once(accepted).chain(notes.iter().map(note)).collect()
}

fn as_json(checked: &Checked<'_>) -> Value {
    let of = clap::ValueEnum::to_possible_value(&checked.of);
    let mut json = json!({
        "file": checked.path.to_string_lossy(),
        "type": of.as_ref().map(clap::builder::PossibleValue::get_name),
        "bucket": checked.bucket,
        "size_max": checked.size_max(),
    });
    match &checked.outcome {
        Ok((policy, notes)) => {
            let note = |note: &Note| {
                json!({
                    "note": note.what, "line": note.line, "path": note.path, "names": note.names, "text": note.text,
                })
            };
            json["accepted"] = true.into();
            json["version"] = version(policy).into();
            json["statements"] = policy.statements.len().into();
            json["size"] = policy.size.into();
            json["notes"] = notes.iter().map(note).collect();
        }
        Err(error) => {
            json["accepted"] = false.into();
            json["fault"] = json!({
                "line": error.line,
                "column": error.column,
                "path": error.path,
                "text": fault(error),
                "advice": advice(error, checked.of, &checked.document),
                "aws_message": checked.aws_message(error),
            });
        }
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(document: &str, of: PolicyType) -> Checked<'static> {
        let options = CheckOptions { files: Vec::new(), of, bucket: None, strict: false, json: false };
        check(Path::new("p.json"), document.as_bytes().to_vec(), &options)
    }

    const READS: &str = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":["s3:GetObject","ec2:*"],
        "Resource":"arn:aws:s3:::lab/*"}}"#;

    #[test]
    fn what_is_accepted() {
        let checked = checked(READS, PolicyType::Identity);
        assert_eq!(
            as_lines(&checked),
            [
                "p.json: accepted as an identity policy: version 2012-10-17, 1 statement, 121 of 6144 characters",
                "p.json: note: line 1, at Statement[0].Action: ec2:* is an action of another service, and has no \
                 effect here",
            ]
        );
        let json = as_json(&checked);
        assert_eq!((&json["accepted"], &json["type"]), (&true.into(), &"identity".into()));
        assert_eq!(json["notes"][0]["names"], json!(["ec2:*"]));
    }

    #[test]
    fn what_is_refused() {
        let document = READS.replace("\"Action\"", "\"Principal\":\"*\",\"Action\"");
        let checked = checked(&document, PolicyType::Resource);
        assert_eq!(
            as_lines(&checked),
            [
                "p.json: refused as a bucket policy of lab: line 1, column 96, at Statement[0].Action: a policy of this \
              kind must not name the action \"ec2:*\""
            ]
        );
        let json = as_json(&checked);
        assert_eq!(json["fault"]["aws_message"], "Policy has invalid action");
        assert_eq!((&json["fault"]["line"], &json["bucket"]), (&1.into(), &"lab".into()));
    }
}
