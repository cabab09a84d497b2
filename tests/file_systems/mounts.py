"""File systems made from nothing, and taken down again whatever happened."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20
IMAGE_BYTES = 3 << 30


class Missing(Exception):
    """What a file system needs is not installed."""


@dataclass(frozen=True)
class Mounted:
    directory: Path
    # The same by a second mount.
    second: Path | None = None
    # What the suites need to know of it.
    env: dict[str, str] = field(default_factory=dict)


def run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} {command[1:]}: {done.stdout}{done.stderr}")


def need(*programs: str) -> None:
    if lacking := [program for program in programs if not shutil.which(program)]:
        raise Missing(f"needs {', '.join(lacking)}")


def unmount(directory: Path) -> None:
    """Waits for those who are about to leave; then detaches it in any case."""
    for _ in range(50):
        if not is_mounted(directory):
            return
        if subprocess.run(["umount", directory], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", "-l", directory], capture_output=True)


def is_mounted(directory: Path) -> bool:
    """False for a subvolume, which `os.path.ismount` takes for a mount point."""
    return any(path == directory for path in mounted_paths())


def mounted_paths() -> list[Path]:
    return [Path(line.split()[1]) for line in Path("/proc/self/mounts").read_text().splitlines()]


def mounts_below(directory: Path) -> list[Path]:
    """The deepest first."""
    return sorted((path for path in mounted_paths() if directory in path.parents), reverse=True)


def unmount_below(directory: Path) -> None:
    for path in mounts_below(directory):
        unmount(path)


def end(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def daemon(stack: ExitStack, log: Path, *command: str | Path) -> subprocess.Popen:
    with open(log, "ab") as output:
        process = subprocess.Popen([str(part) for part in command], stdout=output, stderr=output)
    stack.callback(end, process)
    return process


def wait_for(check: Callable[[], bool], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not come up")
        time.sleep(0.1)


def directory(place: Path, name: str) -> Path:
    path = place / name
    path.mkdir()
    return path


def mount(stack: ExitStack, *command: str | Path) -> None:
    """Mounts at the command's last argument."""
    run(*command)
    stack.callback(unmount, Path(command[-1]))


def loop(place: Path, stack: ExitStack, kind: str, *options: str) -> Path:
    """A file system in an image file."""
    need(f"mkfs.{kind}")
    disk, target = image(place, f"{kind}.img"), directory(place, "mnt")
    run(f"mkfs.{kind}", "-q", *options, disk)
    mount(stack, "mount", "-o", "loop", disk, target)
    return target


def ext4(place: Path, stack: ExitStack) -> Mounted:
    return Mounted(loop(place, stack, "ext4"))


def xfs(place: Path, stack: ExitStack) -> Mounted:
    return Mounted(loop(place, stack, "xfs"))


def btrfs(place: Path, stack: ExitStack) -> Mounted:
    return Mounted(loop(place, stack, "btrfs"))


# Programs that give a new bucket a device of its own (`support.bucket`; backend-posix:
# tests/own_devices).
MAKERS = Path(__file__).parent / "makers"


def ext4_mounts(place: Path, stack: ExitStack) -> Mounted:
    """Each bucket is an ext4 of its own."""
    images, target = directory(place, "images"), loop(place, stack, "ext4")
    # What the suites leave.
    stack.callback(unmount_below, target)
    env = {"SLIPWAY_BUCKET_MAKER": str(MAKERS / "own_ext4"), "SLIPWAY_BUCKET_IMAGES": str(images)}
    return Mounted(target, env=env)


def btrfs_subvolumes(place: Path, stack: ExitStack) -> Mounted:
    """Each bucket is a subvolume."""
    need("btrfs")
    env = {"SLIPWAY_BUCKET_MAKER": str(MAKERS / "own_subvolume")}
    return Mounted(loop(place, stack, "btrfs"), env=env)


def tmpfs(place: Path, stack: ExitStack) -> Mounted:
    target = directory(place, "mnt")
    mount(stack, "mount", "-t", "tmpfs", "-o", "size=3g", "tmpfs", target)
    return Mounted(target)


def bindfs(place: Path, stack: ExitStack) -> Mounted:
    """Twice, on XFS. Two mounts know nothing of each other's changes but what they ask for, so nothing
    is cached; and locks are taken below."""
    need("bindfs")
    under = loop(place, stack, "xfs")
    mounts = [directory(place, name) for name in ("first", "second")]
    options = "attr_timeout=0,entry_timeout=0,negative_timeout=0"
    for target in mounts:
        mount(stack, "bindfs", "--enable-lock-forwarding", "--multithreaded", "-o", options, under, target)
    return Mounted(*mounts)


def bindfs_plain(place: Path, stack: ExitStack) -> Mounted:
    """Once, with the defaults."""
    need("bindfs")
    under, target = loop(place, stack, "xfs"), directory(place, "first")
    mount(stack, "bindfs", under, target)
    return Mounted(target)


