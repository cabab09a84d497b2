//! Asks what the kernel would answer to an action of S3 whose file calls were made as a user
//! (decision 0071).
//!
//! The kernel is asked as that user; its rules are not evaluated here, but for the sticky bit,
//! `immutable`, and what a default access list makes of new directories: of these it can't be asked
//! without a change. Nothing is written.

mod asking;
mod way;

#[cfg(test)]
mod tests;

use std::path::Path;

use backend::BackendError;
use kernel_calls::acting::Identity;
use s3_types::{BucketName, ObjectKey, UnixIdentity};

use crate::base::options::Options;
use crate::facts::place::directory_record;
use crate::fs::reading::entries;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{self, DIRECTORY_DATA, KeyPath, OWN_DIRECTORY, SELF};
use crate::limits::RIGHTS_DIRECTORIES_MAX;
use crate::object;
use crate::tree::store::Store;

use asking::{ActingUser, HeldEntry, Stop, hold, refused, unknown};
pub use asking::{Entry, Lack, Refusal};
use way::{End, Walker};

/// The operation in a bucket that is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// An object is read.
    Read(ObjectKey),
    /// An object is made or replaced.
    Write(ObjectKey),
    /// An object is deleted.
    Delete(ObjectKey),
    /// Keys with this prefix are listed.
    List(String),
    /// The bucket is looked at.
    Look,
    /// Uploads in progress are looked at or aborted.
    Uploads,
    /// The bucket is deleted.
    DeleteBucket,
}

/// The kernel's verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelAnswer {
    /// It allows it. What else an answer depends on, as a sentence.
    Allowed(Option<&'static str>),
    /// It refuses this first.
    Refused(Refusal),
}

const NO_OBJECT: &str = "there is no such object";
const NO_WAY: &str = "a file, or a link that is not followed, has the name of one of the key's directories";

/// Asks as a user whether something may be done in a bucket of the tree at `root`. Fails with a
/// sentence if that cannot be known.
pub fn ask_kernel(
    root: &Path,
    bucket: &BucketName,
    who: &UnixIdentity,
    deed: &Deed,
) -> Result<KernelAnswer, String> {
    let options = Options { allow_same_names: true, ..Options::default() };
    let store = Store::attach(root, options).map_err(|e| e.to_string())?;
    let who = Identity { uid: who.account.uid(), gid: who.account.gid(), groups: &who.groups };
    match (Question { store: &store, root, name: bucket, deed }).ask(who) {
        Ok(note) => Ok(KernelAnswer::Allowed(note)),
        Err(Stop::Refused(refusal)) => Ok(KernelAnswer::Refused(*refusal)),
        Err(Stop::Unknown(why)) => Err(why),
    }
}

type Answer = Result<Option<&'static str>, Stop>;

struct Question<'a> {
    store: &'a Store,
    root: &'a Path,
    name: &'a BucketName,
    deed: &'a Deed,
}

impl Question<'_> {
    fn ask(&self, who: Identity<'_>) -> Answer {
        let user = ActingUser::new(who)?;
        user.search(&hold(&self.store.root, self.root.to_owned())?)?;
        let bucket = self.store.bucket_in_place(self.name);
        let bucket = bucket.map_err(|error| Stop::Unknown(error.to_string()))?;
        let path = self.root.join(self.name.as_str());
        let walker = Walker { bucket: &bucket, user: &user, path: &path };
        match self.deed {
            Deed::Read(key) => self.read(&walker, &KeyPath::of(key.as_str())),
            Deed::Write(key) => write(&walker, &KeyPath::of(key.as_str())),
            Deed::Delete(key) => delete(&walker, &KeyPath::of(key.as_str())),
            Deed::List(prefix) => list(&walker, prefix),
            Deed::Look => {
                let top = walker.top()?;
                user.read(&top)?;
                user.search(&top).map(|()| None)
            }
            Deed::Uploads => user
                .read(&walker.top()?)
                .map(|()| Some("only who began an upload may look at it or abort it")),
            Deed::DeleteBucket => delete_bucket(&walker),
        }
    }

    fn read(&self, walker: &Walker<'_>, key: &KeyPath) -> Answer {
        let user = walker.user;
        let End::There(held) = walker.go(&key.path)?.end else { return missing(walker) };
        let file = if held.is_directory() {
            user.read(&held)?;
            user.search(&held)?;
            held.child(if key.directory { DIRECTORY_DATA } else { SELF })?
        } else {
            Some(held).filter(|_| !key.directory)
        };
        match file {
            Some(file) if file.is_file() => {
                user.read(&file)?;
                self.confirm(walker, key, &file)
            }
            None if key.directory => Ok(None),
            _ => missing(walker),
        }
    }

    /// Opens the object as a GET does. What is refused then is refused on a way that links take.
    fn confirm(&self, walker: &Walker<'_>, key: &KeyPath, file: &HeldEntry) -> Answer {
        match walker.user.act(|| object::open(self.store, self.name, key))? {
            Err(
                BackendError::Denied { .. } | BackendError::DeniedToUser { .. } | BackendError::NotAllowed,
            ) => Err(refused(file, Lack::Read)),
            Ok(_) => Ok(None),
            // It was removed, or became something else, since it was looked at.
            Err(BackendError::NoSuchBucket | BackendError::NoSuchKey) => Ok(Some(NO_OBJECT)),
            Err(error) => Err(Stop::Unknown(format!("{}: {error}", file.path.display()))),
        }
    }
}

