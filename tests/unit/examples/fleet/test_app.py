"""The page of the demo: below its token alone, and what its buttons do."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from examples.fleet.app import Chaos, create_app
from examples.fleet.members import Fleet
from examples.fleet.workload import Workload
from server import cli
from server.cli.common import Refused


def test_a_port_in_use_is_an_error_with_the_next_step() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = CliRunner().invoke(cli.weft, ["demo", "--fleet", "--port", port], standalone_mode=False)
    assert isinstance(ran.exception, Refused) and "--port" in ran.exception.hint


class NoDatabase:
    """Starts and crashes at once."""

    address = "postgresql:///postgres"
    pid: int | None = None

    def start(self) -> None:
        self.pid = 1

    def crash(self) -> None:
        self.pid = None

    def remove(self) -> None:
        self.pid = None


@pytest.fixture
async def page() -> AsyncIterator[httpx.AsyncClient]:
    database: Any = NoDatabase()
    fleet = Fleet(database, 1, 2, (1,), 3000)
    await fleet.database.start()
    app = create_app(fleet, Workload((), "token", 1.0), Chaos(fleet), "secret")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://demo") as client:
        yield client
    await fleet.close()


async def test_it_is_below_its_token_alone(page: httpx.AsyncClient) -> None:
    for path in ("/", "/state", "/wrong/", "/wrong/state"):
        assert (await page.get(path)).status_code == 404
    assert (await page.post("/wrong/members/database/kill")).status_code == 404
    for path in ("/secret/", "/secret/page.css", "/secret/page.js"):
        answer = await page.get(path)
        assert answer.status_code == 200 and "default-src 'none'" in answer.headers["Content-Security-Policy"]


async def test_files_beside_the_page_are_not_served(page: httpx.AsyncClient) -> None:
    for name in ("app.py", "../app.py", "%2e%2e/app.py", "workflow.json"):
        assert (await page.get(f"/secret/{name}")).status_code == 404


async def test_a_button_acts_on_one_member(page: httpx.AsyncClient) -> None:
    killed = (await page.post("/secret/members/database/kill")).json()
    assert [each["state"] for each in killed["members"]] == ["ended"] * 4
    assert killed["log"][0]["text"] == "Killed database (SIGQUIT)"
    started = (await page.post("/secret/members/database/start")).json()["members"][0]
    assert (started["state"], started["starts"], started["pid"]) == ("running", 2, 1)


async def test_what_is_not_there_is_not_found(page: httpx.AsyncClient) -> None:
    assert (await page.post("/secret/members/worker%203/kill")).status_code == 404
    assert (await page.post("/secret/members/database/remove")).status_code == 404
    assert (await page.get("/secret/members/database/kill")).status_code == 404, "a link presses no button"


async def test_random_kills_are_switched(page: httpx.AsyncClient) -> None:
    assert (await page.post("/secret/chaos/on")).json()["chaos"] is True
    assert (await page.post("/secret/chaos/off")).json()["chaos"] is False


async def test_a_server_that_does_not_answer_cannot_be_opened(page: httpx.AsyncClient) -> None:
    assert (await page.get("/secret/editor/7")).status_code == 503
