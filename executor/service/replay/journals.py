"""Journals of runs of durable functions in memory: from events as the API sends them, and as a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self

import orjson
from msgspec import Struct

from compiler.tracing.durable import BODY, UNDO
from executor.errors import BadRequest
from executor.kernel.store.run_rows import EventFilter, Record

FORMAT: Final = "weft-journals/1"
_ENDS: Final = ("node.succeeded", "node.failed")


class Journal(Struct, frozen=True):
    """Implements `Journals`, for one run. `arguments`: of the function, without secrets; `status`: of the run when it
    was read."""

    run: str
    workflow: str
    status: str
    arguments: dict[str, Any]
    records: tuple[Record, ...]

    @classmethod
    def of_events(
        cls, run: str, workflow: str, status: str, arguments: Mapping[str, Any], events: Iterable[Mapping[str, Any]]
    ) -> Self:
        """Take events as the API sends them."""
        return cls(run, workflow, status, dict(arguments), tuple(map(_record, events)))

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


def write(journals: Sequence[Journal]) -> str:
    """Return them as JSON lines: a head, then for each run its line and its events."""
    lines: list[dict[str, Any]] = [{"format": FORMAT, "count": len(journals)}]
    for one in journals:
        about = {"run": one.run, "workflow": one.workflow, "status": one.status, "arguments": one.arguments}
        lines += [about, *(_event(record) for record in one.records if record.type != "node.log")]
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
            Journal.of_events(about["run"], about["workflow"], about["status"], about["arguments"], events)
            for about, events in runs
        ]
    except (ValueError, LookupError, TypeError) as error:
        raise BadRequest(f"these are no journals of weft: {error}", hint="`weft test RUN` writes one.") from None


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
    if record.output is not None:
        data["output"] = orjson.loads(record.output)
    place: dict[str, Any] = {} if record.node is None else {"node": record.node, "attempt": record.attempt}
    if record.path:
        place["path"] = record.path
    return {"seq": record.seq, "at_ms": record.at_ms, "type": record.type, **place, "data": data}
