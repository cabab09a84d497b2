//! Finds the master keys, with which secrets of users are encrypted (decision 0065).

use std::path::Path;

use iam::MasterKeys;
use zeroize::Zeroizing;

use crate::config::ServeOptions;
use crate::secret_text;
use crate::storage::NULL;

/// The name of the text with the keys, in errors.
const CONTENT: &str = "the master key";

/// The environment variable that may have the text itself.
pub const VARIABLE: &str = "SLIPWAY_MASTER_KEY";

/// The places where master keys may be, and the tree that they are for.
#[derive(Debug)]
pub struct Given<'g> {
    /// The directory of the tree; `None` for a storage that keeps nothing.
    pub dir: Option<&'g Path>,
    /// `--master-key-file`.
    pub file: Option<&'g Path>,
    /// `--master-key-command`.
    pub command: Option<&'g str>,
}

impl<'g> From<&'g ServeOptions> for Given<'g> {
    fn from(options: &'g ServeOptions) -> Self {
        Self {
            dir: (options.dir != NULL).then_some(Path::new(&options.dir)),
            file: options.master_key_file.as_deref(),
            command: options.master_key_command.as_deref(),
        }
    }
}

/// Finds the master keys: in the file, otherwise in the output of the command, otherwise in the
/// environment. Returns `None` if none are given.
pub fn find(given: &Given<'_>, env: impl Fn(&str) -> Option<String>) -> Result<Option<MasterKeys>, String> {
    let (text, whence) = match (given.file, given.command) {
        (Some(_), Some(_)) => {
            return Err(
                "--master-key-file and --master-key-command contradict each other: leave out one of the two"
                    .to_owned(),
            );
        }
        (Some(file), None) => {
            let whence = format!("--master-key-file {}", file.display());
            let text = outside(file, given.dir).and_then(|()| secret_text::of_file(file, CONTENT));
            (text.map_err(|why| format!("{whence}: {why}"))?, whence)
        }
        (None, Some(command)) => {
            let text = secret_text::of_command(command, CONTENT);
            let text = text.map_err(|why| format!("--master-key-command {command}: {why}"))?;
            (text, format!("--master-key-command {command}"))
        }
        (None, None) => match env(VARIABLE).filter(|text| !text.is_empty()) {
            Some(text) => (Zeroizing::new(text), VARIABLE.to_owned()),
            None => return Ok(None),
        },
    };
    MasterKeys::read(&text)
        .map(Some)
        .map_err(|why| format!("{whence}: {why}: `slipway master-key new FILE` makes one"))
}

/// Refuses a file inside the tree: a copy of the tree would contain the key to its secrets, and in
/// a bucket the file would be an object.
fn outside(file: &Path, dir: Option<&Path>) -> Result<(), String> {
    let Some(dir) = dir else { return Ok(()) };
    // A file or a DIR that is not there is found out elsewhere.
    let (Ok(file), Ok(dir)) = (file.canonicalize(), dir.canonicalize()) else {
        return Ok(());
    };
    if file.starts_with(&dir) {
        return Err(format!(
            "the file lies in {}, so that each copy of that directory could be opened with it: move it elsewhere",
            dir.display()
        ));
    }
    Ok(())
}
