"""Settings that had no effect without a word: misspelt names, a database server, a folder; and the client's port."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from server import cli
from server.reach import SettingsError, server_url
from server.settings import load_settings
from server.variables import KNOWN, OF_JOBS, OF_TESTS, check_names

ROOT = Path(__file__).parents[3]
LOOKED_AT = (".py", ".md", ".ts", ".tsx", ".mjs", ".toml", "Makefile")


def weft(*arguments: str, **environ: str) -> Result:
    return CliRunner(env={"WEFT_URL": "http://127.0.0.1:9", **environ}).invoke(cli.weft, arguments, prog_name="weft")


def environ_of(home: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(home)}


def start(tmp_path: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """`weft serve` that is expected to refuse."""
    return subprocess.run(
        [sys.executable, "-m", "server", "serve", "--port", "0", *arguments],
        cwd=ROOT,
        env={**environ_of(tmp_path), **environ},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("WEFT_DB", "sqlite"), ("WEFT_DB", "mysql+pymysql"), ("WEFT_DATA", "postgresql"), ("WEFT_DATA", "sqlite")],
)
def test_an_address_of_another_kind_is_refused(name: str, scheme: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings({name: f"{scheme}://weft:hunter2@db.internal/weft"})
    said = str(refused.value)
    assert said.startswith(f"{name} must be a path, not a {scheme}:// address")
    assert "hunter2" not in said


SHARED = {"WEFT_SECRET_KEY": "k" * 32, "WEFT_TOKEN": "t" * 32}


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_the_address_of_a_postgresql_database(scheme: str) -> None:
    address = f"{scheme}://weft:hunter2@db.internal:5433/weft?sslmode=require"
    settings = load_settings({"WEFT_DB": address, **SHARED})
    assert settings.db_address == address
    assert settings.database == f"{scheme}://db.internal:5433/weft" and "hunter2" not in repr(settings)
    assert load_settings({"WEFT_DB": address, **SHARED, "WEFT_TOKEN": "off"}).token is None
    with pytest.raises(SettingsError, match="WEFT_DB and WEFT_DATA are both set"):
        load_settings({"WEFT_DB": address, "WEFT_DATA": "a", **SHARED})


@pytest.mark.parametrize("missing", SHARED)
def test_servers_of_one_database_share_key_and_token(missing: str) -> None:
    shared = {name: value for name, value in SHARED.items() if name != missing}
    with pytest.raises(SettingsError, match=f"{missing} must be set with a PostgreSQL database"):
        load_settings({"WEFT_DB": "postgresql://db.internal/weft", **shared})


def test_commands_do_not_show_the_password_of_an_address(tmp_path: Path) -> None:
    for command in (["doctor"], ["sql", "SELECT 1"], ["backup", str(tmp_path / "copy")], ["restore", str(tmp_path)]):
        ran = weft(*command, WEFT_DB="postgresql://weft:hunter2@127.0.0.1:1/weft")  # nothing listens there
        assert ran.exit_code != 0 and "hunter2" not in ran.output, ran.output


def test_the_token_of_a_shared_database_is_that_of_the_environment() -> None:
    assert weft("token", WEFT_DB="postgresql://db.internal/weft", WEFT_TOKEN="t" * 32).output.strip() == "t" * 32


def test_a_wrong_address_is_told_without_its_password(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    done = start(tmp_path, WEFT_DB="postgresql://weft:hunter2@[::1/weft", **SHARED)
    assert done.returncode == 1
    assert "must have the form postgresql://" in done.stderr and "hunter2" not in done.stdout + done.stderr
    assert not (ROOT / "postgresql:").exists()


def test_a_database_that_does_not_answer_is_waited_for_and_logged_without_its_password(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    log = tmp_path / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "server", "serve", "--port", "0"],
            cwd=ROOT,
            env={**environ_of(tmp_path), "WEFT_DB": "postgresql://weft:hunter2@127.0.0.1:9/weft", **SHARED},
            stdout=file,
            stderr=file,
        )
        try:
            until_s = time.monotonic() + 90
            while "waiting for" not in log.read_text() and time.monotonic() < until_s:
                time.sleep(0.05)
            process.terminate()
            process.wait(90)
        finally:
            process.kill()
            process.wait()
    logged = log.read_text()
    assert "waiting for postgresql://127.0.0.1:9/weft" in logged and "refused" in logged
    assert "hunter2" not in logged and "Traceback" not in logged


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("WEFT_DBB", "WEFT_DB"),
        ("WEFT_TOKENS", "WEFT_TOKEN"),
        ("WEFT_BASEURL", "WEFT_BASE_URL"),
        ("WEFT_MAIL_PASS", "WEFT_MAIL_PASSWORD"),
        ("WEFT_DATABASE", "WEFT_DATA"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(SettingsError, match=f"^unknown setting {name}; did you mean {near}[?]$"):
        load_settings({name: "x"})


def test_a_name_that_is_near_to_none_says_where_they_are_listed() -> None:
    with pytest.raises(SettingsError, match=r"unknown setting WEFT_WORKERS; .*WEFT_ENV_<NAME>.*run-in-production"):
        check_names({"WEFT_WORKERS": "4"})


@pytest.mark.parametrize(
    "arguments",
    [("runs",), ("doctor",), ("backup", "copy.db"), ("validate", str(ROOT / "examples" / "nested.json")), ("serve",)],
)
def test_every_kind_of_command_refuses_an_unknown_name(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "server", *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "WEFT_DBB": "x", "WEFT_URL": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode in (2, 4)
    assert "unknown setting WEFT_DBB; did you mean WEFT_DB?" in done.stderr


def test_values_for_workflows_and_what_tests_set_are_no_unknown_names() -> None:
    check_names(
        {
            "WEFT_MODEL_ANY": "x",
            "WEFT_PRICE_ANY": "x",
            "WEFT_ENV_ANYTHING": "x",
            "WEFT_SECRET_ANYTHING": "x",
            "WEFT_WEB": "skip",
            "WEFT_SOAK_SECONDS": "9",
        }
    )


def test_every_name_that_the_sources_mention_is_known() -> None:
    """So that the list is complete: a name that is read or documented and not in it could not be set."""
    named: dict[str, Path] = {}
    for folder, inner, files in os.walk(ROOT):
        inner[:] = [name for name in inner if not name.startswith((".", "node_modules", "_web"))]
        for path in (Path(folder, name) for name in files if name.endswith(LOOKED_AT)):
            if path != Path(__file__):  # which has misspelt names
                named |= dict.fromkeys(re.findall(r"\bWEFT_[A-Z_]*[A-Z]\b", path.read_text("utf-8")), path)
    known = {*KNOWN, *OF_JOBS, *OF_TESTS, "WEFT_MAIL"}  # the last: how WEFT_MAIL_... is written about
    unknown = {
        name
        for name in named
        if name not in known and not name.startswith(("WEFT_ENV_", "WEFT_SECRET_", "WEFT_MODEL_", "WEFT_PRICE_"))
    }
    assert not unknown, {name: str(named[name]) for name in unknown}


def test_weft_data_is_the_folder_of_the_database(tmp_path: Path) -> None:
    """Bug 21 of the review of the editor: it was ignored without a word."""
    assert load_settings({"WEFT_DATA": "/var/lib/weft"}).db_path == "/var/lib/weft/weft.db"
    assert load_settings({"WEFT_DATA": "data/"}).db_path == "data/weft.db"
    ran = weft("doctor", WEFT_DATA=str(tmp_path))
    assert f"There is no database {tmp_path / 'weft.db'}" in ran.output


def test_the_folder_and_the_file_cannot_both_be_set() -> None:
    with pytest.raises(SettingsError, match="WEFT_DB and WEFT_DATA are both set"):
        load_settings({"WEFT_DATA": "a", "WEFT_DB": "b"})


def test_an_option_counts_before_the_folder(tmp_path: Path) -> None:
    ran = weft("doctor", "--db", str(tmp_path / "mine.db"), WEFT_DATA="elsewhere")
    assert "mine.db" in ran.output


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({}, "http://127.0.0.1:8765"),
        ({"WEFT_PORT": "9000"}, "http://127.0.0.1:9000"),
        ({"WEFT_PORT": "0"}, "http://127.0.0.1:8765"),
        ({"WEFT_PORT": "9000", "WEFT_HOST": "0.0.0.0"}, "http://127.0.0.1:9000"),
        ({"WEFT_HOST": "::1"}, "http://[::1]:8765"),
        ({"WEFT_PORT": "9000", "WEFT_URL": "https://weft.example"}, "https://weft.example"),
    ],
)
def test_the_client_goes_where_the_server_listens(environ: dict[str, str], url: str) -> None:
    assert server_url(environ) == url


def test_commands_use_the_port_of_the_server() -> None:
    ran = CliRunner(env={"WEFT_URL": None, "WEFT_PORT": "9"}).invoke(cli.weft, ["runs"], prog_name="weft")
    assert "No weft server answers at http://127.0.0.1:9." in ran.output
