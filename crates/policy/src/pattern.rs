//! Patterns in policies, with `*`, `?` and variables, which values of requests are compared with.

mod searching;
mod tokens;

use std::borrow::Cow;
use std::mem::take;

use memchr::memmem;

use self::tokens::{Token, Values, backward, forward};
use crate::catalogue::Key;
use crate::facts::{Certainty, Facts, Value};
use crate::fault::Fault;
use crate::limits::{FLOATING_CHARS_MAX, VARIABLES_MAX};

/// The characters that have a special meaning in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Special {
    /// True if `${...}` is a variable.
    pub variables: bool,
    /// True if `*` and `?` are wildcards.
    pub wildcards: bool,
    /// True if letters match without regard to case.
    pub any_case: bool,
}

/// A pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    form: Form,
    variables: Box<[Variable]>,
    any_case: bool,
}

#[derive(Debug, Clone)]
enum Form {
    /// The pattern is `*`.
    Any,
    /// The pattern has no `*`, `?` and variables.
    Exact(Box<[u8]>),
    /// The pattern's only special character is a `*` at the end.
    Prefix(Box<[u8]>),
    Parts(Box<Parts>),
}

/// The parts of a pattern: before the first `*`, between each two, and after the last one.
#[derive(Debug, Clone)]
struct Parts {
    head: Box<[Token]>,
    floating: Box<[Floating]>,
    /// The part after the last `*`; `None` if there is no `*`.
    tail: Option<Box<[Token]>>,
}

#[derive(Debug, Clone)]
enum Floating {
    /// A plain text, which is searched for in linear time.
    Text(Box<[u8]>),
    Tokens(Box<[Token]>),
}

/// A variable, with the default that is used if the request has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    key: Key,
    default: Option<Box<str>>,
}

impl Pattern {
    /// Reads a text.
    pub fn new(text: &str, special: Special) -> Result<Self, Fault> {
        let (pieces, variables) = Pieces::read(text, special)?;
        let form = form(pieces)?;
        Ok(Self { form, variables: variables.into(), any_case: special.any_case })
    }

    /// True if the pattern matches one text only, since it has no wildcards and variables.
    pub const fn is_fixed(&self) -> bool {
        matches!(self.form, Form::Exact(_))
    }

    /// True if the value of a variable is a tag of the object.
    pub fn needs_object(&self) -> bool {
        self.variables.iter().any(|variable| variable.key.is_of_object())
    }

    /// Returns the keys of the variables that have no default. The pattern matches nothing unless
    /// each of them has a value.
    pub fn needed_keys(&self) -> impl Iterator<Item = &Key> {
        self.variables.iter().filter(|variable| variable.default.is_none()).map(|variable| &variable.key)
    }

    /// Compares the pattern with a text. The pattern must not have variables, since these have no
    /// values here.
    pub fn matches_plain(&self, text: &str) -> bool {
        self.matches(text.as_bytes(), &NoFacts) == Certainty::Yes
    }

    /// Compares the pattern with a text. If a variable has no value, the pattern does not match.
    pub fn matches(&self, text: &[u8], facts: &dyn Facts) -> Certainty {
        match &self.form {
            Form::Any => Certainty::Yes,
            Form::Exact(exact) => (**exact == *text).into(),
            Form::Prefix(prefix) => text.starts_with(prefix).into(),
            Form::Parts(parts) if self.variables.is_empty() => {
                parts.matches(text, &[const { None }; VARIABLES_MAX]).into()
            }
            Form::Parts(parts) => {
                let mut values = [const { None }; VARIABLES_MAX];
                match self.resolve(facts, &mut values) {
                    Certainty::Yes => parts.matches(text, &values).into(),
                    other => other,
                }
            }
        }
    }

    /// Finds the values of the variables. Returns `No` if one has none, and `Perhaps` if one
    /// depends on the object.
    fn resolve<'v>(&'v self, facts: &'v dyn Facts, values: &mut Values<'v>) -> Certainty {
        let mut known = Certainty::Yes;
        for (variable, place) in self.variables.iter().zip(values) {
            let value = match facts.value(&variable.key) {
                Value::One(value) => Some(value),
                // A key with several values is none of a variable.
                Value::Many(_) | Value::Absent => variable.default.as_deref().map(Cow::Borrowed),
                Value::Unknown => {
                    known = known.and(Certainty::Perhaps);
                    continue;
                }
            };
            let Some(value) = value else { return Certainty::No };
            *place = Some(if self.any_case { value.to_lowercase().into() } else { value });
        }
        known
    }
}

struct NoFacts;

impl Facts for NoFacts {
    fn value(&self, _: &Key) -> Value<'_> {
        Value::Absent
    }
}

