//! The bucket whose versions a command works on.

use std::path::PathBuf;

use backend::{Backend as _, Context, ListQuery, VersionItem};
use backend_posix::PosixBackend;
use backend_posix::tools::refuse_part_of_tree;
use clap::Args;
use s3_types::BucketName;

/// The number of versions that are read at a time.
const PAGE_ITEMS: usize = 1000;

/// The bucket whose versions a command works on.
#[derive(Debug, Clone, Args)]
pub struct Place {
    /// The served directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// The bucket
    #[arg(value_name = "BUCKET", value_parser = bucket)]
    pub bucket: BucketName,

    /// Only keys that begin with this
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    pub prefix: String,
}

fn bucket(name: &str) -> Result<BucketName, String> {
    BucketName::new(name).map_err(|_| "not a valid name of a bucket".to_owned())
}

/// Opens the tree of a bucket for a command. The gateway's own way to its objects is taken.
pub(super) fn open(place: &Place) -> Result<(PosixBackend, tokio::runtime::Runtime), String> {
    refuse_part_of_tree(&place.dir)?;
    let backend = PosixBackend::open_as_tool(&place.dir, backend_posix::Options::default())
        .map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok((backend, runtime.map_err(|error| error.to_string())?))
}

/// Calls `each` with all versions of keys with the prefix.
pub(super) async fn each_version(
    backend: &PosixBackend,
    place: &Place,
    mut each: impl FnMut(VersionItem),
) -> backend::Result<()> {
    let mut start = None;
    loop {
        let query = ListQuery {
            bucket: &place.bucket,
            prefix: &place.prefix,
            delimiter: None,
            start: start.as_ref(),
            max_items: PAGE_ITEMS,
        };
        let page = backend.list_versions(&Context::default(), &query).await?;
        page.items.into_iter().for_each(&mut each);
        match page.next {
            Some(next) => start = Some(next),
            None => return Ok(()),
        }
    }
}

/// Returns what is said of an error about the bucket.
pub(super) fn failed(place: &Place, error: &backend::BackendError) -> String {
    format!("{}: {error}", place.dir.join(place.bucket.as_str()).display())
}
