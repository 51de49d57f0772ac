"""A MariaDB of the tests' own, on a port of loopback: of the system, or of Debian's packages, which `make check` has
fetched. It ends with the process that started it.

    python -m tests.support.mariadb     fetches it where there is none (`apt-get download`; nothing is installed)
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pymysql
import trustme

from examples.fleet.database import end_with_parent

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft" / "mariadb"
HOST: Final = "reports.example"
USER: Final = "weft"
PASSWORD: Final = "p:a@s/s wörd"
READY_S: Final = 20.0
FETCH_S: Final = 60
SMALL: Final = (
    "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=0",
    "--skip-name-resolve", "--performance-schema=0",
)  # fmt: skip


class NoMariadb(Exception):
    """There is none and none can be had. The message is one sentence."""


def programs() -> Path:
    """The folder that has `usr/sbin/mariadbd`. Raises NoMariadb."""
    if Path("/usr/sbin/mariadbd").is_file() and Path("/usr/share/mysql/mysql_system_tables.sql").is_file():
        return Path("/")
    if (CACHE / "usr/sbin/mariadbd").is_file():
        return CACHE
    raise NoMariadb("there is no MariaDB: python -m tests.support.mariadb fetches it, as make check does")


def _fetch() -> None:
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as place:
        work = Path(place)

        def brought(*packages: str) -> Path:
            _run("apt-get", "-o", "Acquire::Retries=0", "download", *packages, cwd=work)
            for path in work.glob("*.deb"):
                _run("dpkg-deb", "-x", str(path), "all", cwd=work)
            return next(work.glob(f"{packages[0]}_*.deb"))

        needs = _run("dpkg-deb", "-f", str(brought("mariadb-server-core")), "Depends", cwd=work)
        brought(*re.findall(r"lib(?:aio|numa|uring)[^ ,]*", needs))
        with suppress(OSError):  # otherwise another worker was first
            (work / "all").rename(CACHE)


def _run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=FETCH_S, check=True)
    return done.stdout


class Mariadb:
    """`port`; `ca`: the file of what signed its certificate, which is for HOST."""

    def __init__(self) -> None:
        """Makes an empty server. Raises NoMariadb."""
        self._programs = programs()
        self._folder = Path(tempfile.mkdtemp(prefix="weft-mariadb-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.ca = self._folder / "ca.pem"
        self.port = 0

    def start(self) -> None:
        share, data = self._programs / "usr/share/mysql", self._folder / "data"
        data.mkdir()
        libraries = ":".join(map(str, self._programs.glob("usr/lib/*-linux-gnu")))
        env = {**os.environ, "LD_LIBRARY_PATH": libraries} if self._programs == CACHE else dict(os.environ)
        base = [
            str(self._programs / "usr/sbin/mariadbd"), "--no-defaults", f"--datadir={data}", "--user=root",
            f"--lc-messages-dir={share}", f"--character-sets-dir={share}/charsets", *SMALL,
        ]  # fmt: skip
        tables = [(share / f"mysql_system_tables{more}.sql").read_text() for more in ("", "_data")]
        first = "\n".join(["CREATE DATABASE mysql;", "USE mysql;", *tables])
        made = subprocess.run([*base, "--bootstrap"], input=first, text=True, capture_output=True, env=env, check=False)
        if made.returncode:
            raise NoMariadb(f"MariaDB does not start: {made.stderr.strip().splitlines()[-1]}")
        authority = trustme.CA()
        certificate = authority.issue_cert(HOST)
        authority.cert_pem.write_to_path(str(self.ca))
        certificate.private_key_and_cert_chain_pem.write_to_path(str(self._folder / "server.pem"))
        begin = self._folder / "begin.sql"
        begin.write_text(
            f"SET NAMES utf8mb4;\nCREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;\n"
            f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}';\nGRANT ALL ON *.* TO {USER}@'%';\n"
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        serving = [
            f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self._folder}/s", f"--init-file={begin}",
            f"--ssl-cert={self._folder}/server.pem", f"--ssl-key={self._folder}/server.pem",
        ]  # fmt: skip
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*base, *serving], env=env, stdout=log, stderr=log,
                preexec_fn=end_with_parent,  # noqa: PLW1509  (no other thread is needed between fork and exec)
            )  # fmt: skip
        until = time.monotonic() + READY_S
        while True:
            try:
                self.connect().close()
                return
            except pymysql.Error:
                if self._process.poll() is not None or time.monotonic() > until:
                    text = (self._folder / "log").read_text()
                    raise RuntimeError(f"MariaDB did not start:\n{text}") from None
                time.sleep(0.05)

    def connect(self) -> Any:
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user=USER, password=PASSWORD.encode(), database="shop", autocommit=True
        )  # type: ignore[arg-type, unused-ignore]  # it takes bytes as well

    def remove(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def mariadb() -> Iterator[Mariadb]:
    server = Mariadb()
    try:
        server.start()
        yield server
    finally:
        server.remove()


def main() -> None:
    try:
        found = programs()
    except NoMariadb:
        try:
            _fetch()
        except (OSError, subprocess.SubprocessError) as error:
            detail = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
            sys.exit(f"MariaDB cannot be fetched: {detail[-1] if detail else error}")
        found = programs()
    print(found / "usr/sbin/mariadbd")


if __name__ == "__main__":
    main()
