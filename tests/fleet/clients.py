"""Those who use the fleet: they submit, answer twice at once and follow, each at any of its servers, and keep what they
were told. They know of no fault: a lost connection, a request that takes too long or a 503 means to ask again."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from typing import Any

import httpx

from tests.fleet.workload import Job
from tests.support.follow import Follower, Transcript

AGAIN_S = 0.3
LOOK_S = 0.5
JSON = {"accept": "application/json"}
BUSY = (429, 502, 503, 504, 507)


class Clients:
    """`runs` by id, `keys` of them by idempotency key, `transcripts` of those that were followed, `winners` by (run,
    wait): whom each of the two who answered was told of; `deliveries` that were taken."""

    def __init__(self, urls: list[str], choose: random.Random) -> None:
        self._urls = urls
        self._choose = choose
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(15, connect=5), limits=httpx.Limits(max_connections=200), trust_env=False
        )
        self._numbers = itertools.count(1)
        self.keys: dict[str, str] = {}
        self.runs: dict[str, Job] = {}
        self.transcripts: dict[str, Transcript] = {}
        self.winners: dict[tuple[str, str], set[str]] = {}
        self.deliveries: list[str] = []
        self.counts: Counter[str] = Counter()
        self._followers: set[asyncio.Task[None]] = set()
        self._follower = Follower(
            self._http,
            self.counts,
            url=lambda: self._choose.choice(self._urls),
            busy=BUSY,
            again_s=AGAIN_S,
            timeout=httpx.Timeout(30),
        )

    async def submit(self, job: Job, follow: bool) -> None:
        key = f"key-{next(self._numbers)}"
        answer = await self._ask("POST", "/api/runs", {"document": job.document, "input": job.input}, key)
        assert answer.status_code in (200, 202), answer.text
        run: str = answer.json()["run"]
        self.keys[key], self.runs[run] = run, job
        if follow:
            task = asyncio.create_task(
                self._follower.follow(run, self.transcripts.setdefault(run, [])), name=f"follower of {run}"
            )
            self._followers.add(task)
            task.add_done_callback(self._ended_following)

    async def offer_webhook(self, document: dict[str, Any]) -> None:
        saved = await self._ask("POST", "/api/workflows", {"document": document})
        assert saved.is_success, saved.text
        spec = {"workflow": document["name"], "auth": "none", "trigger": "start"}
        put = await self._ask("PUT", "/api/webhooks/hook", spec)
        assert put.is_success, put.text

    async def offer_schedules(self, document: dict[str, Any], ids: list[str], cron: str) -> None:
        saved = await self._ask("POST", "/api/workflows", {"document": document})
        assert saved.is_success, saved.text
        for id in ids:
            spec = {"workflow": document["name"], "cron": cron, "overlap": "allow"}
            put = await self._ask("PUT", f"/api/schedules/{id}", spec)
            assert put.is_success, put.text

    async def deliver(self, times: int) -> None:
        """One delivery, sent so often at once: the first is taken, copies are refused."""
        id = f"delivery-{next(self._numbers)}"
        told = await asyncio.gather(*(self._ask("POST", "/hooks/hook", {}, delivery=id) for _ in range(times)))
        self.deliveries.append(id)
        self.counts["copies of deliveries"] += times - 1
        for answer in told:
            assert answer.status_code in (202, 409), answer.text

    async def answer_for_ever(self) -> None:
        while True:
            answer = await self._ask("GET", "/api/waits?limit=1000")
            assert answer.status_code == 200, answer.text
            waits = answer.json()["waits"]
            await asyncio.gather(*(self._answer(wait) for wait in waits[:20]))
            await asyncio.sleep(LOOK_S)

    async def open_runs(self) -> list[str]:
        found = []
        for status in ("queued", "running", "waiting"):
            answer = await self._ask("GET", f"/api/runs?status={status}&limit=200")
            assert answer.status_code == 200, answer.text
            found += [run["id"] for run in answer.json()["runs"]]
        return found

    async def followed(self, timeout_s: float) -> list[str]:
        """Names of the followers that have not seen the end of their run."""
        if self._followers:
            await asyncio.wait(list(self._followers), timeout=timeout_s)
        return [task.get_name() for task in self._followers]

    async def submit_all_again(self) -> list[str]:
        """Keys that lead to another run now."""
        wrong = []
        for key, run in self.keys.items():
            job = self.runs[run]
            again = await self._ask("POST", "/api/runs", {"document": job.document, "input": job.input}, key)
            if (again.status_code, again.json().get("run")) != (200, run):
                wrong.append(f"{key}: {run}, then {again.status_code} {again.text[:200]}")
        return wrong

    async def close(self) -> None:
        for task in self._followers:
            task.cancel()
        await asyncio.gather(*self._followers, return_exceptions=True)
        await self._http.aclose()

    def _ended_following(self, task: asyncio.Task[None]) -> None:
        self._followers.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.counts[f"followers that failed: {error!r}"] += 1

    async def _answer(self, wait: dict[str, Any]) -> None:
        """Two at once, at any servers: both must be told of the same winner."""
        if wait["link"] is None:  # a timer
            return
        path = httpx.URL(wait["link"]).path
        if wait["kind"] == "attention":  # its attempts were lost too often, by chance
            self.counts["attention"] += 1
            await self._ask("POST", path, {"action": "retry", "by": "Eve"})
            return
        if wait["kind"] != "approval":
            return
        both = [("approve", f"Ada {wait['id']}"), ("reject", f"Bob {wait['id']}")]
        told = await asyncio.gather(*(self._ask("POST", path, {"action": action, "by": by}) for action, by in both))
        for answer in told:
            assert answer.status_code in (200, 409), answer.text
            self.winners.setdefault((wait["run"], wait["id"]), set()).add(answer.json()["answered_by"])

    async def _ask(
        self, method: str, path: str, body: Any = None, key: str | None = None, delivery: str | None = None
    ) -> httpx.Response:
        """At any server, until one answers."""
        named = {"idempotency-key": key, "x-weft-delivery": delivery}
        headers = {**JSON, **{name: value for name, value in named.items() if value is not None}}
        while True:
            try:
                url = self._choose.choice(self._urls) + path
                answer = await self._http.request(method, url, json=body, headers=headers)
                if answer.status_code not in BUSY:
                    return answer
                self.counts[f"answered {answer.status_code}"] += 1
            except httpx.TransportError as error:
                self.counts[type(error).__name__] += 1
            await asyncio.sleep(AGAIN_S * self._choose.uniform(0.5, 1.5))