/// A requester of a missing key has to be able to read the bucket.
fn missing(walker: &Walker<'_>) -> Answer {
    walker.user.read(&walker.top()?)?;
    Ok(Some(NO_OBJECT))
}

/// The path of the directory that an object's file is in.
fn directory_of(key: &KeyPath) -> &str {
    if key.directory { &key.path } else { keymap::split(&key.path).0 }
}

fn write(walker: &Walker<'_>, key: &KeyPath) -> Answer {
    let user = walker.user;
    user.read(&walker.top()?)?;
    let way = walker.go(directory_of(key))?;
    let directory = match way.end {
        End::There(held) if held.is_directory() => held,
        End::Missing => {
            for above in &way.above {
                user.read(above)?;
            }
            return way.above.last().map_or(Ok(None), |nearest| user.make_directory(nearest).map(|()| None));
        }
        End::There(_) | End::Blocked => return Ok(Some(NO_WAY)),
    };
    user.write(&directory)?;
    if key.directory {
        return user.write_record(&directory).map(|()| None);
    }
    let Some(held) = directory.child(keymap::split(&key.path).1)? else { return Ok(None) };
    replace(walker, &directory, &held, key).map(|_| None)
}

/// Asks for what replaces or removes the object at a place. False if there is none.
fn replace(
    walker: &Walker<'_>,
    directory: &HeldEntry,
    held: &HeldEntry,
    key: &KeyPath,
) -> Result<bool, Stop> {
    let user = walker.user;
    if held.is_directory() {
        user.read(held)?;
        user.search(held)?;
        let inside = held.child(SELF)?;
        user.write(held)?;
        return match inside {
            Some(file) => {
                user.read(&file)?;
                user.remove(held, &file).map(|()| true)
            }
            None => Ok(false),
        };
    }
    if held.is_file() {
        user.read(held)?;
    } else if !held.is_link() {
        return Ok(false);
    } else if let End::There(target) = walker.go(&key.path)?.end
        && target.is_file()
    {
        // A link is replaced, and what it leads to is read.
        user.read(&target)?;
    }
    user.write(directory)?;
    user.remove(directory, held).map(|()| true)
}

fn delete(walker: &Walker<'_>, key: &KeyPath) -> Answer {
    let user = walker.user;
    user.read(&walker.top()?)?;
    let End::There(directory) = walker.go(directory_of(key))?.end else { return Ok(Some(NO_OBJECT)) };
    if !directory.is_directory() {
        return Ok(Some(NO_OBJECT));
    }
    user.read(&directory)?;
    user.search(&directory)?;
    if key.directory {
        return delete_directory(walker, &directory);
    }
    let Some(held) = directory.child(keymap::split(&key.path).1)? else { return Ok(Some(NO_OBJECT)) };
    if held.is_directory() && held.child(SELF)?.is_none() {
        user.read(&held)?;
        user.search(&held)?;
        return Ok(Some(NO_OBJECT));
    }
    replace(walker, &directory, &held, key).map(|existed| (!existed).then_some(NO_OBJECT))
}

fn delete_directory(walker: &Walker<'_>, directory: &HeldEntry) -> Answer {
    let user = walker.user;
    let opened = resolve::plain(&directory.fd, "", DIRECTORY).map_err(|e| unknown(&directory.path, e))?;
    let record = directory_record(walker.bucket, &opened).map_err(|e| unknown(&directory.path, e))?;
    let is_object = record.known().is_some_and(|record| record.object);
    let file = directory.child(DIRECTORY_DATA)?;
    if let Some(file) = &file {
        user.read(file)?;
    }
    if !is_object && file.is_none() {
        return Ok(Some(NO_OBJECT));
    }
    user.write(directory)?;
    if is_object {
        user.write_record(directory)?;
    }
    file.map_or(Ok(()), |file| user.remove(directory, &file)).map(|()| None)
}

fn list(walker: &Walker<'_>, prefix: &str) -> Answer {
    let user = walker.user;
    user.read(&walker.top()?)?;
    let top = prefix.rfind('/').map_or("", |slash| &prefix[..=slash]);
    let End::There(directory) = walker.go(&keymap::directory_path(top))?.end else {
        return Ok(Some("nothing has a key with this prefix"));
    };
    if !directory.is_directory() {
        return Ok(Some("nothing has a key with this prefix"));
    }
    user.read(&directory)?;
    user.search(&directory)?;
    Ok(Some("what is closed below is left out of the list"))
}

/// Empty directories go with a bucket, and who may not look into one doesn't delete it.
fn delete_bucket(walker: &Walker<'_>) -> Answer {
    let (user, top) = (walker.user, walker.top()?);
    user.write(&top)?;
    let mut directories = vec![top];
    let mut looked = 0;
    while let Some(directory) = directories.pop() {
        user.write(&directory)?;
        let opened = resolve::plain(&directory.fd, "", DIRECTORY).map_err(|e| unknown(&directory.path, e))?;
        let is_top = looked == 0;
        looked += 1;
        if looked > RIGHTS_DIRECTORIES_MAX {
            return Err(Stop::Unknown("there are too many directories in the bucket to ask for each".into()));
        }
        for (name, _) in entries(&opened).map_err(|e| unknown(&directory.path, e))? {
            if is_top && name == OWN_DIRECTORY {
                continue;
            }
            match directory.child(&name)? {
                Some(child) if child.is_directory() => {
                    user.remove(&directory, &child)?;
                    directories.push(child);
                }
                Some(_) => return Ok(Some("the bucket is not empty")),
                None => {}
            }
        }
    }
    Ok(None)
}
