"""Translation of the texts of a Sim workflow: environment names, references to blocks and fields with other
names here."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import orjson

from compiler.references import find, normalize, parse

_ENV = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_UPPER = re.compile(r"[A-Z_][A-Z0-9_]*")
# Names that mean something here but may be block names there.
_OURS = ("input", "workflow")
# Output fields of another name: (block type, field) -> ours, or None if the field is the whole output.
_FIELDS: dict[tuple[str, str], str | None] = {
    ("human_in_the_loop", "submission"): None,
    ("human_in_the_loop", "resumeInput"): None,
    ("api", "data"): "body",
    ("router", "selectedRoute"): "route",
    ("router", "selectedPath"): "route",
    ("router_v2", "selectedRoute"): "route",
    ("router_v2", "selectedPath"): "route",
    ("workflow", "result"): None,
    ("agent", "tokens"): "usage",
    ("agent", "toolCalls"): "tool_calls",
    ("evaluator", "tokens"): "usage",
    ("guardrails", "detectedEntities"): "found",
    ("guardrails", "maskedText"): "masked",
    ("guardrails", "reasoning"): "reason",
    ("guardrails", "error"): "problems[0]",
    ("workflow", "response"): None,
    ("workflow_input", "result"): None,
    ("workflow_input", "response"): None,
}
# An agent with a response format has each field of that in its output; ours has them in `content`.
_OF_AGENT = ("content", "model", "tokens", "toolCalls", "cost", "error")
# Of an evaluator each metric is a field; ours has them in `scores`.
_OF_EVALUATOR = ("content", "model", "tokens", "cost", "error")
# Of a block without a counterpart; a function is in its place.
_OF_FUNCTION = ("result", "stdout")
# Their output is what the request brought; ours has it in `body`.
WEBHOOKS = ("generic_webhook", "webhook", "github_webhook")  # the last is the block `github` as a trigger
_WEBHOOK_FIELDS = ("body", "headers", "query", "method")


class Loss(NamedTuple):
    """A part of a block that the import left out or changed, and the next step."""

    message: str
    hint: str = ""


class Texts:
    """Translates texts: environment names, and references whose block or field has another name here.

    `blocks`: id -> (Sim's type, name). If `env_names` is None, every UPPER_CASE name counts as one. `foreign`: ids of
    blocks without a counterpart.
    """

    def __init__(
        self,
        blocks: Mapping[str, tuple[str, str]],
        env_names: Collection[str] | None,
        foreign: Collection[str] = frozenset(),
    ) -> None:
        self._env_names = env_names
        self._foreign = foreign
        self._by_name: dict[str, str] = {}
        for block_id, (_, name) in blocks.items():
            self._by_name.setdefault(normalize(name), block_id)
        for block_id in blocks:
            self._by_name.setdefault(normalize(block_id), block_id)
        self._types = {block_id: kind for block_id, (kind, _) in blocks.items()}

    def output_of(self, block_id: str) -> str:
        """A reference to the whole output of a block; {} when it did not run."""
        return f"<{block_id} ?? {{}}>"

    def text(self, text: str) -> str:
        """`text` with Sim's references rewritten as ours."""
        if "{{" in text:
            text = _ENV.sub(self._env, text)
        return self._references(text) if "<" in text else text

    def secret(self, text: Any, losses: list[Loss], what: str) -> str | None:
        """Return the environment name in a field for secrets as one of ours, even if no value is known for it."""
        name = _ENV.fullmatch(str(text or "").strip())
        if name is None:
            return None
        if self._env_names is None or name[1] not in self._env_names:
            losses.append(
                Loss(f"{what} is read from the secret {name[1]}.", f"Store the secret {name[1]} on the server.")
            )
        return f"${{{name[1]}}}"

    def value(self, value: Any) -> Any:
        """All texts in a JSON value. Its depth is bounded by that of the document."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        return value

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
        elif (kind, field) in _FIELDS:
            ours = _FIELDS[kind, field]
            rest = (f".{ours}" if ours else "") + rest[len(field) + 1 :]
        elif kind == "agent" and field not in _OF_AGENT:
            rest = f".content{rest}"
        elif kind == "evaluator" and field not in _OF_EVALUATOR:
            rest = f".scores{rest.lower()}"
        elif field == "error" and len(parsed.segments) == 2:  # Sim's error is a text, ours an object
            rest = f".error.message{rest[len('.error') :]}"
        elif kind in WEBHOOKS and field not in _WEBHOOK_FIELDS:
            rest = f".body{rest}"
        return head + rest if head + rest != text else None


def typed_value(kind: str, value: Any) -> Any:
    """Convert a text by the type beside it; texts with references stay texts."""
    if not isinstance(value, str) or find(value) or "{{" in value:
        return value
    match kind:
        case "number":
            number = parse_json(value)
            return number if isinstance(number, int | float) and not isinstance(number, bool) else value
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
