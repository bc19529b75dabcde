"""Runs a command that ends with its parent, under another user if root is refused (Linux).

This script runs before the command, so that no code of a larger process runs between fork and exec: `python -I -S
launch.py <parent pid> <signal> <way> command …`. Needs only the standard library.
"""

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable

# The unprivileged user of every Linux.
UNPRIVILEGED_USER = 65534
CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_SET_SECUREBITS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 1, 8, 28, 47, 2
SECBIT_NO_SETUID_FIXUP = 1 << 2
CAP_DAC_OVERRIDE = 1
LINUX_CAPABILITY_VERSION_3 = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int) -> None:
    """Raises OSError if a call of the C library has returned -1."""
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def stay() -> None:
    """Runs the command as the caller's user."""


def enter_namespace() -> None:
    """Enters a user namespace: the user is unprivileged inside and root outside, so root's files stay accessible."""
    check(libc.unshare(CLONE_NEWUSER))
    mapping = f"{UNPRIVILEGED_USER} 0 1"
    for name, line in (("setgroups", "deny"), ("uid_map", mapping), ("gid_map", mapping)):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)


def drop_privileges() -> None:
    """Changes to the unprivileged user. If the kernel allows it, the process keeps the right to enter closed folders
    such as /root.
    """
    os.setgroups([])
    os.setgid(UNPRIVILEGED_USER)
    # Without this bit access(2) ignores capabilities, and initdb, which calls access(2), does not find the program
    # postgres.
    libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setuid(UNPRIVILEGED_USER)
    with contextlib.suppress(OSError):
        keep_capability(CAP_DAC_OVERRIDE)


def keep_capability(capability: int) -> None:
    """Keeps one capability through exec and drops all others."""
    mask = 1 << capability
    header = (ctypes.c_uint32 * 2)(LINUX_CAPABILITY_VERSION_3, 0)
    effective_permitted_inheritable = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)
    check(libc.capset(header, effective_permitted_inheritable))
    check(libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0))


WAYS: dict[str, Callable[[], None]] = {"stay": stay, "namespace": enter_namespace, "unprivileged": drop_privileges}


def command(way: str, end_signal: int, *words: str) -> list[str]:
    """The command line that runs `words` as a direct child of this process; the child gets `end_signal` when this
    process ends.

    For the kernel, the parent is the *thread* that starts the child: start children from a thread that stays alive.
    """
    if sys.platform != "linux":
        return list(words)
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(int(end_signal)), way, *words]


def main(parent: str, end_signal: str, way: str, *words: str) -> None:
    WAYS[way]()
    # The signal is set after the change of user, which clears it.
    check(libc.prctl(PR_SET_PDEATHSIG, int(end_signal), 0, 0, 0))
    if os.getppid() != int(parent):
        sys.exit("the parent ended before its child began")
    os.execvp(words[0], words)


if __name__ == "__main__":
    main(*sys.argv[1:])
