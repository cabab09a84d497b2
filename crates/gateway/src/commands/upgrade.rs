//! `slipway upgrade`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backend_posix::format::FORMAT_OF_FEATURES;
use backend_posix::tools::{Upgrade, upgrade};
use clap::Args;

use super::{Console, OK, shown};
use crate::version;

/// Options of `slipway upgrade`.
#[derive(Debug, Clone, Args)]
pub struct UpgradeOptions {
    /// The served directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Confirm that no gateway serves the directory, on any machine. Without this option, nothing
    /// is upgraded. Even with it, the command refuses if it finds a running gateway, and names it.
    /// It cannot find gateways of versions without the command upgrade: these would go on serving,
    /// and ignore policies and ACLs that are set after the upgrade
    #[arg(long)]
    pub all_gateways_are_stopped: bool,

    /// Only show what an upgrade would do; nothing is written
    #[arg(long)]
    pub dry_run: bool,
}

/// Upgrades a tree.
pub fn run(options: &UpgradeOptions) -> ExitCode {
    let console = Console::new();
    let dir = shown(&options.dir);
    let writes = options.all_gateways_are_stopped && !options.dry_run;
    let found = match upgrade(&options.dir, writes) {
        Ok(found) => found,
        Err(message) => return console.fail(&message),
    };
    console.say(&format!("{dir}: {}", described(&found)));
    if found.is_needless() {
        console
            .say(&format!("{dir}: nothing to upgrade: it has all features of slipway {}", version::NUMBER));
        return OK.into();
    }
    for (feature, allows) in &found.added {
        let verb = if writes { "added" } else { "to be added" };
        console.say(&format!("{dir}: {verb}: {feature}: {allows}"));
    }
    if let Some(served) = &found.served {
        console.say(&format!(
            "{dir}: {served}: stop all gateways of the directory, on all machines, before you upgrade it"
        ));
    }
    if !writes && !options.dry_run {
        return console.fail(&refusal(&options.dir));
    }
    let verb = if writes { "upgraded to" } else { "an upgrade would give it" };
    console.say(&format!(
        "{dir}: {verb} format {FORMAT_OF_FEATURES}: versions without this command, and those that do not know these \
         features, {} the directory",
        if writes { "no longer open" } else { "would no longer open" }
    ));
    OK.into()
}

/// Returns a description of the format and the features of a tree.
fn described(found: &Upgrade) -> String {
    let features = match &*found.features {
        [] => "without features".to_owned(),
        features => format!("with the features {}", features.join(", ")),
    };
    let begun = if found.is_begun { "; an upgrade was begun and not completed" } else { "" };
    format!("format {}, {features}{begun}", found.format)
}

fn refusal(dir: &Path) -> String {
    format!(
        "{}: not upgraded: stop all gateways of the directory, on all machines, and give --all-gateways-are-stopped (a \
         gateway of a version without this command cannot be seen, and would go on without knowing these features)",
        dir.display()
    )
}
