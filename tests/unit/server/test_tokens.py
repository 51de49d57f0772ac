"""A token by default, also on loopback; short ones are refused; commands find it, other servers do not get it."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread
from urllib.parse import unquote, urlsplit

import httpx
import pytest

from server.cli import processes
from server.keys import with_token
from server.reach import SettingsError, find, token_path
from server.settings import Settings, load_settings
from server.tokens import read_or_make

ROOT = Path(__file__).parents[3]


class Own:
    """A server that was started as a new user would, in a folder of its own, and its command line there."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self._environ = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        self._environ["PYTHONPATH"] = str(ROOT)
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "server", "serve", "--port", "0", *options],
                cwd=folder,
                env=self._environ,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        self.said = [self._process.stdout.readline() for _ in range(2)]
        self.url = self.said[0].removeprefix("weft is ready: ").partition("/sign-in#")[0]
        self.port = int(self.url.rpartition(":")[2])

    def weft(self, *arguments: str, folder: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
        """WEFT_PORT is all that it needs here, because the port is not the usual one."""
        return subprocess.run(
            [sys.executable, "-m", "server", *arguments],
            cwd=folder or self.folder,
            env={**self._environ, "WEFT_PORT": str(self.port), **environ},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    started = Own(tmp_path_factory.mktemp("own"))
    yield started
    started.stop()


def test_the_printed_command_asks_this_server(own: Own) -> None:
    """Its port came with an option, which the next command does not know."""
    _, command, _ = own.said[1].split("`")
    printed = own.weft(*command.split()[1:], WEFT_PORT="")
    assert printed.stdout.startswith(f"{own.url}/sign-in#"), printed.stderr


def test_the_printed_command_knows_a_database_elsewhere(tmp_path: Path) -> None:
    other = Own(tmp_path, "--db", "other place/shop.db")
    try:
        assignment, *command = shlex.split(other.said[1].split("`")[1])
        assert assignment == f"WEFT_DB={tmp_path}/other place/shop.db"
        printed = other.weft(*command[1:], WEFT_PORT="", WEFT_DB=assignment.removeprefix("WEFT_DB="))
        assert printed.stdout.startswith(f"{other.url}/sign-in#"), printed.stderr
    finally:
        other.stop()


def test_the_first_start_makes_a_token_and_prints_a_link(own: Own) -> None:
    assert re.fullmatch(r"weft is ready: http://127\.0\.0\.1:\d+/sign-in#[\w-]{43}\n", own.said[0])
    assert "within 10 minutes" in own.said[1]
    path = own.folder / ".weft" / "weft.token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = path.read_text().strip()
    assert len(token) >= 43
    assert token not in "".join(own.said) and token not in (own.folder / "log").read_text()


def test_the_api_asks_for_it_also_on_loopback(own: Own) -> None:
    with httpx.Client(base_url=own.url, timeout=90) as client:
        refused = client.get("/api/waits")
        assert refused.status_code == 401
        assert "weft token" in refused.json()["hint"] and "authorization" in refused.json()["hint"].lower()
        assert client.get("/healthz").status_code == 200
        printed = own.weft("token").stdout.strip()
        assert client.get("/api/waits", headers={"authorization": f"Bearer {printed}"}).status_code == 200


def test_commands_find_the_token_by_themselves(own: Own, tmp_path: Path) -> None:
    assert own.weft("runs").returncode == 0
    ran = own.weft("run", str(ROOT / "examples" / "nested.json"), "--follow")
    assert ran.returncode == 0, ran.stderr
    elsewhere = own.weft("runs", folder=tmp_path)
    assert elsewhere.returncode == 4 and "weft token" in elsewhere.stderr and "WEFT_DB" in elsewhere.stderr
    assert own.weft("runs", folder=tmp_path, WEFT_DATA=str(own.folder / ".weft")).returncode == 0
    wrong = own.weft("runs", WEFT_TOKEN="another-token")
    assert wrong.returncode == 4 and "refused the token in WEFT_TOKEN" in wrong.stderr


def test_links_sign_a_browser_in_once(own: Own) -> None:
    for line in (own.said[0], own.weft("link").stdout):
        code = line.strip().partition("#")[2]
        with httpx.Client(base_url=own.url, timeout=90) as browser:
            assert browser.get("/").status_code == 401
            assert browser.post("/login", json={"code": code}).status_code == 200
            assert browser.get("/").status_code == 200 and browser.get("/api/runs").status_code == 200
        assert httpx.post(f"{own.url}/login", json={"code": code}, timeout=90).status_code == 401


def test_the_token_outlives_a_restart(tmp_path: Path) -> None:
    settings = Settings(db_path=str(tmp_path / "deep" / "weft.db"), token_file=True)
    first = with_token(settings).token
    assert first is not None and with_token(settings).token == first
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["weft.token"]


def test_processes_that_start_together_agree(tmp_path: Path) -> None:
    barrier, made = Barrier(8), []

    def start() -> None:
        barrier.wait()
        made.append(read_or_make(str(tmp_path / "weft.db")))

    threads = [Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8 and len(set(made)) == 1


def test_a_damaged_token_file_is_refused_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "weft.token").write_text("short\n")
    with pytest.raises(SettingsError, match=r"weft\.token is damaged"):
        read_or_make(str(tmp_path / "weft.db"))
    assert (tmp_path / "weft.token").read_text() == "short\n"


@pytest.mark.parametrize(
    ("environ", "fine"),
    [
        ({"WEFT_TOKEN": "1234567"}, False),
        ({"WEFT_TOKEN": "12345678"}, True),
        ({"WEFT_TOKEN": "with a space in it"}, False),
        ({"WEFT_TOKEN": "töken-töken"}, False),
        ({"WEFT_HOST": "0.0.0.0", "WEFT_TOKEN": "x" * 19}, False),
        ({"WEFT_HOST": "0.0.0.0", "WEFT_TOKEN": "x" * 20}, True),
        ({"WEFT_HOST": "0.0.0.0"}, True),  # the one that is made is long enough
        ({"WEFT_HOST": "0.0.0.0", "WEFT_TOKEN": "off"}, False),
        ({"WEFT_TOKEN": "off"}, True),
    ],
)
def test_a_weak_token_is_refused_and_the_error_says_how_to_make_one(environ: dict[str, str], fine: bool) -> None:
    if fine:
        load_settings(environ)
        return
    with pytest.raises(SettingsError) as refused:
        load_settings(environ)
    assert "WEFT_TOKEN" in str(refused.value)
    if environ["WEFT_TOKEN"] != "off":
        assert "secrets.token_urlsafe" in str(refused.value)


def test_the_token_of_the_file_is_for_this_machine_alone(tmp_path: Path) -> None:
    db = str(tmp_path / "weft.db")
    made = read_or_make(db)
    assert token_path(db) == tmp_path / "weft.token"
    for url in ("http://127.0.0.1:8765", "http://localhost:1", "http://[::1]:8765"):
        assert find({"WEFT_DB": db}, url) == made
    for url in ("https://weft.example", "http://10.0.0.1:8765", "http://127.0.0.1.evil.test"):
        assert find({"WEFT_DB": db}, url) is None
    assert find({"WEFT_DB": db, "WEFT_TOKEN": "off"}, "http://127.0.0.1") is None
    assert find({"WEFT_DB": db, "WEFT_TOKEN": "set by hand"}, "https://weft.example") == "set by hand"


def test_without_a_token_the_command_says_where_it_would_be(tmp_path: Path) -> None:
    environ = {"PATH": "/usr/bin:/bin", "WEFT_DATA": str(tmp_path)}
    command = [sys.executable, "-m", "server", "token"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 4 and str(tmp_path / "weft.token") in done.stderr and done.stdout == ""
    environ["WEFT_TOKEN"] = "off"
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 4 and "requires no token" in done.stderr


def test_the_link_is_in_no_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """`weft serve --open`: all users of a machine can read the command lines of all processes."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    url = "http://127.0.0.1:8765/sign-in#the-code"
    processes._open_file_to(url)
    (address,) = opened
    file = Path(unquote(urlsplit(address).path))
    assert "the-code" not in address and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f'content="0;url={url}"' in file.read_text()
    file.unlink()
