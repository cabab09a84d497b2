//! Configuration: one definition (below) from which flags, environment variables, the keys of the
//! TOML file, the help text and `docs/CONFIGURATION.md` are made.
//!
//! A flag wins over the environment, the environment over the file, the file over the default. The
//! file's keys are the flags' names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser as _};
use clap::{ArgAction, Args};
use iam::AccountId;
use s3_types::{DefaultBlock, ETagSource, UnixName};

use crate::choices::{
    self, AccessLogFormat, AccessPattern, ClientAddress, Durability, LogFormat, Metadata, SigV2, Symlinks,
};
use crate::clients::TrustedProxy;
use crate::identities::StoreOptions;
use crate::ldap_options::LdapOptions;
use crate::line_log::Destination;
use crate::server::ListenAddress;
use crate::traces::{Ratio, TracesTo};
use crate::values::{
    at_least_one, directory, directory_mode, domain, file_mode, log_filter, region, seconds, seconds_or_none,
    switch, unix_name, whole,
};

/// Options of `slipway serve`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct ServeOptions {
    /// The directory to serve: each directory directly in it is a bucket. If it does not exist, it
    /// is created, except with --read-only and with --require-mount. The word `null:` in place of a
    /// directory stores nothing: writes are acknowledged and discarded, and reads return zeros, to
    /// measure the gateway without a disk
    #[arg(value_name = "DIR", env = "SLIPWAY_DIR", value_parser = OsStringValueParser::new().try_map(directory))]
    pub dir: OsString,

    /// Start only if a file system is mounted at DIR, so that the empty mount point is not served
    /// when the disk is missing. Regardless of this option, a running gateway answers all requests
    /// with 503 when the path DIR leads to another directory than at its start, for example after
    /// an unmount
    #[arg(long, env = "SLIPWAY_REQUIRE_MOUNT", value_parser = switch)]
    pub require_mount: bool,

    /// Serve DIR even if its file system treats some different names as the same name; without this
    /// option, the gateway refuses to start on such a file system. Some ignore case, so that the
    /// keys `KEY` and `key` are one file (SMB, exFAT, ext4 with casefold). Others treat two Unicode
    /// spellings of an accented letter as one. Of two such keys, the one that is written last
    /// replaces the other
    #[arg(long, env = "SLIPWAY_ALLOW_SAME_NAMES", value_parser = switch)]
    pub allow_same_names: bool,

    /// Allow DIR to lie inside another directory that a gateway serves or has served. The option is
    /// needed only when DIR is served for the first time. From then on, gateways of the outer
    /// directory cannot delete the bucket that contains DIR
    #[arg(long, env = "SLIPWAY_ALLOW_NESTED", value_parser = switch)]
    pub allow_nested: bool,

    /// Serve DIR without writing to it. Clients that try to write are answered 403 AccessDenied,
    /// and the gateway creates no files of its own there. So it cannot generate the root key: give
    /// it by --credentials-file or in the environment, unless DIR/.slipway/credentials.toml exists
    /// already
    #[arg(long, env = "SLIPWAY_READ_ONLY", value_parser = switch)]
    pub read_only: bool,

    /// Read options from this TOML file. Its keys are the names of the options without the two
    /// hyphens, such as `listen`. An option that is also given on the command line or in the
    /// environment is not taken from the file
    #[arg(long, value_name = "FILE", env = "SLIPWAY_CONFIG")]
    pub config: Option<PathBuf>,

    /// Listen for S3 clients at this address: ADDRESS:PORT, :PORT (all IPv4 addresses of this
    /// machine), `[::]:PORT` (all its IPv6 and IPv4 addresses) or unix:PATH (a Unix socket). May be
    /// given several times
    #[arg(
        long,
        value_name = "ADDR",
        env = "SLIPWAY_LISTEN",
        value_delimiter = ',',
        value_parser = ListenAddress::parse,
        default_value = "127.0.0.1:9000"
    )]
    pub listen: Vec<ListenAddress>,

    /// The region that clients must use when they sign their S3 requests. Requests that are signed
    /// for the region `auto` are accepted as well
    #[arg(long, value_name = "NAME", env = "SLIPWAY_REGION", default_value = "us-east-1", value_parser = region)]
    pub region: String,

    /// A domain name for virtual-hosted requests: with the domain s3.lab.example, a request to the
    /// host data.s3.lab.example is for the bucket `data`. May be given several times. Path-style
    /// requests (with the bucket in the URL's path) are always accepted
    #[arg(long, value_name = "NAME", env = "SLIPWAY_DOMAIN", value_delimiter = ',', value_parser = domain)]
    pub domain: Vec<String>,

    /// A TOML file with the root key: the access key of the root user of the first account (see
    /// --account-id), to which everything is allowed. It has access_key and secret_key, and
    /// optionally uid and gid. With --impersonate, requests with the root key access files with
    /// this uid and gid; with --chown, the files that they create get them; otherwise these have no
    /// effect. The file must be accessible to its owner only (mode 0600); if it belongs to the
    /// system's root, its group may read it as well (0640). Without this option, the key is taken
    /// from SLIPWAY_ROOT_ACCESS_KEY and SLIPWAY_ROOT_SECRET_KEY, or else it is generated at the
    /// first start and kept in DIR/.slipway/credentials.toml
    #[arg(long, value_name = "FILE", env = "SLIPWAY_CREDENTIALS_FILE")]
    pub credentials_file: Option<PathBuf>,

    /// A file with the master key, which encrypts the secrets of users' access keys and of
    /// sessions. `slipway master-key new` makes such a file; keep it outside of DIR, and keep a
    /// copy elsewhere. It must be accessible to its owner only (mode 0600); if it belongs to the
    /// system's root, its group may read it as well (0640). If it has several keys, one on each
    /// line, the first encrypts, and all decrypt. The variable SLIPWAY_MASTER_KEY may hold the
    /// content in place of a file. Without a master key, no access keys of users and no sessions
    /// can be made; and once users have access keys, the gateway does not start without it
    #[arg(long, value_name = "FILE", env = "SLIPWAY_MASTER_KEY_FILE")]
    pub master_key_file: Option<PathBuf>,

    /// A command that prints what the file of --master-key-file would contain: a program and its
    /// arguments, separated by spaces. The gateway runs it without a shell, at its start and at
    /// each reload (SIGHUP). It must finish within 10 s
    #[arg(long, value_name = "COMMAND", env = "SLIPWAY_MASTER_KEY_COMMAND")]
    pub master_key_command: Option<String>,

    /// The place of the identities, if that is not the tree.
    #[command(flatten)]
    pub store: StoreOptions,

    /// The id of the first account, which is created at the first start: 12 digits, as in the ARNs
    /// of AWS. Buckets belong to the first account, except those that another account created or
    /// received (`slipway admin account` creates accounts). Without this option, an id is generated
    /// at the first start and kept in DIR/.slipway/account.toml. If the id in that file differs
    /// from the one that is given here, the gateway does not start
    #[arg(long, value_name = "ID", env = "SLIPWAY_ACCOUNT_ID", value_parser = AccountId::new)]
    pub account_id: Option<AccountId>,

    /// The parts of an object that must be on disk before its write is acknowledged to the client
    #[arg(long, value_name = "LEVEL", env = "SLIPWAY_DURABILITY", value_parser = choices::durability(), default_value = "full")]
    pub durability: Durability,

    /// The place for what S3 stores about an object besides its bytes, such as ETag, checksums,
    /// headers and tags. It is chosen once for a DIR: the gateway does not start with another value
    /// than the one with which DIR was first served. Without this option, it uses that value, and
    /// `xattr` for a DIR that was never served
    #[arg(long, value_name = "WHERE", env = "SLIPWAY_METADATA", value_parser = choices::metadata())]
    pub metadata: Option<Metadata>,

    /// Whether the gateway follows symbolic links in buckets
    #[arg(
        long,
        value_name = "POLICY",
        env = "SLIPWAY_SYMLINKS",
        value_parser = choices::symlinks(),
        default_value = "follow-within"
    )]
    pub symlinks: Symlinks,

    /// The permissions of new files, in octal, before the umask of the gateway's process is applied
    #[arg(long, value_name = "MODE", env = "SLIPWAY_FILE_MODE", value_parser = file_mode, default_value = "0666")]
    pub file_mode: u32,

    /// The permissions of new directories, in octal, before the umask of the gateway's process is
    /// applied
    #[arg(long, value_name = "MODE", env = "SLIPWAY_DIR_MODE", value_parser = directory_mode, default_value = "0777")]
    pub dir_mode: u32,

    /// Make the user who creates an object the owner of its file: new files and directories get the
    /// uid and gid of that user (--impersonate says where these come from). The gateway must run as
    /// the system's root, or with the capabilities CAP_CHOWN and CAP_DAC_OVERRIDE. If a user has no
    /// uid and gid, the files belong to the system user that the gateway runs as
    #[arg(long, env = "SLIPWAY_CHOWN", value_parser = switch)]
    pub chown: bool,

    /// Access files with the uid, gid and groups of the user who sent the request. So the kernel
    /// checks the owners, modes and ACLs of files for each request that policies allow. A user's
    /// uid and gid come from `slipway admin user set-posix`, from the LDAP directory (uidNumber,
    /// gidNumber), or with --posix-names from the system user of the same name. For requests with
    /// the root key, the file of --credentials-file can give a uid and gid, or else
    /// SLIPWAY_ROOT_UID and SLIPWAY_ROOT_GID. A user without uid and gid cannot access any file.
    /// The gateway must run as the system's root, or as uid 0 of a user namespace into which more
    /// than one id is mapped; then only users whose ids are mapped can access files
    #[arg(long, env = "SLIPWAY_IMPERSONATE", value_parser = switch)]
    pub impersonate: bool,

    /// With --impersonate or --chown: take the uid and gid of whoever has none stored from the
    /// system user of the same name (from passwd or any other source of NSS). This applies to the
    /// people of --ldap-server, and to the IAM users of the account that the gateway was started
    /// with (--account-id). So everyone who may create IAM users can act as any
    /// system user, except as root and as users with a uid below --uid-min
    #[arg(long, env = "SLIPWAY_POSIX_NAMES", value_parser = switch)]
    pub posix_names: bool,

    /// With --impersonate or --chown: the lowest uid that a request may use on the file system.
    /// Requests of users whose uid is lower are refused
    #[arg(long, value_name = "UID", env = "SLIPWAY_UID_MIN", default_value = "1000", value_parser = whole::<u32, 1, 4_294_967_294>)]
    pub uid_min: u32,

    /// With --impersonate or --chown: the system user that anonymous requests act as on the file
    /// system, given as UID:GID or by name. Without this option, anonymous requests cannot access
    /// any file if --impersonate is given; with --chown, the files that they create belong to the
    /// system user that the gateway runs as
    #[arg(long, value_name = "USER", env = "SLIPWAY_ANONYMOUS_USER", value_parser = unix_name)]
    pub anonymous_user: Option<UnixName>,

    /// The source of the ETags of objects and parts. With `checksum`, ETags look like
    /// `crc64nvme-ae8b14860a799888`, which clients do not mistake for an MD5. If a client sends an
    /// MD5 with an upload, the gateway verifies that MD5 with either setting
    #[arg(long, value_name = "SOURCE", env = "SLIPWAY_ETAG", value_parser = choices::etag_source(), default_value = "md5")]
    pub etag: ETagSource,

    /// Whether public access is blocked to a bucket for which nobody has said it
    /// (PutPublicAccessBlock, DeletePublicAccessBlock), buckets made by other programs included. It
    /// is on for new buckets on S3
    #[arg(long, value_name = "BLOCK", env = "SLIPWAY_DEFAULT_PUBLIC_ACCESS_BLOCK", value_parser = choices::default_block(), default_value = "on")]
    pub default_public_access_block: DefaultBlock,

    /// Delete an unfinished multipart upload if it has received no new part for this many days.
    /// With 0 it is kept until a client completes or aborts it, as on S3
    #[arg(long, value_name = "DAYS", env = "SLIPWAY_UPLOAD_AGE", default_value = "0", value_parser = whole::<u32, 0, 1_000_000>)]
    pub upload_age: u32,

    /// Use the ETags that Versity S3 Gateway stored with its files, without checking whether a file
    /// was changed afterwards. The option concerns only files that `slipway import` has not
    /// imported yet. Without it, such a file has a provisional ETag (`foreign-...`). Use it only if
    /// no programs other than Versity S3 Gateway and Slipway have ever written to DIR
    #[arg(long, env = "SLIPWAY_TRUST_VERSITYGW", value_parser = switch)]
    pub trust_versitygw: bool,

    /// Compute the ETag and checksum of a file that another program made or changed, after a client
    /// has read the whole file. This is done in the background, by reading the file again. Until
    /// then the file has a provisional ETag (`foreign-...`), which the computed one replaces
    #[arg(long, env = "SLIPWAY_REHASH_ON_READ", value_parser = switch)]
    pub rehash_on_read: bool,

    /// Accept requests to IAM and STS that return or contain a secret, such as CreateAccessKey and
    /// AssumeRole, also from other machines without TLS. Anyone who can listen to the network then
    /// learns the secret. Without this option, such requests must come by TLS or from this machine
    #[arg(long, env = "SLIPWAY_SECRETS_IN_CLEAR", value_parser = switch)]
    pub secrets_in_clear: bool,

    /// Trust the certificate authorities in this PEM file, in place of the system's, when the
    /// gateway fetches the public keys of OpenID providers. These providers are added by the IAM
    /// action CreateOpenIDConnectProvider. The file is read again for each fetch
    #[arg(long, value_name = "FILE", env = "SLIPWAY_OIDC_CA")]
    pub oidc_ca: Option<PathBuf>,

    /// The LDAP directory.
    #[command(flatten)]
    pub ldap: LdapOptions,

    /// The kinds of requests with AWS signature version 2 that are accepted
    #[arg(long, value_name = "WHICH", env = "SLIPWAY_SIGV2", value_enum, default_value = "presigned")]
    pub sigv2: SigV2,

    /// Serve HTTPS with this certificate chain (PEM); without this option, the gateway serves HTTP.
    /// May be given several times: a client gets the first chain that is valid for the host name
    /// that it asks for (SNI), or else the first of all. A reload (SIGHUP) reads the files again
    #[arg(long, value_name = "FILE", env = "SLIPWAY_TLS_CERT", value_delimiter = ',')]
    pub tls_cert: Vec<PathBuf>,

    /// The private key (PEM) that belongs to --tls-cert. With several certificates, give a key for
    /// each, in the same order
    #[arg(long, value_name = "FILE", env = "SLIPWAY_TLS_KEY", value_delimiter = ',')]
    pub tls_key: Vec<PathBuf>,

    /// The amount of memory, in MiB, for sorted lists of the names in directories, which make
    /// repeated listings of objects faster
    #[arg(long, value_name = "MIB", env = "SLIPWAY_INDEX_CACHE", default_value = "256", value_parser = whole::<usize, 0, 16_777_216>)]
    pub index_cache: usize,

    /// The amount of memory, in MiB, for the content of objects of at most 64 KiB that are read
    /// repeatedly; 0 turns this off. Each read still checks that the file is unchanged. This memory
    /// is used only on ext4, XFS, btrfs and tmpfs, and not with --impersonate
    #[arg(long, value_name = "MIB", env = "SLIPWAY_OBJECT_CACHE", default_value = "16", value_parser = whole::<usize, 0, 16_777_216>)]
    pub object_cache: usize,

    /// Whether large files are sent directly from the kernel's page cache (by the system call
    /// sendfile), on connections without TLS. This takes less CPU time, but has a gap: if another
    /// program overwrites a file in place just before its download ends, the last bytes (up to some
    /// MiB) may be a mixture of old and new content, without an error. With `off`, the gateway
    /// first copies what it sends, so that such a download has the old content, or is aborted
    #[arg(long, value_name = "on|off", env = "SLIPWAY_SENDFILE", action = ArgAction::Set, default_value = "on",
        value_parser = PossibleValuesParser::new(["on", "off"]).map(|text| text == "on"))]
    pub sendfile: bool,

    /// The way in which clients mostly read files. The kernel then reads ahead accordingly
    #[arg(
        long,
        value_name = "PATTERN",
        env = "SLIPWAY_ACCESS_PATTERN",
        value_parser = choices::access_pattern(),
        default_value = "automatic"
    )]
    pub access_pattern: AccessPattern,

    /// The largest number of connections at a time. A further connection is closed; on a connection
    /// without TLS, it is first answered 503 SlowDown
    #[arg(long, value_name = "N", env = "SLIPWAY_MAX_CONNECTIONS", default_value = "10000", value_parser = at_least_one)]
    pub max_connections: usize,

    /// The largest number of requests in progress at a time. A further request is answered 503
    /// SlowDown
    #[arg(long, value_name = "N", env = "SLIPWAY_MAX_REQUESTS", default_value = "2000", value_parser = at_least_one)]
    pub max_requests: usize,

    /// The source of a client's address, and of whether the client uses TLS. Logs and policies
    /// use both. All values but `connection` need --trusted-proxy. Choose only what the
    /// proxy sets itself: a client can forge a header that the proxy passes on unchanged
    #[arg(
        long,
        value_name = "SOURCE",
        env = "SLIPWAY_CLIENT_ADDRESS",
        value_enum,
        default_value = "connection"
    )]
    pub client_address: ClientAddress,

    /// A proxy that is trusted to report the addresses of its clients in the way that
    /// --client-address names: an IP address, a network such as 10.0.0.0/8, or `unix` for all that
    /// connect to a Unix socket. May be given several times. Addresses that others report are
    /// ignored
    #[arg(
        long,
        value_name = "NETWORK",
        env = "SLIPWAY_TRUSTED_PROXY",
        value_delimiter = ',',
        value_parser = TrustedProxy::parse
    )]
    pub trusted_proxy: Vec<TrustedProxy>,

    /// Listen for operators at this address: ADDRESS:PORT, :PORT (all IPv4 addresses of this
    /// machine) or unix:PATH (a Unix socket). It answers `/metrics` for Prometheus, and `/-/live`
    /// and `/-/ready` for load balancers and service managers. These requests are not
    /// authenticated, so choose an address that is not public. Without this option, no metrics are
    /// counted
    #[arg(long, value_name = "ADDRESS", env = "SLIPWAY_OPS_LISTEN", value_parser = ListenAddress::parse)]
    pub ops_listen: Option<ListenAddress>,

    /// The free space in GiB that the file system of DIR must have. If there is less, the gateway
    /// answers `/-/ready` with 503 (not ready). With 0, even a full file system counts as ready,
    /// since it can still be read from
    #[arg(long, value_name = "GIB", env = "SLIPWAY_READY_FREE", default_value = "0", value_parser = whole::<u64, 0, 1_000_000_000>)]
    pub ready_free: u64,

    /// The time in seconds within which the headers of a request must arrive
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_HEADER_TIMEOUT", default_value = "20", value_parser = seconds)]
    pub header_timeout: Duration,

    /// The time in seconds after which a connection without a request is closed
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_IDLE_TIMEOUT", default_value = "120", value_parser = seconds)]
    pub idle_timeout: Duration,

    /// The time in seconds after which a request is aborted if no more bytes of its body or of its
    /// answer can be transferred
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_STALL_TIMEOUT", default_value = "60", value_parser = seconds)]
    pub stall_timeout: Duration,

    /// The time in seconds for which the gateway continues to serve after SIGTERM while it already
    /// answers `/-/ready` with 503. Load balancers can then stop sending requests before
    /// connections are closed. With 0, the gateway stops accepting connections at once
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_DRAIN_DELAY", default_value = "0", value_parser = seconds_or_none)]
    pub drain_delay: Duration,

    /// The time in seconds that requests in progress have to finish after SIGTERM and --drain-delay
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_DRAIN_TIMEOUT", default_value = "30", value_parser = seconds)]
    pub drain_timeout: Duration,

    /// Append a line for each finished request to this file; `stderr` writes the lines to standard
    /// error (the journal, under systemd). After the file was renamed, a reload (SIGHUP) opens a
    /// new one. Signatures and tokens in URLs are left out
    #[arg(long, value_name = "FILE|stderr", env = "SLIPWAY_ACCESS_LOG", value_parser = Destination::parse)]
    pub access_log: Option<Destination>,

    /// The format of the lines in --access-log
    #[arg(
        long,
        value_name = "FORMAT",
        env = "SLIPWAY_ACCESS_LOG_FORMAT",
        value_enum,
        default_value = "json"
    )]
    pub access_log_format: AccessLogFormat,

    /// Append a line for each decision about a permission to this file; `stderr` writes the lines
    /// to standard error (the journal, under systemd). A line names the requester, the client's
    /// address, the action, the resource, the decision, and the policy and statement that decided.
    /// After the file was renamed, a reload (SIGHUP) opens a new one. The lines contain no secrets
    #[arg(long, value_name = "FILE|stderr", env = "SLIPWAY_AUDIT_LOG", value_parser = Destination::parse)]
    pub audit_log: Option<Destination>,

    /// Answer requests with 503 ServiceUnavailable while no lines can be written to --audit-log.
    /// Lines of requests that are already in progress are kept in memory until they can be written.
    /// Without this option, requests go on being served, and lines that cannot be written are
    /// dropped
    #[arg(long, env = "SLIPWAY_AUDIT_LOG_REQUIRED", value_parser = switch)]
    pub audit_log_required: bool,

    /// Send a span for each request to an OpenTelemetry collector, by OTLP over HTTP (Protocol
    /// Buffers). Give the collector's URL, such as http://127.0.0.1:4318 (if it has no path,
    /// /v1/traces is added), or `env` for the URL in OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
    /// OTEL_EXPORTER_OTLP_ENDPOINT. In both cases the gateway also reads these variables of
    /// OpenTelemetry: OTEL_EXPORTER_OTLP_HEADERS and OTEL_EXPORTER_OTLP_CERTIFICATE
    /// (OTEL_EXPORTER_OTLP_TRACES_HEADERS and OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE take
    /// precedence), OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
    #[arg(long, value_name = "URL|env", env = "SLIPWAY_TRACES", value_parser = TracesTo::parse)]
    pub traces: Option<TracesTo>,

    /// The share of traces that is sent, from 0 (none) to 1 (all). It applies to traces that begin
    /// at this gateway; for a trace that began at a client, the client has decided
    #[arg(
        long,
        value_name = "SHARE",
        env = "SLIPWAY_TRACES_RATIO",
        default_value = "1",
        value_parser = Ratio::parse
    )]
    pub traces_ratio: Ratio,

    /// Continue the traces that clients at this address began and name in their traceparent
    /// headers. Give an IP address, a network such as 10.0.0.0/8, or `unix` for all clients of Unix
    /// sockets. May be given several times. A client's address is the one that --client-address
    /// yields. The traceparent headers of other clients are ignored, since anyone can send them
    #[arg(
        long,
        value_name = "NETWORK",
        env = "SLIPWAY_TRACES_FROM",
        value_delimiter = ',',
        value_parser = TrustedProxy::parse_any
    )]
    pub traces_from: Vec<TrustedProxy>,

    /// The messages to log: those from a level on (error, warn, info, debug or trace), or a filter
    /// with levels for parts of the program, such as info,gateway::server=debug
    #[arg(long, value_name = "FILTER", env = "SLIPWAY_LOG", default_value = "info", value_parser = log_filter)]
    pub log: String,

    /// The format of log messages
    #[arg(long, value_name = "FORMAT", env = "SLIPWAY_LOG_FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
}

