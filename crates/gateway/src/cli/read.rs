//! Reads the command line, the environment and the file.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use toml::Spanned;

use super::command::{Cli, Command};
use super::reference::key;
use crate::config::ServeOptions;
use crate::text::{line_of, unreadable};
use crate::values::nearest;

/// Options that have an effect only with another option, each with that one.
const NEEDS: [(&str, &str); 22] = [
    ("access_log_format", "access_log"),
    ("audit_log_required", "audit_log"),
    ("traces_ratio", "traces"),
    ("traces_from", "traces"),
    ("identities_credentials_file", "identities"),
    ("identities_credentials_command", "identities"),
    ("identities_ca", "identities"),
    ("ldap_in_clear", "ldap_server"),
    ("ldap_ca", "ldap_server"),
    ("ldap_client_cert", "ldap_server"),
    ("ldap_client_key", "ldap_server"),
    ("ldap_bind_dn", "ldap_server"),
    ("ldap_bind_password_file", "ldap_server"),
    ("ldap_bind_password_command", "ldap_server"),
    ("ldap_base", "ldap_server"),
    ("ldap_user_filter", "ldap_server"),
    ("ldap_name_attribute", "ldap_server"),
    ("ldap_access_key_attribute", "ldap_server"),
    ("ldap_secret_key_attribute", "ldap_server"),
    ("ldap_group_base", "ldap_server"),
    ("ldap_group_filter", "ldap_server"),
    ("ldap_attempts", "ldap_server"),
];

/// The values of the options of `serve`, by the names of their fields.
pub type Values = BTreeMap<String, Vec<OsString>>;

/// The command line, and the values of `serve`'s options from all sources.
#[derive(Debug)]
pub struct Said {
    /// The command line.
    pub arguments: Vec<OsString>,
    /// The values that the command line, the environment and the file give together.
    pub values: Values,
}

/// An option in the configuration file.
struct Setting {
    id: String,
    key: String,
    line: usize,
    values: Vec<OsString>,
}

impl Cli {
    /// Reads the command line, the environment and, for `serve`, the configuration file. It also
    /// returns the values of `serve`'s options. The file is read once, so that both results are of
    /// the same contents.
    pub fn read(args: &[OsString]) -> Result<(Self, Values), clap::Error> {
        let matches = Self::matches(args)?;
        let mut values = Values::new();
        if let Some(serve) = matches.subcommand_matches("serve") {
            for id in serve.ids().map(clap::Id::as_str) {
                let said = serve.get_raw(id).into_iter().flatten().map(OsStr::to_owned);
                values.insert(id.to_owned(), said.collect());
            }
        }
        Ok((Self::from_arg_matches(&matches)?, values))
    }

    /// Does the same as [`Cli::read`] for `serve` only, and returns its options.
    pub fn read_serve(args: &[OsString]) -> Result<(ServeOptions, Values), clap::Error> {
        match Self::read(args)? {
            (Self { command: Command::Serve(options) }, values) => Ok((*options, values)),
            _ => Err(error(ErrorKind::InvalidSubcommand, "not serve".to_owned())),
        }
    }

    /// Returns the message about a wrong option. If the option is set in the file, its place there
    /// is added, since the message itself names the flag.
    pub fn located(args: &[OsString], message: String) -> String {
        let mut settings = Vec::new();
        let Ok(matches) = Self::matches_with(args, &mut settings) else { return message };
        let Some(serve) = matches.subcommand_matches("serve") else { return message };
        let Some(file) = serve.get_one::<PathBuf>("config") else { return message };
        let word = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
        // What the file says are defaults.
        let meant = settings.iter().find(|one| {
            serve.value_source(&one.id) == Some(ValueSource::DefaultValue)
                && message.split(word).any(|word| word.strip_prefix("--") == Some(&one.key))
        });
        meant.map_or(message.clone(), |one| format!("{}: line {}: {message}", file.display(), one.line))
    }

    fn matches(args: &[OsString]) -> Result<ArgMatches, clap::Error> {
        Self::matches_with(args, &mut Vec::new())
    }

