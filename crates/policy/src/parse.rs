//! The compilation of a document from its text.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::str;

use memchr::memchr_iter;

use crate::catalogue::{Action, ActionSet, DoneWith, Key, is_known_service};
use crate::condition::Condition;
use crate::document::{Effect, Inert, Policy, Resources, Statement, Version};
use crate::fault::{Fault, Malformed};
use crate::json::{self, Name, Node, Value};
use crate::kind::Kind;
use crate::limits::DOCUMENT_BYTES_MAX;
use crate::operator::Operator;
use crate::pattern::{Pattern, Special};
use crate::principals::Principals;
use crate::resources::{Reach, ResourcePattern, reach};

/// A result whose error is a fault with the offset in bytes at which it is.
type Parsed<T> = Result<T, (usize, Fault)>;
/// The members of an object.
type Members<'n, 'a> = &'n [(Name<'a>, Node<'a>)];

impl Policy {
    /// Reads and checks a document.
    pub fn parse(document: &[u8], kind: Kind<'_>) -> Result<Self, Malformed> {
        let malformed = |fault, line, column| Malformed { fault, path: String::new(), line, column };
        if document.len() > DOCUMENT_BYTES_MAX {
            let fault = Fault::TooLong { size: document.len(), max: kind.size_max() };
            return Err(malformed(fault, 1, 1));
        }
        let text = str::from_utf8(document).map_err(|error| {
            let (line, column) = place(document, error.valid_up_to());
            malformed(Fault::Json("it is not UTF-8"), line, column)
        })?;
        let mut parser = Parser { kind, text, path: Vec::new(), inert: Vec::new(), version: Version::V2008 };
        parser.document().map_err(|(at, fault)| {
            let (line, column) = place(document, at);
            Malformed { fault, path: parser.path(), line, column }
        })
    }
}

/// Returns the line and the column of a byte, both from 1.
fn place(document: &[u8], at: usize) -> (usize, usize) {
    let before = &document[..at.min(document.len())];
    let line = memchr_iter(b'\n', before).count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let chars = before[start..].iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    (line, chars + 1)
}

struct Parser<'k, 'a> {
    kind: Kind<'k>,
    text: &'a str,
    /// The path to the present place in the document. If a fault is found, the path stays as it is,
    /// so that the error can show it.
    path: Vec<Step>,
    inert: Vec<Inert>,
    version: Version,
}

enum Step {
    Member(String),
    Item(usize),
}

