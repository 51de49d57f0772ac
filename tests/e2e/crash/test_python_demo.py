"""The first demo in Python, as it is shipped: deployed and run by the command line, killed in its second and third
step, continued by a new process.

What differs from `examples/python/demo.py` is the endpoint, which is the test's own and counts its calls, and the
length of the sleep.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.crash.conftest import Servers
from tests.e2e.crash.test_attention import post
from tests.support.journal import Journal, log_is_clean
from tests.support.service import Service
from tests.support.until import until

ROOT = Path(__file__).parents[3]
DEMO = ROOT / "examples" / "python" / "demo.py"
SLEEP_S = 2


async def weft(url: str, *arguments: str) -> str:
    """What the command prints."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "server", *arguments),
        cwd=ROOT,
        env={**own, "WEFT_URL": url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


@pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("killed_in", ["sleep", "email"])
async def test_the_demo_continues_after_kill_9(
    servers: Servers, service: Service, tmp_path: Path, killed_in: str
) -> None:
    text = DEMO.read_text()
    assert text.count("${WEFT_BASE_URL}/demo/echo") == 1 and text.count("seconds=30") == 1
    file = tmp_path / "demo.py"
    file.write_text(
        text.replace("${WEFT_BASE_URL}/demo/echo", f"{service.url}/data").replace("seconds=30", f"seconds={SLEEP_S}")
    )
    servers.allow(service)
    async with post() as mail, httpx.AsyncClient(timeout=60, trust_env=False) as client:
        servers.send_mail_through(mail.port)
        first = await servers.start()
        client.base_url = httpx.URL(first.url)
        assert (await weft(first.url, "deploy", str(file), "--name", "demo")).startswith("demo version 1 (new, ")
        run = (await weft(first.url, "run", "demo")).split()[1]

        async def view() -> dict[str, Any]:
            found: dict[str, Any] = (await client.get(f"/api/runs/{run}")).json()
            return found

        async def begun() -> bool:
            return any(node["key"] == killed_in and node["status"] != "pending" for node in (await view())["nodes"])

        await until(begun)
        if killed_in == "email":
            async with asyncio.timeout(60):
                await mail.called.wait()
        await first.kill()
        mail.open.set()
        second = await servers.start()

        async def ended() -> dict[str, Any] | None:
            found = await view()
            return found if found["status"] not in ("queued", "running", "waiting") else None

        assert (await until(ended))["status"] == "succeeded"
        assert await second.stop(timeout_s=30) == 0
    assert [call.path for call in service.calls] == ["/data"]
    assert len(mail.mails) == 1 and '"serial"' in mail.mails[0]
    journal = Journal(servers.db)
    journal.is_sound()
    journal.is_dense()
    journal.results_are_recorded_once()
    assert journal.started(run)["email"] == (2 if killed_in == "email" else 1)
    assert journal.started(run)["hit"] == 1
    log_is_clean(servers.log)
