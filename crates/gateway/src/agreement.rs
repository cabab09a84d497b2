//! What all gateways of a tree have to agree on: the first start notes it in the tree, and others
//! that were started with something else are told so.

use std::io::Read as _;
use std::path::Path;

use clap::ValueEnum as _;
use serde::Deserialize;

use crate::config::ServeOptions;
use crate::state_dir;

const FILE: &str = "tree.toml";
/// Longer than what is written there.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Others may read it: it is no secret.
const MODE: u32 = 0o644;
/// How files, records and names are to be read (docs/SEMANTICS.md). Becomes another number once a gateway of this one
/// could not read, or would harm, what a newer one writes.
const FORMAT: u32 = 1;

/// The file. A newer gateway may note more.
#[derive(Debug, Deserialize)]
struct Noted {
    format: u32,
    region: Option<String>,
    durability: Option<String>,
    etag: Option<String>,
}

/// Compares the options with what the tree remembers, which is made if need be. The differences, as
/// sentences; an error if the tree's format is one that this gateway does not know.
pub fn differences(options: &ServeOptions, state_dir: &Path) -> Result<Vec<String>, String> {
    let ours = [
        ("region", options.region.clone()),
        ("durability", word(options.durability.to_possible_value())),
        ("etag", word(options.etag.to_possible_value())),
    ];
    let Some(noted) = read_or_note(state_dir, &ours)? else { return Ok(Vec::new()) };
    let file = state_dir.join(FILE);
    if noted.format > FORMAT {
        return Err(format!(
            "{}: the directory has format {}, and this slipway knows {FORMAT} only: a newer one served it, and has to go on to",
            file.display(),
            noted.format
        ));
    }
    let theirs = [noted.region, noted.durability, noted.etag];
    let differing = ours.into_iter().zip(theirs).filter_map(|((name, ours), theirs)| {
        let theirs = theirs.filter(|theirs| *theirs != ours)?;
        Some(format!(
            "--{name} {ours}: the directory was served with {theirs} first ({}). All gateways of a directory have to agree; if \
             it is meant to change, change it for all, and there",
            file.display()
        ))
    });
    Ok(differing.collect())
}

/// `None` where nothing can be kept, which was told of the account already.
fn read_or_note(state_dir: &Path, ours: &[(&str, String)]) -> Result<Option<Noted>, String> {
    if let Some(noted) = read(state_dir)? {
        return Ok(Some(noted));
    }
    if let Err(error) = state_dir::create(state_dir, FILE, text(ours).as_bytes(), MODE) {
        tracing::debug!(%error, "{FILE} cannot be kept");
    }
    // Another gateway may have been faster.
    read(state_dir)
}

fn word(value: Option<clap::builder::PossibleValue>) -> String {
    // No value of these options is hidden.
    value.map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn text(ours: &[(&str, String)]) -> String {
    let mut text = format!(
        "# What slipway was started with here first. All gateways of this directory have to agree on it: those that were\n\
         # started with something else say so.\n\
         format = {FORMAT}\n"
    );
    for (name, value) in ours {
        // Names of regions have no quotes, and the others are words.
        text.extend([*name, " = \"", value, "\"\n"]);
    }
    text
}

fn read(state_dir: &Path) -> Result<Option<Noted>, String> {
    let says = |e: &dyn std::fmt::Display| format!("{}: {e}", state_dir.join(FILE).display());
    let Some(file) = state_dir::open(state_dir, FILE).map_err(|e| says(&e))? else { return Ok(None) };
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|e| says(&e))?;
    let noted = toml::from_str(&text);
    noted
        .map(Some)
        .map_err(|_| says(&"expected format = 1, and texts; remove it, and the next start makes it anew"))
}
