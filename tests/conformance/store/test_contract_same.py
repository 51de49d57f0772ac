"""Both backends do the same: one seeded random story told to the model store and to SQLite gives the same replies."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from executor.errors import WeftError
from executor.kernel.store.run_rows import EventFilter
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.outbox import NotificationRow, NotificationStatus
from executor.kernel.store.topics.snapshots import CheckpointRow
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.waits import WaitUpdate
from tests.support.model_store.store import ModelStore
from tests.support.rows import LEASE_MS, T0, change, new_run, record, wait

STEPS = 300
RUN_IDS = ["a", "b", "c", "d"]


@pytest.mark.parametrize("seed", range(12))
async def test_a_random_story_has_one_ending(seed: int, tmp_path: Path) -> None:
    endings = []
    for store in (ModelStore(), SQLiteStore(tmp_path / "weft.db")):
        await store.open()
        endings.append(await tell(store, random.Random(seed)))
        await store.close()
    for step, (in_model, in_sqlite) in enumerate(zip(*endings, strict=True)):
        assert in_model == in_sqlite, f"seed {seed}, step {step}"


async def tell(store: Store, chance: random.Random) -> list[Any]:
    """Every reply, in order. Draws from `chance` never depend on a reply, so both stores hear the same story."""
    replies: list[Any] = []
    now = T0
    for step in range(STEPS):
        now += chance.randrange(4)
        action = chance.randrange(17)
        run_id = chance.choice(RUN_IDS)
        numbers = [chance.randrange(3) for _ in range(6)]
        try:
            replies.append((action, await act(store, action, run_id, numbers, now, step)))
        except WeftError as error:
            replies.append((action, type(error).__name__))
    for run_id in RUN_IDS:
        replies.append(await store.get_run(run_id))
        replies.append(await store.read_events(run_id))
        replies.append(await store.read_inbox(run_id))
        replies.append(await store.unconsumed_signals(run_id))
        replies.append([await store.get_checkpoint(run_id, f"n{number}") for number in range(3)])
        replies.append(await store.find_events(run_id, EventFilter(node="n1", after=2, limit=3)))
    replies.append(await store.list_waits(None))
    replies.append(await store.list_waits(None, workflow="expense", kind="approval", before=("a", "ask!1")))
    replies.append(await store.count_waits(workflow="expense"))
    replies.append(await store.list_notifications([(run, f"ask!{n}") for run in RUN_IDS for n in range(40)]))
    replies.append(await store.list_runs())
    replies.append(await store.list_drafts())
    replies.append(await store.list_inputs())
    replies.append(await store.count_runs())
    return replies


async def act(store: Store, action: int, run_id: str, n: list[int], now: int, step: int) -> Any:
    run = await store.get_run(run_id)
    match action:
        case 0:
            key = f"key-{n[0]}" if n[1] else None
            return await store.create_run(new_run(run_id, now, idempotency_key=key, plan_hash=f"plan-{n[2]}"))
        case 1 | 2:
            return await store.claim(f"w{n[0]}", now, 5, limit=n[1] + 1, run_id=run_id if n[2] else None)
        case 3:
            return await store.renew(f"w{n[0]}", [run_id, "a", "nothing"], now, 5)
        case 4 if run is not None:
            due = now + n[1] if n[0] else None
            return await store.release(run_id, run.epoch - (n[2] == 0), run.seq, due, "waiting")
        case 5 | 6 | 7 if run is not None:
            inbox = await store.read_inbox(run_id)
            return await store.append(
                change(
                    run,
                    *(record(node=f"n{number}", data=b"%d" % step) for number in n[: n[0] + 1]),
                    now_ms=now,
                    expected_seq=run.seq + (n[1] == 2 and n[2] == 2),
                    waits=(wait(run_id, f"ask!{step % 40}", opened_at_ms=now),) if n[3] else (),
                    closed_waits=(WaitUpdate(f"ask!{step % 30}", "expired", at_ms=now),) if n[4] else (),
                    consumed_inbox=tuple(fact.n for fact in inbox[: n[5]]),
                    consumed_signals=((n[5], "go!1"),),
                    blobs=((f"sha-{n[2]}", b"bytes"),),
                    notifications=(message(run_id, f"ask!{step % 40}", now),) if n[3] else (),
                    status="failed" if step % 37 == 0 else None,
                    finished=step % 37 == 0,
                    output=b"%d" % step if n[4] == 2 else None,
                )
            )
        case 8:
            return await store.post_message(run_id, b"%d" % step, now)
        case 9:
            token = wait(run_id, f"ask!{step % 40 - n[0]}").token_hash
            return await store.answer_wait(token, b"%d" % step, f"p{n[1]}", b"fact", now)
        case 10:
            key = f"key-{n[0]}" if n[0] else None
            return await store.post_signal(run_id, "paid", None, b"%d" % step, key, None, b"fact", now)
        case 11:
            return await store.put_draft(f"d{n[0]}", n[1] + n[2], f"step {step}", b"%d" % step, now, n[3] or None)
        case 12 if n[0] == 0:
            return await store.delete_draft(f"d{n[1]}", n[2] or None)
        case 12:
            return await store.rebase_draft(f"d{n[1]}", n[2] + 1, "w", step), await store.count_runs("expense")
        case 14:
            return await store.cancel_wait(run_id, f"ask!{step % 40 - n[0]}", f"p{n[1]}", b"fact", now)
        case 15:
            claimed = await store.claim_notifications(now, 5, n[0])
            status: NotificationStatus = "pending" if n[2] else "sent"
            due = now + n[1] if n[2] else None
            settled = [
                await store.record_notification(
                    row.run_id, row.wait_id, row.n, row.attempts - (n[3] == 0), status, now, due
                )
                for row in claimed[:1]
            ]
            kept = [
                await store.keep_notification(row.run_id, row.wait_id, row.n, row.attempts, now + n[4], n[5] > 0)
                for row in claimed[1:]
            ]
            return claimed, settled, kept, await store.next_notification_ms(), await store.list_signals(run_id, "paid")
        case 16 if run is not None:
            row = CheckpointRow(run_id, f"n{n[0]}", n[1], now, b"%d" % step)
            return await store.put_checkpoint(run.epoch - (n[2] == 0), row)
        case _:
            if n[3] == 0:
                return await store.repair_clock_skew(now - 50_000 * n[0], LEASE_MS)
            return await store.next_due(), await store.get_blob("sha-1"), await store.list_waits(run_id=run_id)


def message(run_id: str, wait_id: str, now: int) -> NotificationRow:
    return NotificationRow(run_id, wait_id, 1, "email", b"[]", "pending", 0, now, now)
