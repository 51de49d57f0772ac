"""What a stolen copy of a database is worth, and requests for many ranges of a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.documents import in_a_row
from tests.support.server import ROOT, SyncServerProcess

SECRET = "the-value-of-the-0815-secret"
CALLS = in_a_row(
    "calls",
    {
        "call": {
            "type": "http",
            "params": {"url": "http://127.0.0.1:1/", "headers": {"Authorization": "${KEY}"}},
            "policy": {"retry": {"max_attempts": 1}},
        }
    },
)


def test_a_copy_without_the_key_shows_runs_and_no_secret(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "stolen").mkdir()
    server = SyncServerProcess(tmp_path / "first", {"WEFT_SECRET_KEY": "the key of the first server"})
    with httpx.Client(base_url=server.url, timeout=90) as client:
        put = client.put("/api/secrets/KEY", json={"value": SECRET, "hosts": ["http://127.0.0.1:1"]})
        assert put.status_code < 300, put.text
        run = client.post("/api/runs?wait=60", json={"document": CALLS}).json()
        assert run["error"]["code"] == "address_refused"
    copy = tmp_path / "stolen" / "weft.db"
    command = [sys.executable, "-m", "server", "backup", str(copy), "--db", str(tmp_path / "first" / "weft.db")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=90)
    server.stop()
    assert [path.name for path in copy.parent.iterdir()] == ["weft.db"], "the key does not come along"
    assert SECRET.encode() not in copy.read_bytes()
    keys = {"WEFT_SECRET_KEY": "the key of someone else", "WEFT_OLD_SECRET_KEY": "lost"}  # else it does not start
    thief = SyncServerProcess(copy.parent, keys)
    with httpx.Client(base_url=thief.url, timeout=90) as client:
        assert client.get(f"/api/runs/{run['run']}").json()["status"] == "failed"
        (shown,) = client.get("/api/secrets").json()["secrets"]
        assert (shown["name"], shown["readable"]) == ("KEY", False) and "value" not in shown
        again = client.post("/api/runs?wait=60", json={"document": CALLS}).json()
        assert again["error"]["code"] == "secret_unreadable"
    assert thief.stop() == 0


def test_a_thousand_ranges_of_a_file_are_no_work(tmp_path: Path) -> None:
    server = SyncServerProcess(tmp_path, {})
    with httpx.Client(base_url=server.url, timeout=90) as client:
        whole = client.get("/static/weft.css", headers={"accept-encoding": "identity"})
        ranges = ",".join(f"{n}-" for n in range(1000))
        asked = client.get("/static/weft.css", headers={"accept-encoding": "identity", "range": f"bytes={ranges}"})
        assert whole.status_code == 200
        assert asked.status_code in (200, 206, 400, 416, 431)
        assert len(asked.content) <= len(whole.content) + 1000, "no part comes twice"
    server.kill()
