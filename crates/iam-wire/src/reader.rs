//! A reader of typed members of a form. If a member is wrong, a method returns an empty value and
//! keeps the error, so that all errors are known after the last member.

use std::collections::BTreeSet;
use std::fmt;

use crate::arn::{is_arn, is_policy_arn};
use crate::context_entry::ContextEntry;
use crate::error::{QueryCode, QueryError};
use crate::form::Form;
use crate::limits::PAGE_ITEMS_MAX;
use crate::page::Page;
use crate::rule::{
    ARN, CONTEXT_KEY, ListRule, MARKER, Rule, STS_ARN, TAG_KEY, TAG_KEYS, TAG_VALUE, TAGS_MAX,
};
use crate::secret::Secret;
use crate::service::Service;
use crate::tag::Tag;
use crate::validation::{self, Broken, Problem, member};
use crate::words::Word;

/// The parameters of every form, which belong to no input.
const OF_ALL: [&str; 2] = ["Action", "Version"];
const NOT_NULL: &str = "Member must not be null";

/// A member of an input, with the constraints that it is read with.
#[derive(Debug, Clone)]
pub struct Member {
    name: &'static str,
    is_required: bool,
    kind: Kind,
}

/// The kind of a member, with its constraints.
#[derive(Debug, Clone)]
enum Kind {
    Text(Rule),
    Number(u32, u32),
    Flag,
    Words(Vec<&'static str>),
    Texts(ListRule),
    Tags,
    Arns(Rule),
    ListOfWords(Vec<&'static str>),
    ContextEntries,
    Refused,
}

impl Member {
    /// Returns the name in the API model.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// True if the member is required.
    pub const fn is_required(&self) -> bool {
        self.is_required
    }

    /// True if the API model has the member, and this server refuses it.
    pub const fn is_refused(&self) -> bool {
        matches!(self.kind, Kind::Refused)
    }
}

/// Writes such as `UserName! text 1..64 [\w+=,.@-]+`, where `!` means that the member is required.
impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} ", self.name, if self.is_required { "!" } else { "" })?;
        match &self.kind {
            Kind::Text(rule) => write!(f, "text {rule}"),
            Kind::Number(min, max) => write!(f, "number {min}..{max}"),
            Kind::Flag => write!(f, "boolean"),
            Kind::Words(words) => write!(f, "one of {}", words.join(", ")),
            Kind::Texts(ListRule { items, max: Some(max), .. }) => write!(f, "list ..{max} of text {items}"),
            Kind::Texts(ListRule { items, max: None, .. }) => write!(f, "list .. of text {items}"),
            Kind::Tags => write!(f, "tags"),
            Kind::Arns(rule) => write!(f, "list .. of arn {rule}"),
            Kind::ListOfWords(words) => write!(f, "list of one of {}", words.join(", ")),
            Kind::ContextEntries => write!(f, "context entries"),
            Kind::Refused => write!(f, "refused"),
        }
    }
}

/// Reads the members of one input.
#[derive(Debug)]
pub struct Reader<'f> {
    form: &'f Form<'f>,
    service: Service,
    /// An entry for each parameter of the form: true if a member was read from it.
    taken: Vec<bool>,
    members: Vec<Member>,
    problems: Vec<Problem<'f>>,
    /// An error that is reported if no constraint is broken.
    later: Option<QueryError>,
    /// An error that is reported before all others.
    refused: Option<QueryError>,
}

impl<'f> Reader<'f> {
    pub(crate) fn new(form: &'f Form<'_>, service: Service) -> Self {
        let taken = vec![false; form.len()];
        let (members, problems) = (Vec::new(), Vec::new());
        Self { form, service, taken, members, problems, later: None, refused: None }
    }

    /// Returns the errors, if there are any. If `changes` is true, parameters that were not read
    /// are refused.
    pub(crate) fn done(self, changes: bool) -> Result<(), QueryError> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        let mut names = self.form.names().zip(&self.taken);
        let unasked = names.find(|(name, taken)| !**taken && !OF_ALL.contains(name));
        if let Some((name, _)) = unasked.filter(|_| changes) {
            return Err(QueryError::parameter_not_implemented(name));
        }
        match validation::error(self.service, &self.problems).or(self.later) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    pub(crate) fn into_members(self) -> Vec<Member> {
        self.members
    }

