//! The way from a bucket to a file, with the question at each directory whether it may be searched.

use std::path::Path;

use super::asking::{ActingUser, HeldEntry, Stop, hold, unknown};
use crate::error::leads_nowhere;
use crate::fs::resolve::PLACE;
use crate::layout::keymap::join;
use crate::tree::bucket::Bucket;

/// The end that a path leads to.
pub(super) enum End {
    There(HeldEntry),
    /// There is nothing; the last of the directories above is the nearest that exists.
    Missing,
    /// Something that is no directory has the name of one, or a link is not followed.
    Blocked,
}

/// A path that was walked, as far as it goes.
pub(super) struct Way {
    /// The directories that were passed, the bucket first. Links are replaced by what they lead to.
    pub above: Vec<HeldEntry>,
    pub end: End,
}

/// An open bucket, and the user as whom the kernel is asked.
pub(super) struct Walker<'a> {
    pub bucket: &'a Bucket<'a>,
    pub user: &'a ActingUser<'a>,
    /// The bucket's path.
    pub path: &'a Path,
}

impl Walker<'_> {
    pub fn top(&self) -> Result<HeldEntry, Stop> {
        hold(&self.bucket.fd, self.path.to_owned())
    }

    /// Goes to a path of the bucket. Each directory on the way has to be searched; who follows a
    /// link has to read the bucket.
    pub fn go(&self, path: &str) -> Result<Way, Stop> {
        let mut path = path.to_owned();
        // Each turn follows one link more; a path has at most as many as names.
        for _ in 0..=path.matches('/').count() + 1 {
            match self.go_plain(&path)? {
                Step::Done(way) => return Ok(way),
                Step::Link(to) => path = to,
            }
        }
        Ok(Way { above: vec![self.top()?], end: End::Blocked })
    }

    /// Goes as far as the first link.
    fn go_plain(&self, path: &str) -> Result<Step, Stop> {
        let (mut above, mut here, mut passed) = (Vec::new(), self.top()?, String::new());
        let mut rest = path;
        while !rest.is_empty() {
            if !here.is_directory() {
                return Ok(Step::Done(Way { above, end: End::Blocked }));
            }
            self.user.search(&here)?;
            let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
            let child = here.child(name)?;
            above.push(here);
            let Some(child) = child else { return Ok(Step::Done(Way { above, end: End::Missing })) };
            passed = join(&passed, name);
            rest = below;
            if child.is_link() {
                self.user.read(&self.top()?)?;
                return match self.bucket.follow(&passed, PLACE) {
                    Ok((_, real)) if below.is_empty() => Ok(Step::Link(real)),
                    Ok((_, real)) => Ok(Step::Link(join(&real, below))),
                    Err(errno) if leads_nowhere(errno) => Ok(Step::Done(Way { above, end: End::Blocked })),
                    Err(errno) => Err(unknown(&child.path, errno)),
                };
            }
            here = child;
        }
        Ok(Step::Done(Way { above, end: End::There(here) }))
    }
}

enum Step {
    Done(Way),
    /// A link, with the path that its target makes of the whole.
    Link(String),
}