def sshfs(place: Path, stack: ExitStack) -> Mounted:
    """From a server of its own on loopback, with a key that is thrown away. Nothing is
    cached: what one name of a file has changed, another would not show."""
    need("sshfs", "sshd", "ssh-keygen")
    under = loop(place, stack, "xfs")
    keys, target = directory(place, "keys"), directory(place, "first")
    keys.chmod(0o700)
    for name in ("host", "user"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / name)
    shutil.copy(keys / "user.pub", keys / "authorized")
    Path("/run/sshd").mkdir(exist_ok=True)
    port = "21622"
    options = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": keys / "host",
        "AuthorizedKeysFile": keys / "authorized",
        "PasswordAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        # The keys are in a directory that others may write to: /tmp.
        "StrictModes": "no",
        "UsePAM": "no",
        "PidFile": "none",
        "Subsystem": "sftp internal-sftp",
    }
    (keys / "config").write_text("".join(f"{name} {value}\n" for name, value in options.items()))
    daemon(stack, place / "sshd.log", shutil.which("sshd"), "-D", "-e", "-f", keys / "config")
    client = (
        f"port={port},IdentityFile={keys}/user,UserKnownHostsFile=/dev/null,StrictHostKeyChecking=no,"
        "BatchMode=yes,dir_cache=no,attr_timeout=0,entry_timeout=0,negative_timeout=0"
    )

    def up() -> bool:
        command = ["sshfs", f"root@127.0.0.1:{under}", target, "-o", client]
        return subprocess.run(command, capture_output=True).returncode == 0

    wait_for(up, "sshd")
    stack.callback(unmount, target)
    return Mounted(target)


PASSTHROUGH = Path(__file__).parent / "passthrough" / "passthrough.c"
FUSE_HEADERS = Path("/usr/include/fuse3")


def build_passthrough(place: Path) -> Path:
    """Our own file system for tests, whose options are told at the beginning of its source."""
    need("cc")
    if not FUSE_HEADERS.is_dir() or not Path("/dev/fuse").exists():
        raise Missing("needs Debian's libfuse3-dev, and /dev/fuse")
    program = place / "passthrough"
    headers = ["-D_FILE_OFFSET_BITS=64", f"-I{FUSE_HEADERS}"]
    warnings = ["-Wall", "-Wextra", "-Werror"]
    run("cc", "-O2", *warnings, "-o", program, PASSTHROUGH, *headers, "-lfuse3", "-lpthread")
    return program


def mount_passthrough(
    program: Path, stack: ExitStack, under: Path, target: Path, *options: str
) -> subprocess.Popen:
    process = daemon(stack, program.with_suffix(".log"), program, *options, under, target)
    wait_for(lambda: os.path.ismount(target), "passthrough")
    stack.callback(unmount, target)
    return process


def passthrough(*options: str, mounts: int = 1) -> Callable[[Path, ExitStack], Mounted]:
    """On XFS, mounted once or twice."""

    def make(place: Path, stack: ExitStack) -> Mounted:
        program, under = build_passthrough(place), loop(place, stack, "xfs")
        targets = [directory(place, name) for name in ("first", "second")[:mounts]]
        for target in targets:
            mount_passthrough(program, stack, under, target, *options)
        return Mounted(*targets)

    return make


def image(place: Path, name: str) -> Path:
    path = place / name
    with open(path, "wb") as file:
        file.truncate(IMAGE_BYTES)
    return path


def loop_device(disk: Path, stack: ExitStack) -> str:
    made = subprocess.run(["losetup", "--find", "--show", disk], capture_output=True, text=True, check=True)
    device = made.stdout.strip()
    stack.callback(subprocess.run, ["losetup", "--detach", device], capture_output=True)
    return device


def exfat(place: Path, stack: ExitStack) -> Mounted:
    """No case, links, owners, modes or attributes."""
    need("mkfs.exfat", "mount.exfat-fuse")
    disk, target = image(place, "exfat.img"), directory(place, "mnt")
    run("mkfs.exfat", disk)
    mount(stack, "mount.exfat-fuse", loop_device(disk, stack), target)
    return Mounted(target)


def ntfs(place: Path, stack: ExitStack) -> Mounted:
    """By ntfs-3g, as it is without options."""
    need("mkntfs", "ntfs-3g")
    disk, target = image(place, "ntfs.img"), directory(place, "mnt")
    run("mkntfs", "-F", "-Q", "-q", disk)
    mount(stack, "ntfs-3g", loop_device(disk, stack), target)
    return Mounted(target)


NAMESPACE, HOST_LINK, LINK = "slipway-mfs", "swmfs0", "swmfs1"
HOST_ADDRESS, MASTER_ADDRESS = "10.213.77.1", "10.213.77.2"


