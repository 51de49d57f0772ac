"""A real server with a token, and some of everything that an address can name: runs that ended and runs that wait, in
each way there is; workflows, drafts, schedules, webhooks. What ends or deletes things has things of its own, so that
the other routes do not find everything gone."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.documents import connector, document
from tests.support.durable_stock import stock
from tests.support.server import SyncServerProcess

TOKEN = "a-token-of-the-server"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
TIMEOUT_S = 120  # of a machine that is busy with other things
Document = dict[str, Any]


def beside(name: str, blocks: dict[str, Any]) -> Document:
    """Every block follows the start."""
    return document(name, *(f"start {block}" for block in blocks), blocks=blocks)


_FIELDS = {"type": "object", "properties": {"n": {"type": "integer"}, "text": {"type": "string"}}}
ENDING = beside("ending", {"hello": {"type": "set", "params": {"value": "<input>"}}})
ASKING = beside(
    "asking",
    {
        "ask": {"type": "approval", "params": {"title": "?", "fields": _FIELDS, "actions": ["yes", "no"]}},
        "form": {"type": "form", "params": {"title": "?", "fields": _FIELDS}},
        "call": {"type": "callback", "params": {"title": "?"}},
        "go": {"type": "signal", "params": {"name": "go"}},
        "later": {"type": "wait", "params": {"seconds": 86_400}},
        "child": {"type": "run_workflow", "params": {"workflow": "ending", "version": 1, "input": {}}},
    },
)
ASKING_2 = {**ASKING, "description": "What runs of the first version can move to."}
DOCUMENTS = (ENDING, ASKING)

CONNECTION = {
    "kind": "oauth2_code", "hosts": ["api.example.com"], "client_id": "weft", "secret": "secret of the client",
    "authorize_url": "https://id.example.com/authorize", "token_url": "https://id.example.com/token",
}  # fmt: skip


class World:
    """`known`: what stands for a parameter of an operation, by the beginning of its label or of its path, and the name
    of the parameter. `version`: of `asking`, the newest."""

    def __init__(self, server: SyncServerProcess) -> None:
        self.server = server
        self.url = server.url
        self.version = 0
        self.ended: list[str] = []
        self.known: dict[tuple[str, str], list[str]] = {}
        with httpx.Client(base_url=server.url, headers=BEARER, timeout=TIMEOUT_S) as client:
            self._fill(client)

    def values(self, label: str, name: str) -> list[str]:
        """What exists for `{name}` in the address of `GET /api/…`; nothing for parameters that are free."""
        _, _, path = label.partition(" ")
        found = [
            (len(start), values)
            for (start, parameter), values in self.known.items()
            if parameter == name and (path.startswith(start) or label.startswith(start))
        ]
        return max(found)[1] if found else []

    def _fill(self, client: httpx.Client) -> None:
        for one in DOCUMENTS:
            saved = client.post("/api/workflows", json=one)
            assert saved.status_code in (200, 201), saved.text
        old = saved.json()["version"]
        moving = [self._run(client, {"version": old}, "waiting", "/api/workflows/asking/runs") for _ in range(2)]
        self.version = client.post("/api/workflows", json=ASKING_2).json()["version"]
        self.ended = ended = [self._run(client, {"document": ENDING}, "succeeded") for _ in range(2)]
        gone = self._run(client, {"document": ENDING}, "succeeded")
        open_ = [self._run(client, {"document": ASKING}, "waiting") for _ in range(8)]
        stocked = {"document": stock.document(), "input": {"goods": ["tea"]}}
        stocks = [self._run(client, stocked, "waiting") for _ in range(2)]
        waiting, doomed, asked, called = open_[:3], open_[3:5], open_[5:7], open_[7:]
        drafts = [client.post("/api/drafts", json={"document": one}).json()["id"] for one in DOCUMENTS * 3]
        for name, auth in (("0", "none"), ("1", "none"), ("-signed", "hmac"), ("-gone", "none")):
            daily = {"workflow": "ending", "version": 1, "cron": "0 0 1 1 *"}
            assert client.put(f"/api/schedules/daily{name}", json=daily).status_code in (200, 201)
            hook = {"workflow": "ending", "version": 1, "auth": auth}
            assert client.put(f"/api/webhooks/hook{name}", json=hook).status_code in (200, 201)
        for name in ("tea", "gone"):
            added = client.put(f"/api/connectors/{name}", json={"document": connector(name)})
            assert added.status_code in (200, 201), added.text
        for name in ("NEW", "GONE"):
            assert client.put(f"/api/secrets/{name}", json={"value": "a value of a secret"}).status_code in (200, 201)
        for name in ("new", "gone"):
            assert client.put(f"/api/connections/{name}", json=CONNECTION).status_code in (200, 201)
        for name in ("books", "gone"):
            made = client.post("/api/knowledge", json={"name": name, "model": "local:m"})
            assert made.status_code in (201, 409), made.text
        book = client.put("/api/knowledge/books/documents", json={"name": "book", "text": "A text."})
        assert book.status_code == 202, book.text
        for user in ("ada", "bob"):
            assert client.post("/api/users", json={"id": user, "role": "viewer"}).status_code in (201, 409)
        made = client.post("/api/tokens", json={"name": "ci", "role": "viewer"})
        assert made.status_code == 201, made.text
        tokens = [one["id"] for one in client.get("/api/tokens").json()["tokens"]]
        raw = {"content-type": "application/octet-stream"}
        file = client.post("/api/files", params={"name": "a.csv"}, content=b"a,b\n1,2\n", headers=raw)
        assert file.status_code == 201, file.text
        deletion = client.post("/api/upkeep/gc", json={"dry_run": True})
        assert deletion.status_code == 202, deletion.text
        self.known = {
            ("/api/upkeep/gc/", "id"): [deletion.json()["job"]["id"]],
            ("/api/knowledge/", "collection"): ["books"],
            ("DELETE /api/knowledge/{collection}", "collection"): ["gone"],
            ("DELETE /api/knowledge/{collection}/documents", "collection"): ["books"],
            ("/api/files/", "id"): [file.json()["id"]],
            ("/api/tokens/", "id"): tokens,
            ("/api/workflows/", "name"): ["ending", "asking"],
            ("/api/drafts/", "id"): drafts[2:],
            ("DELETE /api/drafts/", "id"): drafts[:2],
            ("/api/runs/", "id"): ended + waiting,
            ("/api/runs/", "other"): ended + waiting,
            ("/api/runs/", "name"): ["go"],
            ("/api/runs/{id}/lane", "id"): stocks,
            ("/api/runs/{id}/queries/", "id"): stocks,
            ("/api/runs/{id}/queries/", "name"): ["count"],
            ("/api/runs/{id}/updates/", "id"): stocks,
            ("/api/runs/{id}/updates/", "name"): ["add"],
            ("DELETE /api/runs/{id}", "id"): [gone, gone, waiting[0]],
            ("/api/runs/{id}/nodes/", "id"): ended,
            ("/api/runs/{id}/nodes/", "key"): list(ENDING["blocks"]),
            ("/api/runs/{id}/waits/", "id"): waiting,
            ("/api/runs/{id}/waits/", "key"): ["ask", "form", "call", "go"],
            ("POST /api/runs/{id}/waits/", "key"): ["ask"],
            ("DELETE /api/runs/{id}/waits/", "id"): doomed,
            ("DELETE /api/runs/{id}/waits/", "key"): ["ask", "form", "call"],
            ("POST /api/runs/{id}/cancel", "id"): doomed,
            ("POST /api/runs/{id}/signals/", "id"): waiting,
            ("POST /api/runs/{id}/rerun", "id"): ended,
            ("GET /api/runs/{id}/continuation", "id"): ended,
            ("POST /api/runs/{id}/migrate", "id"): moving,
            ("/resume/", "token"): self._tokens(client, asked[:1], "approval", "form"),
            ("/api/resume/", "token"): self._tokens(client, asked[1:], "approval", "form"),
            ("/callbacks/", "token"): self._tokens(client, called + asked, "webhook"),
            ("/api/schedules/", "id"): ["daily0", "daily1"],
            ("DELETE /api/schedules/", "id"): ["daily-gone"],
            ("/api/webhooks/", "id"): ["hook0", "hook1"],
            ("DELETE /api/webhooks/", "id"): ["hook-gone"],
            ("POST /api/webhooks/{id}/rotate", "id"): ["hook-signed"],
            ("/hooks/", "id"): ["hook0", "hook1"],
            ("/api/connectors/", "service"): ["tea"],
            ("DELETE /api/connectors/", "service"): ["gone"],
            ("/api/secrets/", "name"): ["NEW"],
            ("DELETE /api/secrets/", "name"): ["GONE"],
            ("/api/connections/", "name"): ["new"],
            ("DELETE /api/connections/", "name"): ["gone"],
            ("/api/users/", "id"): ["ada"],
            ("DELETE /api/users/", "id"): ["bob"],
            ("DELETE /api/users/{id}/sessions", "id"): ["ada"],
        }

    def _tokens(self, client: httpx.Client, runs: list[str], *kinds: str) -> list[str]:
        found = [wait for run in runs for wait in client.get("/api/waits", params={"run": run}).json()["waits"]]
        return [wait["link"].rpartition("/")[2] for wait in found if wait["kind"] in kinds]

    def _run(self, client: httpx.Client, body: Document, status: str, path: str = "/api/runs") -> str:
        run = client.post(f"{path}?wait=60", json={"input": {}, **body}).json()
        assert run["status"] == status, run
        return str(run["run"])
