//! `slipway serve`: starts a server from its options, and stops it again.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use arc_swap::ArcSwap;
use backend::{Backend, Metered};
use iam::{Account, Authorizer, MasterKeys, Policies, Registry, RootIdentity, RootOnly};
use kernel_calls::acting::begin_as_self;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use s3_wire::auth::{SigningKeyCache, SigningPolicy};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;

use crate::access::{BucketDefaults, Storage};
use crate::audit::AuditLog;
use crate::body::DigestServices;
use crate::cli::Said;
use crate::clients::{Clients, Trusted};
use crate::config::ServeOptions;
use crate::credentials::{self, Origin, Root};
use crate::descriptors::raise_descriptor_limit;
use crate::failure::Failure;
use crate::gateway::{Gateway, Places, Settings};
use crate::identities::{Store, open_registry};
use crate::limits::{
    ACTIONS_MAX, BLOCKING_THREADS_MAX, LARGE_DOCUMENTS_MAX, REFUSED_LINGERING_MAX, TRACES_STOP_TIME_MAX,
    UNSIGNED_ACTIONS_MAX, UNSIGNED_BYTES_MAX,
};
use crate::log::{self, Log, LogFilter};
use crate::metrics::{Connections, Metrics};
use crate::observers::Observers;
use crate::operations_server::{self, Observed};
use crate::reload::{self, Reload};
use crate::request_id::{HostId, RequestIds};
use crate::server::{
    Certificates, ConnectionSettings, Inherited, ListenAddress, Listener, Server, Socket, Timeouts,
};
use crate::state_dir::{Access, STATE_DIR};
use crate::storage::{self, NULL, Serving};
use crate::traces::{Collector, Contexts, Traces};
use crate::{
    account, agreement, choices, identities, impersonation, ldap, logs_of_lines, master_key, openid,
    service_manager, sweep,
};

/// The time that blocking work may still run after the drain.
const SHUTDOWN_TIME_MAX: Duration = Duration::from_secs(1);

/// Serves until SIGTERM or SIGINT, with the options that were read from `said`.
pub fn run(options: ServeOptions, said: Said, inherited: Inherited) -> Result<(), Failure> {
    // Secrets are in memory and in the environment: other processes of the server's user do not
    // read them, and no core dump has them.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|e| format!("cannot keep other processes from its memory: {e}"))?;
    log::read_filter(&options.log).map_err(Failure::Configuration)?;
    if options.impersonate {
        let checked = options.check().map_err(Failure::Configuration);
        // Before there is a thread that would keep more than this.
        let able = checked.and_then(|()| Ok(impersonation::become_able_to_act(&options)?));
        able.map_err(|failure| failure.located(&said.arguments))?;
    }
    let mut log = Log::start(&options.log, options.log_format)?;
    let filter = log.filter.take();
    let outcome = run_logged(options, said, inherited, filter);
    log.finish(SHUTDOWN_TIME_MAX);
    outcome
}

fn run_logged(
    options: ServeOptions,
    said: Said,
    inherited: Inherited,
    log_filter: Option<LogFilter>,
) -> Result<(), Failure> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_all().max_blocking_threads(BLOCKING_THREADS_MAX);
    if options.impersonate {
        // One that is made by a thread which acts as a user begins as that user.
        runtime.on_thread_start(begin_as_self);
    }
    let runtime = runtime.build().map_err(|e| format!("cannot start threads: {e}"))?;
    let outcome = runtime.block_on(serve(options, said, inherited, log_filter));
    // Work that is stuck in the file system must not keep the process; what it has not published
    // does not exist.
    runtime.shutdown_timeout(SHUTDOWN_TIME_MAX);
    // Now that the last request has ended.
    let Stopped { observers, audit, serving } = outcome?;
    if let Some(observers) = observers {
        finish(&observers);
    }
    if audit.is_some_and(|audit| !audit.finish(SHUTDOWN_TIME_MAX)) {
        tracing::warn!(
            "the gateway stops without having written the last lines of the audit log: the file took none in the time that \
             a stop has"
        );
    }
    drop(serving);
    tracing::info!("stopped");
    Ok(())
}