    /// Parses the command line together with the file, and adds the file's options to `settings`.
    fn matches_with(args: &[OsString], settings: &mut Vec<Setting>) -> Result<ArgMatches, clap::Error> {
        let mut command = Self::command();
        // The file may name the directory.
        let first = command.clone().mut_subcommand("serve", |s| s.mut_arg("dir", |dir| dir.required(false)));
        let matches = first.try_get_matches_from(args).map_err(|e| name_variable(e, args))?;
        let file = matches.subcommand_matches("serve").and_then(|serve| serve.get_one::<PathBuf>("config"));
        let Some(file) = file else {
            let matches = command.try_get_matches_from(args).map_err(no_directory)?;
            return without_effect(&matches, &[])
                .map_or(Ok(matches), |(_, e)| Err(error(ErrorKind::MissingRequiredArgument, e)));
        };
        // The file's values become the defaults of a second pass, so that flags and environment
        // win.
        *settings = file_values(file, &command).map_err(|e| error(ErrorKind::ValueValidation, e))?;
        for one in &*settings {
            command = command.mut_subcommand("serve", |serve| {
                serve.mut_arg(&one.id, |arg| arg.required(false).default_values(one.values.clone()))
            });
        }
        let matches = command.try_get_matches_from(args).map_err(|e| in_file(&e, file, settings))?;
        match without_effect(&matches, settings) {
            None => Ok(matches),
            Some((one, e)) => {
                let place =
                    one.map_or_else(String::new, |one| format!("{}: line {}: ", file.display(), one.line));
                Err(error(ErrorKind::MissingRequiredArgument, format!("{place}{e}")))
            }
        }
    }
}

/// Returns the message about an option that is given (as a flag, variable or key) without the
/// option that it needs. It comes with the option's setting in the file, if it is set there.
fn without_effect<'a>(
    matches: &ArgMatches,
    settings: &'a [Setting],
) -> Option<(Option<&'a Setting>, String)> {
    let serve = matches.subcommand_matches("serve")?;
    NEEDS.iter().find_map(|&(id, other)| {
        // What the file says are defaults.
        let is_default = serve.value_source(id) == Some(ValueSource::DefaultValue);
        let setting = settings.iter().find(|one| is_default && one.id == id);
        if (is_default && setting.is_none()) || !serve.contains_id(id) || serve.contains_id(other) {
            return None;
        }
        let (flag, other) = (id.replace('_', "-"), other.replace('_', "-"));
        Some((
            setting,
            format!(
                "--{flag} has no effect without --{other}: give --{other} as well, or leave out --{flag}"
            ),
        ))
    })
}

/// Makes the error for a command line without a directory and without a file.
fn no_directory(e: clap::Error) -> clap::Error {
    if e.kind() != ErrorKind::MissingRequiredArgument {
        return e;
    }
    let cure = "name the directory to serve, as DIR on the command line, in SLIPWAY_DIR, or as dir = \"...\" in a \
                file for --config";
    error(e.kind(), format!("nothing to serve: {cure}"))
}

/// Makes the error for the second pass, in which only the options in the file can be wrong.
fn in_file(e: &clap::Error, file: &Path, settings: &[Setting]) -> clap::Error {
    let file = file.display();
    if e.kind() == ErrorKind::MissingRequiredArgument {
        let cure = "name the directory to serve, as DIR on the command line or dir = \"...\" in this file";
        return error(e.kind(), format!("{file}: nothing to serve: {cure}"));
    }
    let meant = settings.iter().find(|one| key_of(e).as_deref() == Some(&one.key));
    let line = meant.map_or_else(String::new, |one| format!("line {}: ", one.line));
    error(e.kind(), format!("{file}: {line}{}", sentence(e)))
}

/// Makes an error about `serve`.
pub(super) fn error(kind: ErrorKind, message: String) -> clap::Error {
    // The file or the environment may name the directory.
    let mut command = Cli::command().mut_subcommand("serve", |s| s.mut_arg("dir", |dir| dir.required(false)));
    command.build();
    match command.find_subcommand_mut("serve") {
        Some(serve) => serve.error(kind, message),
        None => command.error(kind, message),
    }
}

