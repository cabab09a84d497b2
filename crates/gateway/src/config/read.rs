//! Reading the command line, the environment and the file.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use super::reference::key;
use super::{Cli, Command, ServeOptions};

/// What options say, by their fields.
pub type Values = BTreeMap<String, Vec<OsString>>;

impl Cli {
    /// Reads the command line, the environment and, for `serve`, the configuration file.
    pub fn read(args: &[OsString]) -> Result<Self, clap::Error> {
        Self::from_arg_matches(&Self::matches(args)?)
    }

    /// [`Cli::read`], of `serve` alone: also what each option says, by its field.
    pub fn read_serve(args: &[OsString]) -> Result<(ServeOptions, Values), clap::Error> {
        let matches = Self::matches(args)?;
        let Command::Serve(options) = Self::from_arg_matches(&matches)?.command else {
            return Err(error(ErrorKind::InvalidSubcommand, "not serve".to_owned()));
        };
        let mut values = Values::new();
        if let Some(serve) = matches.subcommand_matches("serve") {
            for id in serve.ids().map(clap::Id::as_str) {
                let said = serve.get_raw(id).into_iter().flatten().map(OsStr::to_owned);
                values.insert(id.to_owned(), said.collect());
            }
        }
        Ok((*options, values))
    }

    fn matches(args: &[OsString]) -> Result<ArgMatches, clap::Error> {
        let mut command = Self::command();
        // The file may name the directory.
        let first = command.clone().mut_subcommand("serve", |s| s.mut_arg("dir", |dir| dir.required(false)));
        let matches = first.try_get_matches_from(args).map_err(|e| name_variable(e, args))?;
        let file = matches.subcommand_matches("serve").and_then(|serve| serve.get_one::<PathBuf>("config"));
        let Some(file) = file else { return command.try_get_matches_from(args) };
        // The file's values become the defaults of a second pass, so that flags and environment
        // win.
        for (id, values) in file_values(file, &command).map_err(|e| error(ErrorKind::ValueValidation, e))? {
            command = command.mut_subcommand("serve", |serve| {
                serve.mut_arg(id, |arg| arg.required(false).default_values(values))
            });
        }
        command.try_get_matches_from(args).map_err(|e| match e.kind() {
            ErrorKind::MissingRequiredArgument => e,
            // All the rest was in order without the file.
            kind => error(kind, format!("{}: {}", file.display(), sentence(&e))),
        })
    }
}

/// An error about `serve`.
pub(super) fn error(kind: ErrorKind, message: String) -> clap::Error {
    let mut command = Cli::command();
    command.build();
    match command.find_subcommand_mut("serve") {
        Some(serve) => serve.error(kind, message),
        None => command.error(kind, message),
    }
}

/// What is wrong, without usage and hints.
pub fn sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    text.split("\n\n").next().unwrap_or_default().trim_end().to_owned()
}

/// Says so where a bad value comes from the environment: clap names the flag, which nobody has
/// typed.
fn name_variable(e: clap::Error, args: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(arg)) = e.get(ContextKind::InvalidArg) else { return e };
    let flag = arg.split_whitespace().next().unwrap_or_default();
    let typed = |given: &OsString| given.to_string_lossy().split('=').next() == Some(flag);
    let command = Cli::command();
    let options = command.find_subcommand("serve").map(clap::Command::get_arguments).into_iter().flatten();
    let mut named =
        options.filter(|option| option.get_long().is_some_and(|long| flag == format!("--{long}")));
    match named.next().and_then(clap::Arg::get_env) {
        Some(variable) if std::env::var_os(variable).is_some() && !args.iter().any(typed) => {
            error(e.kind(), format!("in {}: {}", OsStr::to_string_lossy(variable), sentence(&e)))
        }
        _ => e,
    }
}

/// The arguments of `serve` that a file may set: (id, key).
fn file_arguments(command: &clap::Command) -> Vec<(String, String)> {
    let serve = command.find_subcommand("serve").map(clap::Command::get_arguments).into_iter().flatten();
    serve.filter_map(|arg| Some((arg.get_id().to_string(), key(arg)?.to_owned()))).collect()
}

fn file_values(file: &Path, command: &clap::Command) -> Result<Vec<(String, Vec<OsString>)>, String> {
    let says = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let text = std::fs::read_to_string(file).map_err(|e| says(&e))?;
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
        // The parser's own display quotes the line, which is a secret where this is the wrong file.
        let before = e.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        says(&format_args!("line {}: not TOML", before.matches('\n').count() + 1))
    })?;
    let known = file_arguments(command);
    let value = |key: &str, value: &toml::Value| match value {
        toml::Value::String(text) => Ok(OsString::from(text)),
        // TOML knows octal numbers, but not whether this one was meant to be one.
        toml::Value::Integer(_) if key.ends_with("-mode") => {
            Err(says(&format_args!("{key}: expected a string such as \"0640\"")))
        }
        toml::Value::Integer(number) => Ok(number.to_string().into()),
        _ => Err(says(&format_args!("{key}: expected a string, a number or a list of strings"))),
    };
    let mut values = Vec::new();
    for (key, given) in &table {
        let Some((id, _)) = known.iter().find(|(_, known)| known == key) else {
            let names: Vec<_> = known.iter().map(|(_, key)| key.as_str()).collect();
            return Err(says(&format_args!("unknown key {key:?}; known are {}", names.join(", "))));
        };
        let list = match given {
            toml::Value::Array(_) if !takes_many(command, id) => {
                return Err(says(&format_args!("{key}: expected one value, not a list")));
            }
            toml::Value::Boolean(on) if is_switch(command, id) => vec![on.to_string().into()],
            toml::Value::Boolean(on) if is_on_or_off(command, id) => {
                vec![if *on { "on" } else { "off" }.into()]
            }
            toml::Value::Array(items) => {
                items.iter().map(|item| value(key, item)).collect::<Result<Vec<_>, _>>()?
            }
            single => vec![value(key, single)?],
        };
        if list.is_empty() && key == "listen" {
            return Err(says(&"listen: nowhere to listen"));
        }
        values.push((id.clone(), list));
    }
    Ok(values)
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
        match Cli::read(&args).map_err(|e| e.to_string())?.command {
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
        assert!(read(&[]).unwrap_err().contains("<DIR>"));
    }

    /// All options of a command and of those below it are told of a value that is none.
    fn tell_nonsense(command: &clap::Command, words: &[String]) -> Vec<(String, String)> {
        let mut told = Vec::new();
        for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
            let words = words.iter().cloned().chain([format!("--{flag}"), "1 x/".to_owned()]);
            if let Err(error) = Cli::command().try_get_matches_from(words) {
                told.push((flag.to_owned(), error.to_string()));
            }
        }
        for below in command.get_subcommands() {
            let words: Vec<String> = words.iter().cloned().chain([below.get_name().to_owned()]).collect();
            told.extend(tell_nonsense(below, &words));
        }
        told
    }

    #[test]
    fn what_a_number_has_to_be_is_said_in_a_sentence() {
        let told = tell_nonsense(&Cli::command(), &["slipway".to_owned()]);
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
            ("listen = []", "nowhere to listen"),
            ("region = [\"a\", \"b\"]", "expected one value"),
            ("region = true", "expected a string"),
            ("region", "line 1: not TOML"),
            ("file-mode = 0o640", "expected a string such as"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = read(&["--config", config, "/data"]).unwrap_err();
            assert!(error.contains(&format!("error: {config}: ")) && error.contains(says), "{error}");
            assert!(error.contains("Usage: slipway serve"), "{error}");
        }
    }
}
