"""A run of a connector on a whole server: the credential is sent, and is in nothing that is recorded or shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from server.app import build_engine, create_app
from server.settings import Settings
from tests.support.endpoints import Request, answer, http

TOKEN = "8123456:AAF-tele_gram~secret"


@pytest.mark.parametrize("service", ["telegram", "slack", "s3"])
@pytest.mark.parametrize("status", [200, 404])
async def test_the_credential_is_sent_and_not_recorded(tmp_path: Path, service: str, status: int) -> None:
    def play(request: Request) -> bytes:
        told = request.target if service == "telegram" else request.headers["authorization"]
        body = b'{"ok": true, "said": "%s"}' % told.encode()
        return answer(status, body, content_type="application/json")

    operation: dict[str, dict[str, Any]] = {
        "telegram": {"operation": "read_chat", "chat": "5"},
        "slack": {"operation": "find_user", "email": "a@example.org"},
        "s3": {"operation": "get_object", "bucket": "b", "key": "k"},
    }
    settings = Settings(
        db_path=str(tmp_path / "weft.db"),
        secret_key="a secret for tests only",
        secrets={"TOKEN": TOKEN},
        unbound_secrets=True,
        allow_private=("127.0.0.1/32",),
    )
    engine = await build_engine(settings)
    app = create_app(settings, engine)
    transport = httpx.ASGITransport(app=app)
    async with http(play) as server, httpx.AsyncClient(transport=transport, base_url=settings.base_url) as client:
        base = server.url + ("/bot{{credential}}" if service == "telegram" else "")
        params = {**operation[service], "credential": "${TOKEN}", "base_url": base}
        document = {
            "format": "weft/1",
            "name": "told",
            "blocks": {"start": {"type": "start"}, "tell": {"type": f"connector.{service}", "params": params}},
            "edges": [{"source": "start", "target": "tell"}],
        }
        ended = await client.post("/api/runs?wait=30", json={"document": document})
        shown = ended.text
        run = ended.json()["run"]
        for path in (f"/api/runs/{run}", f"/api/runs/{run}/events", f"/api/runs/{run}/nodes/tell"):
            shown += (await client.get(path, headers={"accept": "application/json"})).text
    await engine.close()
    sent = server.seen[0]
    if service == "s3":
        assert "Credential=8123456/" in sent.headers["authorization"]
    else:
        assert TOKEN in sent.target + sent.headers.get("authorization", "")
    assert ended.json()["status"] == ("succeeded" if status == 200 else "failed")
    assert TOKEN not in shown and "tele_gram" not in shown