/// Returns the message of an error, without usage and hints.
pub fn sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let lines = text.split("\n\n").next().unwrap_or_default().lines();
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Returns the key of the option that an error concerns, if any. The error names it in a form such
/// as `--listen <ADDR>` or `<DIR>`.
fn key_of(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(arg)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = arg.split_whitespace().next()?;
    let flag = name.strip_prefix("--").map(ToOwned::to_owned);
    flag.or_else(|| Some(name.trim_matches(['<', '>', '[', ']']).to_ascii_lowercase()))
}

/// True if the value that an error concerns was given on the command line.
fn is_typed(error: &clap::Error, option: &clap::Arg, args: &[OsString]) -> bool {
    let Some(long) = option.get_long() else {
        let value = error.get(ContextKind::InvalidValue).map(ToString::to_string);
        return args.iter().any(|given| Some(given.to_string_lossy().as_ref()) == value.as_deref());
    };
    let flag = format!("--{long}");
    args.iter().any(|given| given.to_string_lossy().split('=').next() == Some(&flag))
}

/// Names the variable in an error about a value from the environment: clap names the flag, which
/// was not given.
fn name_variable(e: clap::Error, args: &[OsString]) -> clap::Error {
    let Some(meant) = key_of(&e) else { return e };
    let command = Cli::command();
    let options = command.find_subcommand("serve").map(clap::Command::get_arguments).into_iter().flatten();
    let mut named = options.filter(|option| option.get_long().unwrap_or(option.get_id().as_str()) == meant);
    let named = named.next().and_then(|option| Some((option, option.get_env()?)));
    match named {
        Some((option, variable)) if std::env::var_os(variable).is_some() && !is_typed(&e, option, args) => {
            error(e.kind(), format!("in {}: {}", OsStr::to_string_lossy(variable), sentence(&e)))
        }
        _ => e,
    }
}

/// Returns the arguments of `serve` that a file may set, each with its id and its key.
fn file_arguments(command: &clap::Command) -> Vec<(String, String)> {
    let serve = command.find_subcommand("serve").map(clap::Command::get_arguments).into_iter().flatten();
    serve.filter_map(|arg| Some((arg.get_id().to_string(), key(arg)?.to_owned()))).collect()
}

fn file_values(file: &Path, command: &clap::Command) -> Result<Vec<Setting>, String> {
    let says = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let text = std::fs::read_to_string(file).map_err(|e| format!("--config {}", says(&unreadable(&e))))?;
    let table: BTreeMap<Spanned<String>, Spanned<toml::Value>> = toml::from_str(&text).map_err(|e| {
        let line = line_of(&text, e.span().map_or(0, |span| span.start));
        says(&format_args!("line {line}: {}", not_toml(e.message())))
    })?;
    let known = file_arguments(command);
    let mut settings = Vec::new();
    for (name, given) in &table {
        let (key, line) = (name.get_ref(), line_of(&text, name.span().start));
        let on_line = |e: &dyn std::fmt::Display| says(&format_args!("line {line}: {e}"));
        let Some((id, _)) = known.iter().find(|(_, known)| known == key) else {
            return Err(on_line(&unknown_key(key, &known)));
        };
        let values = values_of(command, id, key, given.get_ref()).map_err(|e| on_line(&e))?;
        if values.is_empty() && key == "listen" {
            return Err(on_line(
                &"listen: the list is empty: give an address, or leave out the key for the default",
            ));
        }
        settings.push(Setting { id: id.clone(), key: key.clone(), line, values });
    }
    Ok(settings)
}

/// Returns the message about a text that is not TOML, from the parser's. The parser's full text
/// quotes the line, which may be a secret if this is the wrong file; its sentence quotes only
/// numbers that are too large.
fn not_toml(sentence: &str) -> String {
    if sentence.starts_with("invalid type") {
        return "a number is larger than any option allows".to_owned();
    }
    let sentence = sentence.replace('\n', " ");
    format!("not valid TOML: expected key = value, with strings in quotes and each key once: {sentence}")
}