/// Chooses the simplest form for a pattern, which was split at each `*`.
fn form(mut pieces: Vec<Vec<Token>>) -> Result<Form, Fault> {
    match &mut pieces[..] {
        [only] if only.is_empty() => return Ok(Form::Exact(Box::default())),
        [only] => {
            if let [Token::Text(text)] = &mut only[..] {
                return Ok(Form::Exact(take(text)));
            }
        }
        [head, tail] if tail.is_empty() => match &mut head[..] {
            [] => return Ok(Form::Any),
            [Token::Text(text)] => return Ok(Form::Prefix(take(text))),
            _ => {}
        },
        _ => {}
    }
    let mut pieces = pieces.into_iter();
    let head = pieces.next().unwrap_or_default().into();
    let tail = pieces.next_back().map(Into::into);
    let floating = pieces.filter(|piece| !piece.is_empty()).map(floating).collect::<Result<_, _>>()?;
    Ok(Form::Parts(Box::new(Parts { head, floating, tail })))
}

fn floating(mut piece: Vec<Token>) -> Result<Floating, Fault> {
    if let [Token::Text(text)] = &mut piece[..] {
        return Ok(Floating::Text(take(text)));
    }
    let chars = |token: &Token| match token {
        Token::Text(text) => text.len(),
        Token::One | Token::Variable(_) => 1,
    };
    if piece.iter().map(chars).sum::<usize>() > FLOATING_CHARS_MAX {
        return Err(Fault::Pattern);
    }
    Ok(Floating::Tokens(piece.into()))
}

impl Parts {
    fn matches(&self, text: &[u8], values: &Values<'_>) -> bool {
        let Some(after) = forward(&self.head, text, values) else { return false };
        let mut rest = &text[after..];
        let Some(tail) = &self.tail else { return rest.is_empty() };
        let Some(before) = backward(tail, rest, values) else { return false };
        rest = &rest[..before];
        // The first place is the best one: it leaves most to those that follow.
        self.floating.iter().all(|piece| match piece.first_end(rest, values) {
            Some(end) => {
                rest = &rest[end..];
                true
            }
            None => false,
        })
    }
}

impl Floating {
    /// Finds the first place in the text at which the part matches, and returns where the match
    /// ends.
    fn first_end(&self, text: &[u8], values: &Values<'_>) -> Option<usize> {
        match self {
            Self::Text(wanted) => memmem::find(text, wanted).map(|at| at + wanted.len()),
            Self::Tokens(tokens) => searching::first_end(tokens, text, values),
        }
    }
}

/// The state of reading a pattern.
struct Pieces {
    done: Vec<Vec<Token>>,
    text: String,
    variables: Vec<Variable>,
    any_case: bool,
}

impl Pieces {
    /// Splits a text at each `*`, and reads the parts and the variables.
    fn read(text: &str, special: Special) -> Result<(Vec<Vec<Token>>, Vec<Variable>), Fault> {
        let (done, variables) = (vec![Vec::new()], Vec::new());
        let mut read = Self { done, text: String::new(), variables, any_case: special.any_case };
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            match first {
                '$' if special.variables && rest.starts_with("${") => {
                    let length = read.variable(rest)?;
                    rest = &rest[length..];
                    continue;
                }
                '*' if special.wildcards => {
                    read.end_text();
                    read.done.push(Vec::new());
                }
                '?' if special.wildcards => read.push(Token::One),
                other => read.text.push(other),
            }
            rest = &rest[first.len_utf8()..];
        }
        read.end_text();
        Ok((read.done, read.variables))
    }

    fn push(&mut self, token: Token) {
        self.end_text();
        if let Some(piece) = self.done.last_mut() {
            piece.push(token);
        }
    }

    fn end_text(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let text = take(&mut self.text);
        let text = if self.any_case { text.to_lowercase() } else { text };
        if let Some(piece) = self.done.last_mut() {
            piece.push(Token::Text(text.into_bytes().into()));
        }
    }

    /// Reads a variable at the beginning of a text, and returns its length in the text.
    fn variable(&mut self, text: &str) -> Result<usize, Fault> {
        let wrong = || Fault::Variable(text.chars().take(80).collect());
        let inside = &text[2..];
        if let Some(literal) = ["*}", "?}", "$}"].into_iter().find(|literal| inside.starts_with(literal)) {
            self.text.push_str(&literal[..1]);
            return Ok(4);
        }
        let end = inside.find(['}', ',', '\'']).ok_or_else(wrong)?;
        let key = Key::named(&inside[..end]).filter(|key| !key.is_many()).ok_or_else(wrong)?;
        let after = &inside[end..];
        let (default, length) = if after.starts_with('}') {
            (None, end + 1)
        } else {
            let quoted =
                after.strip_prefix(',').map(str::trim_start).and_then(|rest| rest.strip_prefix('\''));
            let (default, rest) = quoted.and_then(|rest| rest.split_once('\'')).ok_or_else(wrong)?;
            let rest = rest.strip_prefix('}').ok_or_else(wrong)?;
            (Some(default.into()), inside.len() - rest.len())
        };
        let variable = Variable { key, default };
        let known = self.variables.iter().position(|other| *other == variable);
        let place = known.unwrap_or(self.variables.len());
        if place >= VARIABLES_MAX {
            return Err(Fault::Pattern);
        }
        if known.is_none() {
            self.variables.push(variable);
        }
        self.push(Token::Variable(u8::try_from(place).map_err(|_| Fault::Pattern)?));
        Ok(2 + length)
    }
}

#[cfg(test)]
mod tests;
