"""A workflow of yours, in a process that is killed at each of its commits, before and after it.

    outside = testing.Outside(tmp_path)
    report = await testing.crash_everywhere(document, {"order": 7}, blocks=[charge], answers={"ask": "approve"})

It is run once without a crash. Then, for each commit, a process of its own is killed there (SIGKILL), and another one
opens the same database, a SQLite file, and runs to the end. Nothing is simulated but the time: timers are due at once.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

import orjson
from msgspec import Struct

from executor.blocks.llm.base import Model
from executor.blocks.llm.endpoints import endpoints_of
from executor.blocks.types.functions import blocks_of
from executor.kernel.handler.base import Block
from executor.open.testing.outside import Effect, Outside
from executor.open.testing.play import Answers
from executor.open.testing.process import BROKEN, DATABASE, DONE, ERROR_FILE, Process, Result, Workflow, in_child
from executor.open.testing.scripted_http import ScriptedHttp

COMMITS_MAX: Final = 1_000

When = Literal["before", "after"]
Kind = Literal["ends_differently", "effect_repeated", "effect_missing", "step_repeated", "did_not_end"]


class Problem(Struct, frozen=True):
    """The consequence of a crash `when` commit `commit`. `block`, `idempotency_key`: of an effect that happened
    again."""

    commit: int
    when: When
    kind: Kind
    message: str
    block: str | None = None
    idempotency_key: str | None = None

    def __str__(self) -> str:
        return f"killed {self.when} commit {self.commit}: {self.message}"


class CrashReport(Struct, frozen=True):
    """`commits` of the run, up to the last at which a process was killed; `crashes`: processes that were killed.
    `status`, `output` and `error` (code and message) of the run without a crash. `asked`: blocks for which a person had
    to decide if they may run again, because it was unknown how far they had got: a second effect of those is not a
    problem, because the answer was to retry."""

    commits: int
    crashes: int
    status: str
    output: Any
    error: str | None
    asked: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        head = f"{self.crashes} crashes at {self.commits} commits, {len(self.problems)} problems"
        return "\n".join([head, *map(str, self.problems)])


async def crash_everywhere(
    document: Mapping[str, Any] | Any,
    input: Any = None,
    *,
    blocks: Iterable[Block] = (),
    functions: Mapping[str, Callable[..., Any]] | None = None,
    answers: Answers | None = None,
    outside: Outside | None = None,
    env: Mapping[str, str] | None = None,
    secrets: Iterable[str] = (),
    models: Mapping[str, str | Model] | None = None,
    prices: Mapping[str, str] | None = None,
    allow_private: Iterable[str] = (),
    http: ScriptedHttp | None = None,
    compare: Callable[[dict[str, Any]], Any] | None = None,
    every: int = 1,
    check: bool = True,
) -> CrashReport:
    """Kill the process of this workflow at each commit, recover, and compare with a run without a crash:

    - the run ends alike: status, output, variables, and the status of each node. `compare` gets these as a dict and
      returns the part to compare, if something in them differs from run to run;
    - no node that had succeeded is run again;
    - each effect happened as often: those recorded in `outside`, and requests that may change something.

    `document` may be a workflow in Python: its steps are known. `answers`: see weft.testing.finish. Blocks and
    functions may be anything, also local ones. Their state in memory is lost with the process, as in a real crash;
    their effects must be outside: in `outside`, a file, a server. `http` answers all requests, in each process anew.
    `every`: at each such commit only, for a long workflow. Raises AssertionError with the problems, unless `check` is
    off, and if the run without a crash does not end; ValueError if `every` is below 1."""
    if every < 1:
        raise ValueError(f"every must be 1 or more, not {every}")
    with TemporaryDirectory(prefix="weft-crashes-", ignore_cleanup_errors=True) as folder:
        workflow = Workflow(
            document=document,
            input=input,
            blocks=[*blocks_of([document], functions), *blocks],
            answers=dict(answers or {}),
            env=dict(env or {}),
            secrets=tuple(secrets),
            endpoints=endpoints_of(models, prices),
            allow_private=tuple(allow_private),
            outside=outside or Outside(folder),
            http=http,
        )
        report = await _Crashes(workflow, Path(folder), compare or (lambda end: end)).report(every)
    if check and not report.ok:
        raise AssertionError(str(report))
    return report


class _Crashes:
    def __init__(self, workflow: Workflow, folder: Path, compare: Callable[[dict[str, Any]], Any]) -> None:
        self._workflow = workflow
        self._folder = folder
        self._compare = compare
        self._problems: list[Problem] = []
        self._asked: set[str] = set()

    async def report(self, every: int) -> CrashReport:
        await in_child(Process(self._workflow, self._folder).make, self._folder)
        self._workflow.outside.clear()
        first = await self._played(self._new_folder("first"))
        expected, effects = first.end(), self._effects()
        self._asked.clear()
        crashes = commits = 0
        begins: tuple[tuple[When, int], ...] = (("before", 1), ("after", (every + 1) // 2))
        for when, begin in begins:
            for commit in range(begin, COMMITS_MAX + every - 1, every):
                self._workflow.outside.clear()
                folder = self._new_folder(f"{when}-{commit}")
                if not await self._killed(folder, commit, when):
                    break
                commits, crashes = max(commits, commit), crashes + 1
                await self._recovered(folder, commit, when, expected, effects)
            else:
                raise AssertionError(f"the run has {COMMITS_MAX:,} commits or more: test a part of the workflow")
        self._workflow.outside.clear()
        asked = tuple(sorted(self._asked))
        return CrashReport(commits, crashes, first.status, first.output, first.error, asked, tuple(self._problems))

    def _new_folder(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir()
        made = self._folder / DATABASE
        if made.exists():
            shutil.copy(made, folder / DATABASE)
        return folder

    async def _killed(self, folder: Path, commit: int, when: When) -> bool:
        """Return False if the run had ended before this commit. Raises AssertionError if the process ended in another
        way."""
        code = await in_child(Process(self._workflow, folder, fault=killer(commit, when)).play, folder)
        if code not in (DONE, -signal.SIGKILL):
            raise AssertionError(f"before commit {commit}: {_why(code, folder)}")
        return code != DONE

    async def _played(self, folder: Path) -> Result:
        code = await in_child(Process(self._workflow, folder).play, folder)
        if code != DONE:
            raise AssertionError(_why(code, folder))
        return Result.read(folder)

    async def _recovered(
        self, folder: Path, commit: int, when: When, expected: dict[str, Any], effects: Counter[bytes]
    ) -> None:
        problem = partial(Problem, commit, when)
        try:
            result = await self._played(folder)
        except AssertionError as error:
            self._problems.append(problem("did_not_end", f"the run does not end afterwards: {error}"))
            return
        self._asked |= set(result.asked)
        end = result.end()
        if self._compare(end) != self._compare(expected):
            self._problems.append(problem("ends_differently", _difference(expected, end)))
        for key in result.repeated:
            message = f"{key} had succeeded and was run again"
            self._problems.append(problem("step_repeated", message, key.partition("@")[0]))
        found = self._effects(result.run)
        for what, count in (found - effects).items():
            effect = self._last(what, result.run)
            by = effect.by
            if by is not None and by.block in result.asked:
                continue
            times = f"{count + effects[what]} times instead of {effects[what]}"
            shown = f"{'a block' if by is None else f'block {by.block!r}'} had an effect {times}: {what.decode()[:300]}"
            shown += "" if by is None else f" (idempotency key {by.idempotency_key})"
            names = (None, None) if by is None else (by.block, by.idempotency_key)
            self._problems.append(problem("effect_repeated", shown, *names))
        for what, count in (effects - found).items():
            message = f"an effect is missing, {count} of {effects[what]}: {what.decode()[:300]}"
            self._problems.append(problem("effect_missing", message))

    def _effects(self, run: str = "") -> Counter[bytes]:
        return Counter(_text(effect.what, run or _run_of(effect)) for effect in self._workflow.outside.effects)

    def _last(self, what: bytes, run: str) -> Effect:
        return [effect for effect in self._workflow.outside.effects if _text(effect.what, run) == what][-1]


def killer(commit: int, when: When) -> Callable[[str], None]:
    passed = 0

    def point(name: str) -> None:
        nonlocal passed
        if name.endswith(f".{when}_commit"):
            passed += 1
            if passed == commit:
                os.kill(os.getpid(), signal.SIGKILL)

    return point


def _why(code: int, folder: Path) -> str:
    return (folder / ERROR_FILE).read_text() if code == BROKEN else f"the process ended with {code}"


def _run_of(effect: Effect) -> str:
    return "" if effect.by is None else effect.by.idempotency_key.partition(":")[0]


def _text(what: Any, run: str) -> bytes:
    """Encode an effect, with ids of runs replaced: equal for equal effects of different runs."""
    data = orjson.dumps(what, option=orjson.OPT_SORT_KEYS)
    return data.replace(run.encode(), b"<run>") if run else data


def _difference(expected: Mapping[str, Any], end: Mapping[str, Any]) -> str:
    parts = [
        f"{name} is {str(end[name])[:200]} instead of {str(expected[name])[:200]}"
        for name in expected
        if end[name] != expected[name]
    ]
    return f"the run ends differently: {'; '.join(parts) or 'see compare'}"
