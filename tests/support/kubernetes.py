"""The few requests for Jobs that a cluster of Kubernetes answers, on a socket of loopback."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.endpoints import Request, answer, http

_JOBS = re.compile(r"/apis/batch/v1/namespaces/([^/]+)/jobs(?:/([^/?]+))?")
NO_JOB = {"kind": "Status", "message": "not found", "code": 404}


class Cluster:
    """`jobs` by namespace and name. `refuses`: a status for each request to come. `hangs`: that many are not
    answered."""

    def __init__(self) -> None:
        self.jobs: dict[tuple[str, str], dict[str, Any]] = {}
        self.asked: list[str] = []
        self.refuses: list[int] = []
        self.hangs = 0
        self.created_s = 0.0  # when the last one was

    async def answer(self, request: Request) -> bytes:
        if request.target == "/version/":
            return reply(200, {"major": "1", "minor": "31", "gitVersion": "v1.31.0"})
        self.asked.append(request.method)
        if self.hangs:
            self.hangs -= 1
            await asyncio.sleep(600)
        if self.refuses:
            code = self.refuses.pop(0)
            return reply(code, {"kind": "Status", "message": "refused here", "code": code})
        found = _JOBS.fullmatch(request.target.partition("?")[0])
        assert found is not None, request.target
        namespace, name = found.groups()
        if request.method == "POST":
            job = json.loads(request.body)
            at = (namespace, job["metadata"]["name"])
            if at in self.jobs:
                return reply(409, {"kind": "Status", "message": "exists", "code": 409})
            self.jobs[at] = job
            self.created_s = time.monotonic()
            return reply(201, job)
        if (namespace, name) not in self.jobs:
            return reply(404, NO_JOB)
        if request.method == "DELETE":
            assert json.loads(request.body) == {"propagationPolicy": "Background"}
            return reply(200, self.jobs.pop((namespace, name)))
        return reply(200, self.jobs[(namespace, name)])

    def end(self, kind: str, message: str = "") -> None:
        """All Jobs end as Complete or as Failed."""
        for job in self.jobs.values():
            job["status"] = {"conditions": [{"type": kind, "status": "True", "message": message}]}


def reply(status: int, body: Any) -> bytes:
    return answer(status, json.dumps(body).encode(), content_type="application/json")


@asynccontextmanager
async def kubernetes(folder: Path) -> AsyncIterator[tuple[Cluster, Path]]:
    """A cluster, and the file that leads to it (KUBECONFIG)."""
    cluster = Cluster()
    async with http(cluster.answer) as server:
        file = folder / "kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "clusters": [{"name": "here", "cluster": {"server": server.url}}],
            "users": [{"name": "me", "user": {"token": "of-a-test"}}],
        }
        file.write_text(json.dumps(config))
        yield cluster, file
