"""A real server with a token, and one of everything that an address can name: runs that ended and runs that wait, in
each way there is; workflows, drafts, schedules, webhooks."""

from __future__ import annotations

from typing import Any

import httpx

from tests.e2e.conftest import ServerProcess

TOKEN = "a-token-of-the-server"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
Document = dict[str, Any]


def document(name: str, blocks: dict[str, Any], **more: Any) -> Document:
    """Every block hangs on the start."""
    edges = [{"source": "start", "target": block} for block in blocks]
    return {"format": "weft/1", "name": name, "blocks": {"start": {"type": "start"}, **blocks}, "edges": edges, **more}


_FIELDS = {"type": "object", "properties": {"n": {"type": "integer"}, "text": {"type": "string"}}}
ENDING = document("ending", {"hello": {"type": "set", "params": {"value": "<input>"}}})
ASKING = document(
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
DOCUMENTS = (ENDING, ASKING)


class World:
    """`known`: what stands for a parameter of a path, by the beginning of the path and the name of the parameter."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.url = server.url
        self.ended: list[str] = []
        self.known: dict[tuple[str, str], list[str]] = {}
        with httpx.Client(base_url=server.url, headers=BEARER, timeout=30) as client:
            self._fill(client)

    def values(self, path: str, name: str) -> list[str]:
        """What exists for `{name}` in an address; nothing for parameters that are free."""
        found = [
            (len(start), v)
            for (start, parameter), v in self.known.items()
            if parameter == name and path.startswith(start)
        ]
        return max(found)[1] if found else []

    def _fill(self, client: httpx.Client) -> None:
        for one in DOCUMENTS:
            assert client.post("/api/workflows", json=one).status_code in (200, 201)
        ended = [self._run(client, ENDING, "succeeded") for _ in range(2)]
        waiting = [self._run(client, ASKING, "waiting") for _ in range(4)]
        self.ended = ended
        drafts = [client.post("/api/drafts", json={"document": one}).json()["id"] for one in DOCUMENTS * 2]
        for n in range(2):
            daily = {"workflow": "ending", "version": 1, "cron": "0 0 1 1 *"}
            assert client.put(f"/api/schedules/daily{n}", json=daily).status_code in (200, 201)
            opened = {"workflow": "ending", "version": 1, "auth": "none"}
            assert client.put(f"/api/webhooks/hook{n}", json=opened).status_code in (200, 201)
        waits = [wait for run in waiting for wait in client.get("/api/waits", params={"run": run}).json()["waits"]]
        links = {kind: [w["link"].rpartition("/")[2] for w in waits if w["kind"] == kind] for kind in _LINKED}
        self.known = {
            ("/api/workflows/", "name"): ["ending", "asking"],
            ("/api/drafts/", "id"): drafts,
            ("/api/runs/", "id"): ended + waiting,
            ("/api/runs/", "other"): ended + waiting,
            ("/api/runs/", "name"): ["go"],
            ("/api/runs/", "key"): [*ENDING["blocks"], *ASKING["blocks"]],
            ("/api/runs/{id}/waits/", "key"): [*(wait["id"] for wait in waits), "ask"],
            ("/resume/", "token"): links["approval"] + links["form"],
            ("/api/resume/", "token"): links["approval"] + links["form"],
            ("/callbacks/", "token"): links["webhook"],
            ("/api/schedules/", "id"): ["daily0", "daily1"],
            ("/api/webhooks/", "id"): ["hook0", "hook1"],
            ("/hooks/", "id"): ["hook0", "hook1"],
        }

    def _run(self, client: httpx.Client, document: Document, status: str) -> str:
        run = client.post("/api/runs?wait=30", json={"document": document, "input": {}}).json()
        assert run["status"] == status, run
        return str(run["run"])


_LINKED = ("approval", "form", "webhook")
