"""Journals of runs of durable functions in memory: from events as the API sends them, as a text, and in files."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import orjson
from msgspec import Struct

from compiler.tracing.durable import BODY, UNDO
from executor.errors import BadRequest
from executor.kernel.run.mismatch import ANY_INPUT
from executor.kernel.store.run_rows import EventFilter, Record

FORMAT: Final = "weft-journals/1"
OUTPUT_MAX: Final = 64 * 1024  # bytes; a run is replayed to an output over that
_ENDS: Final = ("node.succeeded", "node.failed")
_VALUES: Final = ("output", "shown", "error")
_GZIP: Final = b"\x1f\x8b"


class Journal(Struct, frozen=True):
    """Implements `Journals`, for one run. `arguments`: of the function, without secrets; `status`: of the run when it
    was read; `code`: with which it began. `left_out`: the number of its last events, after an output that is not here;
    `is_stripped`: fields were emptied, so values are not compared."""

    run: str
    workflow: str
    status: str
    arguments: dict[str, Any]
    records: tuple[Record, ...]
    code: str = ""
    left_out: int = 0
    is_stripped: bool = False

    @classmethod
    def of_events(
        cls,
        run: str,
        workflow: str,
        status: str,
        arguments: Mapping[str, Any],
        events: Iterable[Mapping[str, Any]],
        code: str = "",
        left_out: int = 0,
        is_stripped: bool = False,
    ) -> Self:
        """Take events as the API sends them, up to the first step whose output is not among them."""
        given = list(events)
        lacking = (n for n, event in enumerate(given) if _lacks(event))
        count = next(lacking, len(given))
        if left_out := left_out + len(given) - count:
            status = "running"  # as if it had come this far
        records = map(_record, given[:count])
        return cls(run, workflow, status, dict(arguments), tuple(records), code, left_out, is_stripped)

    @property
    def end(self) -> Record | None:
        """The event with the result of the function, or of what undoes it; None if it is open."""
        found = (one for one in reversed(self.records) if one.node in (BODY, UNDO) and one.type in _ENDS)
        return next(found, None)

    async def read_events(self, run_id: str, after: int = 0, limit: int = 10_000) -> list[Record]:
        return [one for one in self.records if one.seq > after][:limit]

    async def find_events(self, run_id: str, where: EventFilter) -> tuple[list[Record], int]:
        found = [
            one
            for one in self.records
            if one.seq > where.after
            and (where.node is None or one.node == where.node)
            and (where.path is None or one.path == where.path)
            and (not where.types or one.type in where.types)
        ]
        return found[: where.limit], len(found)

    async def get_blob(self, hash: str) -> bytes | None:
        return None

    async def get_plan(self, hash: str) -> bytes | None:
        return None


def save(path: Path, journals: Sequence[Journal], strip: Collection[str] = ()) -> None:
    """Write a file. The values of fields with the names `strip` are emptied in all of it. Raises OSError."""
    path.write_bytes(gzip.compress(write(journals, strip).encode(), mtime=0))


def load(path: Path) -> list[Journal]:
    """Read a file, also one of plain text. Raises BadRequest, OSError."""
    data = path.read_bytes()
    try:
        return read((gzip.decompress(data) if data.startswith(_GZIP) else data).decode())
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BadRequest(f"{path} is no file of journals of weft: {error}") from None


def write(journals: Sequence[Journal], strip: Collection[str] = ()) -> str:
    """Return them as JSON lines: a head, then for each run its line and its events."""
    lines: list[dict[str, Any]] = [{"format": FORMAT, "count": len(journals)}]
    for one in journals:
        about: dict[str, Any] = {"run": one.run, "workflow": one.workflow, "status": one.status, "code": one.code}
        about |= {"arguments": emptied(one.arguments, strip), "left_out": one.left_out, "stripped": bool(strip)}
        events = [_event(record) for record in one.records if record.type != "node.log"]
        lines += [about, *([_stripped(event, strip) for event in events] if strip else events)]
    return "".join(f"{orjson.dumps(line).decode()}\n" for line in lines)


def read(text: str) -> list[Journal]:
    """Read what `write` has written. Raises BadRequest."""
    try:
        head, *lines = map(orjson.loads, text.strip().splitlines())
        if head["format"] != FORMAT:
            raise ValueError(f"its format is {head['format']}, not {FORMAT}")
        runs: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        for line in lines:
            if "run" in line:
                runs.append((line, []))
            else:
                runs[-1][1].append(line)
        return [
            Journal.of_events(
                about["run"],
                about["workflow"],
                about["status"],
                about["arguments"],
                events,
                about.get("code") or "",
                about.get("left_out") or 0,
                bool(about.get("stripped")),
            )
            for about, events in runs
        ]
    except (ValueError, LookupError, TypeError) as error:
        raise BadRequest(f"these are no journals of weft: {error}", hint="`weft test RUN` writes one.") from None


def _lacks(event: Mapping[str, Any]) -> bool:
    """Return True if the output of a step is not there."""
    return event["type"] == "step.finished" and bool(event["data"].keys() & {"blob", "left_out"})


def _record(event: Mapping[str, Any]) -> Record:
    data = dict(event["data"])
    output = orjson.dumps(data.pop("output")) if "output" in data else None
    return Record(
        event["seq"],
        event["at_ms"],
        event["type"],
        event.get("node"),
        event.get("path") or "",
        event.get("attempt") or 0,
        orjson.dumps(data) if data else None,
        output,
    )


def _event(record: Record) -> dict[str, Any]:
    data = orjson.loads(record.data or b"{}")
    if record.output is not None and len(record.output) > OUTPUT_MAX:
        data["left_out"] = {"sha256": hashlib.sha256(record.output).hexdigest(), "size": len(record.output)}
    elif record.output is not None:
        data["output"] = orjson.loads(record.output)
    place: dict[str, Any] = {} if record.node is None else {"node": record.node, "attempt": record.attempt}
    if record.path:
        place["path"] = record.path
    return {"seq": record.seq, "at_ms": record.at_ms, "type": record.type, **place, "data": data}


def _stripped(event: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Empty the fields in values of an event. The inputs of steps were others, so their hashes are not compared."""
    data = {name: emptied(one, names) if name in _VALUES else one for name, one in event["data"].items()}
    if isinstance(data.get("shown"), str):
        del data["shown"]  # the beginning of a JSON
    return {**event, "data": data | ({"input_hash": ANY_INPUT} if event["type"] == "step.started" else {})}


def emptied(value: Any, names: Collection[str]) -> Any:
    """Return the value with an empty value of the same type in the place of each field with one of these names."""
    if isinstance(value, dict):
        return {name: _empty(one) if name in names else emptied(one, names) for name, one in value.items()}
    return [emptied(one, names) for one in value] if isinstance(value, list) else value


def _empty(value: Any) -> Any:
    return None if value is None else type(value)()


def marks_of(journal: Journal) -> set[str]:
    """Return the names of `weft.patched` that the run has."""
    started = (orjson.loads(one.data or b"{}") for one in journal.records if one.type == "step.started")
    return {data["name"] for data in started if data["kind"] == "mark"}