    /// Keeps an error that is reported if no constraint is broken. Only the first such error is
    /// kept.
    pub(crate) fn fail_later(&mut self, error: impl FnOnce() -> QueryError) {
        self.later.get_or_insert_with(error);
    }

    /// Reads a required text.
    pub(crate) fn text(&mut self, name: &'static str, rule: &Rule) -> &'f str {
        self.checked(name, true, rule, false).unwrap_or_default()
    }

    /// Reads an optional text.
    pub(crate) fn optional(&mut self, name: &'static str, rule: &Rule) -> Option<&'f str> {
        self.checked(name, false, rule, false)
    }

    /// Reads a required secret, which errors do not show.
    pub(crate) fn secret(&mut self, name: &'static str, rule: &Rule) -> Secret<'f> {
        Secret::new(self.checked(name, true, rule, true).unwrap_or_default())
    }

    /// Reads an optional number.
    pub(crate) fn number(&mut self, name: &'static str, (min, max): (u32, u32)) -> Option<u32> {
        self.ask(name, false, Kind::Number(min, max));
        let text = self.take(name)?;
        let constraint = match text.parse::<i64>() {
            Ok(number) if number > i64::from(max) => {
                format!("Member must have value less than or equal to {max}")
            }
            Ok(number) if number < i64::from(min) => {
                format!("Member must have value greater than or equal to {min}")
            }
            Ok(number) => return u32::try_from(number).ok(),
            // Not recorded.
            Err(_) => "Member must be an integer".to_owned(),
        };
        self.problem(member(name), Broken::Value(text), constraint);
        None
    }

    /// Reads an optional `true` or `false`.
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.ask(name, false, Kind::Flag);
        let text = self.take(name)?;
        if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
            return Some(text.eq_ignore_ascii_case("true"));
        }
        // Not recorded.
        self.problem(member(name), Broken::Value(text), "Member must be true or false".to_owned());
        None
    }

    /// Reads a required word of a fixed set. Returns `instead` if it is missing or wrong.
    pub(crate) fn word<W: Word>(&mut self, name: &'static str, instead: W) -> W {
        self.one_of(name, true).unwrap_or(instead)
    }

    /// Reads an optional word of a fixed set.
    pub(crate) fn optional_word<W: Word>(&mut self, name: &'static str) -> Option<W> {
        self.one_of(name, false)
    }

    /// Reads an optional list of words of a fixed set.
    pub(crate) fn words<W: Word>(&mut self, name: &'static str) -> Vec<W> {
        let all = W::ALL.iter().map(|word| word.as_str());
        self.ask(name, false, Kind::ListOfWords(all.collect()));
        let items = self.items(name).unwrap_or_default();
        let texts: Vec<&'f str> = items.iter().filter_map(|(_, fields)| self.field(fields, "")).collect();
        let known = |text: &&str| W::ALL.iter().copied().find(|word| word.as_str() == *text);
        let words: Vec<W> = texts.iter().filter_map(known).collect();
        if words.len() < items.len() {
            let constraint =
                "Member must satisfy constraint: [Member must satisfy enum value set]".to_owned();
            self.problem(member(name), Broken::Hidden, constraint);
        }
        words
    }

    /// Reads optional values of condition keys. The types that they are sent with are accepted and
    /// not used, since the operators of conditions decide on the types.
    pub(crate) fn context_entries(&mut self, name: &'static str) -> Vec<ContextEntry<'f>> {
        self.ask(name, false, Kind::ContextEntries);
        let mut entries = Vec::new();
        for (index, fields) in self.items(name).unwrap_or_default() {
            let key = self.field(&fields, "ContextKeyName");
            self.check(format!("{}.{index}.member.contextKeyName", member(name)), key, &CONTEXT_KEY);
            self.field(&fields, "ContextKeyType");
            self.field(&fields, "ContextKeyValues");
            let of_values = fields.iter().filter(|(field, _)| field.starts_with("ContextKeyValues.member."));
            let mut places: Vec<(usize, usize)> = of_values
                .filter_map(|(field, at)| Some((field.rsplit('.').next()?.parse().ok()?, *at)))
                .collect();
            places.sort_unstable();
            let values = places.into_iter().filter_map(|(_, at)| self.take_at(at)).collect();
            entries.push(ContextEntry { name: key.unwrap_or_default(), values });
        }
        entries
    }

    /// Reads a required list of texts.
    pub(crate) fn texts(&mut self, name: &'static str, rule: &ListRule) -> Vec<&'f str> {
        self.list_of_texts(name, true, rule)
    }

    /// Reads an optional list of texts.
    pub(crate) fn optional_texts(&mut self, name: &'static str, rule: &ListRule) -> Vec<&'f str> {
        self.list_of_texts(name, false, rule)
    }

    /// Reads required tags.
    pub(crate) fn tags(&mut self, name: &'static str) -> Vec<Tag<'f>> {
        self.list_of_tags(name, true)
    }

    /// Reads optional tags.
    pub(crate) fn optional_tags(&mut self, name: &'static str) -> Vec<Tag<'f>> {
        self.list_of_tags(name, false)
    }

    /// Reads the tags of a session. Two keys must differ in more than case (recorded).
    pub(crate) fn session_tags(&mut self, name: &'static str) -> Vec<Tag<'f>> {
        let tags = self.list_of_tags(name, false);
        let keys: BTreeSet<String> = tags.iter().map(|tag| tag.key.to_lowercase()).collect();
        if keys.len() < tags.len() {
            let message = "Duplicate tag keys found. Please note that Tag keys are case insensitive.";
            self.fail_later(|| QueryError::new(QueryCode::InvalidParameterValue, message));
        }
        tags
    }

    /// Reads the keys of the tags that a session passes on to the next one. Each has to be the key
    /// of a tag in the request (recorded); case does not matter.
    pub(crate) fn transitive_tag_keys(&mut self, name: &'static str, tags: &[Tag<'f>]) -> Vec<&'f str> {
        let keys = self.list_of_texts(name, false, &TAG_KEYS);
        let sent: BTreeSet<String> = tags.iter().map(|tag| tag.key.to_lowercase()).collect();
        if !keys.iter().all(|key| sent.contains(&key.to_lowercase())) {
            let message = "The specified transitive tag key must be included in the requested tags.";
            self.fail_later(|| QueryError::new(QueryCode::InvalidParameterValue, message));
        }
        keys
    }

    /// Reads the ARNs of the managed policies of a session.
    pub(crate) fn session_policies(&mut self, name: &'static str) -> Vec<&'f str> {
        self.ask(name, false, Kind::Arns(STS_ARN));
        let Some(items) = self.items(name) else { return Vec::new() };
        let mut arns = Vec::with_capacity(items.len());
        for (index, fields) in items {
            let path = format!("{}.{index}.member.arn", member(name));
            let arn = self.field(&fields, "arn");
            self.check(path, arn, &STS_ARN);
            let arn = arn.unwrap_or_default();
            if !is_policy_arn(arn) {
                self.fail_later(|| invalid_sts_arn(arn));
            }
            arns.push(arn);
        }
        arns
    }

    /// Reads the page that the request asks for.
    pub(crate) fn page(&mut self) -> Page {
        let marker = self.optional("Marker", &MARKER);
        let items = self.number("MaxItems", (1, PAGE_ITEMS_MAX));
        self.page_of(marker, items)
    }

    /// Reads the page of a list for which the model has the number of items before the marker.
    pub(crate) fn page_after_items(&mut self) -> Page {
        let items = self.number("MaxItems", (1, PAGE_ITEMS_MAX));
        let marker = self.optional("Marker", &MARKER);
        self.page_of(marker, items)
    }

    fn page_of(&mut self, marker: Option<&str>, items: Option<u32>) -> Page {
        Page::new(marker, items).unwrap_or_else(|error| {
            self.fail_later(|| error);
            Page::default()
        })
    }

    /// Reads the required ARN of a policy.
    pub(crate) fn policy_arn(&mut self, name: &'static str) -> &'f str {
        let arn = self.text(name, &ARN);
        if !is_policy_arn(arn) {
            let message = format!("ARN {arn} is not valid.");
            self.fail_later(|| QueryError::new(QueryCode::ValidationError, message));
        }
        arn
    }

    /// Reads the required ARN of a policy that is to be a boundary.
    pub(crate) fn boundary(&mut self, name: &'static str) -> &'f str {
        let arn = self.text(name, &ARN);
        self.check_boundary(arn);
        arn
    }

    /// Reads the optional ARN of a policy that is to be a boundary.
    pub(crate) fn optional_boundary(&mut self, name: &'static str) -> Option<&'f str> {
        let arn = self.optional(name, &ARN)?;
        self.check_boundary(arn);
        Some(arn)
    }

    /// Reads the required ARN of a role that is to be assumed.
    pub(crate) fn role_arn(&mut self, name: &'static str) -> &'f str {
        let arn = self.text(name, &STS_ARN);
        if !is_arn(arn) {
            self.fail_later(|| invalid_sts_arn(arn));
        }
        arn
    }

    /// Refuses parameters that the API model has and this server does not implement, naming them.
    pub(crate) fn refuse(&mut self, names: &[&'static str]) {
        for name in names {
            self.ask(name, false, Kind::Refused);
            let below = self.form.beginning_with(&format!("{name}."));
            if self.form.find(name).is_some() || !below.is_empty() {
                self.refused.get_or_insert_with(|| QueryError::parameter_not_implemented(name));
            }
        }
    }

    fn ask(&mut self, name: &'static str, is_required: bool, kind: Kind) {
        self.members.push(Member { name, is_required, kind });
    }

    fn take(&mut self, name: &str) -> Option<&'f str> {
        let at = self.form.find(name)?;
        self.take_at(at)
    }

    fn take_at(&mut self, at: usize) -> Option<&'f str> {
        if let Some(taken) = self.taken.get_mut(at) {
            *taken = true;
        }
        self.form.at(at).map(|(_, value)| value)
    }

    fn problem(&mut self, path: String, value: Broken<'f>, constraint: String) {
        self.problems.push(Problem { path, value, constraint });
    }

    fn checked(
        &mut self,
        name: &'static str,
        is_required: bool,
        rule: &Rule,
        hidden: bool,
    ) -> Option<&'f str> {
        self.ask(name, is_required, Kind::Text(*rule));
        let value = self.take(name);
        match value {
            None if is_required => self.problem(member(name), Broken::Null, NOT_NULL.to_owned()),
            None => {}
            Some(value) => {
                for constraint in rule.broken_by(value) {
                    let value = if hidden { Broken::Hidden } else { Broken::Value(value) };
                    self.problem(member(name), value, constraint);
                }
            }
        }
        value
    }

    /// Checks a required member of a list's item.
    fn check(&mut self, path: String, value: Option<&'f str>, rule: &Rule) {
        let Some(value) = value else { return self.problem(path, Broken::Null, NOT_NULL.to_owned()) };
        for constraint in rule.broken_by(value) {
            self.problem(path.clone(), Broken::Value(value), constraint);
        }
    }

    fn one_of<W: Word>(&mut self, name: &'static str, is_required: bool) -> Option<W> {
        self.ask(name, is_required, Kind::Words(W::ALL.iter().map(|word| word.as_str()).collect()));
        let Some(text) = self.take(name) else {
            if is_required {
                self.problem(member(name), Broken::Null, NOT_NULL.to_owned());
            }
            return None;
        };
        let word = W::ALL.iter().copied().find(|word| word.as_str() == text);
        if word.is_none() {
            let constraint = "Member must satisfy enum value set".to_owned();
            self.problem(member(name), Broken::Value(text), constraint);
        }
        word
    }

    fn list_of_texts(&mut self, name: &'static str, is_required: bool, rule: &ListRule) -> Vec<&'f str> {
        self.ask(name, is_required, Kind::Texts(*rule));
        let Some(items) = self.items(name) else {
            self.missing_list(name, is_required);
            return Vec::new();
        };
        let texts: Vec<&'f str> = items.iter().filter_map(|(_, fields)| self.field(fields, "")).collect();
        if texts.len() < items.len() {
            self.fail_later(|| malformed_list(name));
        }
        self.check_count(name, items.len(), rule.max);
        if texts.iter().any(|text| !rule.items.broken_by(text).is_empty()) {
            // IAM names all constraints of the items, whichever is broken (recorded).
            let mut constraints = rule.items.sentences();
            constraints.extend(rule.items_not_null.then(|| NOT_NULL.to_owned()));
            let constraint = format!("Member must satisfy constraint: [{}]", constraints.join(", "));
            self.problem(member(name), Broken::Hidden, constraint);
        }
        texts
    }

    fn list_of_tags(&mut self, name: &'static str, is_required: bool) -> Vec<Tag<'f>> {
        self.ask(name, is_required, Kind::Tags);
        let Some(items) = self.items(name) else {
            self.missing_list(name, is_required);
            return Vec::new();
        };
        self.check_count(name, items.len(), Some(TAGS_MAX));
        let mut tags = Vec::with_capacity(items.len());
        for (index, fields) in items {
            let [key, value] = [("Key", &TAG_KEY), ("Value", &TAG_VALUE)].map(|(field, rule)| {
                let value = self.field(&fields, field);
                self.check(format!("{}.{index}.member.{}", member(name), member(field)), value, rule);
                value.unwrap_or_default()
            });
            tags.push(Tag { key: key.into(), value: value.into() });
        }
        tags
    }

    fn missing_list(&mut self, name: &'static str, is_required: bool) {
        if is_required {
            self.problem(member(name), Broken::Null, NOT_NULL.to_owned());
        }
    }

    fn check_count(&mut self, name: &'static str, count: usize, max: Option<usize>) {
        if let Some(max) = max.filter(|max| count > *max) {
            let constraint = format!("Member must have length less than or equal to {max}");
            self.problem(member(name), Broken::Hidden, constraint);
        }
    }

    fn check_boundary(&mut self, arn: &str) {
        if !is_policy_arn(arn) {
            let message = format!("ARN {arn} is not valid.");
            self.fail_later(|| QueryError::new(QueryCode::InvalidInput, message));
        }
    }

    /// Returns the value of a field of an item, and marks the field as read. If an item is just a
    /// text, the name of the field is empty.
    fn field(&mut self, fields: &[(&'f str, usize)], name: &str) -> Option<&'f str> {
        let (_, at) = fields.iter().find(|(there, _)| *there == name)?;
        self.take_at(*at)
    }

    /// Returns the items of a list in order, each with its number, and the names and indexes of its
    /// fields; `None` if the form does not have the list. SDKs send an empty list as `Name=`. The
    /// numbers must begin with 1 and have no gaps.
    fn items(&mut self, name: &'static str) -> Option<Vec<Item<'f>>> {
        let beginning = format!("{name}.member.");
        let mut found: Vec<(usize, &'f str, usize)> = Vec::new();
        for at in self.form.beginning_with(&beginning) {
            let Some((_, rest)) =
                self.form.at(at).and_then(|(name, _)| name.split_at_checked(beginning.len()))
            else {
                continue;
            };
            let (number, field) = rest.split_once('.').unwrap_or((rest, ""));
            let canonical = number.parse().ok().filter(|n: &usize| n.to_string() == number);
            match canonical {
                Some(number) => found.push((number, field, at)),
                None => self.fail_later(|| malformed_list(name)),
            }
        }
        if found.is_empty() {
            let at = self
                .form
                .find(name)
                .filter(|at| self.form.at(*at).is_some_and(|(_, value)| value.is_empty()))?;
            self.take_at(at);
            return Some(Vec::new());
        }
        found.sort_unstable();
        let mut items: Vec<Item<'f>> = Vec::new();
        for (number, field, at) in found {
            match items.last_mut() {
                Some((last, fields)) if *last == number => fields.push((field, at)),
                _ => items.push((number, vec![(field, at)])),
            }
        }
        if !items.iter().map(|(number, _)| *number).eq(1..=items.len()) {
            self.fail_later(|| malformed_list(name));
        }
        Some(items)
    }
}

/// The number of an item, with the names and indexes of its fields.
type Item<'f> = (usize, Vec<(&'f str, usize)>);

fn invalid_sts_arn(arn: &str) -> QueryError {
    QueryError::new(QueryCode::ValidationError, format!("{arn} is invalid"))
}

fn malformed_list(name: &str) -> QueryError {
    let message = format!("The list {name} is not numbered from 1 on, as {name}.member.1.");
    QueryError::new(QueryCode::ValidationError, message)
}