fn finish(observers: &Observers) {
    if observers.access_log.as_ref().is_some_and(|access_log| !access_log.finish(SHUTDOWN_TIME_MAX)) {
        tracing::warn!("the last lines of the access log were dropped: they could not be written in time");
    }
    if observers.traces.as_ref().is_some_and(|traces| !traces.finish(TRACES_STOP_TIME_MAX)) {
        tracing::warn!(
            "the last spans were dropped at the stop: the traces collector did not accept them in time"
        );
    }
}

/// The remains of a server that accepts no more requests.
struct Stopped {
    observers: Option<Arc<Observers>>,
    audit: Option<Arc<AuditLog>>,
    serving: Option<Serving>,
}

async fn serve(
    options: ServeOptions,
    said: Said,
    inherited: Inherited,
    log_filter: Option<LogFilter>,
) -> Result<Stopped, Failure> {
    let (mut stops, hang_ups) = (Stops::listen()?, listen_to(SignalKind::hangup())?);
    let running = start(&options, inherited).await.map_err(|failure| failure.located(&said.arguments))?;
    greet(&options, &running);
    let Running { server, gateway, stopping, certificates, account, root, serving, .. } = running;
    let (observers, audit) = (gateway.observers.clone(), gateway.audit.clone());
    let registry = gateway.registry.clone();
    let parts = reload::Parts {
        gateway,
        account,
        state_dir: state_dir(&options),
        certificates,
        access_log: observers.as_ref().and_then(|observers| observers.access_log.clone()),
        log_filter,
    };
    let reloads =
        reload_when_told(hang_ups, Reload::new(said, root, options.chown, parts, Handle::current()))?;
    service_manager::ready();
    stops.next().await;
    reloads.abort();
    service_manager::stopping();
    stopping.send_replace(true);
    log_stopping(options.drain_delay, options.drain_timeout);
    let finish = async {
        tokio::time::sleep(options.drain_delay).await;
        server.drain(options.drain_timeout).await
    };
    tokio::select! {
        done = finish => if !done {
            tracing::warn!("some requests did not finish within --drain-timeout and were cut off");
        },
        () = stops.next() => {
            tracing::warn!("a second signal to stop was received: requests in progress are cut off");
        }
    }
    identities::last_use::finish(&registry).await;
    Ok(Stopped { observers, audit, serving })
}

fn log_stopping(delay: Duration, timeout: Duration) {
    let timeout = timeout.as_secs();
    match delay.as_secs() {
        0 => tracing::info!("stopping: requests in progress have --drain-timeout ({timeout} s) to finish"),
        delay => tracing::info!(
            "stopping: serving goes on for --drain-delay ({delay} s), then requests in progress have --drain-timeout \
             ({timeout} s)"
        ),
    }
}

/// A server that has been started.
pub struct Running {
    /// The server, which listens in the runtime that it was started in.
    pub server: Server,
    /// The gateway that performs its requests.
    pub gateway: Arc<Gateway>,
    /// The addresses that it listens on: `127.0.0.1:9000`, `unix:/run/s3`.
    pub names: Vec<String>,
    /// The address of `--ops-listen`, if there is one.
    pub ops_name: Option<String>,
    /// Set to true to make the server report that it is not ready.
    stopping: watch::Sender<bool>,
    certificates: Option<Arc<Certificates>>,
    account: Arc<Account>,
    root: Root,
    /// Prevents upgrades of the tree.
    serving: Option<Serving>,
}

