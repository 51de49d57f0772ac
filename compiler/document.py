"""The document as it is written (format weft/1): JSON text -> structs, with every error in it found at once.

The envelope is decoded first, then every block and every edge on its own: one broken block does not hide the next. It
does not check the meaning; `wiring.py` (blocks and edges as a graph) and `check.py` (rules) do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, partial
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar

import msgspec
import orjson
from msgspec import Meta, Struct

from compiler.catalog import BRANCHES_MAX, ITERATIONS_MAX
from compiler.diagnostics import Report, suggest
from compiler.form_names import name_in_form
from compiler.plan import RunnerName
from compiler.references import escape
from compiler.wording import lacking, of_field

FORMAT: Final = "weft/1"
ID_PATTERN: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")

JSON_DEPTH_MAX: Final = 64
DOCUMENT_BYTES_MAX: Final = 1 << 20
TEXT_LENGTH_MAX: Final = 1 << 20
BLOCKS_MAX: Final = 2_000
EDGES_MAX: Final = 8_000
# Each trigger is compiled with the blocks that it starts, so a document counts triggers times blocks.
TRIGGER_BLOCKS_MAX: Final = 20_000
NESTING_MAX: Final = 10


class Limits(Struct, frozen=True):
    """Limits of one compile. The defaults suit drawn documents; generated ones may need more."""

    json_depth: int = JSON_DEPTH_MAX
    document_bytes: int = DOCUMENT_BYTES_MAX
    text_length: int = TEXT_LENGTH_MAX
    blocks: int = BLOCKS_MAX
    edges: int = EDGES_MAX
    trigger_blocks: int = TRIGGER_BLOCKS_MAX
    nesting: int = NESTING_MAX
    branches: int = BRANCHES_MAX
    iterations: int = ITERATIONS_MAX


_Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]  # a year
_Milliseconds = Annotated[int, Meta(ge=0, le=86_400_000)]  # a day
_Heartbeat = Annotated[int, Meta(ge=100, le=86_400_000)]  # a day
_Slots = Annotated[int, Meta(ge=1, le=100_000)]
POOL_PATTERN: Final = r"^[A-Za-z0-9_.-]{1,64}$"
PRIORITY_MIN, PRIORITY_MAX = -10, 10
Priority = Annotated[int, Meta(ge=PRIORITY_MIN, le=PRIORITY_MAX)]


class RetryDoc(Struct, frozen=True):
    """The retries of a block. `max_attempts` is None for the default of the block type, or of `compiler.plan.Retry`."""

    max_attempts: Annotated[int, Meta(ge=1, le=100)] | None = None
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    initial_ms: _Milliseconds = 1000
    factor: Annotated[float, Meta(ge=1, le=100)] = 2.0
    max_ms: _Milliseconds = 300_000
    jitter: Annotated[float, Meta(ge=0, le=1)] = 0.25


class CacheDoc(Struct, frozen=True):
    """The cache of a block. `key` is an expression, or None if all params are the key. A number as version counts as
    text."""

    key: str | None = None
    version: str | int | float = ""
    ttl_s: _Seconds | None = None
    scope: Literal["run", "workflow", "global"] = "workflow"


KEYS_MAX: Final = 10  # limits, or rates, of one workflow
_Key = Annotated[str, Meta(min_length=1, max_length=1_000)]


class BlockLimitDoc(Struct, frozen=True):
    """At most `at_most` attempts with the key run at the same time, over all runs."""

    key: _Key
    at_most: _Slots


class PolicyDoc(Struct, frozen=True):
    retry: RetryDoc | None = None
    timeout_s: _Seconds | None = None
    on_error: Literal["fail", "continue"] | None = None
    group: str | None = None
    skip_if: str | None = None
    cache: CacheDoc | None = None
    on_lost: Literal["retry", "ask", "fail"] | None = None
    runner: RunnerName | None = None
    limit: BlockLimitDoc | None = None
    heartbeat_timeout_ms: _Heartbeat | None = None


class PinDoc(Struct, frozen=True):
    """The output that stands for that of a block in runs of a draft, and the handle by which it leaves."""

    output: Any
    route: str | None = "out"


class BlockDoc(Struct, frozen=True):
    """One block. `name` is its id when the document gives none. `output_schema`: a JSON Schema its output must fit."""

    id: str
    type: str
    name: str
    parent: str | None = None
    params: dict[str, Any] = {}
    policy: PolicyDoc = PolicyDoc()
    enabled: bool = True
    assign: str | None = None
    output_schema: dict[str, Any] | None = None
    pin: PinDoc | None = None


class EdgeDoc(Struct, frozen=True):
    """A connection: from the exit `handle` of block `source` to block `target`."""

    source: str
    target: str
    handle: str = "out"
    index: int = 0


class LimitDoc(Struct, frozen=True):
    """At most `at_most` runs with the key have a worker at the same time. `of: block` is refused with the place where
    limits of blocks are."""

    key: _Key
    at_most: _Slots
    of: Literal["run", "block"] = "run"


class RateDoc(Struct, frozen=True):
    """The number of runs with the key that may start in a second."""

    key: _Key
    per_s: Annotated[float, Meta(gt=0, le=100_000)]


_MAIL: Final = r"^[^@\s,]+@[^@\s,]+$"
_WEB: Final = r"^https?://[^\s/]\S*$"
_PATTERNS: Final = {
    POOL_PATTERN: "1 to 64 letters, digits, underscores, points and hyphens",
    _MAIL: "an email address",
    _WEB: "an address that begins with http:// or https://",
}
_MailAddress = Annotated[str, Meta(pattern=_MAIL, max_length=254)]


class AlertsDoc(Struct, frozen=True):
    """The addresses notified of failed runs, late waits and missed times, besides those of the installation."""

    email: Annotated[list[_MailAddress], Meta(max_length=20)] = []
    webhook: Annotated[str, Meta(pattern=_WEB, max_length=2_000)] | None = None
    waiting_s: _Seconds | None = None


class RetentionDoc(Struct, frozen=True):
    """Runs that ended longer ago are deleted, except the `keep` newest, instead of by the rule of the installation. If
    `days` is None, the days of the installation count, or 0 if it has none and `keep` is set."""

    days: Annotated[float, Meta(ge=0, le=36_500)] | None = None
    keep: Annotated[int, Meta(ge=0, le=1_000_000)] = 0


class SettingsDoc(Struct, frozen=True):
    max_concurrency: Annotated[int, Meta(ge=1, le=100_000)] = 100
    timeout_s: _Seconds = 86_400
    groups: dict[str, _Slots] = {}
    on_failure: Literal["drain", "cancel"] = "drain"
    durability: Literal["strict", "ahead"] = "strict"
    max_executions: Annotated[int, Meta(ge=1, le=100_000_000)] = 10_000
    cleanup_timeout_s: _Seconds = 300
    pool: Annotated[str, Meta(pattern=POOL_PATTERN)] = "default"
    priority: Priority = 0
    fair: _Key | None = None
    limits: list[LimitDoc] = []
    rates: list[RateDoc] = []
    alerts: AlertsDoc | None = None
    error_workflow: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    retention: RetentionDoc | None = None


class Document(Struct, frozen=True):
    """A decoded document: only what could be read. `blocks` is in document order."""

    name: str
    blocks: dict[str, BlockDoc]
    edges: list[EdgeDoc]
    settings: SettingsDoc = SettingsDoc()
    variables: dict[str, Any] = {}
    input: dict[str, Any] | None = None


class _Edge(Struct):
    source: str
    target: str
    handle: str | None = None


_ENVELOPE = (
    "format", "name", "description", "input", "variables", "settings", "blocks", "edges", "notes", "version", "id"
)  # fmt: skip
# The fields of a block in a document, where its id is its key, with those of the editor.
_BLOCK = frozenset(BlockDoc.__struct_fields__) - {"id"} | {"at", "size", "description", "color", "collapsed", "source"}
_EDGE = frozenset(_Edge.__struct_fields__) | {"id", "at", "label"}

# Settings that are decoded by themselves, so that an error in one is reported with its place.
_APART: Final[dict[str, type[Struct]]] = {
    "limits": LimitDoc, "rates": RateDoc, "alerts": AlertsDoc, "retention": RetentionDoc
}  # fmt: skip

T = TypeVar("T", bound=Struct)


class Described(Protocol):
    """A workflow written in Python that has a method for its document."""

    def document(self) -> dict[str, Any]: ...


def read(
    document: bytes | bytearray | str | Mapping[str, Any], limits: Limits, report: Report
) -> dict[str, Any] | None:
    """Return the document as plain JSON values, or None (reported): not JSON, too large, too deep, or not an object.

    Never raises, whatever the bytes are. O(size).
    """
    if isinstance(document, Mapping):
        try:
            data = orjson.dumps(dict(document))
        except (orjson.JSONEncodeError, RecursionError) as error:
            code = "json_too_deep" if _is_about_depth(error) else "json_malformed"
            report.add(code, "", f"The document is not JSON: {error}.")
            return None
    elif isinstance(document, str):
        data = document.encode("utf-8", "surrogatepass")
    else:
        data = bytes(document)
    if len(data) > limits.document_bytes:
        message = f"The document has {len(data):,} bytes. The limit is {limits.document_bytes:,}."
        report.add("document_too_large", "", message)
        return None
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if _is_about_depth(error):  # orjson gives up at 1,024
            report.add("json_too_deep", "", f"The JSON is nested deeper than {limits.json_depth} levels.")
        else:
            where = f"line {error.lineno}, column {error.colno}"
            report.add("json_malformed", "", f"The document is not JSON: {error.msg} ({where}).")
        return None
    if not isinstance(value, dict):
        report.add("json_malformed", "", "The document is JSON but not an object.")
        return None
    return value if _within(value, limits, report) else None


def decode(value: dict[str, Any], limits: Limits, report: Report) -> Document:
    """Structs from plain JSON values. What cannot be read is reported and left out."""
    _unknown_fields(value, _ENVELOPE, "", report)
    if "format" not in value:
        report.add("format_missing", "/format", f"The document has no format. {FORMAT} is assumed.")
    elif value["format"] != FORMAT:
        report.add("format_unknown", "/format", f'This version reads {FORMAT}, not "{str(value["format"])[:40]}".')
    return Document(
        name=_convert(value.get("name") or "workflow", str, "/name", report) or "workflow",
        blocks=_blocks(value.get("blocks"), limits, report),
        edges=_edges(value.get("edges"), limits, report),
        settings=_settings(value.get("settings") or {}, report),
        variables=_convert(value.get("variables") or {}, dict[str, Any], "/variables", report) or {},
        input=_convert(value.get("input"), dict[str, Any] | None, "/input", report),
    )


def _is_about_depth(error: Exception) -> bool:
    """orjson words an error about the depth in one way when reading and in another when writing."""
    text = str(error).lower()
    return "depth limit" in text or "recursion" in text


def _within(value: Any, limits: Limits, report: Report) -> bool:
    """Depth and text lengths, level by level: no recursion, so no document can exhaust the stack."""
    level: list[Any] = [value]
    for _ in range(limits.json_depth):
        following: list[Any] = []
        for item in level:
            for inner in item.values() if type(item) is dict else item:
                kind = type(inner)
                if kind is dict or kind is list:
                    following.append(inner)
                elif kind is str and len(inner) > limits.text_length:
                    message = f"A text has {len(inner):,} characters. The limit is {limits.text_length:,}."
                    report.add("text_too_long", "", message)
                    return False
        if not following:
            return True
        level = following
    report.add("json_too_deep", "", f"The JSON is nested deeper than {limits.json_depth} levels.")
    return False


def _settings(raw: Any, report: Report) -> SettingsDoc:
    if not isinstance(raw, dict):
        return _convert(raw, SettingsDoc, "/settings", report) or SettingsDoc()
    plain = {key: value for key, value in raw.items() if key not in _APART}
    settings = _part(plain, SettingsDoc, "/settings", report) or SettingsDoc()
    apart: dict[str, Any] = {}
    for name, kind in _APART.items():
        if raw.get(name) is not None:
            read_it = _listed if kind in (LimitDoc, RateDoc) else _part
            apart[name] = read_it(raw[name], kind, f"/settings/{name}", report)
    return msgspec.structs.replace(settings, **apart)


def _part(raw: Any, kind: type[T], pointer: str, report: Report, block: str | None = None) -> T | None:
    _unknown_fields(raw, _fields(kind), pointer, report, block)
    made: T | None = _convert(raw, kind, pointer, report, block)
    return made


def _listed(raw: Any, kind: type[T], pointer: str, report: Report) -> list[T]:
    if not isinstance(raw, list) or len(raw) > KEYS_MAX:
        report.add("field_invalid", pointer, f"This must be a list of at most {KEYS_MAX}.")
        return []
    made = (_part(item, kind, f"{pointer}/{index}", report) for index, item in enumerate(raw))
    return [one for one in made if one is not None]


def _blocks(value: Any, limits: Limits, report: Report) -> dict[str, BlockDoc]:
    if not isinstance(value, dict):
        report.add("field_invalid", "/blocks", "`blocks` must be an object of blocks by id.")
        return {}
    if len(value) > limits.blocks:
        report.add(
            "too_many_blocks", "/blocks", f"The document has {len(value):,} blocks. The limit is {limits.blocks:,}."
        )
        return {}
    blocks: dict[str, BlockDoc] = {}
    for block_id, raw in value.items():
        pointer = f"/blocks/{escape(block_id)}"
        if not ID_PATTERN.fullmatch(block_id):
            message = f'"{block_id[:140]}" cannot be an id. Use 1 to 128 letters, digits and . _ -'
            report.add("id_invalid", pointer, message, block=block_id)
        block = _block(block_id, raw, pointer, report)
        if block is not None:
            blocks[block_id] = block
    return blocks


def _block(block_id: str, raw: Any, pointer: str, report: Report) -> BlockDoc | None:
    own, policy = raw, None
    if isinstance(raw, dict):
        own = {**raw, "id": block_id, "name": block_id if raw.get("name") is None else raw["name"]}
        policy = own.pop("policy", None)
    block: BlockDoc | None = _convert(own, BlockDoc, pointer, report, block_id)
    if block is None:
        return None
    _unknown_fields(raw, _BLOCK, pointer, report, block_id)
    decoded = block.policy
    if policy is not None:
        where = f"{pointer}/policy"
        decoded = _part(policy, PolicyDoc, where, report, block_id) or decoded
        for name, kind in (("retry", RetryDoc), ("cache", CacheDoc), ("limit", BlockLimitDoc)):
            if getattr(decoded, name) is not None:
                _unknown_fields(policy[name], _fields(kind), f"{where}/{name}", report, block_id)
    name = block.name.strip() or block_id
    if policy is None and name == block.name:
        return block
    return msgspec.structs.replace(block, name=name, policy=decoded)


def _edges(value: Any, limits: Limits, report: Report) -> list[EdgeDoc]:
    if value is None:
        return []
    if not isinstance(value, list):
        report.add("field_invalid", "/edges", "`edges` must be a list.")
        return []
    if len(value) > limits.edges:
        report.add("too_many_edges", "/edges", f"The document has {len(value):,} edges. The limit is {limits.edges:,}.")
        return []
    edges: list[EdgeDoc] = []
    for index, raw in enumerate(value):
        edge = _convert(raw, _Edge, f"/edges/{index}", report)
        if edge is not None:
            _unknown_fields(raw, _EDGE, f"/edges/{index}", report)
            edges.append(EdgeDoc(edge.source, edge.target, edge.handle or "out", index))
    return edges


def _convert(value: Any, kind: Any, pointer: str, report: Report, block: str | None = None) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `")
        at = pointer + _pointer_of(place)
        missing = lacking(message)
        whole = at if missing is None else f"{at}/{missing}"
        name = name_in_form(whole.split("/")[1:])
        if missing is not None and name is not None:
            report.add("field_invalid", whole, f"{name} is required.", block=block)
        else:
            report.add("field_invalid", at, of_field(message, name or _named(at), _PATTERNS), block=block)
        return None


def _named(pointer: str) -> str:
    """`timeout_s`; `limits, item 2`."""
    *_, around, last = ["", "", *pointer.split("/")]
    return f"{around}, item {int(last) + 1}" if last.isdecimal() else last or "The document"


def _pointer_of(place: str) -> str:
    """Convert msgspec's `$.retry.max_attempts` or `$[...]` to a pointer such as `/retry/max_attempts`."""
    return "".join(f"/{part}" for part in re.findall(r"\.(\w+)", place))


@cache
def _fields(kind: type[Struct]) -> frozenset[str]:
    return frozenset(kind.__struct_fields__)


def _unknown_fields(raw: Any, known: Any, pointer: str, report: Report, block: str | None = None) -> None:
    if not isinstance(raw, dict) or (raw.keys() <= known if isinstance(known, frozenset) else False):
        return
    for key in raw:
        if key not in known and not key.startswith("x-"):
            message = f'There is no field "{key[:80]}" here. It is ignored.'
            report.add(
                "field_unknown",
                f"{pointer}/{escape(key)}",
                message,
                hint=partial(suggest, key, known),
                block=block,
                field=key,
            )