impl Parser<'_, '_> {
    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Member(name) if path.is_empty() => path.push_str(name),
                Step::Member(name) => path.extend([".", name]),
                // Writing to a text does not fail.
                Step::Item(number) => drop(write!(path, "[{number}]")),
            }
        }
        path
    }

    /// Calls `parse` for a part of the document. If that fails, the path to the part is kept, so
    /// that the error can show it.
    fn within<T>(&mut self, step: Step, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.path.push(step);
        let parsed = parse(self)?;
        self.path.pop();
        Ok(parsed)
    }

    fn member<T>(&mut self, name: &str, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.within(Step::Member(name.chars().take(80).collect()), parse)
    }

    const fn has_variables(&self) -> bool {
        matches!(self.version, Version::V2012)
    }

    fn document(&mut self) -> Parsed<Policy> {
        // S3 takes no white space before it, IAM does.
        let before: &[char] =
            if matches!(self.kind, Kind::Bucket(_)) { &[] } else { &[' ', '\t', '\n', '\r'] };
        if !self.text.trim_start_matches(before).starts_with('{') {
            return Err((0, Fault::NotAnObject));
        }
        let document = json::read(self.text)?;
        let size = self.size(document.white_bytes)?;
        let root = document.root;
        let members = object(&root)?;
        let (mut id, mut statements, mut version) = (None, None, None);
        for (name, value) in members {
            match &*name.text {
                "Version" => version = Some(self.member("Version", |_| read_version(value))?),
                "Id" => id = Some(self.member("Id", |_| text(value))?),
                "Statement" => statements = Some(value),
                other => return Err((name.at, Fault::UnknownElement(other.to_owned()))),
            }
        }
        // IAM takes policies of identities only with a version.
        if version.is_none() && self.kind.is_of_identity() {
            return Err((root.at, Fault::Version));
        }
        self.version = version.unwrap_or(Version::V2008);
        let statements = statements.ok_or((root.at, Fault::Missing("Statement")))?;
        let statements = self.member("Statement", |parser| parser.statements(statements))?;
        let inert = std::mem::take(&mut self.inert).into();
        let id = id.map(|id| (**id).into());
        Ok(Policy { version: self.version, id, statements, inert, size })
    }

    fn size(&self, white_bytes: usize) -> Parsed<usize> {
        let size = match self.kind {
            Kind::Bucket(_) => self.text.len() - white_bytes,
            _ => self.text.chars().count() - white_bytes,
        };
        let max = self.kind.size_max();
        if size > max { Err((0, Fault::TooLong { size, max })) } else { Ok(size) }
    }

    fn statements(&mut self, value: &Node<'_>) -> Parsed<Box<[Statement]>> {
        let items = match &value.value {
            Value::Array(items) => &items[..],
            Value::Object(_) => std::slice::from_ref(value),
            _ => return Err((value.at, Fault::Type("an object or a list of objects"))),
        };
        if items.is_empty() {
            return Err((value.at, Fault::Empty));
        }
        let (mut statements, mut sids) = (Vec::with_capacity(items.len()), HashSet::new());
        for (number, item) in items.iter().enumerate() {
            let statement = self.within(Step::Item(number), |parser| {
                let statement = parser.statement(item)?;
                match &statement.sid {
                    Some(sid) if !sids.insert(sid.clone()) => {
                        Err((item.at, Fault::SidTwice(sid.to_string())))
                    }
                    _ => Ok(statement),
                }
            })?;
            statements.push(statement);
        }
        Ok(statements.into())
    }

    fn statement(&mut self, node: &Node<'_>) -> Parsed<Statement> {
        let elements = Elements::of(node)?;
        let at = node.at;
        let sid = elements.sid.map(|sid| self.member("Sid", |parser| parser.sid(sid))).transpose()?.flatten();
        let effect = elements.effect.ok_or((at, Fault::Missing("Effect")))?;
        let effect = self.member("Effect", |_| read_effect(effect))?;
        let principals = self.principals(at, &elements, effect)?;
        let (not_action, action) = elements.action.ok_or((at, Fault::Missing("Action")))?;
        let name = if not_action { "NotAction" } else { "Action" };
        let named = self.member(name, |parser| parser.actions(action))?;
        let resources = self.resources(at, &elements, &named)?;
        let conditions = match elements.condition {
            Some(condition) => {
                let only_ours = !not_action && !named.others;
                self.member("Condition", |parser| parser.conditions(condition, only_ours))?
            }
            None => Box::default(),
        };
        let actions = if not_action { named.all.inverted() } else { named.all };
        let (line, _) = place(self.text.as_bytes(), at);
        Ok(Statement { sid, line, effect, principals, actions, resources, conditions })
    }

    fn sid(&self, node: &Node<'_>) -> Parsed<Option<Box<str>>> {
        let sid = text(node)?;
        let is_plain = sid.bytes().all(|b| b.is_ascii_alphanumeric());
        // A bucket policy may have spaces and more.
        if !is_plain && !matches!(self.kind, Kind::Bucket(_)) {
            return Err((node.at, Fault::SidCharacters));
        }
        Ok((!sid.is_empty()).then(|| (**sid).into()))
    }

    fn principals(
        &mut self,
        at: usize,
        elements: &Elements<'_, '_>,
        effect: Effect,
    ) -> Parsed<Option<Principals>> {
        let Some((not, value)) = elements.principal else {
            let missing = (at, Fault::Missing("Principal"));
            return if self.kind.is_of_identity() { Ok(None) } else { Err(missing) };
        };
        let name = if not { "NotPrincipal" } else { "Principal" };
        if self.kind.is_of_identity() || (not && self.kind == Kind::Trust) {
            return Err((value.at, Fault::Prohibited(name)));
        }
        if not && effect == Effect::Allow {
            return Err((value.at, Fault::NotPrincipalAllow));
        }
        self.member(name, |parser| parser.principal_list(value, not)).map(Some)
    }

    fn principal_list(&mut self, node: &Node<'_>, not: bool) -> Parsed<Principals> {
        let mut principals = Principals::default();
        principals.not = not;
        let members = match &node.value {
            Value::Text(text) if text == "*" => {
                principals.add_everyone();
                return Ok(principals);
            }
            Value::Object(members) if !members.is_empty() => members,
            Value::Text(text) => return Err((node.at, Fault::Principal(text.to_string()))),
            _ => return Err((node.at, Fault::Type("\"*\" or an object"))),
        };
        for (name, value) in members {
            if !matches!(&*name.text, "AWS" | "Federated" | "Service" | "CanonicalUser") {
                return Err((name.at, Fault::UnknownElement(name.text.to_string())));
            }
            self.member(&name.text, |_| {
                let mut add = |at, one: &str| principals.add(&name.text, one).map_err(|fault| (at, fault));
                texts(value)?.into_iter().try_for_each(|(at, one)| add(at, one))
            })?;
        }
        Ok(principals)
    }

    fn actions(&mut self, node: &Node<'_>) -> Parsed<Named> {
        let mut named = Named::default();
        for (at, written) in texts(node)? {
            self.action(written, &mut named).map_err(|fault| (at, fault))?;
        }
        Ok(named)
    }

    /// Adds the actions that one pattern matches.
    fn action(&mut self, written: &str, named: &mut Named) -> Result<(), Fault> {
        let shown = || written.chars().take(200).collect::<String>();
        if written == "*" {
            named.add(written, Action::all());
            named.others = true;
            return Ok(());
        }
        let wrong = || Fault::ActionForm(shown());
        let (service, name) = written.split_once(':').ok_or_else(wrong)?;
        let is_service = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'*' | b'?' | b'-' | b'_');
        if service.is_empty()
            || name.is_empty()
            || !service.bytes().all(is_service)
            || !name.bytes().all(is_name)
        {
            return Err(wrong());
        }
        let wanted = match self.kind {
            Kind::Bucket(_) => Some("s3"),
            Kind::Trust => Some("sts"),
            _ => None,
        };
        if wanted.is_some_and(|wanted| !service.eq_ignore_ascii_case(wanted)) {
            return Err(Fault::ForeignAction(shown()));
        }
        if !is_known_service(service) {
            named.others = true;
            self.inert.push(Inert { path: self.path(), name: shown() });
            return Ok(());
        }
        let special = Special { variables: false, wildcards: true, any_case: true };
        let pattern = Pattern::new(name, special)?;
        let matching =
            Action::of_service(service).filter(|action| pattern.matches_plain(action.name_lower()));
        if named.add(written, matching) { Ok(()) } else { Err(Fault::UnknownAction(shown())) }
    }

    fn resources(
        &mut self,
        at: usize,
        elements: &Elements<'_, '_>,
        named: &Named,
    ) -> Parsed<Option<Resources>> {
        let Some((not, value)) = elements.resource else {
            let missing = (at, Fault::Missing("Resource"));
            return if self.kind == Kind::Trust { Ok(None) } else { Err(missing) };
        };
        let name = if not { "NotResource" } else { "Resource" };
        if self.kind == Kind::Trust {
            return Err((value.at, Fault::Prohibited(name)));
        }
        let (patterns, reached) = self.member(name, |parser| parser.resource_list(value))?;
        let not_action = elements.action.is_some_and(|(not, _)| not);
        if let (Some(reached), false, false) = (reached, not, not_action)
            && let Some(written) = named.not_done_with(reached)
        {
            return Err((value.at, Fault::NotApplicable(written.to_owned())));
        }
        Ok(Some(Resources { not, patterns }))
    }

    /// Reads a list of resources. For a bucket policy, it also returns what the resources reach in
    /// the bucket.
    fn resource_list(&mut self, node: &Node<'_>) -> Parsed<(Box<[ResourcePattern]>, Option<Reach>)> {
        let (mut patterns, mut reached) = (Vec::new(), Reach { bucket: false, objects: false });
        for (at, written) in texts(node)? {
            let pattern = ResourcePattern::new(written, self.has_variables());
            patterns.push(pattern.map_err(|fault| (at, fault))?);
            if let Kind::Bucket(bucket) = self.kind {
                let foreign = || (at, Fault::ForeignResource(written.chars().take(200).collect()));
                let this = reach(written, bucket).ok_or_else(foreign)?;
                reached =
                    Reach { bucket: reached.bucket || this.bucket, objects: reached.objects || this.objects };
            }
        }
        let is_bucket = matches!(self.kind, Kind::Bucket(_));
        Ok((patterns.into(), is_bucket.then_some(reached)))
    }

    fn conditions(&mut self, node: &Node<'_>, only_ours: bool) -> Parsed<Box<[Condition]>> {
        let mut conditions = Vec::new();
        for (name, of_operator) in object(node)? {
            let operator = Operator::named(&name.text);
            let operator =
                operator.ok_or_else(|| (name.at, Fault::UnknownOperator(name.text.to_string())))?;
            self.member(&name.text, |parser| {
                let mut names = HashSet::new();
                for (key, values) in object(of_operator)? {
                    if !names.insert(key.text.to_ascii_lowercase()) {
                        return Err((key.at, Fault::Duplicate(key.text.to_string())));
                    }
                    conditions.push(parser.condition(operator, key, values, only_ours)?);
                }
                Ok(())
            })?;
        }
        Ok(conditions.into())
    }

    fn condition(
        &mut self,
        operator: Operator,
        name: &Name<'_>,
        values: &Node<'_>,
        only_ours: bool,
    ) -> Parsed<Condition> {
        let key = Key::named(&name.text).filter(|key| self.may_have(key, only_ours));
        let key = key.ok_or_else(|| (name.at, Fault::UnknownKey(name.text.to_string())))?;
        let variables = self.has_variables();
        self.member(&name.text, |parser| {
            if matches!(key, Key::Foreign(_)) && parser.kind != Kind::Trust {
                parser.inert.push(Inert { path: parser.path(), name: name.text.to_string() });
            }
            let list = scalars(values)?;
            Condition::new(operator, key, &list, variables).map_err(|fault| (values.at, fault))
        })
    }

    /// True if conditions on this key are valid in a document of this kind. With `only_ours`, of
    /// the keys of other services those are valid that identity providers give to sessions.
    fn may_have(&self, key: &Key, only_ours: bool) -> bool {
        let Key::Foreign(name) = key else {
            let of_s3 = |name: &str| name.starts_with("aws:") || name.starts_with("s3:");
            return !matches!(self.kind, Kind::Bucket(_)) || key.spec().is_some_and(|spec| of_s3(spec.name));
        };
        match self.kind {
            Kind::Bucket(_) => false,
            Kind::Trust => true,
            // Identity providers give their keys to sessions.
            _ => !only_ours || name.contains('.') || name.starts_with("saml:"),
        }
    }
}

