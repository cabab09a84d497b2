//! Symbolic links, as S3 sees them.

use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::locate::{Located, locate};
use crate::base::options::Options;
use crate::fs::file_info;
use crate::fs::resolve::{self, PLACE};
use crate::layout::keymap::{self, DIRECTORY_DATA, RECORDS, SELF, join};
use crate::tree::store::Store;

/// A symbolic link, and how S3 treats it with the default of `--symlinks`.
#[derive(Debug, Clone)]
pub struct Link {
    /// The path that was asked for.
    pub path: PathBuf,
    /// Its target, as the link has it.
    pub target: PathBuf,
    /// The reason why S3 does not follow it; `None` if it does.
    pub refused: Option<&'static str>,
    /// True if it leads to a directory that contains it, so that listings do not go into it.
    pub leads_up: bool,
}

/// A link, its place, and the place of its target if S3 follows the link.
pub(super) struct LocatedLink {
    pub link: Link,
    pub at: Located,
    pub leads_to: Option<Located>,
}

/// The link at `path`, if there is one, in a tree.
pub(super) fn find(path: &Path, tree: Option<&Path>) -> Result<Option<LocatedLink>, String> {
    let Some((parent, name)) = parent_and_name(path) else { return Ok(None) };
    let Ok(target) = std::fs::read_link(parent.join(name)) else { return Ok(None) };
    // In no tree, it is nothing to S3: what it leads to may be.
    let Ok(above) = locate(parent, tree) else { return Ok(None) };
    let mut found = Link { path: path.to_owned(), target, refused: None, leads_up: false };
    let Some(bucket) = &above.bucket else {
        found.refused = Some("it is at the place of a bucket, which must be a directory");
        return Ok(Some(LocatedLink { link: found, at: above, leads_to: None }));
    };
    let at = Located { path: join(&above.path, name), ..above.clone() };
    let says = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let store = Store::attach(&at.root, Options::default()).map_err(|e| e.to_string())?;
    let bucket = store.bucket(bucket).map_err(|e| says(&e))?;
    if matches!(name, SELF | DIRECTORY_DATA) {
        found.refused = Some("no link is followed at a name of the gateway's own");
    } else if let Some(why) = keymap::hidden_because(&at.path) {
        found.refused = Some(why);
    }
    if found.refused.is_some() {
        return Ok(Some(LocatedLink { link: found, at, leads_to: None }));
    }
    match resolve::following(&bucket.fd, &at.path, PLACE) {
        Ok((opened, inside)) => {
            let kind = file_info::of(&opened).map_err(|e| says(&e))?.kind;
            if !matches!(kind, FileType::RegularFile | FileType::Directory) {
                found.refused = Some("it leads to neither a file nor a directory");
                return Ok(Some(LocatedLink { link: found, at, leads_to: None }));
            }
            found.leads_up = inside.is_empty() || Path::new(&above.path).starts_with(&inside);
            let leads_to = Some(Located { path: inside, ..above });
            Ok(Some(LocatedLink { link: found, at, leads_to }))
        }
        Err(errno) => {
            found.refused = Some(refusal(path, &at, &found.target, errno).ok_or_else(|| says(&errno))?);
            Ok(Some(LocatedLink { link: found, at, leads_to: None }))
        }
    }
}

/// The first link on the way to `path` that S3 does not follow.
pub(super) fn refused_on_the_way(path: &Path, tree: Option<&Path>) -> Result<Option<LocatedLink>, String> {
    let mut above: Vec<_> = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
    above.reverse();
    for directory in above {
        if let Some(found) = find(directory, tree)?
            && found.link.refused.is_some()
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn parent_and_name(path: &Path) -> Option<(&Path, &str)> {
    let parent = path.parent()?;
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    Some((parent, path.file_name()?.to_str()?))
}

/// Returns the reason why the kernel did not follow a link below its bucket; `None` for errors that
/// do not concern the link.
fn refusal(path: &Path, at: &Located, target: &Path, errno: Errno) -> Option<&'static str> {
    match errno {
        Errno::NOENT | Errno::NOTDIR => Some("its target does not exist"),
        Errno::LOOP => Some("it leads to itself"),
        Errno::XDEV | Errno::PERM => {
            let bucket = at.root.join(at.bucket.as_ref()?.as_str());
            let own = |name: &str| {
                name == keymap::OWN_DIRECTORY || name == RECORDS || keymap::is_of_file_system(name)
            };
            match path.canonicalize() {
                Ok(real) => Some(match real.strip_prefix(&bucket) {
                    Err(_) => "it leads out of its bucket",
                    Ok(inside) if inside.iter().any(|name| name.to_str().is_some_and(own)) => {
                        "it leads to a file or directory that belongs to the gateway or the file system"
                    }
                    Ok(_) if target.is_absolute() => "it is absolute: only relative ones are followed",
                    Ok(_) => "its path to the target leaves the bucket",
                }),
                // Nothing is there, outside.
                Err(_) => Some("it leads out of its bucket"),
            }
        }
        _ => None,
    }
}
