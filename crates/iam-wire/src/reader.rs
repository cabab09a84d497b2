//! Takes typed members from a form. A getter whose member is wrong returns something empty and
//! keeps the error, so that all errors are known when the last member is read.

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

/// The parameters of a form that belong to no input.
const OF_ALL: [&str; 2] = ["Action", "Version"];
const NOT_NULL: &str = "Member must not be null";

/// A member of an input, as it is asked for.
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

    /// True if it has to be there.
    pub const fn is_required(&self) -> bool {
        self.is_required
    }

    /// True if the API model has the member and it is refused here.
    pub const fn is_refused(&self) -> bool {
        matches!(self.kind, Kind::Refused)
    }
}

/// Writes `UserName! text 1..64 [\w+=,.@-]+`; `!` stands for required.
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
    /// Whether each parameter was asked for.
    taken: Vec<bool>,
    members: Vec<Member>,
    problems: Vec<Problem<'f>>,
    /// An error that counts if there are no problems.
    later: Option<QueryError>,
    /// An error that counts before all others.
    refused: Option<QueryError>,
}

impl<'f> Reader<'f> {
    pub(crate) fn new(form: &'f Form<'_>, service: Service) -> Self {
        let taken = vec![false; form.len()];
        let (members, problems) = (Vec::new(), Vec::new());
        Self { form, service, taken, members, problems, later: None, refused: None }
    }

    /// Returns the errors, if there are any. `changes` says that parameters which nobody asked for
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

    /// Keeps an error that counts if no constraint is broken. The first one stays.
    pub(crate) fn fail_later(&mut self, error: impl FnOnce() -> QueryError) {
        self.later.get_or_insert_with(error);
    }

