//! Checks for unknown environment variables that begin like those of Slipway.

use std::ffi::OsString;

use clap::CommandFactory as _;
use clap::error::ErrorKind;

use super::command::Cli;
use super::read::error;
use crate::values::nearest;
use crate::{credentials, identities, ldap, master_key};

const PREFIX: &str = "SLIPWAY_";
/// The largest number of unknown variables that an error names.
const NAMED_MAX: usize = 8;

/// Refuses variables that begin with `SLIPWAY_` and are unknown: a misspelled one must not be
/// ignored, just as a misspelled key of the file is not. Values are never shown, since they may be
/// secrets.
pub fn refuse_unknown_variables(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<(), clap::Error> {
    let known = known();
    let named = environment
        .into_iter()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().contains("://")));
    let mut unknown: Vec<_> = named
        .filter(|(name, is_url)| {
            name.starts_with(PREFIX) && !known.contains(name) && !is_of_service(name, *is_url)
        })
        .map(|(name, _)| name)
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    unknown.sort();
    let lines: Vec<_> = unknown.iter().take(NAMED_MAX).map(|name| complaint(name, &known)).collect();
    Err(error(ErrorKind::UnknownArgument, lines.join("\n       ")))
}

fn complaint(name: &str, known: &[String]) -> String {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    match nearest(name, &known, PREFIX.len()) {
        Some(near) => format!("{name} in the environment is not an option of slipway: did you mean {near}?"),
        None => format!("{name} in the environment is not an option of slipway: unset it"),
    }
}

fn known() -> Vec<String> {
    let command = Cli::command();
    let options = command.find_subcommand("serve").map(clap::Command::get_arguments).into_iter().flatten();
    let options = options.filter_map(clap::Arg::get_env).map(|name| name.to_string_lossy().into_owned());
    let others = credentials::own_variables();
    let others = others.chain([master_key::VARIABLE, identities::VARIABLE, ldap::VARIABLE]);
    options.chain(others.map(ToOwned::to_owned)).collect()
}

/// True for a variable that Kubernetes sets in each container for a service whose name is
/// `slipway`, or begins with `slipway-`.
fn is_of_service(name: &str, is_url: bool) -> bool {
    let rest = &name[PREFIX.len() - 1..];
    let of_port = |text: &str| {
        let Some((number, rest)) = text.split_once('_') else { return false };
        let (protocol, what) = rest.split_once('_').unwrap_or((rest, "ADDR"));
        !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
            && matches!(protocol, "TCP" | "UDP" | "SCTP")
            && matches!(what, "PROTO" | "PORT" | "ADDR")
    };
    rest.ends_with("_SERVICE_HOST")
        || rest.ends_with("_SERVICE_PORT")
        || rest.contains("_SERVICE_PORT_")
        // Anything else is someone who means to say where to listen.
        || (rest.ends_with("_PORT") && is_url)
        || rest.match_indices("_PORT_").any(|(at, port)| of_port(&rest[at + port.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, value: &str) -> Option<String> {
        refuse_unknown_variables([(name.into(), value.into())]).err().map(|e| e.to_string())
    }

    #[test]
    fn all_of_ours_are_known() {
        for name in known() {
            assert_eq!(refused(&name, "x"), None);
        }
        for name in
            ["SLIPWAY_ROOT_ACCESS_KEY", "SLIPWAY_ROOT_SECRET_KEY", "SLIPWAY_ROOT_UID", "SLIPWAY_ROOT_GID"]
        {
            assert!(known().iter().any(|known| known == name));
        }
    }

    #[test]
    fn others_are_named_with_what_is_near() {
        let near = |name: &str, other: &str| {
            let error = refused(name, "hush").unwrap();
            assert!(
                error.contains(&format!("{name} in"))
                    && error.contains(&format!(": did you mean {other}?\n")),
                "{error}"
            );
            assert!(!error.contains("hush"));
        };
        near("SLIPWAY_DURABILTY", "SLIPWAY_DURABILITY");
        near("SLIPWAY_ACCESS_KEY", "SLIPWAY_ROOT_ACCESS_KEY");
        near("SLIPWAY_LISTENS", "SLIPWAY_LISTEN");
        assert!(!refused("SLIPWAY_WHATEVER_ELSE", "").unwrap().contains("did you mean"));
        assert_eq!(refused("SLIPWAYS_DIR", ""), None);
        assert_eq!(refused("PATH", ""), None);
    }

    #[test]
    fn those_of_a_service_pass() {
        for stem in ["SLIPWAY", "SLIPWAY_CONSOLE"] {
            for end in [
                "SERVICE_HOST",
                "SERVICE_PORT",
                "SERVICE_PORT_HTTP",
                "PORT_9000_TCP",
                "PORT_9000_TCP_PROTO",
                "PORT_9000_TCP_PORT",
                "PORT_9000_TCP_ADDR",
                "PORT_53_UDP_ADDR",
            ] {
                assert_eq!(refused(&format!("{stem}_{end}"), "10.0.0.1"), None);
            }
            assert_eq!(refused(&format!("{stem}_PORT"), "tcp://10.0.0.1:9000"), None);
        }
        for name in ["SLIPWAY_PORT", "SLIPWAY_PORT_X_TCP", "SLIPWAY_PORT_9000_TCP_X", "SLIPWAY_PORT_9000"] {
            assert!(refused(name, "9000").is_some(), "{name}");
        }
    }
}
