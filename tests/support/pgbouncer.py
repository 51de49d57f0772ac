"""A pgbouncer in transaction mode before a server of the tests' own, where it is installed: sockets only, no TCP."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from examples.fleet.database import READY_S, WITHOUT_RIGHTS, end_with_parent
from tests.support.postgres import as_url

PORT = 6432  # names the socket


def program() -> str | None:
    """None: it is not installed."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextmanager
def pool(address: str, size: int) -> Iterator[str]:
    """The address of the database through a pool with so many sessions of the server. They forget what a client says of
    its session, so what the address says of it becomes a setting of the database."""
    found = program()
    assert found is not None
    parts = conninfo_to_dict(address)
    _set_for_all(address, str(parts["dbname"]))
    with tempfile.TemporaryDirectory(prefix="weft-pool-", dir="/dev/shm") as name:
        folder = Path(name)
        run_as: dict[str, Any] = {}
        if os.geteuid() == 0:  # it refuses to run as root
            account = pwd.getpwuid(WITHOUT_RIGHTS)
            os.chown(folder, account.pw_uid, account.pw_gid)
            run_as = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        (folder / "users").write_text(f'"{parts["user"]}" ""\n')
        (folder / "pool.ini").write_text(
            "[databases]\n"
            f"{parts['dbname']} = host={parts['host']} dbname={parts['dbname']} pool_size={size}\n"
            "[pgbouncer]\n"
            f"unix_socket_dir = {folder}\nlisten_port = {PORT}\nauth_type = trust\nauth_file = {folder / 'users'}\n"
            "pool_mode = transaction\nserver_round_robin = 1\nmin_pool_size = {size}\n"
            "ignore_startup_parameters = extra_float_digits, options\n".replace("{size}", str(size))
        )
        log = folder / "log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                [found, str(folder / "pool.ini")],
                stdout=subprocess.DEVNULL,
                stderr=output,
                preexec_fn=end_with_parent,  # noqa: PLW1509  (no other thread is needed between fork and exec)
                **run_as,
            )
        pooled = as_url(address, host=str(folder), port=str(PORT))
        try:
            _wait(pooled, process, log)
            yield pooled
        finally:
            process.kill()
            process.wait()


def _set_for_all(address: str, name: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE \"{name}\" SET weft.time = 'caller'".encode())
        connection.execute(f"ALTER DATABASE \"{name}\" SET lock_timeout = '2s'".encode())


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + READY_S
    while True:
        try:
            psycopg.connect(address, connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            assert process.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.02)
