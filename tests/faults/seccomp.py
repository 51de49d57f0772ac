"""Hold a process at each system call that changes certain files, and decide what becomes of the call.

A filter in the child (seccomp, SECCOMP_RET_USER_NOTIF) lets its thread wait at the entry of such a call, whichever
thread it is, until its parent has answered. Nothing is traced and no library replaced, so what runs is what is
deployed. It takes Linux 5.5, on x86-64 or aarch64, and no privilege; some containers forbid it (`forbidden`).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import re
import select
import signal
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from tests.support.child import BROKEN, CHILD_S_MAX, PLAYED, start_child


class Call(Struct, frozen=True):
    """`name` as the kernel calls it; `file` as the `files` of `hold` call it."""

    name: str
    file: str


PASS, KILL = 0, -1
Decide = Callable[[Call], int]  # PASS, KILL, or the errno with which the call fails without having done anything

# All that SQLite (os_unix.c) and Python's `os.fsync` change files and folders with. Creating a file is not among them:
# to be killed before or after it is to be killed at the call before or after it.
CALLS: dict[str, dict[int, str]] = {
    "x86_64": {
        1: "write",
        18: "pwrite64",
        74: "fsync",
        75: "fdatasync",
        77: "ftruncate",
        87: "unlink",
        263: "unlinkat",
        285: "fallocate",
    },
    "aarch64": {
        35: "unlinkat",
        46: "ftruncate",
        47: "fallocate",
        64: "write",
        68: "pwrite64",
        82: "fsync",
        83: "fdatasync",
    },
}
SINCE = (5, 5)  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
FORBIDDEN = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EBUSY)  # the last: another one holds our calls already
# <linux/audit.h>: the filter sees which set of numbers a call is of; and the number of seccomp(2)
ARCH = {"x86_64": (0xC000003E, 317), "aarch64": (0xC00000B7, 277)}


def hold(work: Callable[[], None], folder: Path, files: Mapping[str, str], decide: Decide) -> int:
    """Do `work` in a child, and let `decide` see each of its calls that changes one of `files` (absolute path without
    links: what to call it). As `in_child`. Raises OSError when calls cannot be held here."""
    ours, theirs = socket.socketpair()

    def held() -> None:
        _die_with_parent()
        try:
            listener = _filter()
        except OSError as error:
            theirs.send(str(error.errno).encode())
            raise
        socket.send_fds(theirs, [b"0"], [listener])
        os.close(listener)
        work()

    with ours:
        with theirs:
            child = start_child(held, folder)
        said, listeners, _, _ = socket.recv_fds(ours, 8, 1)
    if not listeners:
        os.waitpid(child, 0)
        raise OSError(int(said), os.strerror(int(said)))
    ends = os.pidfd_open(child)
    try:
        in_time = _attend(child, ends, listeners[0], files, decide)
        if not in_time:
            os.kill(child, signal.SIGKILL)
            (folder / "error").write_text(f"it did not end within {CHILD_S_MAX} s")
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return code if in_time else BROKEN
    finally:
        os.close(ends)
        os.close(listeners[0])


def forbidden() -> str | None:
    """Why calls cannot be held on this machine; None when they can. Tried out."""
    system = f"{platform.system()} {platform.release()} on {platform.machine()}"
    linux = re.match(r"Linux (\d+)\.(\d+)", system)
    if linux is None or (int(linux[1]), int(linux[2])) < SINCE or platform.machine() not in CALLS:
        return f"system calls can be held on Linux 5.5 or newer, on x86-64 or aarch64; this is {system}"
    with tempfile.TemporaryDirectory() as name, open(Path(name).resolve() / "file", "wb") as file:

        def refused() -> None:
            try:
                os.fsync(file.fileno())
            except OSError as error:
                assert error.errno == errno.EUCLEAN
            else:
                raise AssertionError("fsync was not held")

        try:
            code = hold(refused, Path(name), {file.name: "file"}, lambda call: errno.EUCLEAN)
        except OSError as error:
            if error.errno not in FORBIDDEN:
                raise
            return f"this machine does not let seccomp hold system calls: {error.strerror}"
        assert code == PLAYED, (Path(name) / "error").read_text()
        return None


# --- in the parent

_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # ioctl(2); <linux/seccomp.h> has these, and the structs
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")  # id, thread, flags, number of the call, architecture, where, arguments
_RESPONSE = struct.Struct("=QqiI")  # id, value, error, flags
_CONTINUE = 1


def _attend(child: int, ends: int, listener: int, files: Mapping[str, str], decide: Decide) -> bool:
    """Answer until the child ends, or is killed. False when it has not by the time it should."""
    names, until = CALLS[platform.machine()], time.monotonic() + CHILD_S_MAX
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(ends, select.POLLIN)
    while (left := until - time.monotonic()) > 0:
        ready = [fd for fd, _ in poll.poll(left * 1000)]
        if ends in ready:
            return True
        if listener not in ready:
            continue
        with suppress(FileNotFoundError):  # ENOENT: the thread is gone
            notification = bytearray(_NOTIFICATION.size)
            fcntl.ioctl(listener, _RECEIVE, notification)
            id, thread, _, number, _, _, *arguments = _NOTIFICATION.unpack(notification)
            file = files.get(_path(names[number], thread, arguments))
            answer = PASS if file is None else decide(Call(names[number], file))
            if answer == KILL:
                os.kill(child, signal.SIGKILL)
                return True
            fcntl.ioctl(listener, _SEND, _RESPONSE.pack(id, 0, -answer, 0 if answer else _CONTINUE))
    return False


def _path(name: str, thread: int, arguments: list[int]) -> str:
    """What the call is about; "" when it cannot be told, as of a closed descriptor."""
    try:
        match name:
            case "unlink":
                return os.path.join(os.readlink(f"/proc/{thread}/cwd"), _text(thread, arguments[0]))
            case "unlinkat":
                return os.path.join(_folder(thread, arguments[0]), _text(thread, arguments[1]))
            case _:
                return _open_file(thread, arguments[0]).removesuffix(" (deleted)")
    except OSError:
        return ""


def _folder(thread: int, descriptor: int) -> str:
    at_cwd = descriptor & 0xFFFFFFFF == 0xFFFFFF9C  # AT_FDCWD, -100
    return os.readlink(f"/proc/{thread}/cwd") if at_cwd else _open_file(thread, descriptor)


def _open_file(thread: int, descriptor: int) -> str:
    return os.readlink(f"/proc/{thread}/fd/{descriptor & 0xFFFFFFFF}")


def _text(thread: int, address: int) -> str:
    memory = os.open(f"/proc/{thread}/mem", os.O_RDONLY)
    try:
        return os.fsdecode(os.pread(memory, select.PIPE_BUF, address).partition(b"\0")[0])
    finally:
        os.close(memory)


# --- in the child

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06  # <linux/bpf_common.h>: a word at an offset; with a constant
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000


def _filter() -> int:
    """From now on this thread and those it starts wait at the calls. Returns the descriptor on which that is heard."""
    machine = platform.machine()
    audit, seccomp = ARCH[machine]
    numbers = list(CALLS[machine])
    program = [(_LOAD, 0, 0, 4), (_JUMP_IF_EQUAL, 0, len(numbers) + 1, audit), (_LOAD, 0, 0, 0)]
    program += [(_JUMP_IF_EQUAL, len(numbers) - at, 0, number) for at, number in enumerate(numbers)]
    program += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NOTIFY)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    whole = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.syscall.restype = ctypes.c_long
    listener = int(
        libc.syscall(ctypes.c_long(seccomp), ctypes.c_ulong(_SET_MODE_FILTER), ctypes.c_ulong(_NEW_LISTENER), whole)
    )
    if listener < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return listener


def _die_with_parent() -> None:
    """There would be no answer."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
