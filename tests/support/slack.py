"""A stand-in of Slack on 127.0.0.1: it lists channels in pages, and takes messages."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.endpoints import Request, Server, answer, beside, http

TOKEN = "xoxb-of-a-test-1"
PAGE = 3
CHANNELS = ("general", "random", "orders", "orders-eu", "support", "incidents", "lunch")


@dataclass
class Slack:
    """`error`: what every request is answered, in place of a result; `sent`: the messages; `tokens`: those it takes."""

    server: Server
    error: str = ""
    sent: list[dict[str, Any]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=lambda: {TOKEN})

    @property
    def url(self) -> str:
        return f"{self.server.url}/api"

    def environ(self, folder: Path) -> dict[str, str]:
        """Return the settings of a server whose connector of Slack asks this one: its document is in the folder."""
        document = json.loads(files("executor.blocks.connectors").joinpath("services", "slack.json").read_bytes())
        folder.mkdir()
        (folder / "slack.json").write_text(json.dumps({**document, "base_url": self.url}), encoding="utf-8")
        return {"WEFT_CONNECTORS": str(folder), "WEFT_ALLOW_PRIVATE": self.server.place}

    def reply(self, request: Request) -> dict[str, Any]:
        url = urlsplit(request.target)
        if self.error:
            return {"ok": False, "error": self.error}
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return {"ok": False, "error": "invalid_auth"}
        match url.path.removeprefix("/api"):
            case "/auth.test":
                return {"ok": True, "user": "weft", "team": "Tea House"}
            case "/conversations.list":
                start = int(parse_qs(url.query).get("cursor", ["0"])[0])
                end = start + PAGE
                found = [{"id": f"C{n:03}", "name": name} for n, name in enumerate(CHANNELS)][start:end]
                cursor = str(end) if end < len(CHANNELS) else ""
                return {"ok": True, "channels": found, "response_metadata": {"next_cursor": cursor}}
            case "/chat.postMessage":
                self.sent.append(json.loads(request.body))
                return {"ok": True, "channel": self.sent[-1]["channel"], "ts": "1503435956.000247"}
        return {"ok": False, "error": "unknown_method"}


@asynccontextmanager
async def slack() -> AsyncIterator[Slack]:
    async with http(lambda request: _answer(made, request)) as server:
        made = Slack(server)
        yield made


def _answer(made: Slack, request: Request) -> bytes:
    return answer(200, json.dumps(made.reply(request)).encode(), content_type="application/json")


@contextmanager
def slack_beside() -> Iterator[Slack]:
    with beside(slack()) as made:
        yield made