/// Starts a server in this runtime. Sockets that were handed over replace those that the options
/// name.
pub async fn start(options: &ServeOptions, inherited: Inherited) -> Result<Running, Failure> {
    // All that may be wrong with the options, before anything is made in DIR.
    let env = |name: &str| std::env::var(name).ok();
    let Configured { certificates, clients, collector, master_keys, store, directory } =
        configured(options, env).map_err(Failure::Configuration)?;
    allow_connections(options.max_connections);
    let listeners = listeners("--listen", &options.listen, inherited.s3, &[]).await?;
    let (ops, ops_inherited) = (options.ops_listen.as_slice(), inherited.operations.into_iter().collect());
    let ops_listener = self::listeners("--ops-listen", ops, ops_inherited, &listeners).await?.pop();
    let (access_log, audit) = logs_of_lines::open(options)?;
    let names: Vec<_> = listeners.iter().map(Listener::name).collect();
    let state_dir = state_dir(options);
    let (backend, account) = open_tree(options, state_dir.as_deref()).await?;
    // Before anything is written for a client.
    let serving = storage::keep_from_upgrade(options, &names)?;
    let root = find_root(options, env, state_dir.as_deref()).await?;
    let registry = open_identities(options, store, &root.identity(&account), master_keys).await?;
    if let Some(state_dir) = &state_dir {
        agreement::note(options, state_dir)?.iter().for_each(|difference| tracing::warn!("{difference}"));
    }
    let metrics = ops_listener.is_some().then(|| Arc::new(Metrics::default()));
    let backend: Arc<dyn Backend> = match &metrics {
        Some(metrics) => Arc::new(Metered::new(backend, metrics.calls.clone())),
        None => backend,
    };
    let host_id = HostId::random();
    let traces = collector.map(|collector| {
        let contexts = Contexts::new(options.traces_ratio, Trusted::new(&options.traces_from));
        Traces::start(contexts, collector, host_id.as_str()).map(Arc::new)
    });
    let traces = traces.transpose()?;
    let is_observed = metrics.is_some() || access_log.is_some() || traces.is_some();
    let observers = is_observed.then(|| Observers {
        metrics: metrics.clone(),
        access_log,
        traces,
        host_id: host_id.clone(),
        owner: account.canonical_id().to_owned(),
    });
    let gateway = Gateway {
        host_id,
        clients,
        observers: observers.map(Arc::new),
        audit,
        ldap: directory.map(|found| found.open(&registry)).transpose()?,
        ..gateway(options, backend.clone(), registry.clone(), account.clone())
    };
    let gateway = Arc::new(gateway);
    let settings = ConnectionSettings {
        gateway: gateway.clone(),
        tls: certificates.as_ref().map(Certificates::acceptor).transpose()?,
        timeouts: Timeouts { header: options.header_timeout, stall: options.stall_timeout },
        idle_timeout: options.idle_timeout,
        sendfile: options.sendfile,
    };
    let server = Server::new(settings, options.max_connections);
    for listener in listeners {
        server.listen(listener);
    }
    let stopping = watch::Sender::new(false);
    let ops_name = ops_listener.as_ref().map(Listener::name);
    if let (Some(listener), Some(metrics)) = (ops_listener, metrics.clone()) {
        let observed = Observed::new(gateway.clone(), metrics, stopping.subscribe());
        tokio::spawn(operations_server::run(listener, Arc::new(observed)));
    }
    work_regularly(&gateway, backend, metrics);
    Ok(Running { server, gateway, names, ops_name, stopping, certificates, account, root, serving })
}

/// Finds the keys of root, and checks the ids that files are accessed with.
async fn find_root(
    options: &ServeOptions,
    env: impl Fn(&str) -> Option<String>,
    state_dir: Option<&Path>,
) -> Result<Root, Failure> {
    let access = Access::of(options.read_only);
    let root = credentials::find(options.credentials_file.as_deref(), env, state_dir, access)?;
    root.warn_of_chown(options.chown);
    impersonation::check_ids(options, &root).await.map_err(Failure::Configuration)?;
    impersonation::warn_of_closed_tree(options);
    Ok(root)
}

async fn open_identities(
    options: &ServeOptions,
    store: Option<Store>,
    root: &RootIdentity,
    master_keys: Option<MasterKeys>,
) -> Result<Arc<Registry>, Failure> {
    let dir = Path::new(&options.dir);
    let (stores, tree) = ((&options.store, store), (dir, options.dir == NULL));
    let registry = open_registry(stores, tree, Access::of(options.read_only), root, master_keys).await?;
    identities::check_account(&registry, dir, root.session().principal.account.id()).await?;
    Ok(registry)
}