/// The actions of a statement.
#[derive(Default)]
struct Named {
    all: ActionSet,
    /// True if the statement also names actions of other services.
    others: bool,
    /// The patterns in the statement, each with the actions that it matches.
    patterns: Vec<(String, ActionSet)>,
}

impl Named {
    /// Adds the actions that a pattern matches. Returns false if there are none.
    fn add(&mut self, written: &str, actions: impl Iterator<Item = Action>) -> bool {
        let actions: ActionSet = actions.collect();
        actions.iter().for_each(|action| self.all.add(action));
        self.patterns.push((written.to_owned(), actions));
        actions != ActionSet::default()
    }

    /// Returns a pattern none of whose actions can be done with what the statement's resources
    /// reach.
    fn not_done_with(&self, reached: Reach) -> Option<&str> {
        let is_done = |action: Action| match action.done_with() {
            DoneWith::Bucket => reached.bucket,
            DoneWith::Object => reached.objects,
            DoneWith::Other => false,
        };
        let (written, _) = self.patterns.iter().find(|(_, actions)| !actions.iter().any(is_done))?;
        Some(written)
    }
}

/// The elements of a statement. For those that have a `Not...` form, a flag says whether it is
/// that.
#[derive(Default)]
struct Elements<'n, 'a> {
    sid: Option<&'n Node<'a>>,
    effect: Option<&'n Node<'a>>,
    principal: Option<(bool, &'n Node<'a>)>,
    action: Option<(bool, &'n Node<'a>)>,
    resource: Option<(bool, &'n Node<'a>)>,
    condition: Option<&'n Node<'a>>,
}

