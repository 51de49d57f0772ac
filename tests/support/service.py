"""What workflows call: an endpoint in the test's own process, which sees every effect and can hold it back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.documents import in_a_row
from tests.support.endpoints import Request, answer, http


@dataclass
class Call:
    """One request. `serial` counts from 1 and is what the caller gets back; `key` is its idempotency key."""

    serial: int
    path: str
    key: str
    body: Any
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def server(self) -> str:
        """Base URL of the calling server, which `chain` sends along."""
        return str(self.body["server"])


POST: dict[str, Any] = {"method": "POST", "idempotency_header": "Idempotency-Key"}  # a service that knows repeats


class Service:
    """Answers {"serial": n} at once, or, on a path of `holds`, when `release` lets the call go."""

    def __init__(self) -> None:
        self.place = ""
        self.calls: list[Call] = []
        self.holds: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://{self.place}"

    def held(self, server: str | None = None) -> list[Call]:
        return [call for call in self.calls if not call.gate.is_set() and (server is None or call.server == server)]

    def release(self, which: Callable[[Call], bool] = lambda call: True) -> None:
        for call in self.calls:
            if which(call):
                call.gate.set()

    async def handle(self, request: Request) -> bytes:
        key = request.headers.get("idempotency-key", "")
        call = Call(len(self.calls) + 1, request.target, key, json.loads(request.body or b"null"))
        self.calls.append(call)
        if call.path not in self.holds:
            call.gate.set()
        await call.gate.wait()
        return answer(200, json.dumps({"serial": call.serial}).encode(), content_type="application/json")


@asynccontextmanager
async def serve() -> AsyncIterator[Service]:
    service = Service()
    async with http(service.handle) as server:
        service.place = server.place
        yield service
        service.release()


def chain(service: str, steps: int = 5) -> dict[str, Any]:
    """Calls `service` once for each step, one after the other; says which server calls and what the step before got."""
    blocks = {}
    for number in range(1, steps + 1):
        before = f"<step{number - 1}.body.serial>" if number > 1 else None
        blocks[f"step{number}"] = {
            "type": "http",
            "params": {
                "method": "POST",
                "idempotency_header": "Idempotency-Key",
                "url": f"{service}/step/{number}",
                "body": {"server": "${WEFT_BASE_URL}", "before": before},
            },
        }
    return in_a_row("chain", blocks)
