"""Snapshots of a run: the folded state of its journal, stored so that recovery reads only what came after it.

Nothing depends on one. It holds nothing that the journal does not, it may be deleted at any time, and one that is
damaged, of another plan or of other code is ignored: then the journal is folded from its start. It is written in a
transaction that is made anyway: an append, or the release of a run that waits.

The loop of the process is not held for long: a state of any size is turned into bytes in small parts, between which
other runs have their turns. The run itself waits meanwhile, so the parts are of one moment.
"""

from __future__ import annotations

import asyncio
import logging
import struct
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from itertools import chain, islice
from secrets import token_hex
from types import GenericAlias
from typing import TYPE_CHECKING, Any
from zlib import crc32

import msgspec

from compiler.plan import Plan
from executor.kernel.core.state import STATE_ROWS, add_state_rows, rows_of_state
from executor.kernel.run.loaded import LoadedRun, Notes, Saved, WaitKey
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.snapshots import SNAPSHOT_SEQ_MIN, SnapshotRow
from executor.kernel.values.fold import VALUE_ROWS, SavedValues, rows_of_fold

if TYPE_CHECKING:
    from executor.kernel.run.parts import Parts

log = logging.getLogger("weft.snapshots")

FORMAT = 1
# More than this is not written: it would delay the commits of all runs.
BYTES_MAX = 8 * 1024 * 1024
ROWS_MAX = 500  # in one part: about a quarter of a millisecond
PARTS_PER_PASS = 8

# The code that folds the journal of a run. A snapshot made by other code may differ.
_CODE = (
    "compiler.keys",
    "compiler.plan",
    "executor.kernel.core.aborts",
    "executor.kernel.core.events",
    "executor.kernel.core.evolve",
    "executor.kernel.core.evolve_containers",
    "executor.kernel.core.evolve_waits",
    "executor.kernel.core.scopes",
    "executor.kernel.core.state",
    "executor.kernel.journal.codec",
    "executor.kernel.journal.projection",
    "executor.kernel.journal.steps",
    "executor.kernel.run.loaded",
    "executor.kernel.run.snapshots",
    "executor.kernel.values.fold",
    "executor.kernel.values.money",
    "executor.kernel.values.payload",
    "executor.kernel.values.scope",
    "executor.kernel.values.variables",
)
_NOTE_ROWS: dict[str, Any] = {
    "reused": tuple[int, bytes],
    "signal_name": tuple[WaitKey, str, str | None],
    "child": tuple[WaitKey, str],
    "is_parent": bool,
    "response": bytes,
    "continues": bool,
    "keeps": tuple[str, tuple[str, ...]],
}
_ROWS = STATE_ROWS | VALUE_ROWS | _NOTE_ROWS
_KINDS = tuple(_ROWS)
_NUMBER = {kind: n for n, kind in enumerate(_KINDS)}
_DECODERS = [msgspec.msgpack.Decoder(GenericAlias(list, (rows,))) for rows in _ROWS.values()]
_encode = msgspec.msgpack.Encoder().encode
_PART = struct.Struct(">BI")  # kind, bytes that follow


async def snapshot_of(run: LoadedRun) -> SnapshotRow | None:
    """Return the snapshot of a run, or None if it would be too large. No event may be applied to the run meanwhile."""
    parts: list[bytes] = []
    size = 0
    for part in map(_encoded, parts_of(run)):
        parts.append(part)
        size += len(part)
        if size > BYTES_MAX:
            return None
        if not len(parts) % PARTS_PER_PASS:
            await asyncio.sleep(0)
    data = b"".join(parts)
    row = SnapshotRow(run.state.seq, FORMAT, code_digest(), run.plan.hash, 0, data)
    return msgspec.structs.replace(row, checksum=checksum_of(run.id, row))


def parts_of(run: LoadedRun) -> Iterator[tuple[str, list[Any]]]:
    for kind, rows in chain(rows_of_state(run.state), rows_of_fold(run.fold), _rows_of_notes(run)):
        left = iter(rows)
        while some := list(islice(left, ROWS_MAX)):
            yield kind, some


def differs(run: LoadedRun, data: bytes) -> str | None:
    """Return the kind of the first rows in which the run differs from the data, or None."""
    at = 0
    for kind, rows in parts_of(run):
        part = _encoded((kind, rows))
        if data[at : at + len(part)] != part:
            return kind
        at += len(part)
    return None if at == len(data) else "something more"


def _encoded(part: tuple[str, list[Any]]) -> bytes:
    kind, rows = part
    encoded = _encode(rows)
    return _PART.pack(_NUMBER[kind], len(encoded)) + encoded


