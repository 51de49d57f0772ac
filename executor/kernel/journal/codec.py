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
from executor.errors import CorruptJournal
from executor.kernel.core.events import Event, NodeStarted, NodeSucceeded
from executor.kernel.store.run_rows import Record
from executor.kernel.values.payload import trimmed

_TYPES: dict[str, type[Any]] = {str(cls.__struct_config__.tag): cls for cls in get_args(Event)}
_TAGS = {cls: tag for tag, cls in _TYPES.items()}
_KEYED = {cls for cls in _TYPES.values() if "key" in cls.__struct_fields__}
# The fields in `data`, with their values when they are left out; NODEFAULT: they are always there.
_FIELDS: dict[type[Any], tuple[tuple[str, Any], ...]] = {
    cls: tuple(
        (field.name, field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory())
        for field in msgspec.structs.fields(cls)
        if field.name not in ("key", "attempt")
    )
    for cls in _TYPES.values()
}
_PLAIN = frozenset({str, int, bool, type(None)})  # the same in JSON
_STARTED, _SUCCEEDED = _TAGS[NodeStarted], _TAGS[NodeSucceeded]


def data_of(record: Record) -> dict[str, Any]:
    data: dict[str, Any] = orjson.loads(record.data) if record.data else {}
    return data


def key_of(record: Record) -> str | None:
    """Return the text of the record's key, or None if the event is about the run."""
    return None if record.node is None else join_key(record.node, record.path)


# A loop opens one scope after the other, and comes back to none.
PATHS_MAX = 1_000


class Codec:
    """For one plan; keeps the texts of scopes at hand, of which few are open at a time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._text_of: dict[Path, str] = {(): ""}
        self._path_of: dict[str, Path] = {"": ()}

    def path_text(self, path: Path) -> str:
        text = self._text_of.get(path)
        if text is None:
            if len(self._text_of) > PATHS_MAX:
                self._text_of = {(): ""}
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
        if cls is NodeStarted:  # half of every journal
            return self.started(seq, at_ms, event)  # type: ignore[arg-type]  # `cls` is its type
        if isinstance(event, NodeSucceeded) and not extra and _has_defaults(event):  # nearly all others
            scope, number = event.key
            text = self.path_text(scope) if scope else ""
            return Record(seq, at_ms, _SUCCEEDED, self._plan.nodes[number].id, text, event.attempt, None, output)
        data: bytes | None = None
        node: str | None = None
        path = ""
        attempt = 0
        if cls in _KEYED:
            key: NodeKey = event.key  # type: ignore[union-attr]  # `cls` is its type
            node = self._plan.nodes[key[1]].id
            path = self.path_text(key[0])
            attempt = getattr(event, "attempt", 0)
        fields: dict[str, Any] = {}
        for name, default in _FIELDS[cls]:
            value = getattr(event, name)
            if value is not default and value != default:
                fields[name] = value if type(value) in _PLAIN else self._plain(name, value)
        if extra:
            fields.update(extra)
        if fields:
            data = trimmed(orjson.dumps(fields, option=orjson.OPT_NON_STR_KEYS))
        return Record(seq, at_ms, _TAGS[cls], node, path, attempt, data, output)

    def started(self, seq: int, at_ms: int, event: NodeStarted) -> Record:
        path, number = event.key
        text = self.path_text(path) if path else ""
        return Record(seq, at_ms, _STARTED, self._plan.nodes[number].id, text, event.attempt)

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
            if len(self._path_of) > PATHS_MAX:
                self._path_of = {"": ()}
            path = self._path_of[text] = parse_path(self._plan, text)
        return path

    def _parse_key(self, text: str) -> NodeKey:
        node, path = split_key(text)
        number = self._plan.node_index(node)
        if number is None:
            raise ValueError(f"unknown node {node!r}")
        return self._parse_path(path), number


def _has_defaults(event: NodeSucceeded) -> bool:
    """Returns True if its record has no data."""
    other = event.reused or event.end_run or event.cached or event.pinned or event.from_run
    return event.route == "out" and not other


plans_at_hand: dict[str, Plan] = {}
PLANS_MAX = 256


def keep_plan(plan: Plan) -> None:
    if plan.hash not in plans_at_hand and len(plans_at_hand) >= PLANS_MAX:
        plans_at_hand.pop(next(iter(plans_at_hand)))
    plans_at_hand[plan.hash] = plan
