//! Options that all gateways of a tree have to agree on: the first start that succeeds writes them
//! to the tree, and a gateway that starts with others logs a warning.

use std::path::Path;

use backend_posix::Metadata;
use backend_posix::format::{self, FILE, FORMAT, FORMAT_OF_FEATURES};
use serde::Deserialize;

use crate::config::ServeOptions;
use crate::identities::StoreOptions;
use crate::state_dir::{self, Access, STATE_DIR};
use crate::text::visible;

/// The mode of the file. Others may read it: it is not a secret.
const MODE: u32 = 0o644;
/// The file in a tree's `.slipway` that says whether records are in files or in attributes.
const METADATA_FILE: &str = "metadata";
/// The folder of records in a bucket whose records are in files.
const RECORDS: &str = ".slipway,records";
/// The largest number of directories in DIR that are searched for [`RECORDS`].
const RECORDS_SEARCHED: usize = 1000;
/// The largest number of these directories that the error names.
const RECORDS_SHOWN: usize = 8;

/// The options in the tree's file, which also has its format. A newer gateway may add fields only
/// if they are harmless to gateways that do not know them: any other change needs a feature.
#[derive(Debug, Deserialize)]
struct OptionsFile {
    format: u32,
    region: Option<String>,
    durability: Option<String>,
    etag: Option<String>,
    #[serde(rename = "default-public-access-block")]
    block: Option<String>,
    identities: Option<String>,
    metadata: Option<String>,
}

impl OptionsFile {
    /// True if no option is set.
    fn is_bare(&self) -> bool {
        let Self { format: _, region, durability, etag, block, identities, metadata } = self;
        let options = [region, durability, etag, block, identities, metadata];
        options.iter().all(|option| option.is_none())
    }
}

/// The value of `identities` in the tree's file for identities that are kept in the tree.
const IN_TREE: &str = "tree";

/// An option that must be the same for all gateways.
struct Value {
    name: &'static str,
    ours: String,
    theirs: fn(&OptionsFile) -> Option<&String>,
}

impl Value {
    /// Returns the option as it would be given.
    fn given(&self) -> String {
        match (self.name, &*self.ours) {
            ("identities", IN_TREE) => "identities in the directory itself (no --identities)".to_owned(),
            (name, ours) => format!("--{name} {ours}"),
        }
    }
}

/// Returns the options on which gateways have to agree because clients would see a difference.
fn values(options: &ServeOptions) -> [Value; 5] {
    let identities = options.store.identities.as_ref();
    [
        Value { name: "region", ours: options.region.clone(), theirs: |noted| noted.region.as_ref() },
        Value {
            name: "durability",
            ours: options.durability.to_string(),
            theirs: |noted| noted.durability.as_ref(),
        },
        Value { name: "etag", ours: options.etag.to_string(), theirs: |noted| noted.etag.as_ref() },
        Value {
            name: "default-public-access-block",
            ours: options.default_public_access_block.to_string(),
            theirs: |noted| noted.block.as_ref(),
        },
        // A user who is deleted in one store would live on in the other.
        Value {
            name: "identities",
            ours: identities.map_or_else(|| IN_TREE.to_owned(), ToString::to_string),
            theirs: |noted| noted.identities.as_ref(),
        },
    ]
}

