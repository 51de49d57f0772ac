"""Settings and texts of the blocks of Sim, for the translation of every block. Environment names in texts, and
references to blocks and fields, have other names here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson

from compiler.catalog import Catalog
from compiler.references import find, normalize, parse

_ENV = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_UPPER = re.compile(r"[A-Z_][A-Z0-9_]*")
# Names that mean something here but may be block names there.
_OURS = ("input", "workflow")
_SCOPES = ("variable", "loop", "parallel", "workflow", "input")
# Output fields of another name, by block type: ours, or None if the field is the whole output.
_FIELDS: dict[str, dict[str, str | None]] = {
    "human_in_the_loop": {"submission": None, "resumeInput": None},
    "api": {"data": "body"},
    "router": {"selectedRoute": "route", "selectedPath": "route"},
    "router_v2": {"selectedRoute": "route", "selectedPath": "route"},
    "workflow": {"result": None, "response": None},
    "workflow_input": {"result": None, "response": None},
    "agent": {"tokens": "usage", "toolCalls": "tool_calls"},
    "evaluator": {"tokens": "usage"},
    "sql_reads": {"rowCount": "count"},
    "sql_changes": {"rowCount": "affected"},
    "sftp": {"fileName": "name", "deletedPath": "path", "createdPath": "path"},
    "rss_poller": {"item": "event", "title": "event.title", "link": "event.link", "pubDate": "event.published"},
    "imap_poller": {"email": "event"},
    "guardrails": {
        "detectedEntities": "found", "maskedText": "masked", "reasoning": "reason", "error": "problems[0]"
    },
}  # fmt: skip
_OF_EVENT = {".event.bodyText": ".event.text", ".event.bodyHtml": ".event.html", ".event.pubDate": ".event.published"}
# An agent with a response format has each field of that in its output; ours has them in `content`.
_OF_AGENT = ("content", "model", "tokens", "toolCalls", "cost", "error")
# Fields of an evaluator that are no metrics: each metric is a field in Sim, and a member of `scores` here.
_OF_EVALUATOR = ("content", "model", "tokens", "cost", "error")
# Fields of the function that stands in for a block without a counterpart.
_OF_FUNCTION = ("result", "stdout")
# Their output is what the request brought; ours has it in `body`.
WEBHOOKS = ("generic_webhook", "webhook", "github_webhook")  # the last is the block `github` as a trigger
_WEBHOOK_FIELDS = ("body", "headers", "query", "method")


NOTHING: Final[tuple[Any, ...]] = (None, "", [], {}, False)  # settings without a value


class Loss(NamedTuple):
    """A part of a block that the import left out or changed, and the next step."""

    message: str
    hint: str = ""


class Texts:
    """Translates texts: environment names, and references whose block or field has another name here.

    `blocks`: id -> (Sim's type, or a key of `_FIELDS`; name). If `env_names` is None, every UPPER_CASE name counts as
    one. `foreign`: ids of blocks without a counterpart. `catalog`: the blocks that there are, for the tools of agents.
    """

    def __init__(
        self,
        blocks: Mapping[str, tuple[str, str]],
        env_names: Collection[str] | None,
        foreign: Collection[str] = frozenset(),
        catalog: Catalog | None = None,
    ) -> None:
        self.catalog = catalog
        self._env_names = env_names
        self._foreign = foreign
        self._by_name: dict[str, str] = {}
        for block_id, (_, name) in blocks.items():
            self._by_name.setdefault(normalize(name), block_id)
        for block_id in blocks:
            self._by_name.setdefault(normalize(block_id), block_id)
        self._types = {block_id: kind for block_id, (kind, _) in blocks.items()}

    def text(self, text: str) -> str:
        """`text` with Sim's references rewritten as ours."""
        if "{{" in text:
            text = _ENV.sub(self._env, text)
        return self._references(text) if "<" in text else text

    def secret(self, text: Any) -> tuple[str, bool] | None:
        """Return the environment name in a field for secrets, and whether a value is known for it."""
        name = _ENV.fullmatch(str(text or "").strip())
        return None if name is None else (name[1], self._env_names is not None and name[1] in self._env_names)

    def value(self, value: Any) -> Any:
        """All texts in a JSON value. Its depth is bounded by that of the document."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        return value

    def refers(self, text: str) -> bool:
        """Return whether it reads a block, or a scope of Sim; other text in angle brackets is text."""
        parsed = parse(text)
        first = normalize(str(parsed.segments[0])) if parsed is not None else ""
        return first in self._by_name or first in _SCOPES

    def _env(self, match: re.Match[str]) -> str:
        name = match[1]
        known = bool(_UPPER.fullmatch(name)) if self._env_names is None else name in self._env_names
        return f"${{{name}}}" if known else match[0]

    def _references(self, text: str) -> str:
        parts: list[str] = []
        at = 0
        for found in find(text):
            moved = None if found.env else self._reference(found.text)
            if moved is not None:
                parts += (text[at : found.start], f"<{moved}>")
                at = found.end
        return "".join([*parts, text[at:]])

    def _reference(self, text: str) -> str | None:
        parsed = parse(text)
        if parsed is None:
            return None
        first = str(parsed.segments[0])
        block = self._by_name.get(normalize(first))
        if block is None:
            return None
        head = block if normalize(first) in _OURS else first
        rest = text[len(first) :]
        kind = self._types[block]
        field = str(parsed.segments[1]) if len(parsed.segments) > 1 else ""
        if not field or not rest.startswith(f".{field}"):
            pass
        elif block in self._foreign and field != "error":  # a function, later perhaps a connector: both have `result`
            rest = rest if field in _OF_FUNCTION else f".result{rest}"
        elif field in (fields := _FIELDS.get(kind, {})):
            ours = fields[field]
            rest = (f".{ours}" if ours else "") + rest[len(field) + 1 :]
            rest = _OF_EVENT.get(rest, rest)
        elif kind == "agent" and field not in _OF_AGENT:
            rest = f".content{rest}"
        elif kind == "evaluator" and field not in _OF_EVALUATOR:
            rest = f".scores{rest.lower()}"
        elif field == "error" and len(parsed.segments) == 2:  # Sim's error is a text, ours an object
            rest = f".error.message{rest[len('.error') :]}"
        elif kind in WEBHOOKS and field not in _WEBHOOK_FIELDS:
            rest = f".body{rest}"
        return head + rest if head + rest != text else None


class Settings:
    """The settings of one block of Sim, while it is translated. `losses` are the parts without a counterpart."""

    def __init__(self, name: str, params: Mapping[str, Any], texts: Texts) -> None:
        self.name = name
        self.params = params
        self.texts = texts
        self.losses: list[Loss] = []

    def lose(self, message: str, hint: str) -> None:
        self.losses.append(Loss(message, hint))

    def get(self, key: str, otherwise: Any = None) -> Any:
        return self.params.get(key, otherwise)

    def text(self, key: str) -> str:
        return str(self.params.get(key) or "")

    def json(self, key: str) -> Any:
        return parse_json(self.params.get(key))

    def number(self, key: str, otherwise: Any = None) -> Any:
        return number_in(self.params.get(key, otherwise))

    def items(self, key: str) -> list[Any]:
        found = self.json(key)
        return found if isinstance(found, list) else []

    def named(self, key: str, name: str = "name") -> Iterator[Mapping[str, Any]]:
        """Yield the items that are objects with a name."""
        for item in self.items(key):
            if isinstance(item, Mapping) and isinstance(item.get(name), str) and item[name]:
                yield item

    def secret(self, key: str, what: str) -> str | None:
        """Return the environment name in a field for secrets as one of ours, even if no value is known for it."""
        found = self.texts.secret(self.params.get(key))
        if found is None:
            return None
        name, is_known = found
        if not is_known:
            self.lose(f"{what} is read from the secret {name}.", f"Store the secret {name} on the server.")
        return f"${{{name}}}"


def typed_value(kind: str, value: Any) -> Any:
    """Convert a text by the type beside it; texts with references stay texts."""
    if not isinstance(value, str) or find(value) or "{{" in value:
        return value
    match kind:
        case "number":
            return number_in(value)
        case "boolean":
            return {"true": True, "false": False}.get(value.strip().lower(), value)
        case "object" | "array" | "json":
            return parse_json(value)
        case _:
            return value


def parse_json(value: Any) -> Any:
    """Return the value of a JSON text; anything else is returned as it is."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def number_in(value: Any) -> Any:
    """The number in a text; everything else as it is."""
    number = parse_json(value.strip()) if isinstance(value, str) else None
    return number if is_number(number) else value


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a value can be that of a param; a reference can be any."""
    if isinstance(value, str) and value.startswith("<"):
        return True
    if "enum" in schema and value not in schema["enum"]:
        return False
    if schema.get("type") == "string" and isinstance(value, list | dict):
        return False
    return schema.get("type") != "array" or isinstance(value, list)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