fn unknown_key(key: &str, known: &[(String, String)]) -> String {
    let names: Vec<_> = known.iter().map(|(_, key)| key.as_str()).collect();
    match nearest(key, &names, 0) {
        Some(near) => format!("unknown key {key:?}: did you mean {near:?}?"),
        None => format!("unknown key {key:?}: the known keys are {}", names.join(", ")),
    }
}

/// Returns the values of an option in the file, in the form of the command line.
fn values_of(
    command: &clap::Command,
    id: &str,
    key: &str,
    given: &toml::Value,
) -> Result<Vec<OsString>, String> {
    let switch = is_switch(command, id);
    let value = |value: &toml::Value| match value {
        _ if switch => Err(format!("{key}: expected true or false")),
        toml::Value::String(text) => Ok(OsString::from(text)),
        // TOML knows octal numbers, but not whether this one was meant to be one.
        toml::Value::Integer(_) if key.ends_with("-mode") => {
            Err(format!("{key}: expected a string such as \"0640\""))
        }
        toml::Value::Integer(number) if is_number(command, id) || key.ends_with("-ratio") => {
            Ok(number.to_string().into())
        }
        toml::Value::Integer(_) if key.ends_with("listen") => {
            Err(format!("{key}: expected a string such as \"127.0.0.1:9000\", or unix:PATH"))
        }
        toml::Value::Integer(number) => Err(format!("{key}: expected a string, such as \"{number}\"")),
        toml::Value::Float(number) if key.ends_with("-ratio") => Ok(number.to_string().into()),
        toml::Value::Float(_) if is_number(command, id) => Err(format!("{key}: expected a whole number")),
        _ => Err(format!("{key}: expected a string, a number or a list of strings")),
    };
    match given {
        toml::Value::Array(_) if !takes_many(command, id) => {
            Err(format!("{key}: expected one value, not a list"))
        }
        toml::Value::Boolean(on) if switch => Ok(vec![on.to_string().into()]),
        toml::Value::Boolean(on) if is_on_or_off(command, id) => {
            Ok(vec![if *on { "on" } else { "off" }.into()])
        }
        toml::Value::Array(items) => items.iter().map(value).collect(),
        single => Ok(vec![value(single)?]),
    }
}

/// True if the option takes a number, which is the case if its default is a number.
fn is_number(command: &clap::Command, id: &str) -> bool {
    has(command, id, |arg| {
        arg.get_default_values().iter().any(|value| value.to_string_lossy().parse::<u64>().is_ok())
    })
}

fn takes_many(command: &clap::Command, id: &str) -> bool {
    has_action(command, id, |action| matches!(action, clap::ArgAction::Append))
}

fn is_switch(command: &clap::Command, id: &str) -> bool {
    has_action(command, id, |action| matches!(action, clap::ArgAction::SetTrue))
}

fn is_on_or_off(command: &clap::Command, id: &str) -> bool {
    has(command, id, |arg| arg.get_possible_values().iter().any(|value| value.get_name() == "off"))
}

fn has_action(command: &clap::Command, id: &str, is: impl Fn(&clap::ArgAction) -> bool) -> bool {
    has(command, id, |arg| is(arg.get_action()))
}

