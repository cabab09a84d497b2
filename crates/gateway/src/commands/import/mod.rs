//! `slipway import`.

mod archive;
mod file;
mod keys;
mod minio_accounts;
mod minio_iam;
mod minio_policy;
mod rows;
mod taking;
mod tree;
mod versitygw_users;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use backend_posix::tools::{ImportOptions, Imported, Progress, import_minio_fs, import_versitygw};
use clap::{Args, Subcommand};

use self::minio_iam::MinioIamOptions;
use self::versitygw_users::VersitygwUsersOptions;
use super::{Console, FOUND, Jobs, OK, shown, size};

/// The servers whose metadata can be imported.
#[derive(Debug, Clone, Subcommand)]
pub enum ImportCommand {
    /// Import the metadata of objects from a directory that Versity S3 Gateway served on a POSIX
    /// file system. Gateways may be serving the directory at the same time. Exit status: 0 all
    /// files were imported; 1 some were not; 2 the import could not begin
    Versitygw(VersitygwOptions),
    /// Import the users of Versity S3 Gateway from its file users.json, with their access keys,
    /// their uid and gid, and their rights in buckets. They become IAM users of DIR's first
    /// account, the one that the first start of a gateway created. A gateway must have served DIR
    /// before, and gateways may be serving it at the same time. Exit status: 0 all users were
    /// imported; 1 some were not, or only in part; 2 none were
    VersitygwUsers(VersitygwUsersOptions),
    /// Import the metadata of objects from a directory that MinIO served with its file system
    /// backend (one drive, format "fs", until 2022). MinIO's fs.json files are kept. Gateways may
    /// be serving the directory at the same time. Exit status: 0 all files were imported; 1 some
    /// were not; 2 the import could not begin
    MinioFs(MinioFsOptions),
    /// Import MinIO's users, groups, policies and service accounts, with their access keys, from
    /// the archive that `mc admin cluster iam export` makes. They are added to DIR's first account,
    /// the one that the first start of a gateway created. A gateway must have served DIR before,
    /// and gateways may be serving it at the same time. Exit status: 0 all were imported; 1 some
    /// were not, or only in part; 2 none were
    MinioIam(MinioIamOptions),
}

/// Options of `slipway import minio-fs`.
#[derive(Debug, Clone, Args)]
pub struct MinioFsOptions {
    /// The directory that MinIO served; it contains the directory .minio.sys
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Only show what would be imported; nothing is written
    #[arg(long)]
    pub dry_run: bool,

    /// Import ETags without reading the files. Only files that are newer than their fs.json are
    /// still read, since they may have changed. If another program changed a file and set an older
    /// modification time, its ETag will be wrong, and clients that compare ETags will fail to
    /// download it
    #[arg(long)]
    pub trust_etags: bool,

    /// Files at a time
    #[command(flatten)]
    pub jobs: Jobs,
}

/// Options of `slipway import versitygw`.
#[derive(Debug, Clone, Args)]
pub struct VersitygwOptions {
    /// The directory that Versity S3 Gateway served
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// The directory in which Versity S3 Gateway kept metadata, if it ran with --sidecar. It is not
    /// changed
    #[arg(long, value_name = "SIDECARDIR")]
    pub sidecar: Option<PathBuf>,

    /// Not supported yet: with this option, the command fails. It names the directory in which
    /// Versity S3 Gateway kept older versions of objects. Without it, the newest version of each
    /// object is imported, and that directory stays unchanged
    #[arg(long, value_name = "VERSIONDIR")]
    pub versioning_dir: Option<PathBuf>,

    /// Only show what would be imported; nothing is written
    #[arg(long)]
    pub dry_run: bool,

    /// Keep the extended attributes that Versity S3 Gateway stored, so that it can still serve the
    /// directory. Without this option, those of imported files are removed
    #[arg(long)]
    pub keep_attributes: bool,

    /// Import ETags and checksums without reading the files. If a file was changed after Versity S3
    /// Gateway wrote it, its ETag will be wrong, and clients that compare ETags will fail to
    /// download it
    #[arg(long)]
    pub trust_etags: bool,

    /// Files at a time
    #[command(flatten)]
    pub jobs: Jobs,
}

/// Imports the metadata, and prints the results.
pub fn run(command: &ImportCommand) -> ExitCode {
    match command {
        ImportCommand::Versitygw(options) => versitygw(options),
        ImportCommand::VersitygwUsers(options) => versitygw_users::run(options),
        ImportCommand::MinioIam(options) => minio_iam::run(options),
        ImportCommand::MinioFs(options) => {
            let how = ImportOptions {
                sidecar: None,
                dry_run: options.dry_run,
                keep_attributes: true,
                trust_etags: options.trust_etags,
                jobs: options.jobs.count(),
            };
            import(&Console::new(), &options.dir, &how, import_minio_fs)
        }
    }
}

fn versitygw(options: &VersitygwOptions) -> ExitCode {
    let console = Console::new();
    if options.versioning_dir.is_some() {
        return console.fail(
            "--versioning-dir: older versions cannot be imported yet. Without this option, the newest version of \
             each object is imported, and that directory is left unchanged",
        );
    }
    let how = ImportOptions {
        sidecar: options.sidecar.clone(),
        dry_run: options.dry_run,
        keep_attributes: options.keep_attributes,
        trust_etags: options.trust_etags,
        jobs: options.jobs.count(),
    };
    import(&console, &options.dir, &how, import_versitygw)
}

type Report<'a> = &'a (dyn Fn(&Path, Imported) + Sync);

fn import(
    console: &Console,
    dir: &Path,
    how: &ImportOptions,
    from: impl Fn(&Path, &ImportOptions, &Progress, Report<'_>) -> Result<(), String>,
) -> ExitCode {
    let progress = Progress::default();
    let [done, known, foreign, left] = [const { AtomicU64::new(0) }; 4];
    let outcome = console.watch(&progress, || {
        from(dir, how, &progress, &|path, what| {
            let path = shown(path);
            let (count, line) = match what {
                Imported::Done => (Some(&done), None),
                Imported::Known => (Some(&known), None),
                Imported::Foreign => (Some(&foreign), None),
                Imported::Stale(why) => (
                    Some(&left),
                    Some(format!(
                        "stale: {path}: {why}; not imported, and still served as a foreign file"
                    )),
                ),
                Imported::Changed => (
                    Some(&left),
                    Some(format!(
                        "failed: {path}: another program changed it while it was read, or has it open for writing: \
                         run the import again"
                    )),
                ),
                Imported::Failed(error) => (Some(&left), Some(format!("failed: {path}: {error}"))),
                Imported::Left(what) => (None, Some(format!("left: {path}: {what}"))),
            };
            if let Some(count) = count {
                count.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(line) = line {
                console.say(&line);
            }
        })
    });
    if let Err(message) = outcome {
        return console.fail(&message);
    }
    let [done, known, foreign, left] = [done, known, foreign, left].map(AtomicU64::into_inner);
    let would = if how.dry_run { "to import" } else { "imported" };
    console.say(&format!(
        "{done} {would}, {known} already had Slipway's records, {foreign} had neither these nor the other server's \
         metadata, {left} not imported; {} read",
        size(progress.bytes())
    ));
    if progress.entries() == 0 {
        console
            .complain(&format!("{}: there are no files in buckets there: is it the right one?", shown(dir)));
    }
    if left == 0 { OK.into() } else { FOUND.into() }
}