impl ServeOptions {
    /// Refuses options that contradict each other, and a DIR that cannot be what the user wants.
    pub fn check(&self) -> Result<(), String> {
        if Path::new(&self.dir).canonicalize().is_ok_and(|dir| dir == Path::new("/")) {
            return Err(
                "/: the root directory cannot be served: each directory of the system would be a bucket: name another \
                 directory"
                    .to_owned(),
            );
        }
        if self.read_only && self.rehash_on_read {
            return Err(
                "--rehash-on-read contradicts --read-only, since it writes to DIR: leave out one of the two"
                    .to_owned(),
            );
        }
        self.check_identities()
    }

    /// Refuses options about POSIX identities that contradict others.
    fn check_identities(&self) -> Result<(), String> {
        let refused = |with: &str, why: &str| {
            Err(format!("--impersonate contradicts {with}, {why}: leave out one of the two"))
        };
        if self.impersonate {
            if self.read_only {
                return refused("--read-only", "since it is tried in DIR at the start");
            }
            if self.allow_same_names {
                return refused("--allow-same-names", "since names must tell files apart");
            }
            if self.metadata == Some(Metadata::Sidecar) {
                return refused(
                    "--metadata sidecar",
                    "since records beside files would need the rights of several users",
                );
            }
            if self.dir == "null:" {
                return refused("null:", "which stores no files");
            }
        }
        if !self.impersonate && !self.chown {
            let given =
                [(self.posix_names, "--posix-names"), (self.anonymous_user.is_some(), "--anonymous-user")];
            if let Some((_, flag)) = given.into_iter().find(|(given, _)| *given) {
                return Err(format!(
                    "{flag} has no effect without --impersonate or --chown: give one of them as well, or leave out {flag}"
                ));
            }
        }
        Ok(())
    }
}