async def load_snapshot(parts: Parts, row: RunRow, plan: Plan) -> LoadedRun | None:
    """Load the run from its snapshot. Returns None if there is no usable one."""
    if row.seq < SNAPSHOT_SEQ_MIN:
        return None
    found = await parts.store.get_snapshot(row.id)
    if found is None:
        return None
    reason = unfit(row, found)
    if reason is None:
        run = LoadedRun.empty(row, plan, parts.vault.values, Saved(found.seq, len(found.data)))
        try:
            for number, _ in enumerate(restore(run, found.data), 1):
                if not number % PARTS_PER_PASS:
                    await asyncio.sleep(0)
        except (ValueError, LookupError, TypeError, struct.error, msgspec.MsgspecError) as error:
            reason = f"it does not decode: {error}"
        else:
            if run.state.seq == found.seq:
                return run
            reason = f"it is of event {run.state.seq}, not {found.seq}"
    ignored(row.id, reason)
    return None


def unfit(row: RunRow, found: SnapshotRow) -> str | None:
    """Return why the snapshot cannot be of this run, or be read by this code, or None."""
    if found.checksum != checksum_of(row.id, found):
        return "it does not match its checksum"
    if found.format != FORMAT:
        return f"it has format {found.format}, this weft has {FORMAT}"
    if found.code != code_digest():
        return "another version of weft has made it"
    if found.plan_hash != row.plan_hash:
        return "it is of another plan"
    if found.seq > row.seq:
        return f"it is of event {found.seq}, the journal has {row.seq}"
    return None


def restore(run: LoadedRun, data: bytes) -> Iterator[None]:
    values = SavedValues(run.fold)
    at = 0
    while at < len(data):
        number, size = _PART.unpack_from(data, at)
        at += _PART.size
        kind = _KINDS[number]
        rows = _DECODERS[number].decode(memoryview(data)[at : at + size])
        at += size
        if kind in STATE_ROWS:
            add_state_rows(run.plan, run.state, kind, rows)
        elif kind in VALUE_ROWS:
            values.add(kind, rows)
        else:
            _add_notes(run.notes, kind, rows)
        yield


def checksum_of(run: str, row: SnapshotRow) -> int:
    about = f"{run} {row.seq} {row.format} {row.code} {row.plan_hash} "
    return crc32(row.data, crc32(about.encode()))


@cache
def code_digest() -> str:
    """Return a digest of the text of all code that folds a journal, so that no change of it is overlooked. If the text
    cannot be read, each process has a value of its own, and uses no other's snapshots."""
    digest = blake2b(f"{sys.version_info[:2]} {msgspec.__version__}".encode(), digest_size=16)
    for name in _CODE:
        text = get_source(name)
        if text is None:
            return token_hex(16)
        digest.update(text.encode())
    return digest.hexdigest()


def get_source(name: str) -> str | None:
    """Return the source of a module without loading it, or None."""
    spec = find_spec(name)
    read = getattr(spec and spec.loader, "get_source", None)
    try:
        return None if read is None else read(name)
    except (ImportError, OSError):
        return None


def _rows_of_notes(run: LoadedRun) -> Iterator[tuple[str, Any]]:
    notes = run.notes
    yield "reused", notes.left_to_reuse(run.plan, run.state).items()
    yield "signal_name", ((key, *name) for key, name in notes.signal_names.items())
    yield "child", notes.children.items()
    yield "is_parent", [notes.is_parent]
    yield "response", [] if notes.response is None else [notes.response]
    yield "continues", [notes.continues]
    yield "keeps", [] if notes.keeps is None else [notes.keeps]


def _add_notes(notes: Notes, kind: str, rows: list[Any]) -> None:
    match kind:
        case "reused":
            notes.reused = {**notes.reused, **dict(rows)}
        case "signal_name":
            notes.signal_names.update((key, (name, correlation)) for key, name, correlation in rows)
        case "child":
            notes.children.update(rows)
        case "is_parent":
            (notes.is_parent,) = rows
        case "response" if rows:
            (notes.response,) = rows
        case "continues":
            (notes.continues,) = rows
        case "keeps" if rows:
            (notes.keeps,) = rows


_warned: set[str] = set()


def ignored(run: str, reason: str) -> None:
    """Says so, once for each reason: after an update there may be one for each long run."""
    if reason not in _warned and len(_warned) < 100:
        _warned.add(reason)
        log.warning("run %s: its snapshot is ignored, its journal is folded from the start: %s", run, reason)
