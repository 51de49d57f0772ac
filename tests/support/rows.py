"""Short ways to say what the store is given."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from executor.kernel.store.run_rows import Append, NewRun, Placement, Record, RunRow
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.waits import WaitRow

T0 = 1_700_000_000_000  # every test starts at this time
LEASE_MS = 15_000
LONG_AFTER = T0 + 86_400_000  # a day: nothing that a test stored was used lately


def record(type: str = "node.succeeded", node: str | None = "draft", at_ms: int = T0, **fields: Any) -> Record:
    return Record(seq=0, at_ms=at_ms, type=type, node=node, path=fields.pop("path", ""), attempt=1, **fields)


def new_run(id: str, now_ms: int = T0, workflow: str = "expense", **fields: Any) -> NewRun:
    return NewRun(
        id=id,
        workflow=workflow,
        version=1,
        plan_hash=fields.pop("plan_hash", "plan-1"),
        plan=fields.pop("plan", b'{"plan":1}'),
        input=fields.pop("input", b'{"amount":5}'),
        records=fields.pop("records", (record("run.started", None),)),
        now_ms=now_ms,
        **fields,
    )


def placed(id: str, now_ms: int = T0, **placement: object) -> NewRun:
    return replace(new_run(id, now_ms), placement=Placement(**placement))  # type: ignore[arg-type]  # by name, as a caller says


def change(run: RunRow, *records: Record, **fields: Any) -> Append:
    """An append of the run's present owner; `run` is the row as the owner knows it."""
    return Append(
        run_id=run.id,
        epoch=fields.pop("epoch", run.epoch),
        expected_seq=fields.pop("expected_seq", run.seq),
        records=records,
        now_ms=fields.pop("now_ms", T0),
        **fields,
    )


def wait(run_id: str, id: str = "ask!1", **fields: Any) -> WaitRow:
    return WaitRow(
        run_id=run_id,
        id=id,
        node="ask",
        path="",
        kind=fields.pop("kind", "approval"),
        token_hash=fields.pop("token_hash", f"hash of {run_id}/{id}"),
        request=b'{"title":"OK?"}',
        schema=None,
        status="pending",
        opened_at_ms=fields.pop("opened_at_ms", T0),
        **fields,
    )


async def row(store: Store, run_id: str) -> RunRow:
    found = await store.get_run(run_id)
    assert found is not None
    return found


async def owned_run(store: Store, id: str = "run-1", owner: str = "w1", now_ms: int = T0) -> RunRow:
    """A new run, claimed by `owner`."""
    await store.create_run(new_run(id, now_ms))
    (run,) = await store.claim(owner, now_ms, LEASE_MS, run_id=id)
    return run


async def finish(store: Store, run: RunRow, status: Any = "succeeded", now_ms: int = T0) -> None:
    current = await row(store, run.id)
    end = record("run.finished", None)
    root = current.root_id
    await store.append(change(current, end, status=status, output=b'"done"', finished=True, now_ms=now_ms, root=root))
