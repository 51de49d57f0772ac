"""Events <-> records: the only place that knows how an event lies in a row.

A row has the node and scope as text columns (for people and queries) and everything else of the event as JSON in
`data`. Keys and attempts are not repeated there. The runtime may add fields for readers (`extra`); decoding ignores
what it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec
import orjson

from compiler.keys import NodeKey, Path, format_path, format_wait, join_key, parse_path, split_key
from compiler.plan import Plan
from executor.core.events import Event, NodeStarted, NodeSucceeded
from executor.errors import CorruptJournal
from executor.store.rows import Record
from executor.values.payload import trimmed

_TYPES: dict[str, type[Any]] = {str(cls.__struct_config__.tag): cls for cls in get_args(Event)}
_TAGS = {cls: tag for tag, cls in _TYPES.items()}
_KEYED = {cls for cls in _TYPES.values() if "key" in cls.__struct_fields__}
_FIELDS = {
    cls: tuple(name for name in cls.__struct_fields__ if name not in ("key", "attempt")) for cls in _TYPES.values()
}
_DEFAULTS: dict[type[Any], dict[str, Any]] = {
    cls: {
        field.name: field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
        for field in msgspec.structs.fields(cls)
        if field.default is not msgspec.NODEFAULT or field.default_factory is not msgspec.NODEFAULT
    }
    for cls in _TYPES.values()
}


def data_of(record: Record) -> dict[str, Any]:
    """What the row says besides key, attempt and output: the fields of the event, and what the runtime added."""
    data: dict[str, Any] = orjson.loads(record.data) if record.data else {}
    return data


def key_of(record: Record) -> str | None:
    """The text of the record's key; None when the event is about the run."""
    return None if record.node is None else join_key(record.node, record.path)


class Codec:
    """For one plan; caches scope texts, of which a run has few beside its events."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._text_of: dict[Path, str] = {(): ""}
        self._path_of: dict[str, Path] = {"": ()}

    def path_text(self, path: Path) -> str:
        text = self._text_of.get(path)
        if text is None:
            text = self._text_of[path] = format_path(self._plan, path)
        return text

    def key_text(self, key: NodeKey) -> str:
        return join_key(self._plan.nodes[key[1]].id, self.path_text(key[0]))

    def wait_id(self, key: NodeKey, attempt: int) -> str:
        return format_wait(self.key_text(key), attempt)

    def to_record(
        self, seq: int, at_ms: int, event: Event, output: bytes | None = None, extra: Mapping[str, Any] | None = None
    ) -> Record:
        cls = type(event)
        if (cls is NodeStarted or cls is NodeSucceeded) and not extra:  # most of every journal
            return self._plain_record(seq, at_ms, event, output)  # type: ignore[arg-type]
        data: bytes | None = None
        node: str | None = None
        path = ""
        attempt = 0
        if cls in _KEYED:
            key: NodeKey = event.key  # type: ignore[union-attr]
            node = self._plan.nodes[key[1]].id
            path = self.path_text(key[0])
            attempt = getattr(event, "attempt", 0)
        defaults = _DEFAULTS[cls]
        fields: dict[str, Any] = {}
        for name in _FIELDS[cls]:
            value = getattr(event, name)
            if name not in defaults or defaults[name] != value:
                fields[name] = self._plain(name, value)
        if extra:
            fields.update(extra)
        if fields:
            data = trimmed(orjson.dumps(fields, option=orjson.OPT_NON_STR_KEYS))
        return Record(seq, at_ms, _TAGS[cls], node, path, attempt, data, output)

    def _plain_record(self, seq: int, at_ms: int, event: NodeStarted | NodeSucceeded, output: bytes | None) -> Record:
        path, number = event.key
        data = _succeeded(event) if type(event) is NodeSucceeded else None
        node = self._plan.nodes[number].id
        return Record(seq, at_ms, _TAGS[type(event)], node, self.path_text(path), event.attempt, data, output)

    def to_event(self, record: Record) -> Event:
        """Raises CorruptJournal, naming the run position, when the record is not an event of this plan."""
        cls = _TYPES.get(record.type)
        if record.data is None and (cls is NodeStarted or cls is NodeSucceeded):  # most of every journal
            node, path = self._plan.node_index(record.node or ""), self._path_of.get(record.path)
            if node is not None and path is not None:
                key = (path, node)
                return NodeStarted(key, record.attempt) if cls is NodeStarted else NodeSucceeded(key, record.attempt)
        try:
            if cls is None:
                raise ValueError(f"unknown event type {record.type!r}")
            fields = data_of(record)
            if "because" in fields:
                fields["because"] = self._parse_key(fields["because"])
            if record.node is not None:
                number = self._plan.node_index(record.node)
                if number is None:
                    raise ValueError(f"unknown node {record.node!r}")
                fields["key"] = (self._parse_path(record.path), number)
                fields["attempt"] = record.attempt
            if cls is NodeStarted:
                return NodeStarted(fields["key"], record.attempt)
            event: Event = msgspec.convert(fields, cls, strict=False)
        except (ValueError, KeyError, msgspec.ValidationError) as error:
            raise CorruptJournal(f"event {record.seq} ({record.type}) does not decode: {error}") from error
        return event

    def _plain(self, name: str, value: Any) -> Any:
        if name == "because":
            return None if value is None else self.key_text(value)
        return msgspec.to_builtins(value, str_keys=True)

    def _parse_path(self, text: str) -> Path:
        path = self._path_of.get(text)
        if path is None:
            path = self._path_of[text] = parse_path(self._plan, text)
        return path

    def _parse_key(self, text: str) -> NodeKey:
        node, path = split_key(text)
        number = self._plan.node_index(node)
        if number is None:
            raise ValueError(f"unknown node {node!r}")
        return self._parse_path(path), number


_OUT = None
_ROUTES: dict[str | None, bytes | None] = {"out": _OUT}


def _succeeded(event: Any) -> bytes | None:
    """The hot one: a plain success has no data at all, other routes are encoded once."""
    if event.reused or event.end_run or event.cached:
        fields: dict[str, Any] = {"route": event.route}
        if event.reused:
            fields["reused"] = True
        if event.end_run:
            fields["end_run"] = True
        if event.cached:
            fields["cached"] = True
        return trimmed(orjson.dumps(fields))
    if event.route not in _ROUTES and len(_ROUTES) < 10_000:
        _ROUTES[event.route] = trimmed(orjson.dumps({"route": event.route}))
    return _ROUTES[event.route] if event.route in _ROUTES else orjson.dumps({"route": event.route})
