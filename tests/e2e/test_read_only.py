"""`weft serve --read-only` beside the server that uses the database, and on a copy of it: it shows everything, and no
request changes a byte."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from server.api import TABLE
from server.settings import Settings
from tests.support.server import SyncServerProcess

Start = Callable[..., SyncServerProcess]
pytestmark = pytest.mark.timeout(300)
SIGNS = {("POST", "/login"), ("POST", "/logout"), ("POST", "/api/sign-in-links")}
ASKING: dict[str, Any] = {
    "format": "weft/1",
    "name": "ask",
    "blocks": {"start": {"type": "start"}, "ask": {"type": "approval", "params": {"title": "Pay?"}}},
    "edges": [{"source": "start", "target": "ask"}],
}


def dump(db: Path) -> list[str]:
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as found, found:
        return [line for line in found.iterdump() if '"writers"' not in line]


def test_only_signing_in_and_out_is_no_get() -> None:
    assert {(spec.method, spec.path) for spec in TABLE if spec.signs} == SIGNS
    assert not Settings().read_only


def test_it_shows_everything_and_changes_nothing(start_server: Start, tmp_path: Path) -> None:
    with httpx.Client(timeout=60, trust_env=False) as client:
        server = start_server()
        client.post(f"{server.url}/api/workflows", json={"document": ASKING}).raise_for_status()
        started = client.post(f"{server.url}/api/workflows/ask/runs?wait=30", json={"input": {}}).json()
        (wait,) = client.get(f"{server.url}/api/waits").json()["waits"]
        db, copy = tmp_path / "weft.db", tmp_path / "copy" / "weft.db"
        copy.parent.mkdir()
        for file in tmp_path.glob("weft.db*"):
            shutil.copy(file, copy.parent / file.name)
        shutil.copy(tmp_path / "weft.key", copy.parent / "weft.key")
        for path in (db, copy):
            before = dump(path)
            reader = start_server(WEFT_READ_ONLY="1", WEFT_DB=str(path))
            assert client.get(f"{reader.url}/api/runs/{started['run']}").json()["status"] == "waiting"
            assert client.get(f"{reader.url}/healthz").status_code == 200
            assert client.get(f"{reader.url}/readyz").status_code == 503
            link = wait["link"].replace(server.url, reader.url)
            shown = client.get(link)
            assert shown.status_code in (200, 503)
            for spec in TABLE:
                if spec.method == "GET" or spec.signs or spec.status == 405:
                    continue
                where = re.sub(r"\{[^}]*\}", "x", spec.path)
                media = {"content-type": spec.takes or "application/json"}
                answer = client.request(spec.method, f"{reader.url}{where}", content=b"{}", headers=media)
                assert answer.status_code == 503, (spec.method, spec.path, answer.text)
                if "json" in answer.headers["content-type"]:
                    assert answer.json()["code"] == "read_only", (spec.method, spec.path, answer.text)
            assert client.post(link, data={"action": "approve"}).status_code == 503
            assert dump(path) == before
            assert reader.stop() == 0
        # What the other server does is seen.
        reader = start_server(WEFT_READ_ONLY="1", WEFT_DB=str(db))
        client.post(wait["link"], json={"action": "approve"}).raise_for_status()
        client.get(f"{server.url}/api/runs/{started['run']}?wait=30")
        assert client.get(f"{reader.url}/api/runs/{started['run']}").json()["status"] == "succeeded"


def test_a_database_of_another_schema_is_refused(
    start_server: Start, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server = start_server()
    assert server.stop() == 0
    with closing(sqlite3.connect(tmp_path / "weft.db")) as db, db:
        db.execute("PRAGMA user_version = 25")
    with pytest.raises(Exception, match="did not start"):
        start_server(WEFT_READ_ONLY="1")
    assert "the database has schema 25" in capfd.readouterr().err