def namespace(stack: ExitStack) -> list[str]:
    """Makes a network namespace that this one reaches. Returns what runs a command in it."""
    inside = ["ip", "netns", "exec", NAMESPACE]
    run("ip", "netns", "add", NAMESPACE)
    stack.callback(lambda: subprocess.run(["ip", "netns", "del", NAMESPACE], capture_output=True))
    run("ip", "link", "add", HOST_LINK, "type", "veth", "peer", "name", LINK)
    stack.callback(lambda: subprocess.run(["ip", "link", "del", HOST_LINK], capture_output=True))
    run("ip", "link", "set", LINK, "netns", NAMESPACE)
    run("ip", "addr", "add", f"{HOST_ADDRESS}/30", "dev", HOST_LINK)
    run("ip", "link", "set", HOST_LINK, "up")
    run(*inside, "ip", "addr", "add", f"{MASTER_ADDRESS}/30", "dev", LINK)
    run(*inside, "ip", "link", "set", LINK, "up")
    run(*inside, "ip", "link", "set", "lo", "up")
    return inside


def moosefs(place: Path, stack: ExitStack) -> Mounted:
    """A master and a chunk server in a network namespace, mounted twice with nothing cached."""
    need("mfsmaster", "mfschunkserver", "mfsmount", "ip")
    master, chunks, data = (directory(place, name) for name in ("master", "chunks", "data"))
    mounts = [directory(place, name) for name in ("first", "second")]
    shutil.copy("/var/lib/mfs/metadata.mfs.empty", master / "metadata.mfs")
    (place / "exports").write_text("* / rw,alldirs,admin,maproot=0:0\n")
    (place / "topology").write_text("")
    (place / "disks").write_text(f"{data}\n")
    common = "WORKING_USER=root\nWORKING_GROUP=root\n"
    (place / "master.cfg").write_text(
        f"{common}DATA_PATH={master}\nEXPORTS_FILENAME={place}/exports\nTOPOLOGY_FILENAME={place}/topology\n"
    )
    (place / "chunks.cfg").write_text(
        f"{common}DATA_PATH={chunks}\nHDD_CONF_FILENAME={place}/disks\nMASTER_HOST={MASTER_ADDRESS}\n"
        f"BIND_HOST={MASTER_ADDRESS}\nHDD_LEAVE_SPACE_DEFAULT=256MiB\n"
    )
    inside = namespace(stack)
    for program, name in (("mfsmaster", "master"), ("mfschunkserver", "chunks")):
        daemon(stack, place / f"{name}.log", *inside, program, "-f", "-c", place / f"{name}.cfg", "start")
        time.sleep(2)
    kinds = ("attr", "entry", "direntry", "negentry", "xattr", "symlink")
    options = ",".join(f"mfs{kind}cacheto=0" for kind in kinds)
    for target in mounts:
        command = ["mfsmount", str(target), "-H", MASTER_ADDRESS, "-o", options]
        wait_for(lambda c=command: subprocess.run(c, capture_output=True).returncode == 0, "mfsmaster")
        stack.callback(unmount, target)

    def writable() -> bool:
        with contextlib.suppress(OSError):
            (mounts[0] / "ready").write_bytes(b"x")
            os.sync()
            return (mounts[1] / "ready").read_bytes() == b"x"
        return False

    wait_for(writable, "mfschunkserver")
    (mounts[0] / "ready").unlink()
    # Its client remembers the supplementary groups of users (mfsgroupscacheto).
    return Mounted(*mounts, env={"SLIPWAY_KEEPS_GROUPS": "1"})


OF_OURS: dict[str, Callable[[Path, ExitStack], Mounted]] = {
    "passthrough": passthrough(mounts=2),
    "no-case": passthrough("--no-case"),
    "no-links": passthrough("--no-links"),
    "nfs-locks": passthrough("--nfs-locks", mounts=2),
    # Not those of the tests themselves: the storage works on threads of these names.
    "lost-answers": passthrough("--lose=link,mkdir,unlink", "--share=5", "--for=slipway,tokio-rt-worker"),
    "whole-seconds": passthrough("--whole-seconds"),
    "changing-inodes": passthrough("--changing-inodes", mounts=2),
    # As sshfs has them.
    "links-apart": passthrough("--links-apart"),
    "no-statfs": passthrough("--no-statfs"),
}
KINDS: dict[str, Callable[[Path, ExitStack], Mounted]] = {
    **OF_OURS,
    "ext4": ext4,
    "ext4-mounts": ext4_mounts,
    "xfs": xfs,
    "btrfs": btrfs,
    "btrfs-subvolumes": btrfs_subvolumes,
    "tmpfs": tmpfs,
    "bindfs": bindfs,
    "bindfs-plain": bindfs_plain,
    "sshfs": sshfs,
    "moosefs": moosefs,
    "exfat": exfat,
    "ntfs": ntfs,
}


@contextmanager
def mounted(kind: str, place: Path) -> Iterator[Mounted]:
    """Makes a file system in the empty directory `place`, and removes all of it afterwards."""
    with ExitStack() as stack:
        stack.callback(lambda: shutil.rmtree(place, ignore_errors=True) if no_mounts(place) else None)
        yield KINDS[kind](place, stack)


def no_mounts(place: Path) -> bool:
    """False if something is still mounted below: then nothing there may be removed."""
    if left := mounts_below(place):
        print(f"still mounted: {', '.join(map(str, left))}", file=sys.stderr)
    return not left