impl<'n, 'a> Elements<'n, 'a> {
    fn of(node: &'n Node<'a>) -> Parsed<Self> {
        let mut elements = Self::default();
        for (name, value) in object(node)? {
            let (place, both) = match &*name.text {
                "Sid" => {
                    elements.sid = Some(value);
                    continue;
                }
                "Effect" => {
                    elements.effect = Some(value);
                    continue;
                }
                "Condition" => {
                    elements.condition = Some(value);
                    continue;
                }
                "Principal" | "NotPrincipal" => (&mut elements.principal, "Principal"),
                "Action" | "NotAction" => (&mut elements.action, "Action"),
                "Resource" | "NotResource" => (&mut elements.resource, "Resource"),
                other => return Err((name.at, Fault::UnknownElement(other.to_owned()))),
            };
            if place.replace((name.text.starts_with("Not"), value)).is_some() {
                return Err((name.at, Fault::Both(both)));
            }
        }
        Ok(elements)
    }
}

fn read_version(node: &Node<'_>) -> Parsed<Version> {
    match &node.value {
        Value::Text(version) if version == "2012-10-17" => Ok(Version::V2012),
        Value::Text(version) if version == "2008-10-17" => Ok(Version::V2008),
        _ => Err((node.at, Fault::Version)),
    }
}