/// Fails if `--metadata` differs from the place where the tree keeps its records: existing records
/// would no longer be found. It is called before the tree is opened, since that writes the option
/// to the tree.
pub fn check_metadata(options: &ServeOptions, state_dir: &Path) -> Result<(), String> {
    // What can't be read is reported when the tree is opened.
    match (options.metadata, read(state_dir)) {
        (Some(wanted), Ok(Some(noted))) => match differing_metadata(wanted, &noted) {
            Some(theirs) => Err(format!(
                "--metadata {}: the directory has been served with --metadata {theirs} since its first start ({}); with \
                 another value, the existing objects would lose their records (ETags, metadata). Give --metadata \
                 {theirs}, or copy the objects to another directory through S3",
                wanted.word(),
                visible(&state_dir.join(FILE).to_string_lossy(), false)
            )),
            None => Ok(()),
        },
        // The first start, as far as is known.
        (None, Ok(None)) if matches!(state_dir::read(state_dir, METADATA_FILE), Ok(None)) => {
            match with_records(state_dir) {
                Some(buckets) => Err(format!(
                    "{}: records of objects are in files there, but DIR/{}, which would say so, is missing: give \
                     --metadata sidecar, or --metadata xattr to serve the objects without these records",
                    buckets,
                    Path::new(STATE_DIR).join(METADATA_FILE).display()
                )),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Returns the names of the buckets that have records in files; `None` if there are none.
fn with_records(state_dir: &Path) -> Option<String> {
    let children = std::fs::read_dir(state_dir.parent()?).ok()?.flatten().take(RECORDS_SEARCHED);
    let records = |bucket: &Path| std::fs::symlink_metadata(bucket.join(RECORDS));
    let has_records = |bucket: &Path| records(bucket).is_ok_and(|records| records.is_dir());
    let mut names: Vec<_> = children
        .filter(|child| child.file_type().is_ok_and(|kind| kind.is_dir()) && has_records(&child.path()))
        // What is not UTF-8 is no bucket.
        .filter_map(|child| child.file_name().into_string().ok())
        .map(|name| format!("{name:?}"))
        .collect();
    names.sort();
    names.truncate(RECORDS_SHOWN);
    (!names.is_empty()).then(|| visible(&names.join(", "), false).into_owned())
}

/// Returns the place of records that the tree's file names, if it is another one than ours.
fn differing_metadata(ours: Metadata, noted: &OptionsFile) -> Option<String> {
    let theirs = noted.metadata.as_ref().filter(|theirs| **theirs != ours.word())?;
    Some(visible(theirs, false).into_owned())
}

/// Returns the place of the records of an open tree: in files if it has [`METADATA_FILE`], unless
/// that file says `xattr`. A tree with any other word in it is not opened. Without the file, they
/// are where `noted` says, or in attributes.
fn metadata(state_dir: &Path, noted: Option<&OptionsFile>) -> Result<Metadata, String> {
    let said = state_dir::read(state_dir, METADATA_FILE)?;
    let noted = || noted.and_then(|noted| noted.metadata.as_deref());
    let is_sidecar = match &said {
        Some(said) => said.split_whitespace().next() != Some(Metadata::Xattr.word()),
        None => noted() == Some(Metadata::Sidecar.word()),
    };
    Ok(if is_sidecar { Metadata::Sidecar } else { Metadata::Xattr })
}

/// Fails if a tool was given no store of identities, and the gateways of the tree use one: it would
/// look into the tree, and find no users there, or former ones.
pub fn check_store(options: &StoreOptions, state_dir: &Path) -> Result<(), String> {
    let noted = read(state_dir)?.and_then(|noted| noted.identities);
    let Some(theirs) = noted.filter(|theirs| options.identities.is_none() && theirs != IN_TREE) else {
        return Ok(());
    };
    Err(format!(
        "its gateways were first started with --identities {} ({}): give the same --identities, with its credentials, \
         or change this file if the gateways keep identities in the directory itself now",
        visible(&theirs, false),
        visible(&state_dir.join(FILE).to_string_lossy(), false)
    ))
}

/// Compares the options with those in the tree, if there are any. Returns the differences as
/// sentences. Fails if the tree's format is unknown to this gateway (it may have changed since the
/// tree was opened), or if its records are elsewhere.
pub fn differences(options: &ServeOptions, state_dir: &Path) -> Result<Vec<String>, String> {
    let noted = read(state_dir)?;
    let metadata = metadata(state_dir, noted.as_ref())?;
    let unused = || match metadata {
        Metadata::Xattr => with_records(state_dir),
        Metadata::Sidecar => None,
    };
    let unused = unused().map(|buckets| {
        format!(
            "{buckets}: these buckets have records in files ({RECORDS}), which are not used: the directory is served \
             with --metadata xattr"
        )
    });
    let differing = noted.map(|noted| differing(options, state_dir, metadata, &noted)).transpose()?;
    Ok(differing.unwrap_or_default().into_iter().chain(unused).collect())
}

/// Writes the options to the tree if it has none yet. Returns the differences as [`differences`]
/// does if another gateway was faster. A start calls it once it has opened all that the options
/// name: what was mistyped may not become what all gateways are told to use.
pub fn note(options: &ServeOptions, state_dir: &Path) -> Result<Vec<String>, String> {
    let noted = read(state_dir)?;
    let format = match &noted {
        // As an upgrade writes it where there was none.
        Some(noted) if noted.format == FORMAT_OF_FEATURES && noted.is_bare() => noted.format,
        Some(_) => return Ok(Vec::new()),
        None => FORMAT,
    };
    let metadata = metadata(state_dir, noted.as_ref())?;
    let text = text(&values(options), metadata, format);
    let access = Access::of(options.read_only);
    let written = match noted {
        Some(_) => state_dir::replace(state_dir, access, FILE, text.as_bytes(), MODE),
        None => state_dir::create(state_dir, access, FILE, text.as_bytes(), MODE).map(drop),
    };
    if let Err(error) = written {
        tracing::debug!(%error, "{FILE} cannot be written: gateways of this directory cannot compare their options");
    }
    let noted = read(state_dir)?;
    Ok(noted.map(|noted| differing(options, state_dir, metadata, &noted)).transpose()?.unwrap_or_default())
}

/// Compares the options with those that were noted, as [`differences`] does.
fn differing(
    options: &ServeOptions,
    state_dir: &Path,
    metadata: Metadata,
    noted: &OptionsFile,
) -> Result<Vec<String>, String> {
    let file = state_dir.join(FILE);
    if let Some(theirs) = differing_metadata(metadata, noted) {
        return Err(format!(
            "{} says that the directory is served with --metadata {theirs}, but {} says {}: one of the two files was \
             changed; restore it from a backup",
            visible(&file.to_string_lossy(), false),
            visible(&state_dir.join(METADATA_FILE).to_string_lossy(), false),
            metadata.word()
        ));
    }
    let values = values(options);
    let differing = values.iter().filter_map(|value| {
        let theirs = (value.theirs)(noted).filter(|theirs| **theirs != value.ours)?;
        let given = value.given();
        Some(format!(
            "{given}: the directory was first served with {} ({}). All gateways of a directory must use the \
             same value: use that one, or change it for all gateways and in this file",
            visible(theirs, false),
            visible(&file.to_string_lossy(), false)
        ))
    });
    Ok(differing.collect())
}

fn text(values: &[Value], metadata: Metadata, format: u32) -> String {
    let mut text = format!(
        "# The options of the first gateway of this directory. All its gateways must use the same values: those that were\n\
         # started with other values log a warning or refuse to start.\n\
         format = {format}\n"
    );
    for Value { name, ours, .. } in values {
        // Names of regions and stores have no quotes, and the others are words.
        text.extend([name, " = \"", ours, "\"\n"]);
    }
    text.extend(["metadata = \"", metadata.word(), "\"\n"]);
    text
}

fn read(state_dir: &Path) -> Result<Option<OptionsFile>, String> {
    let says = |e: format::FormatError| format!("{}: {e}", state_dir.join(FILE).display());
    let Some(text) = state_dir::read(state_dir, FILE)? else { return Ok(None) };
    format::check(&text).map_err(says)?;
    toml::from_str(&text).map(Some).map_err(|_| says(format::FormatError::Unreadable))
}
