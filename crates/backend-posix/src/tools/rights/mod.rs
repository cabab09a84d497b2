//! Asks what the kernel would answer to an action of S3 whose file calls were made as a user
//! (decision 0044).
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

use asking::{Asker, Place, Stop, place_of, refused, unknown};
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
pub enum Word {
    /// It allows it. What else an answer depends on, as a sentence.
    Allowed(Option<&'static str>),
    /// It refuses this first.
    Refused(Refusal),
}

const NO_OBJECT: &str = "there is no such object";
const NO_WAY: &str = "a file, or a link that is not followed, has the name of one of the key's directories";

/// Asks as a user whether something may be done in a bucket of the tree at `root`. Fails with a
/// sentence if that cannot be known.
pub fn ask_kernel(root: &Path, bucket: &BucketName, who: &UnixIdentity, deed: &Deed) -> Result<Word, String> {
    let options = Options { allow_same_names: true, ..Options::default() };
    let store = Store::attach(root, options).map_err(|e| e.to_string())?;
    let who = Identity { uid: who.account.uid(), gid: who.account.gid(), groups: &who.groups };
    match (Question { store: &store, root, name: bucket, deed }).ask(who) {
        Ok(note) => Ok(Word::Allowed(note)),
        Err(Stop::Refused(refusal)) => Ok(Word::Refused(*refusal)),
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
        let asker = Asker::new(who)?;
        asker.search(&place_of(&self.store.root, self.root.to_owned())?)?;
        let bucket = self.store.bucket_in_place(self.name);
        let bucket = bucket.map_err(|error| Stop::Unknown(error.to_string()))?;
        let path = self.root.join(self.name.as_str());
        let walker = Walker { bucket: &bucket, asker: &asker, path: &path };
        match self.deed {
            Deed::Read(key) => self.read(&walker, &KeyPath::of(key.as_str())),
            Deed::Write(key) => write(&walker, &KeyPath::of(key.as_str())),
            Deed::Delete(key) => delete(&walker, &KeyPath::of(key.as_str())),
            Deed::List(prefix) => list(&walker, prefix),
            Deed::Look => {
                let top = walker.top()?;
                asker.read(&top)?;
                asker.search(&top).map(|()| None)
            }
            Deed::Uploads => asker.read(&walker.top()?).map(|()| Some("an upload is only whose began it")),
            Deed::DeleteBucket => delete_bucket(&walker),
        }
    }

    fn read(&self, walker: &Walker<'_>, key: &KeyPath) -> Answer {
        let asker = walker.asker;
        let End::There(place) = walker.go(&key.path)?.end else { return missing(walker) };
        let file = if place.is_directory() {
            asker.read(&place)?;
            asker.search(&place)?;
            place.child(if key.directory { DIRECTORY_DATA } else { SELF })?
        } else {
            Some(place).filter(|_| !key.directory)
        };
        match file {
            Some(file) if file.is_file() => {
                asker.read(&file)?;
                self.confirm(walker, key, &file)
            }
            None if key.directory => Ok(None),
            _ => missing(walker),
        }
    }

    /// Opens the object as a GET does. What is refused then is refused on a way that links take.
    fn confirm(&self, walker: &Walker<'_>, key: &KeyPath, file: &Place) -> Answer {
        match walker.asker.act(|| object::open(self.store, self.name, key))? {
            Err(
                BackendError::Denied { .. } | BackendError::DeniedToUser { .. } | BackendError::NotAllowed,
            ) => Err(refused(file, Lack::Read)),
            _ => Ok(None),
        }
    }
}

/// A requester of a missing key has to be able to read the bucket.
fn missing(walker: &Walker<'_>) -> Answer {
    walker.asker.read(&walker.top()?)?;
    Ok(Some(NO_OBJECT))
}

/// The path of the directory that an object's file is in.
fn directory_of(key: &KeyPath) -> &str {
    if key.directory { &key.path } else { keymap::split(&key.path).0 }
}

fn write(walker: &Walker<'_>, key: &KeyPath) -> Answer {
    let asker = walker.asker;
    asker.read(&walker.top()?)?;
    let way = walker.go(directory_of(key))?;
    let directory = match way.end {
        End::There(place) if place.is_directory() => place,
        End::Missing => {
            for above in &way.above {
                asker.read(above)?;
            }
            return way.above.last().map_or(Ok(None), |nearest| asker.make_directory(nearest).map(|()| None));
        }
        End::There(_) | End::Blocked => return Ok(Some(NO_WAY)),
    };
    asker.write(&directory)?;
    if key.directory {
        return asker.write_record(&directory).map(|()| None);
    }
    let Some(place) = directory.child(keymap::split(&key.path).1)? else { return Ok(None) };
    replace(walker, &directory, &place, key).map(|_| None)
}

/// Asks for what replaces or removes the object at a place. False if there is none.
fn replace(walker: &Walker<'_>, directory: &Place, place: &Place, key: &KeyPath) -> Result<bool, Stop> {
    let asker = walker.asker;
    if place.is_directory() {
        asker.read(place)?;
        asker.search(place)?;
        let inside = place.child(SELF)?;
        asker.write(place)?;
        return match inside {
            Some(file) => {
                asker.read(&file)?;
                asker.remove(place, &file).map(|()| true)
            }
            None => Ok(false),
        };
    }
    if place.is_file() {
        asker.read(place)?;
    } else if !place.is_link() {
        return Ok(false);
    } else if let End::There(target) = walker.go(&key.path)?.end
        && target.is_file()
    {
        // A link is replaced, and what it leads to is read.
        asker.read(&target)?;
    }
    asker.write(directory)?;
    asker.remove(directory, place).map(|()| true)
}

fn delete(walker: &Walker<'_>, key: &KeyPath) -> Answer {
    let asker = walker.asker;
    asker.read(&walker.top()?)?;
    let End::There(directory) = walker.go(directory_of(key))?.end else { return Ok(Some(NO_OBJECT)) };
    if !directory.is_directory() {
        return Ok(Some(NO_OBJECT));
    }
    asker.read(&directory)?;
    asker.search(&directory)?;
    if key.directory {
        return delete_directory(walker, &directory);
    }
    let Some(place) = directory.child(keymap::split(&key.path).1)? else { return Ok(Some(NO_OBJECT)) };
    if place.is_directory() && place.child(SELF)?.is_none() {
        asker.read(&place)?;
        asker.search(&place)?;
        return Ok(Some(NO_OBJECT));
    }
    replace(walker, &directory, &place, key).map(|existed| (!existed).then_some(NO_OBJECT))
}

fn delete_directory(walker: &Walker<'_>, directory: &Place) -> Answer {
    let asker = walker.asker;
    let opened = resolve::plain(&directory.fd, "", DIRECTORY).map_err(|e| unknown(&directory.path, e))?;
    let record = directory_record(walker.bucket, &opened).map_err(|e| unknown(&directory.path, e))?;
    let is_object = record.known().is_some_and(|record| record.object);
    let file = directory.child(DIRECTORY_DATA)?;
    if let Some(file) = &file {
        asker.read(file)?;
    }
    if !is_object && file.is_none() {
        return Ok(Some(NO_OBJECT));
    }
    asker.write(directory)?;
    if is_object {
        asker.write_record(directory)?;
    }
    file.map_or(Ok(()), |file| asker.remove(directory, &file)).map(|()| None)
}

fn list(walker: &Walker<'_>, prefix: &str) -> Answer {
    let asker = walker.asker;
    asker.read(&walker.top()?)?;
    let top = prefix.rfind('/').map_or("", |slash| &prefix[..=slash]);
    let End::There(directory) = walker.go(&keymap::directory_path(top))?.end else {
        return Ok(Some("nothing has a key with this prefix"));
    };
    if !directory.is_directory() {
        return Ok(Some("nothing has a key with this prefix"));
    }
    asker.read(&directory)?;
    asker.search(&directory)?;
    Ok(Some("what is closed below is left out of the list"))
}

/// Empty directories go with a bucket, and who may not look into one doesn't delete it.
fn delete_bucket(walker: &Walker<'_>) -> Answer {
    let (asker, top) = (walker.asker, walker.top()?);
    asker.write(&top)?;
    let mut directories = vec![top];
    let mut looked = 0;
    while let Some(directory) = directories.pop() {
        asker.write(&directory)?;
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
                    asker.remove(&directory, &child)?;
                    directories.push(child);
                }
                Some(_) => return Ok(Some("the bucket is not empty")),
                None => {}
            }
        }
    }
    Ok(None)
}