fn read_effect(node: &Node<'_>) -> Parsed<Effect> {
    match &**text(node)? {
        "Allow" => Ok(Effect::Allow),
        "Deny" => Ok(Effect::Deny),
        other => Err((node.at, Fault::Effect(other.chars().take(80).collect()))),
    }
}

fn object<'n, 'a>(node: &'n Node<'a>) -> Parsed<Members<'n, 'a>> {
    match &node.value {
        Value::Object(members) => Ok(members),
        _ => Err((node.at, Fault::Type("an object"))),
    }
}

fn text<'n, 'a>(node: &'n Node<'a>) -> Parsed<&'n Cow<'a, str>> {
    match &node.value {
        Value::Text(text) => Ok(text),
        _ => Err((node.at, Fault::Type("a text"))),
    }
}

/// Reads a text, or a list of at least one text.
fn texts<'n>(node: &'n Node<'_>) -> Parsed<Vec<(usize, &'n str)>> {
    let items = match &node.value {
        Value::Array(items) if items.is_empty() => return Err((node.at, Fault::Empty)),
        Value::Array(items) => &items[..],
        _ => std::slice::from_ref(node),
    };
    items.iter().map(|item| Ok((item.at, &**text(item)?))).collect()
}

/// Reads a value of a condition, or a list of at least one; a value is a text, a number or a truth
/// value.
fn scalars<'n>(node: &'n Node<'_>) -> Parsed<Vec<Cow<'n, str>>> {
    let items = match &node.value {
        Value::Array(items) if items.is_empty() => return Err((node.at, Fault::Empty)),
        Value::Array(items) => &items[..],
        _ => std::slice::from_ref(node),
    };
    let scalar = |item: &'n Node<'_>| match &item.value {
        Value::Text(text) => Ok(Cow::Borrowed(&**text)),
        Value::Number(text) => Ok(Cow::Borrowed(*text)),
        Value::Bool(value) => Ok(Cow::Borrowed(if *value { "true" } else { "false" })),
        _ => Err((item.at, Fault::Type("a text, a number or a truth value"))),
    };
    items.iter().map(scalar).collect()
}