/// Starts what is done beside requests, until the runtime ends.
fn work_regularly(gateway: &Gateway, backend: Arc<dyn Backend>, metrics: Option<Arc<Metrics>>) {
    let (registry, looks) = (&gateway.registry, &gateway.looks);
    tokio::spawn(identities::looking::regularly(registry.clone(), looks.clone()));
    tokio::spawn(identities::last_use::regularly(registry.clone()));
    tokio::spawn(sweep::regularly(backend, metrics));
}

/// The contents of the files that the options name.
struct Configured {
    certificates: Option<Arc<Certificates>>,
    clients: Clients,
    collector: Option<Collector>,
    master_keys: Option<MasterKeys>,
    store: Option<Store>,
    directory: Option<ldap::Found>,
}

/// Checks the options, and reads the files that they name.
fn configured(
    options: &ServeOptions,
    env: impl Fn(&str) -> Option<String> + Copy,
) -> Result<Configured, String> {
    options.check()?;
    let certificates = Certificates::read(&options.tls_cert, &options.tls_key)?;
    let clients = Clients::new(options.client_address, &options.trusted_proxy)?;
    credentials::check(options.credentials_file.as_deref(), env)?;
    let collector = options.traces.as_ref().map(|to| Collector::new(to, env)).transpose()?;
    let master_keys = master_key::find(&options.into(), env)?;
    openid::check(options)?;
    let store = Store::find(&options.store, env)?;
    let directory = ldap::find(options, env)?;
    Ok(Configured { certificates, clients, collector, master_keys, store, directory })
}

/// Opens the storage that DIR names, and finds its account. Generates no keys: they are shown only
/// once, by a start that succeeds.
async fn open_tree(
    options: &ServeOptions,
    state_dir: Option<&Path>,
) -> Result<(Arc<dyn Backend>, Arc<Account>), String> {
    if let Some(state_dir) = state_dir {
        agreement::check_metadata(options, state_dir)?;
    }
    let backend = storage::open(options).await?;
    let account = account::find(options.account_id.as_ref(), state_dir, Access::of(options.read_only))?;
    if let Some(state_dir) = state_dir {
        for difference in agreement::differences(options, state_dir)? {
            tracing::warn!("{difference}");
        }
    }
    Ok((backend, Arc::new(account)))
}

fn state_dir(options: &ServeOptions) -> Option<PathBuf> {
    (options.dir != NULL).then(|| Path::new(&options.dir).join(STATE_DIR))
}

