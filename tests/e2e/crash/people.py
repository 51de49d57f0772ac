"""Those who use the server while it is being killed: one who submits, one who answers, and a follower for each run.

They write down what the server has acknowledged, and nothing else; `verify.py` then asks where it is. None of them
knows when the server is killed: a lost connection means to ask again, as for any client.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.e2e.crash.workload import NOTE, Job
from tests.support.follow import Follower, Transcript
from tests.support.until import until

ASK_AGAIN_S = 0.2
LOOK_FOR_WAITS_S = 0.2
TIMEOUT = httpx.Timeout(20, connect=5)
JSON = {"accept": "application/json"}


@dataclass(frozen=True)
class Press:
    """An answer the server has acknowledged."""

    run: str
    wait: str
    key: str
    action: str
    by: str


@dataclass
class Ledger:
    """Everything that was acknowledged. `runs` by idempotency key; `transcripts` as the followers saw them."""

    runs: dict[str, tuple[str, Job]] = field(default_factory=dict)
    transcripts: dict[str, Transcript] = field(default_factory=dict)
    presses: dict[tuple[str, str], Press] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def job_of(self, run: str) -> Job | None:
        """None while the submission is not acknowledged."""
        return next((job for known, job in self.runs.values() if known == run), None)


class People:
    """Run `submit` and `answer` as tasks; followers are started by `submit`. All end through `finish`."""

    def __init__(self, url: str, jobs: list[Job], choose: random.Random, open_max: int) -> None:
        self.ledger = Ledger()
        self._url = url
        self._jobs = jobs
        self._choose = choose
        self._open_max = open_max
        self._numbers = itertools.count(1)
        self._enough = asyncio.Event()
        self._http = httpx.AsyncClient(
            base_url=url,
            timeout=TIMEOUT,
            limits=httpx.Limits(max_connections=200, max_keepalive_connections=20),
            trust_env=False,
        )
        self._followers: set[asyncio.Task[None]] = set()
        self._follower = Follower(
            self._http, self.ledger.counts, url=lambda: url, busy=(503,), again_s=ASK_AGAIN_S, timeout=TIMEOUT
        )
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, submitters: int = 3) -> None:
        for number in range(submitters):
            self._tasks.add(asyncio.create_task(self._submit_for_ever(), name=f"submitter {number}"))
        self._tasks.add(asyncio.create_task(self._answer_for_ever(), name="answerer"))

    async def submit(self, job: Job) -> str:
        """Until it is acknowledged. Then a follower takes over."""
        key = f"{self._url}:{next(self._numbers)}"
        answer = await self._post_run(job, key)
        assert answer.status_code in (200, 202), answer.text  # 200: an earlier try got through, its answer did not
        self.ledger.counts["submissions whose first answer was lost"] += answer.status_code == 200
        run: str = answer.json()["run"]
        self.ledger.runs[key] = (run, job)
        task = asyncio.create_task(
            self._follower.follow(run, self.ledger.transcripts.setdefault(run, [])), name=f"follower {run}"
        )
        self._followers.add(task)
        task.add_done_callback(self._followers.discard)
        return run

    def check(self) -> None:
        """Raise what any of them has raised so far."""
        for task in [*self._tasks, *self._followers]:
            if task.done():
                task.result()

    async def those_under_way(self, timeout_s: float) -> None:
        """Wait until the runs that are under way now have ended; others may begin meanwhile."""
        before = set(self._followers)
        await until(lambda: all(task.done() for task in before), within_s=timeout_s, meanwhile=self.check)

    async def finish(self, timeout_s: float) -> None:
        """Submit no more; wait for the end of every run. Raises TimeoutError with the runs that did not end."""
        self._enough.set()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while self._followers or len(self._tasks) > 1:
            await asyncio.wait([*self._tasks, *self._followers], timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
            for task in list(self._tasks):
                if task.done():
                    task.result()
                    self._tasks.discard(task)
            if loop.time() > deadline:
                raise TimeoutError([task.get_name() for task in self._followers])
        for key, (run, job) in self.ledger.runs.items():
            again = await self._post_run(job, key)
            assert (again.status_code, again.json()["run"]) == (200, run), "the same key is another run"
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def get(self, path: str) -> Any:
        answer = await self._ask("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def close(self) -> None:
        for task in [*self._tasks, *self._followers]:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._followers, return_exceptions=True)
        await self._http.aclose()

    # --- submitting

    async def _submit_for_ever(self) -> None:
        while not self._enough.is_set():
            if len(self._followers) >= self._open_max:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._enough.wait(), 0.05)
                continue
            await self.submit(self._choose.choice(self._jobs))

    async def _post_run(self, job: Job, key: str) -> httpx.Response:
        body = {"document": job.document, "input": job.input}
        return await self._ask("POST", "/api/runs", body, {"idempotency-key": key})

    # --- answering

    async def _answer_for_ever(self) -> None:
        while True:
            waits = (await self.get("/api/waits?limit=1000"))["waits"]
            for wait in waits:
                job = self.ledger.job_of(wait["run"])
                pressed = (wait["run"], wait["id"]) in self.ledger.presses
                if job is not None and wait["kind"] == "approval" and not pressed:
                    await self.press(wait, job.actions[wait["key"]])
                elif wait["kind"] == "attention":  # lost too often, by chance: nothing here does harm twice
                    await self._ask("POST", httpx.URL(wait["link"]).path, {"action": "retry", "by": "Eve"})
            await asyncio.sleep(LOOK_FOR_WAITS_S)

    async def press(self, wait: dict[str, Any], action: str) -> None:
        """Answer, then press the other button: it must be told who was first, and when."""
        by = f"Ada {len(self.ledger.presses) + 1}"
        path = httpx.URL(wait["link"]).path
        answer = await self._ask("POST", path, {"action": action, "by": by, "fields": {"note": NOTE}})
        if answer.status_code == 409:  # an earlier try got through, its answer did not
            self.ledger.counts["answers whose first answer was lost"] += 1
            assert answer.json()["answered_by"] == by, answer.text
        else:
            assert (answer.status_code, answer.json()["answered_by"]) == (200, by), answer.text
        answered_at_ms = answer.json()["answered_at_ms"]
        self.ledger.presses[wait["run"], wait["id"]] = Press(wait["run"], wait["id"], wait["key"], action, by)
        other = next(name for name in wait["actions"] if name != action)
        late = await self._ask("POST", path, {"action": other, "by": "Bob"})
        told = (late.status_code, late.json().get("answered_by"), late.json().get("answered_at_ms"))
        assert told == (409, by, answered_at_ms), late.text

    # --- asking

    async def _ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        """Again and again until something answers. Nothing but a lost connection is a reason to ask again, or 503: a
        server that stops says so where it cannot wait for the end of a request."""
        while True:
            try:
                answer = await self._http.request(method, path, json=body, headers={**JSON, **(headers or {})})
                if answer.status_code != 503:
                    return answer
                self.ledger.counts["requests a stopping server gave up"] += 1
            except httpx.TransportError:
                self.ledger.counts["requests lost"] += 1
            await asyncio.sleep(ASK_AGAIN_S)
