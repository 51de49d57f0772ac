"""A server on a file that a disk has damaged, at random places: it refuses to start and says why, or what it cannot
read is an error with a name, or all is as it was. Never a crash, never an answer that is a traceback.

What of this the doctor and the store notice is judged for many more places in tests/faults/flips.py.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Literal

import httpx
import pytest

from tests.faults.flips import Base, Damage
from tests.faults.scenario import SECRET
from tests.support.server import ServerProcess, free_port
from tests.support.size import WHOLE, size

PLACES = size(3, 60)
REFUSED = 1  # exit code
LISTS = ("workflows", "waits", "schedules", "webhooks", "drafts")

pytestmark = [pytest.mark.proof, pytest.mark.soak, pytest.mark.timeout(0 if WHOLE else 180)]


@pytest.mark.parametrize("file", ["db", "wal"])
async def test_damage_is_refused_or_named(tmp_path: Path, file: Literal["db", "wal"]) -> None:
    base, choose = Base(tmp_path / "base", file), random.Random(8)
    found: Counter[str] = Counter()
    for damage in [Damage(file, 5_000, None), *base.damages(PLACES, choose)]:
        db, log = base.copy(tmp_path / "damaged"), tmp_path / "log"
        log.write_bytes(b"")
        damage.do(db)
        server = await ServerProcess.start(db, free_port(random.Random()), log, WEFT_SECRET_KEY=f"hex:{SECRET.hex()}")
        try:
            if await server.started():
                found[await _asked(server, damage)] += 1
                assert await server.stop(30) == 0, damage
            else:
                found["refused"] += 1
                assert server.exit_code == REFUSED, damage
                said = log.read_text()
                assert said.startswith(f"weft: cannot open {db}: ") and "weft restore" in said, (damage, said)
                assert "Traceback" not in said, (damage, said)
        finally:
            await server.clean_up()
    print(file, dict(found))
    assert found["refused" if file == "db" else "answered"]


async def _asked(server: ServerProcess, damage: Damage) -> str:
    """Everything there is to read."""
    named = False
    async with httpx.AsyncClient(base_url=server.url, timeout=90, trust_env=False) as http:
        http.headers["accept"] = "application/json"

        async def get(path: str) -> httpx.Response:
            nonlocal named
            answer = await http.get(path)
            if answer.is_error:
                named = True
                problem = answer.json()
                assert answer.status_code >= 500, (damage, path, answer.text)
                assert answer.headers["content-type"] == "application/problem+json", (damage, path, answer.text)
                assert problem["code"] != "internal_error" and problem["detail"], (damage, path, answer.text)
            return answer

        runs = await get("/api/runs?limit=100")
        for run in runs.json().get("runs", ()):
            for part in ("", "/events", "/plan"):
                await get(f"/api/runs/{run['id']}{part}")
        for name in LISTS:
            await get(f"/api/{name}")
    return "named" if named else "answered"