fn has(command: &clap::Command, id: &str, is: impl Fn(&clap::Arg) -> bool) -> bool {
    let mut serve = command.find_subcommand("serve").map(clap::Command::get_arguments).into_iter().flatten();
    serve.any(|arg| arg.get_id() == id && is(arg))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(args: &[&str]) -> Result<ServeOptions, String> {
        let args: Vec<_> = ["slipway", "serve"].iter().chain(args).map(OsString::from).collect();
        match Cli::read(&args).map_err(|e| e.to_string())?.0.command {
            Command::Serve(options) => Ok(*options),
            _ => Err("not serve".to_owned()),
        }
    }

    #[test]
    fn the_file_gives_defaults_and_flags_win() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("slipway.toml");
        std::fs::write(
            &file,
            "listen = [\":1\", \":2\"]\nregion = \"x\"\nidle-timeout = 7\ntrust-versitygw = true\n",
        )
        .unwrap();
        let config = file.to_str().unwrap();
        let options = read(&["--config", config, "/data"]).unwrap();
        let listen: Vec<_> = options.listen.iter().map(ToString::to_string).collect();
        assert_eq!(
            (listen, options.region.as_str()),
            (vec!["0.0.0.0:1".to_owned(), "0.0.0.0:2".to_owned()], "x")
        );
        assert_eq!(options.idle_timeout, Duration::from_secs(7));
        assert!(options.trust_versitygw && !read(&["/data"]).unwrap().trust_versitygw);
        assert_eq!(read(&["--config", config, "--region", "y", "/data"]).unwrap().region, "y");
    }

    #[test]
    fn the_file_may_name_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("slipway.toml");
        std::fs::write(&file, "dir = \"/srv\"\n").unwrap();
        let config = file.to_str().unwrap();
        assert_eq!(read(&["--config", config]).unwrap().dir, "/srv");
        assert_eq!(read(&["--config", config, "/data"]).unwrap().dir, "/data");
        let nothing = read(&[]).unwrap_err();
        assert!(nothing.contains("in SLIPWAY_DIR, or as dir =") && nothing.contains("[DIR]"), "{nothing}");
    }

    /// Gives a nonsensical value to each option of a command and of its subcommands; returns the
    /// error messages.
    fn give_nonsense(command: &clap::Command, words: &[String]) -> Vec<(String, String)> {
        let mut told = Vec::new();
        for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
            let words = words.iter().cloned().chain([format!("--{flag}"), "1 x/".to_owned()]);
            if let Err(error) = Cli::command().try_get_matches_from(words) {
                told.push((flag.to_owned(), error.to_string()));
            }
        }
        for below in command.get_subcommands() {
            let words: Vec<String> = words.iter().cloned().chain([below.get_name().to_owned()]).collect();
            told.extend(give_nonsense(below, &words));
        }
        told
    }

    #[test]
    fn what_a_number_has_to_be_is_said_in_a_sentence() {
        let told = give_nonsense(&Cli::command(), &["slipway".to_owned()]);
        for flag in ["nodes", "cpus", "ready-free", "min-age", "page", "growth", "index-cache"] {
            assert!(told.iter().any(|(told, error)| told == flag && error.contains("a ")), "{flag}");
        }
        for (flag, error) in told {
            assert!(!error.contains("found in string") && !error.contains("integer"), "{flag}: {error}");
        }
    }

    #[test]
    fn errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("slipway.toml");
        let config = file.to_str().unwrap();
        for (text, says) in [
            ("regoin = \"x\"", "unknown key \"regoin\""),
            ("durability = \"perhaps\"", "invalid value 'perhaps' for '--durability"),
            ("listen = []", "the list is empty"),
            ("region = [\"a\", \"b\"]", "expected one value"),
            ("region = true", "expected a string"),
            ("region = 5", "region: expected a string, such as \"5\""),
            ("listen = 5", "listen: expected a string such as \"127.0.0.1:9000\", or unix:PATH"),
            ("log = 7", "log: expected a string"),
            ("domain = [3]", "domain: expected a string"),
            ("region", "line 1: not valid TOML: expected key = value"),
            ("\nregion = \"a b\"", "line 2: invalid value 'a b' for '--region"),
            ("", "nothing to serve: name the directory"),
            ("regino = \"x\"", "line 1: unknown key \"regino\": did you mean \"region\"?"),
            ("file-mode = 0o640", "expected a string such as"),
        ] {
            std::fs::write(&file, text).unwrap();
            let dir: &[&str] = if text.is_empty() { &[] } else { &["/data"] };
            let error = read(&[&["--config", config], dir].concat()).unwrap_err();
            assert!(error.contains(&format!("error: {config}: ")) && error.contains(says), "{error}");
            assert!(error.contains("Usage: slipway serve"), "{error}");
        }
    }
}