/// The listeners on the sockets that were handed over, or otherwise on these addresses. `of_listen`
/// are the addresses of --listen, if these are others.
async fn listeners(
    flag: &str,
    addresses: &[ListenAddress],
    inherited: Vec<Socket>,
    of_listen: &[Listener],
) -> Result<Vec<Listener>, String> {
    let mut listeners = Vec::new();
    for socket in inherited {
        let listener = Listener::inherited(socket).map_err(|e| format!("LISTEN_FDS: {e}"))?;
        let name = listener.name();
        tracing::info!(name, "listening on a socket from the service manager; {flag} is ignored");
        listeners.push(listener);
    }
    if !listeners.is_empty() {
        return Ok(listeners);
    }
    for address in addresses {
        let listener = Listener::bind(address).await.map_err(|e| {
            let own = of_listen.iter().chain(&listeners).find(|one| one.covers(address));
            cannot_listen(flag, address, own.map(Listener::name).as_deref(), &e)
        })?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// The error for an address that cannot be listened on. `own` is this server's own listener there.
fn cannot_listen(flag: &str, address: &ListenAddress, own: Option<&str>, error: &std::io::Error) -> String {
    let named_twice = own.map(|own| {
        format!("--listen {own} names the same address: choose another address for one of the two")
    });
    let cure = match error.kind() {
        ErrorKind::AddrInUse if let Some(named_twice) = &named_twice => named_twice,
        ErrorKind::AddrInUse => "stop the program that listens there, or choose another address",
        ErrorKind::AddrNotAvailable => "choose an address of this machine",
        ErrorKind::PermissionDenied => {
            "choose a port from 1024 up, or give the server the capability CAP_NET_BIND_SERVICE"
        }
        ErrorKind::NotFound => "create the directory of the socket first",
        _ => "choose another address",
    };
    format!("{flag} {address}: cannot listen there: {error}: {cure}")
}

/// [`raise_descriptor_limit`], with a warning if there are too few descriptors for the connections.
fn allow_connections(max_connections: usize) {
    let current = raise_descriptor_limit();
    let needed = max_connections as u64 * 2 + REFUSED_LINGERING_MAX as u64;
    if let Some(limit) = current.filter(|limit| *limit < needed) {
        tracing::warn!(
            "the limit on file descriptors is {limit}, but --max-connections {max_connections} may need {needed}: \
             raise the limit (LimitNOFILE= under systemd, ulimit -n), or lower --max-connections"
        );
    }
}

/// Policies name objects by their keys. Where several keys are one object, a client would choose
/// the key that a policy says nothing about.
fn authorizer(options: &ServeOptions) -> Arc<dyn Authorizer> {
    if options.allow_same_names { Arc::new(RootOnly) } else { Arc::new(Policies) }
}

fn gateway(
    options: &ServeOptions,
    backend: Arc<dyn Backend>,
    registry: Arc<Registry>,
    account: Arc<Account>,
) -> Gateway {
    let sigv2 = match options.sigv2 {
        choices::SigV2::Presigned => s3_wire::auth::SigV2::Presigned,
        choices::SigV2::All => s3_wire::auth::SigV2::All,
        choices::SigV2::Off => s3_wire::auth::SigV2::Off,
    };
    Gateway {
        storage: Storage::new(
            backend,
            BucketDefaults { block: options.default_public_access_block, ..BucketDefaults::default() },
        ),
        settings: ArcSwap::from_pointee(Settings {
            identities: registry.clone(),
            account,
            domains: options.domain.clone(),
        }),
        registry,
        looks: Arc::default(),
        actions: Places::new(ACTIONS_MAX),
        unsigned_actions: Places::new(UNSIGNED_ACTIONS_MAX),
        unsigned_bytes: Places::new(UNSIGNED_BYTES_MAX),
        openid: openid::open(options),
        ldap: None,
        secrets_in_clear: options.secrets_in_clear,
        unix: impersonation::unix_identities(options),
        authorizer: authorizer(options),
        signing: SigningPolicy { region: options.region.clone(), sigv2 },
        signing_keys: SigningKeyCache::new(),
        requests: Places::new(options.max_requests),
        digests: DigestServices::new(),
        large_documents: Semaphore::new(LARGE_DOCUMENTS_MAX),
        stall_timeout: options.stall_timeout,
        request_ids: RequestIds::new(),
        host_id: HostId::random(),
        clients: Clients::default(),
        connections: Connections::default(),
        observers: None,
        audit: None,
    }
}

/// The signals that stop the server. They are handled from the start on, since a signal without a
/// handler ends the process.
struct Stops {
    terminate: Signal,
    interrupt: Signal,
}

impl Stops {
    fn listen() -> Result<Self, String> {
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Self { terminate: listen_to(terminate)?, interrupt: listen_to(interrupt)? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn listen_to(kind: SignalKind) -> Result<Signal, String> {
    signal(kind).map_err(|e| format!("cannot install a handler for signals: {e}"))
}

/// Reloads on each SIGHUP; several during a reload cause one more. Works on a thread of its own, so
/// that a file that blocks its reader (a pipe, a network file system that hangs) delays nothing
/// else.
fn reload_when_told(mut hang_ups: Signal, mut reload: Reload) -> Result<JoinHandle<()>, String> {
    let (asked, asks) = mpsc::channel::<oneshot::Sender<Result<reload::Outcome, String>>>();
    let work = move || {
        for done in asks {
            // Nobody waits any more once the server stops.
            let _ = done.send(reload.run());
        }
    };
    let thread = thread::Builder::new().name("reload".to_owned()).spawn(work);
    thread.map_err(|e| format!("cannot start a thread for reloads: {e}"))?;
    Ok(tokio::spawn(async move {
        while hang_ups.recv().await.is_some() {
            service_manager::reloading();
            let (done, outcome) = oneshot::channel();
            if asked.send(done).is_err() {
                return;
            }
            let Ok(outcome) = outcome.await else { return };
            log_reload(outcome);
            service_manager::ready();
        }
    }))
}

fn log_reload(reloaded: Result<reload::Outcome, String>) {
    match reloaded {
        Err(error) => {
            tracing::error!(%error, "the configuration was not reloaded: the previous one stays in effect");
        }
        Ok(outcome) => {
            let taken =
                if outcome.taken.is_empty() { "nothing".to_owned() } else { outcome.taken.join(", ") };
            tracing::info!(new = %taken, "the configuration was reloaded");
            for option in outcome.needs_restart {
                tracing::warn!(%option, "a changed option was not applied: it needs a restart");
            }
        }
    }
}

/// Prints where the server listens and, the first time, the keys to use.
fn greet(options: &ServeOptions, running: &Running) {
    // Nobody may be listening any more, which is no reason to stop.
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(greeting(options, running, stdout.is_terminal()).as_bytes());
}

/// The text that a start prints. A new secret is in it only for a terminal: other readers of
/// standard output, such as a journal, keep it. But a secret that is not kept in a file is always
/// in it.
fn greeting(options: &ServeOptions, running: &Running, watched: bool) -> String {
    let Running { names, ops_name, certificates, account, root, .. } = running;
    let scheme = if certificates.is_some() { "https" } else { "http" };
    let url =
        |name: &String| if name.starts_with("unix:") { name.clone() } else { format!("{scheme}://{name}") };
    let endpoints: Vec<_> = names.iter().map(url).collect();
    let credential = &root.credential;
    let (access_key, secret_key, region) =
        (&credential.access_key, credential.secret_key.expose(), &options.region);
    let operations = match ops_name {
        Some(name) if name.starts_with("unix:") => format!("  operations  {name}\n"),
        Some(name) => format!("  operations  http://{name}\n"),
        None => String::new(),
    };
    let head = format!(
        "Slipway {} serves {}\n  endpoint    {}\n{operations}  region      {region}\n  account     {}\n  access key  {access_key}",
        env!("CARGO_PKG_VERSION"),
        options.dir.to_string_lossy(),
        endpoints.join("  "),
        account.id(),
    );
    let path = match &root.origin {
        Origin::Given(whence) => return format!("{head} ({whence})\n"),
        Origin::Kept(path) => return format!("{head} (secret in {})\n", path.display()),
        Origin::New(path) if !watched && !path.as_os_str().is_empty() => {
            return format!("{head} (made just now; secret in {})\n", path.display());
        }
        Origin::New(path) => path,
    };
    let kept = if path.as_os_str().is_empty() {
        "made just now, for this run alone".to_owned()
    } else {
        format!("made just now, kept in {}; not shown again", path.display())
    };
    let head = format!("{head}\n  secret key  {secret_key}\n              ({kept})\n");
    // Without an endpoint that they can reach, the commands would go to Amazon.
    let Some(endpoint) = endpoints.iter().find(|e| !e.starts_with("unix:")) else { return head };
    format!(
        "{head}\nTry it:\n  \
         export AWS_ACCESS_KEY_ID={access_key} AWS_SECRET_ACCESS_KEY={secret_key}\n  \
         export AWS_DEFAULT_REGION={region}\n  \
         export AWS_ENDPOINT_URL={}\n  \
         aws s3 mb s3://first && aws s3 cp /etc/hostname s3://first/ && aws s3 ls s3://first\n",
        endpoint.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]")
    )
}
