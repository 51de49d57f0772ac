"""Plans and outputs as they were stored."""

from __future__ import annotations

import hashlib

import orjson

from compiler import plan as plans
from compiler.plan import Plan
from executor.errors import CorruptJournal
from executor.store.contract import Store
from executor.store.rows import Record
from executor.store.sqlite.checksum import RESTORE


async def load_plan(store: Store, hash: str) -> Plan:
    """By hash, cached: a plan never changes."""
    cached = _plans.get(hash)
    if cached is None:
        data = await store.get_plan(hash)
        if data is None:
            raise CorruptJournal(f"plan {hash} is missing")
        if hashlib.sha256(data).hexdigest() != hash:
            raise CorruptJournal(f"plan {hash} does not match its checksum", hint=RESTORE)
        cached = plans.decode(data)
        keep_plan(cached)
    return cached


def keep_plan(plan: Plan) -> None:
    """Keep a plan at hand; the oldest goes when there are too many."""
    if plan.hash not in _plans and len(_plans) >= PLANS_MAX:
        _plans.pop(next(iter(_plans)))
    _plans[plan.hash] = plan


_plans: dict[str, Plan] = {}
PLANS_MAX = 256


async def output_of(store: Store, record: Record) -> bytes | None:
    """The record's output, fetched from the blobs when it was too large for the row."""
    if record.output is None and record.data and b'"blob"' in record.data:
        blob = orjson.loads(record.data).get("blob")
        if blob is not None:
            output = await store.get_blob(blob)
            if output is not None and hashlib.sha256(output).hexdigest() != blob:
                raise CorruptJournal(f"blob {blob} does not match its checksum", hint=RESTORE)
            return output
    return record.output