    /// Takes a text that has to be there.
    pub(crate) fn text(&mut self, name: &'static str, rule: &Rule) -> &'f str {
        self.checked(name, true, rule, false).unwrap_or_default()
    }

    /// Takes a text that may be there.
    pub(crate) fn optional(&mut self, name: &'static str, rule: &Rule) -> Option<&'f str> {
        self.checked(name, false, rule, false)
    }

    /// Takes a secret that has to be there; errors do not show it.
    pub(crate) fn secret(&mut self, name: &'static str, rule: &Rule) -> Secret<'f> {
        Secret::new(self.checked(name, true, rule, true).unwrap_or_default())
    }

    /// Takes a number that may be there.
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

    /// Takes `true` or `false`, which may be there.
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

    /// Takes one of some words, which has to be there. `instead` is returned without it.
    pub(crate) fn word<W: Word>(&mut self, name: &'static str, instead: W) -> W {
        self.one_of(name, true).unwrap_or(instead)
    }

    /// Takes one of some words, which may be there.
    pub(crate) fn optional_word<W: Word>(&mut self, name: &'static str) -> Option<W> {
        self.one_of(name, false)
    }

    /// Takes a list of some words, which may be there.
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

    /// Takes the values of condition keys, which may be there. Their types are taken, and follow
    /// from the operators of conditions.
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

    /// Takes a list of texts that has to be there.
    pub(crate) fn texts(&mut self, name: &'static str, rule: &ListRule) -> Vec<&'f str> {
        self.list_of_texts(name, true, rule)
    }

    /// Takes a list of texts that may be there.
    pub(crate) fn optional_texts(&mut self, name: &'static str, rule: &ListRule) -> Vec<&'f str> {
        self.list_of_texts(name, false, rule)
    }

    /// Takes tags that have to be there.
    pub(crate) fn tags(&mut self, name: &'static str) -> Vec<Tag<'f>> {
        self.list_of_tags(name, true)
    }

    /// Takes tags that may be there.
    pub(crate) fn optional_tags(&mut self, name: &'static str) -> Vec<Tag<'f>> {
        self.list_of_tags(name, false)
    }

    /// Takes the tags of a session. Keys differ in more than case (recorded).
    pub(crate) fn session_tags(&mut self, name: &'static str) -> Vec<Tag<'f>> {
        let tags = self.list_of_tags(name, false);
        let keys: BTreeSet<String> = tags.iter().map(|tag| tag.key.to_lowercase()).collect();
        if keys.len() < tags.len() {
            let message = "Duplicate tag keys found. Please note that Tag keys are case insensitive.";
            self.fail_later(|| QueryError::new(QueryCode::InvalidParameterValue, message));
        }
        tags
    }

    /// Takes the keys of those tags that go on to the next session: each is the key of a tag that
    /// was sent (recorded), in which case does not matter.
    pub(crate) fn transitive_tag_keys(&mut self, name: &'static str, tags: &[Tag<'f>]) -> Vec<&'f str> {
        let keys = self.list_of_texts(name, false, &TAG_KEYS);
        let sent: BTreeSet<String> = tags.iter().map(|tag| tag.key.to_lowercase()).collect();
        if !keys.iter().all(|key| sent.contains(&key.to_lowercase())) {
            let message = "The specified transitive tag key must be included in the requested tags.";
            self.fail_later(|| QueryError::new(QueryCode::InvalidParameterValue, message));
        }
        keys
    }

    /// Takes the ARNs of managed policies of a session.
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

    /// Takes the page that is asked for.
    pub(crate) fn page(&mut self) -> Page {
        let marker = self.optional("Marker", &MARKER);
        let items = self.number("MaxItems", (1, PAGE_ITEMS_MAX));
        self.page_of(marker, items)
    }

    /// Takes the page of a list whose model has the number of items first.
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

    /// Takes the ARN of a policy, which has to be there.
    pub(crate) fn policy_arn(&mut self, name: &'static str) -> &'f str {
        let arn = self.text(name, &ARN);
        if !is_policy_arn(arn) {
            let message = format!("ARN {arn} is not valid.");
            self.fail_later(|| QueryError::new(QueryCode::ValidationError, message));
        }
        arn
    }

    /// Takes the ARN of a policy that is to be a boundary, which has to be there.
    pub(crate) fn boundary(&mut self, name: &'static str) -> &'f str {
        let arn = self.text(name, &ARN);
        self.check_boundary(arn);
        arn
    }

    /// Takes the ARN of a policy that is to be a boundary, which may be there.
    pub(crate) fn optional_boundary(&mut self, name: &'static str) -> Option<&'f str> {
        let arn = self.optional(name, &ARN)?;
        self.check_boundary(arn);
        Some(arn)
    }

    /// Takes the ARN of a role to be assumed, which has to be there.
    pub(crate) fn role_arn(&mut self, name: &'static str) -> &'f str {
        let arn = self.text(name, &STS_ARN);
        if !is_arn(arn) {
            self.fail_later(|| invalid_sts_arn(arn));
        }
        arn
    }

    /// Refuses parameters that the API model has and this server does not honour, by their names.
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

    /// Checks a member of an item of a list, which has to be there.
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

    /// Returns the value of a field of an item, and marks it as asked for. The field of an item
    /// that is a text has no name.
    fn field(&mut self, fields: &[(&'f str, usize)], name: &str) -> Option<&'f str> {
        let (_, at) = fields.iter().find(|(there, _)| *there == name)?;
        self.take_at(*at)
    }

    /// Returns the items of a list in order, each with its number and its fields (name and place);
    /// `None` if there is no list. An empty list is `Name=`, as SDKs send it. Numbers begin with 1
    /// and leave none out.
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

/// The number of an item, and its fields.
type Item<'f> = (usize, Vec<(&'f str, usize)>);

fn invalid_sts_arn(arn: &str) -> QueryError {
    QueryError::new(QueryCode::ValidationError, format!("{arn} is invalid"))
}

fn malformed_list(name: &str) -> QueryError {
    let message = format!("The list {name} is not numbered from 1 on, as {name}.member.1.");
    QueryError::new(QueryCode::ValidationError, message)
}
