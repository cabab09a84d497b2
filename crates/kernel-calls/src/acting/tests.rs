//! They need the superuser, and say so where they are not run as it.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use super::*;
use crate::privileges::{Lack, can_act, keep_what_acting_needs};

const ANN: Identity<'_> = Identity { uid: 20_001, gid: 20_010, groups: &[20_020, 20_030] };
const BEN: Identity<'_> = Identity { uid: 20_002, gid: 20_010, groups: &[] };

fn is_superuser() -> bool {
    let is_superuser = ids::own().0 == 0;
    if !is_superuser {
        println!("*** SKIPPED: needs the superuser");
    }
    is_superuser
}

fn open_to_all() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    directory
}

/// A file with an owner and a mode.
fn file(directory: &Path, name: &str, owner: (u32, u32), mode: u32) -> std::path::PathBuf {
    let path = directory.join(name);
    fs::write(&path, name).unwrap();
    chown(&path, Some(owner.0), Some(owner.1)).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn the_kernel_decides_by_the_user() {
    if !is_superuser() {
        return;
    }
    let directory = open_to_all();
    let at = |name, owner, mode| file(directory.path(), name, owner, mode);
    let own = at("own", (ANN.uid, 0), 0o600);
    let of_group = at("of group", (0, ANN.gid), 0o640);
    let of_another_group = at("of another group", (0, 20_030), 0o640);
    let of_root = at("of root", (0, 0), 0o600);
    let of_ben = at("of ben", (BEN.uid, BEN.gid), 0o600);
    let readable = |path| fs::read(path).map_err(|error| error.raw_os_error().unwrap());
    let ann = acting(ANN, || [&own, &of_group, &of_another_group, &of_root, &of_ben].map(readable)).unwrap();
    let refused = || Err(libc::EACCES);
    let text = |text: &str| Ok(text.as_bytes().to_vec());
    assert_eq!(ann, [text("own"), text("of group"), text("of another group"), refused(), refused()]);
    // Ben has none of Ann's groups that thread had before, but his own.
    let ben = acting(BEN, || [&own, &of_group, &of_another_group, &of_root, &of_ben].map(readable)).unwrap();
    assert_eq!(ben, [refused(), text("of group"), refused(), refused(), text("of ben")]);
    assert!(
        [&own, &of_group, &of_another_group, &of_root, &of_ben]
            .into_iter()
            .all(|path| readable(path).is_ok())
    );
    let made = directory.path().join("made");
    acting(ANN, || File::create(&made)).unwrap().unwrap();
    let made = fs::metadata(&made).unwrap();
    assert_eq!((made.uid(), made.gid()), (ANN.uid, ANN.gid));
    let chown = acting(ANN, || chown(&own, Some(BEN.uid), None)).unwrap();
    assert_eq!(chown.unwrap_err().raw_os_error(), Some(libc::EPERM));
}

#[test]
fn ids_return_when_the_work_ends_or_panics() {
    if !is_superuser() {
        return;
    }
    let own = ids::own();
    assert_eq!(acting(ANN, ids_for_files).unwrap(), (ANN.uid, ANN.gid));
    assert_eq!(ids_for_files(), own);
    let panicked = catch_unwind(AssertUnwindSafe(|| acting(ANN, || panic!("expected"))));
    assert!(panicked.is_err());
    assert_eq!((ids_for_files(), ids::for_files_by_proc().unwrap()), (own, own));
    // And others can act then.
    assert_eq!(acting(BEN, ids_for_files).unwrap(), (BEN.uid, BEN.gid));
}

#[test]
fn within_it_a_thread_can_be_itself() {
    if !is_superuser() {
        return;
    }
    let own = ids::own();
    assert_eq!(as_self(ids_for_files), own);
    let ann = (ANN.uid, ANN.gid);
    acting(ANN, || {
        assert_eq!(as_self(|| (ids_for_files(), as_self(ids_for_files), ids_for_files())), (own, own, own));
        assert_eq!(ids_for_files(), ann);
        assert!(catch_unwind(|| as_self(|| panic!("expected"))).is_err());
        assert_eq!(ids_for_files(), ann);
        for nested in [acting(BEN, || ()), as_self(|| acting(BEN, || ()))] {
            assert_eq!(nested.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        assert_eq!(ids_for_files(), ann);
    })
    .unwrap();
    assert_eq!(ids_for_files(), own);
}

#[test]
fn superusers_and_missing_ids_are_refused() {
    let none = u32::MAX;
    let refused = [(0, 1, 1), (1, 0, 1), (1, 1, 0), (none, 1, 1), (1, none, 1), (1, 1, none)];
    for (uid, gid, group) in refused {
        let who = Identity { uid, gid, groups: &[20_020, group] };
        let error = acting(who, || panic!("begun")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{who:?}");
    }
}

#[test]
fn threads_act_for_themselves() {
    if !is_superuser() {
        return;
    }
    let barrier = Barrier::new(2);
    let act = |who: Identity<'_>| {
        for _ in 0..1000 {
            barrier.wait();
            assert_eq!(acting(who, ids_for_files).unwrap(), (who.uid, who.gid));
            assert_eq!(ids_for_files(), ids::own());
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| act(ANN));
        scope.spawn(|| act(BEN));
    });
}

#[test]
fn a_new_thread_begins_as_told() {
    if !is_superuser() {
        return;
    }
    let (ann, own) = ((ANN.uid, ANN.gid), ids::own());
    let of_new = || thread::spawn(|| (ids_for_files(), begin_as_self(), ids_for_files())).join().unwrap();
    // The first is why there is `begin_as_self`.
    assert_eq!(acting(ANN, of_new).unwrap(), (ann, (), own));
    let scoped = |work: fn() -> (u32, u32)| {
        thread::scope(|scope| spawn_scoped(scope, Builder::new(), work).unwrap().join().unwrap())
    };
    assert_eq!(scoped(ids_for_files), own);
    assert_eq!(acting(ANN, || scoped(ids_for_files)).unwrap(), ann);
    assert_eq!(acting(ANN, || scoped(|| as_self(ids_for_files))).unwrap(), own);
    let returned = || {
        as_self(|| ());
        ids_for_files()
    };
    assert_eq!(acting(ANN, || scoped(returned)).unwrap(), ann);
    assert_eq!(acting(ANN, || as_self(|| scoped(ids_for_files))).unwrap(), own);
}

/// Has setfsuid(2) refused to this thread from now on.
fn filter_setfsuid() {
    let load = u16::try_from(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS).unwrap();
    let jump = u16::try_from(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K).unwrap();
    let end = u16::try_from(libc::BPF_RET | libc::BPF_K).unwrap();
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut steps = [
        // The number of the call is the first field of what is filtered.
        step(load, 0, 0, 0),
        step(jump, 0, 1, u32::try_from(libc::SYS_setfsuid).unwrap()),
        step(end, 0, 0, libc::SECCOMP_RET_ERRNO | u32::try_from(libc::EPERM).unwrap()),
        step(end, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
    rustix::thread::set_no_new_privs(true).unwrap();
    // SAFETY: the program and its steps live until the call returns.
    let status = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(status, 0, "{}", io::Error::last_os_error());
}

/// A filter stays with its thread.
fn in_a_thread<T: Send + 'static>(work: fn() -> T) -> T {
    thread::spawn(work).join().unwrap()
}

#[test]
fn a_switch_that_the_kernel_does_not_make_is_found() {
    if !is_superuser() {
        return;
    }
    in_a_thread(|| {
        filter_setfsuid();
        let error = acting(ANN, || panic!("begun")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(ids::for_files_by_proc().unwrap(), ids::own());
        assert!(matches!(can_act(ANN), Err(Lack::Refused(_))));
    });
}

/// The command of one of the tests below, which are run for no other reason, in a process of its
/// own that the other command leads to.
fn command(name: &str, before: &[&str]) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut words: Vec<_> = before.iter().map(OsString::from).collect();
    words.extend([program.into(), "--exact".into(), format!("acting::tests::{name}").into()]);
    words.extend(["--ignored", "--nocapture", "--test-threads=1"].map(OsString::from));
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

fn child(name: &str, before: &[&str]) -> Output {
    command(name, before).output().unwrap()
}

/// As [`child`], in a user namespace with these ids.
fn in_a_namespace(name: &str, map: &str) -> Output {
    let wait = r#"read -r _ && exec "$0" "$@""#;
    let mut command = command(name, &["unshare", "--user", "sh", "-c", wait]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let of = |file: &str| format!("/proc/{}/{file}", child.id());
    let namespace = |path: &str| fs::read_link(path).unwrap();
    while namespace(&of("ns/user")) == namespace("/proc/self/ns/user") {
        thread::yield_now();
    }
    fs::write(of("uid_map"), map).unwrap();
    fs::write(of("gid_map"), map).unwrap();
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    child.wait_with_output().unwrap()
}

fn passes(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
}

#[test]
#[ignore = "ends its process"]
fn child_cannot_return() {
    acting(ANN, filter_setfsuid).unwrap();
}

#[test]
fn a_process_that_cannot_return_ends() {
    if !is_superuser() {
        return;
    }
    let output = child("child_cannot_return", &[]);
    assert!(output.status.code().is_none(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the process ends"), "{output:?}");
}

#[test]
#[ignore = "needs a process of its own"]
fn child_keeps_little() {
    keep_what_acting_needs().unwrap();
    can_act(ANN).unwrap();
    let directory = open_to_all();
    let of_ann = file(directory.path(), "of ann", (ANN.uid, ANN.gid), 0o600);
    fs::read(&of_ann).unwrap();
    assert_eq!(acting(BEN, || fs::read(&of_ann)).unwrap().unwrap_err().raw_os_error(), Some(libc::EACCES));
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    for set in ["CapInh:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Groups:\t\n"] {
        assert!(status.contains(set) || status.contains(set.trim_end()), "{set}: {status}");
    }
    // CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID, NET_BIND_SERVICE and LEASE.
    for set in ["CapPrm", "CapEff", "CapBnd"] {
        assert!(status.contains(&format!("{set}:\t00000000100004cb")), "{set}: {status}");
    }
    let hostname = rustix::system::sethostname(b"other");
    assert_eq!(hostname, Err(rustix::io::Errno::PERM));
}

#[test]
fn a_process_can_give_up_all_else() {
    if is_superuser() {
        passes(&child("child_keeps_little", &[]));
    }
}

#[test]
#[ignore = "runs in a user namespace with one id"]
fn child_has_one_id() {
    assert!(matches!(can_act(ANN), Err(Lack::Groups)), "{:?}", can_act(ANN));
    let error = acting(ANN, || panic!("begun")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
}

#[test]
#[ignore = "runs in a user namespace with many ids"]
fn child_has_many_ids() {
    let who = Identity { uid: 1000, gid: 1000, groups: &[1001] };
    can_act(who).unwrap();
    assert_eq!(acting(who, ids_for_files).unwrap(), (1000, 1000));
    // These are not mapped.
    let error = acting(Identity { groups: &[], ..ANN }, || panic!("begun")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(ids_for_files(), (0, 0));
}

#[test]
#[ignore = "runs as another user"]
fn child_is_not_the_superuser() {
    assert!(matches!(can_act(ANN), Err(Lack::Superuser)));
    let error = acting(ANN, || panic!("begun")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert_eq!((as_self(ids_for_files), begin_as_self()), (ids::own(), ()));
}

#[test]
#[ignore = "runs with a secure bit"]
fn child_keeps_capabilities() {
    assert!(matches!(can_act(ANN), Err(Lack::Withdrawal)));
}

#[test]
#[ignore = "runs without a capability"]
fn child_lacks_setuid() {
    assert!(matches!(can_act(ANN), Err(Lack::Capability("CAP_SETUID"))));
}

#[test]
fn what_is_lacking_is_found() {
    if !is_superuser() {
        return;
    }
    passes(&child("child_has_one_id", &["unshare", "--user", "--map-root-user"]));
    passes(&in_a_namespace("child_has_many_ids", "0 0 2000"));
    passes(&child("child_keeps_capabilities", &["setpriv", "--securebits=+no_setuid_fixup"]));
    passes(&child("child_lacks_setuid", &["setpriv", "--bounding-set=-setuid", "--inh-caps=-setuid"]));
    // The program has to be where that user can read it.
    let directory = open_to_all();
    let program = directory.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let arguments = ["--exact", "acting::tests::child_is_not_the_superuser", "--ignored"];
    let as_nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let output = Command::new("setpriv").args(as_nobody).arg(&program).args(arguments).output().unwrap();
    passes(&output);
}

#[test]
fn a_thread_that_acts_does_not_change_others() {
    if !is_superuser() {
        return;
    }
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            acting(ANN, || (barrier.wait(), thread::sleep(Duration::ZERO), barrier.wait())).unwrap()
        });
        barrier.wait();
        let ids = (ids_for_files(), ids::for_files_by_proc().unwrap());
        barrier.wait();
        assert_eq!(ids, (ids::own(), ids::own()));
    });
}
