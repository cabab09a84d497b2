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
use s3_types::{ETagSource, UnixName};

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
    /// The directory to serve: each directory in it is a bucket. It is made if it does not exist,
    /// but not with --read-only or --require-mount. `null:` stores nothing and answers at once, for
    /// measuring
    #[arg(value_name = "DIR", env = "SLIPWAY_DIR", value_parser = OsStringValueParser::new().try_map(directory))]
    pub dir: OsString,

    /// Serve DIR only if a file system is mounted there, not the empty directory that remains when
    /// its disk is missing. (With or without this option, all requests are answered 503 once the
    /// path DIR leads to another directory than at the start.)
    #[arg(long, env = "SLIPWAY_REQUIRE_MOUNT", value_parser = switch)]
    pub require_mount: bool,

    /// Serve DIR although its file system takes different names for the same one: `KEY` and `key`
    /// (SMB, exFAT, casefold), or two spellings of an accented letter. Of two such keys, the one
    /// that is written last replaces the other
    #[arg(long, env = "SLIPWAY_ALLOW_SAME_NAMES", value_parser = switch)]
    pub allow_same_names: bool,

    /// Allow DIR to lie inside another directory that a gateway serves or has served. The option is
    /// needed only when DIR is served for the first time. From then on, gateways of the other
    /// directory cannot delete the bucket that contains DIR
    #[arg(long, env = "SLIPWAY_ALLOW_NESTED", value_parser = switch)]
    pub allow_nested: bool,

    /// Serve DIR without writing to it: writes are answered 403 AccessDenied, and the gateway
    /// itself creates, cleans up and records nothing there. Root's keys must be given, unless DIR
    /// already has a credentials file
    #[arg(long, env = "SLIPWAY_READ_ONLY", value_parser = switch)]
    pub read_only: bool,

    /// Read options from this TOML file; its keys are the names of these flags
    #[arg(long, value_name = "FILE", env = "SLIPWAY_CONFIG")]
    pub config: Option<PathBuf>,

    /// Where to listen: ADDRESS:PORT, :PORT (all IPv4 addresses), `[::]:PORT` (all IPv6 and IPv4
    /// addresses) or unix:PATH. May be given several times
    #[arg(
        long,
        value_name = "ADDR",
        env = "SLIPWAY_LISTEN",
        value_delimiter = ',',
        value_parser = ListenAddress::parse,
        default_value = "127.0.0.1:9000"
    )]
    pub listen: Vec<ListenAddress>,

    /// The region that clients must name; they may also name `auto`
    #[arg(long, value_name = "NAME", env = "SLIPWAY_REGION", default_value = "us-east-1", value_parser = region)]
    pub region: String,

    /// A domain whose subdomains are buckets (virtual-host style). May be given several times. Path
    /// style always works
    #[arg(long, value_name = "NAME", env = "SLIPWAY_DOMAIN", value_delimiter = ',', value_parser = domain)]
    pub domain: Vec<String>,

    /// A TOML file with root's access_key and secret_key (and, optionally, uid and gid), readable
    /// by its owner only; by its group as well if the file belongs to the system's root. Without it
    /// the keys come from the environment (SLIPWAY_ROOT_ACCESS_KEY and SLIPWAY_ROOT_SECRET_KEY), or
    /// are generated once and kept in DIR/.slipway/credentials.toml
    #[arg(long, value_name = "FILE", env = "SLIPWAY_CREDENTIALS_FILE")]
    pub credentials_file: Option<PathBuf>,

    /// A file with the master key, which secrets of users' access keys and sessions are encrypted
    /// with, readable by its owner only as --credentials-file. `slipway master-key new` makes one;
    /// keep it outside of DIR, and a copy elsewhere. Of several lines, the first key encrypts, and
    /// all decrypt. The text may also be in SLIPWAY_MASTER_KEY. Without a master key, no access
    /// keys of users and no sessions can be made, and once there are some, no server starts
    #[arg(long, value_name = "FILE", env = "SLIPWAY_MASTER_KEY_FILE")]
    pub master_key_file: Option<PathBuf>,

    /// A program, and its arguments separated by spaces, that prints what the file of
    /// --master-key-file would contain. It is run without a shell, at the start and at each reload,
    /// and must finish within 10 s
    #[arg(long, value_name = "COMMAND", env = "SLIPWAY_MASTER_KEY_COMMAND")]
    pub master_key_command: Option<String>,

    /// The place of the identities, if that is not the tree.
    #[command(flatten)]
    pub store: StoreOptions,

    /// The id of the account that buckets and objects belong to: 12 digits. Without it, the id in
    /// DIR/.slipway/account.toml counts, which is generated once. A directory with another id is
    /// not served
    #[arg(long, value_name = "ID", env = "SLIPWAY_ACCOUNT_ID", value_parser = AccountId::new)]
    pub account_id: Option<AccountId>,

    /// When a write is acknowledged
    #[arg(long, value_name = "LEVEL", env = "SLIPWAY_DURABILITY", value_parser = choices::durability(), default_value = "full")]
    pub durability: Durability,

    /// Where an object's record is kept: what S3 knows of it beyond its bytes. A tree remembers
    /// `sidecar`; without this option, all other trees use extended attributes
    #[arg(long, value_name = "WHERE", env = "SLIPWAY_METADATA", value_parser = choices::metadata())]
    pub metadata: Option<Metadata>,

    /// What happens to symbolic links
    #[arg(
        long,
        value_name = "POLICY",
        env = "SLIPWAY_SYMLINKS",
        value_parser = choices::symlinks(),
        default_value = "follow-within"
    )]
    pub symlinks: Symlinks,

    /// Permissions of new files in octal, minus the umask
    #[arg(long, value_name = "MODE", env = "SLIPWAY_FILE_MODE", value_parser = file_mode, default_value = "0666")]
    pub file_mode: u32,

    /// Permissions of new directories in octal, minus the umask
    #[arg(long, value_name = "MODE", env = "SLIPWAY_DIR_MODE", value_parser = directory_mode, default_value = "0777")]
    pub dir_mode: u32,

    /// Give new files and directories to the uid and gid of the account that made them. Needs root,
    /// or CAP_CHOWN and CAP_DAC_OVERRIDE. Files of accounts without a known uid and gid belong to
    /// the server's user
    #[arg(long, env = "SLIPWAY_CHOWN", value_parser = switch)]
    pub chown: bool,

    /// Make the file calls of each request as its requester, so that the kernel decides about them
    /// by owners, modes, groups and ACLs, after policies did. Needs root; uid 0 of a user namespace
    /// suffices if more than one id is mapped into it. Requesters whose POSIX identity is not known
    /// reach no file
    #[arg(long, env = "SLIPWAY_IMPERSONATE", value_parser = switch)]
    pub impersonate: bool,

    /// For --impersonate and --chown: let a user of IAM or of --ldap-server without a POSIX
    /// identity of its own act as the system's account of the same name (from passwd, LDAP or any
    /// other source of NSS). So whoever may create users of IAM may act as any account of the
    /// system, except root and those below --uid-min
    #[arg(long, env = "SLIPWAY_POSIX_NAMES", value_parser = switch)]
    pub posix_names: bool,

    /// For --impersonate and --chown: no request acts as an account with a lower user id
    #[arg(long, value_name = "UID", env = "SLIPWAY_UID_MIN", default_value = "1000", value_parser = whole::<u32, 1, 4_294_967_294>)]
    pub uid_min: u32,

    /// For --impersonate and --chown: the account that anonymous requests act as on the file
    /// system, as UID:GID or by its name. If it is not given, anonymous requests reach no file with
    /// --impersonate
    #[arg(long, value_name = "ACCOUNT", env = "SLIPWAY_ANONYMOUS_USER", value_parser = unix_name)]
    pub anonymous_user: Option<UnixName>,

    /// What the ETags of objects and parts are made from. With `checksum` they look like
    /// `crc64nvme-ae8b14860a799888`, which clients don't take for an MD5; an MD5 that a client
    /// sends is still verified
    #[arg(long, value_name = "SOURCE", env = "SLIPWAY_ETAG", value_parser = choices::etag_source(), default_value = "md5")]
    pub etag: ETagSource,

    /// Remove an upload in progress as abandoned after this many days without a new part; 0 keeps
    /// it until it is completed or aborted, as S3 does
    #[arg(long, value_name = "DAYS", env = "SLIPWAY_UPLOAD_AGE", default_value = "0", value_parser = whole::<u32, 0, 1_000_000>)]
    pub upload_age: u32,

    /// Use the ETags that Versity S3 Gateway stored for files, without checking whether a file was
    /// changed afterwards. This concerns only files that `slipway import` has not taken over yet.
    /// Only for trees that no program but Versity S3 Gateway and Slipway ever wrote to
    #[arg(long, env = "SLIPWAY_TRUST_VERSITYGW", value_parser = switch)]
    pub trust_versitygw: bool,

    /// Compute ETags and checksums of files that other programs made or changed, in the background,
    /// once they are read whole (see `slipway rehash`). This changes their ETags once
    #[arg(long, env = "SLIPWAY_REHASH_ON_READ", value_parser = switch)]
    pub rehash_on_read: bool,

    /// Perform actions of IAM and STS whose request or answer has a secret (an access key is made,
    /// a session is issued) also for clients that are neither on this machine nor connected by TLS:
    /// whoever can listen to the network learns the secret
    #[arg(long, env = "SLIPWAY_SECRETS_IN_CLEAR", value_parser = switch)]
    pub secrets_in_clear: bool,

    /// A file with certificates (PEM) of the authorities that are trusted for OpenID providers
    /// whose keys are fetched, in place of the system's. It is read again each time
    #[arg(long, value_name = "FILE", env = "SLIPWAY_OIDC_CA")]
    pub oidc_ca: Option<PathBuf>,

    /// The LDAP directory.
    #[command(flatten)]
    pub ldap: LdapOptions,

    /// Which requests signed with AWS signature version 2 are accepted
    #[arg(long, value_name = "WHICH", env = "SLIPWAY_SIGV2", value_enum, default_value = "presigned")]
    pub sigv2: SigV2,

    /// A certificate chain (PEM) for TLS. May be given several times: the first whose names match
    /// the client's SNI is used, otherwise the first of all. A reload reads the files again
    #[arg(long, value_name = "FILE", env = "SLIPWAY_TLS_CERT", value_delimiter = ',')]
    pub tls_cert: Vec<PathBuf>,

    /// The private key (PEM) of each --tls-cert, in the same order
    #[arg(long, value_name = "FILE", env = "SLIPWAY_TLS_KEY", value_delimiter = ',')]
    pub tls_key: Vec<PathBuf>,

    /// Memory for the sorted indexes of directories that listings keep, in MiB
    #[arg(long, value_name = "MIB", env = "SLIPWAY_INDEX_CACHE", default_value = "256", value_parser = whole::<usize, 0, 16_777_216>)]
    pub index_cache: usize,

    /// Memory for objects up to 64 KiB that are read repeatedly, in MiB; 0 keeps none. Each read
    /// still checks that the file is unchanged; only on ext4, XFS, btrfs and tmpfs
    #[arg(long, value_name = "MIB", env = "SLIPWAY_OBJECT_CACHE", default_value = "16", value_parser = whole::<usize, 0, 16_777_216>)]
    pub object_cache: usize,

    /// Send large files that are in the page cache straight from there (sendfile), without TLS.
    /// `off` reads them first, which costs more, but also detects a file that is overwritten in
    /// place at the very end of a download (see SEMANTICS.md)
    #[arg(long, value_name = "on|off", env = "SLIPWAY_SENDFILE", action = ArgAction::Set, default_value = "on",
        value_parser = PossibleValuesParser::new(["on", "off"]).map(|text| text == "on"))]
    pub sendfile: bool,

    /// How files are mostly read, so that the kernel knows how far to read ahead
    #[arg(
        long,
        value_name = "PATTERN",
        env = "SLIPWAY_ACCESS_PATTERN",
        value_parser = choices::access_pattern(),
        default_value = "automatic"
    )]
    pub access_pattern: AccessPattern,

    /// At most this many connections at a time; further ones are answered 503 SlowDown (without
    /// TLS) and closed
    #[arg(long, value_name = "N", env = "SLIPWAY_MAX_CONNECTIONS", default_value = "10000", value_parser = at_least_one)]
    pub max_connections: usize,

    /// At most this many requests in progress at a time; further ones are answered 503 SlowDown
    #[arg(long, value_name = "N", env = "SLIPWAY_MAX_REQUESTS", default_value = "2000", value_parser = at_least_one)]
    pub max_requests: usize,

    /// For clients that connect through a --trusted-proxy: where their address (for the access log)
    /// and whether they use TLS are taken from. Choose only what the proxy itself sets: a client
    /// can forge a header that the proxy passes on unchanged
    #[arg(
        long,
        value_name = "SOURCE",
        env = "SLIPWAY_CLIENT_ADDRESS",
        value_enum,
        default_value = "connection"
    )]
    pub client_address: ClientAddress,

    /// A proxy that is trusted for --client-address: an address, a network (10.0.0.0/8), or `unix`
    /// for all that connect to a unix socket. May be given several times. Other clients' headers
    /// about addresses are ignored
    #[arg(
        long,
        value_name = "NETWORK",
        env = "SLIPWAY_TRUSTED_PROXY",
        value_delimiter = ',',
        value_parser = TrustedProxy::parse
    )]
    pub trusted_proxy: Vec<TrustedProxy>,

    /// The address for operators: `/metrics` for Prometheus, `/-/live` and `/-/ready` for load
    /// balancers and service managers. ADDRESS:PORT, :PORT or unix:PATH; requests there are not
    /// authenticated, so use an address that is not public. Without it no metrics are counted
    #[arg(long, value_name = "ADDRESS", env = "SLIPWAY_OPS_LISTEN", value_parser = ListenAddress::parse)]
    pub ops_listen: Option<ListenAddress>,

    /// How much free space, in GiB, DIR's volume must have for `/-/ready` to answer that the server
    /// is ready. With 0, even a full volume counts as ready, since it can still be read from
    #[arg(long, value_name = "GIB", env = "SLIPWAY_READY_FREE", default_value = "0", value_parser = whole::<u64, 0, 1_000_000_000>)]
    pub ready_free: u64,

    /// How long a request's headers may take to arrive, in seconds
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_HEADER_TIMEOUT", default_value = "20", value_parser = seconds)]
    pub header_timeout: Duration,

    /// How long a connection may be idle between requests, in seconds
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_IDLE_TIMEOUT", default_value = "120", value_parser = seconds)]
    pub idle_timeout: Duration,

    /// How long a client may make no progress with a request's or an answer's body, in seconds
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_STALL_TIMEOUT", default_value = "60", value_parser = seconds)]
    pub stall_timeout: Duration,

    /// How long to go on serving after SIGTERM while `/-/ready` says not ready, in seconds, so that
    /// load balancers stop sending requests before connections are closed. 0 for no delay
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_DRAIN_DELAY", default_value = "0", value_parser = seconds_or_none)]
    pub drain_delay: Duration,

    /// How long requests in progress may take to finish after --drain-delay, in seconds
    #[arg(long, value_name = "SECONDS", env = "SLIPWAY_DRAIN_TIMEOUT", default_value = "30", value_parser = seconds)]
    pub drain_timeout: Duration,

    /// Append a line for each finished request to this file, or write it to `stderr` (the journal,
    /// under systemd). After the file was renamed, a reload opens a new one. Signatures and tokens
    /// in URLs are left out
    #[arg(long, value_name = "FILE|stderr", env = "SLIPWAY_ACCESS_LOG", value_parser = Destination::parse)]
    pub access_log: Option<Destination>,

    /// How lines of the access log look
    #[arg(
        long,
        value_name = "FORMAT",
        env = "SLIPWAY_ACCESS_LOG_FORMAT",
        value_enum,
        default_value = "json"
    )]
    pub access_log_format: AccessLogFormat,

    /// Append a line for each decision about a permission to this file, or write it to `stderr`
    /// (the journal, under systemd): who, from where, which action, on what, whether it is allowed,
    /// and by which statement of which policy. After the file was renamed, a reload opens a new
    /// one. The log contains no secrets
    #[arg(long, value_name = "FILE|stderr", env = "SLIPWAY_AUDIT_LOG", value_parser = Destination::parse)]
    pub audit_log: Option<Destination>,

    /// Answer requests 503 ServiceUnavailable while lines of the audit log cannot be written, in
    /// place of dropping lines. Lines of requests that are already in progress are kept in memory
    /// until they can be written
    #[arg(long, env = "SLIPWAY_AUDIT_LOG_REQUIRED", value_parser = switch)]
    pub audit_log_required: bool,

    /// Send an OpenTelemetry collector a span for each request, by OTLP over HTTP (Protocol
    /// Buffers). A URL such as http://127.0.0.1:4318, to which /v1/traces is added if it has no
    /// path, or `env` for the URL in OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
    /// OTEL_EXPORTER_OTLP_ENDPOINT. Either way, OTEL_EXPORTER_OTLP_HEADERS and
    /// OTEL_EXPORTER_OTLP_CERTIFICATE (or, first, OTEL_EXPORTER_OTLP_TRACES_HEADERS and
    /// ..._TRACES_CERTIFICATE), OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are read too
    #[arg(long, value_name = "URL|env", env = "SLIPWAY_TRACES", value_parser = TracesTo::parse)]
    pub traces: Option<TracesTo>,

    /// The share of the traces that begin at this server which is sent: 0 to 1. Whether a trace
    /// that began elsewhere is sent was decided there
    #[arg(
        long,
        value_name = "SHARE",
        env = "SLIPWAY_TRACES_RATIO",
        default_value = "1",
        value_parser = Ratio::parse
    )]
    pub traces_ratio: Ratio,

    /// Continue the traces of clients whose address, as --client-address determines it, is one of
    /// these: an address, a network, or `unix` for clients without an address. May be given several
    /// times. Anybody can send a traceparent header, so those of other clients are ignored
    #[arg(
        long,
        value_name = "NETWORK",
        env = "SLIPWAY_TRACES_FROM",
        value_delimiter = ',',
        value_parser = TrustedProxy::parse_any
    )]
    pub traces_from: Vec<TrustedProxy>,

    /// What to log: error, warn, info, debug or trace; or a filter such as
    /// info,gateway::server=debug
    #[arg(long, value_name = "FILTER", env = "SLIPWAY_LOG", default_value = "info", value_parser = log_filter)]
    pub log: String,

    /// How log lines look
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
