"""docs/howto/packages.md, followed: a connector is made, tested, packaged, listed, installed elsewhere, and runs."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.examples.test_connectors_page import run
from tests.support.server import ROOT

PAGE = (ROOT / "docs/howto/packages.md").read_text()
MAIN = """
import asyncio, json, sys
import weft

FLOW = {
    "format": "weft/1",
    "name": "making",
    "blocks": {
        "start": {"type": "start"},
        "make": {"type": "connector.tea", "params": {
            "operation": "create_item", "credential": "${TOKEN}", "base_url": sys.argv[1], "name": "green"}},
    },
    "edges": [{"source": "start", "target": "make"}],
}

async def main():
    place = sys.argv[1].removeprefix("http://")
    async with weft.open(env={"TOKEN": "t-12345678"}, allow_private=[place]) as engine:
        run = await engine.run(FLOW, timeout_s=60)
        print(json.dumps([run.status, run.output]))

asyncio.run(main())
"""


class Service(BaseHTTPRequestHandler):
    """Stands for the service of the connector."""

    created: list[object]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.created.append((self.path, self.headers["authorization"], json.loads(body)["name"]))
        answer = b'{"id": "7"}'
        self.send_response(201)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None: ...


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def service() -> Iterator[str]:
    Service.created = []
    yield from serving(Service)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "shelf").mkdir()
    yield from serving(partial(Quiet, directory=str(tmp_path / "shelf")))


@pytest.mark.timeout(300)
def test_a_connector_from_its_first_line_to_another_place(tmp_path: Path, service: str, shelf: str) -> None:
    for command in (
        "weft new-connector tea",
        "pytest",
        "weft packages pack",
        "weft packages index",
        "weft add weft-tea",
    ):
        assert command in PAGE
    root = str(ROOT)
    made = run("-m", "server", "new-connector", "tea", cwd=tmp_path, PYTHONPATH=root)
    assert made.returncode == 0, made.stderr
    repository = tmp_path / "weft-tea"
    tested = run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=repository, PYTHONPATH=root)
    assert tested.returncode == 0 and "2 passed" in tested.stdout, tested.stdout
    place = tmp_path / "shelf"
    built = run("-m", "hatchling", "build", "-t", "wheel", "-d", str(place), cwd=repository)
    assert built.returncode == 0, built.stderr
    key = run("-m", "server", "packages", "key", "-o", str(tmp_path / "signing.key"), cwd=tmp_path, PYTHONPATH=root)
    [wheel] = place.glob("*.whl")
    signing = ("--signing-key", str(tmp_path / "signing.key"), "-o", "index.json")
    listed = run("-m", "server", "packages", "index", wheel.name, *signing, cwd=place, PYTHONPATH=root)
    assert listed.returncode == 0, listed.stderr

    there = tmp_path / "there"
    there.mkdir()
    index = {"WEFT_PACKAGES": f"{shelf}/index.json", "WEFT_PACKAGES_KEY": key.stdout.strip(), "PYTHONPATH": root}
    added = run("-m", "server", "add", "weft-tea", "--to", "site", "--yes", cwd=there, **index)
    assert added.returncode == 0, added.stderr
    assert "sends requests to: api.example.com" in added.stdout and "Python code" not in added.stdout
    (there / "main.py").write_text(MAIN)
    path = os.pathsep.join([str(there / "site"), root])
    ran = run("main.py", service, cwd=there, PYTHONPATH=path)
    assert json.loads(ran.stdout) == ["succeeded", {"status": 201, "result": {"id": "7"}}], ran.stderr
    assert Service.created == [("/items", "Bearer t-12345678", "green")]
    without = run("main.py", service, cwd=there, PYTHONPATH=root)
    assert without.returncode != 0 and "connector.tea" in without.stderr
