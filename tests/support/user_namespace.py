"""Becomes a program in a new user namespace, whose superuser it is: `user_namespace.py FIRST COUNT COMMAND...`.

The namespace has COUNT ids, which are FIRST and those after it outside. unshare(1) asks newuidmap(1) for such, which
has no ids to give to root on most machines."""

import ctypes
import os
import sys
from pathlib import Path

NEW_USER_NAMESPACE = 0x1000_0000


def main() -> None:
    first, count, *command = sys.argv[1:]
    made, mapped = os.pipe(), os.pipe()
    process = os.getpid()
    if os.fork() == 0:
        # It stays outside, from where ids may be mapped.
        os.close(made[1])
        assert os.read(made[0], 1) == b"1", "no user namespace can be made"
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/{process}/{kind}").write_text(f"0 {first} {count}\n")
        os.write(mapped[1], b"1")
        os._exit(0)
    os.close(mapped[1])
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_USER_NAMESPACE):
        sys.exit(f"unshare: {os.strerror(ctypes.get_errno())}")
    os.write(made[1], b"1")
    assert os.read(mapped[0], 1) == b"1", "the ids were not mapped"
    for descriptor in (*made, mapped[0]):
        os.close(descriptor)
    os.wait()
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
