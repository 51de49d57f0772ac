"""The settings of schedules and webhooks as rows, and those that a document declares. Storing a version stores them
with it.

A public form and a chat are rows of the webhooks with a page of their own, so the id has a prefix
(`form:orders:intake`, `chat:orders:ask`), and the token in its address stands for the secret that a webhook has. Ids of
blocks and of the API hold no colon.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

import orjson
from msgspec import Meta, Struct
from msgspec.structs import replace

from compiler.catalog import EVENT
from compiler.plan import Node, Plan
from compiler.references import escape
from executor.blocks.connectors.events import EventBlock
from executor.blocks.types.form_trigger import WAIT_S
from executor.blocks.types.polled import SAME_SOURCE, Polling
from executor.blocks.types.webhook import HEADER_NAME
from executor.errors import BadRequest, Conflict, InputInvalid
from executor.kernel.process.acting import present_actor
from executor.kernel.process.threads import aside
from executor.kernel.read.find import find_version
from executor.kernel.run.imports import as_ours
from executor.kernel.run.new_run import check_input
from executor.kernel.store.topics.schedules import UNREAD, CatchUp, Origin, Overlap, ScheduleRow
from executor.kernel.store.topics.webhooks import Auth, Respond, WebhookRow
from executor.kernel.store.topics.workflows import VERSION_MAX, Declared
from executor.kernel.values import cron
from executor.service.parts import Parts
from executor.service.views import view_of

TYPES: Final = frozenset({"schedule", "webhook", "form_trigger", "chat_trigger"})
FORM: Final = "form:"
CHAT: Final = "chat:"
Pages = Literal["form", "chat"]
# Such a name may be part of an address: no percent signs in addresses that people copy.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
SHORT: Final = 60
WEBHOOK_TIMEOUT_S: Final = 30.0
API_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")  # ids that people choose
ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
Version = Annotated[int, Meta(ge=1, le=VERSION_MAX)]


# Described here and checked in `webhooks`, whose message is better than that of a pattern.
HeaderName = Annotated[str, Meta(extra_json_schema={"pattern": f"^{HEADER_NAME.pattern}$"})]
EnvName = Annotated[str, Meta(extra_json_schema={"pattern": f"^{ENV_NAME.pattern}$"})]


class ScheduleSpec(Struct, forbid_unknown_fields=True):
    """The settings of a schedule. `version` defaults to the active one, `trigger` to the trigger of the workflow."""

    workflow: str
    cron: Annotated[str, Meta(extra_json_schema=cron.EXPRESSION_SCHEMA)]
    tz: str = "UTC"
    version: Version | None = None
    trigger: str | None = None
    input: dict[str, Any] = {}
    enabled: bool = True
    overlap: Overlap = "skip"
    catch_up: CatchUp = "one"


class WebhookSpec(Struct, forbid_unknown_fields=True):
    """The settings of a webhook. `version` defaults to the active one, `trigger` to the trigger of the workflow. A
    trigger of type `webhook` gets the whole request, other triggers get its body."""

    workflow: str
    version: Version | None = None
    trigger: str | None = None
    auth: Auth = "hmac"
    secret_env: EnvName | None = None
    respond: Respond = "immediate"
    timeout_s: Annotated[float, Meta(gt=0, le=60)] = WEBHOOK_TIMEOUT_S
    headers: Annotated[list[HeaderName], Meta(max_length=50)] = []
    enabled: bool = True


Spec = TypeVar("Spec", ScheduleSpec, WebhookSpec)


def check_own_id(what: Literal["schedule", "webhook"], id: str) -> None:
    """Raises BadRequest, and Conflict for an id of a document, which has a colon in it."""
    if ":" in id:
        raise of_document(what, id)
    if not API_ID.fullmatch(id):
        raise BadRequest(
            f"{id[:80]!r} is not a valid {what} id", code="id_invalid", hint="use only letters, digits, _ . and -"
        )


def of_document(what: Literal["schedule", "webhook"], id: str) -> Conflict:
    rotate = " and rotate its secret" if what == "webhook" else ""
    return Conflict(
        f"{what} '{id}' belongs to a block of its workflow",
        code="declared_by_document",
        hint=f"change the block and publish a new version; here you can only enable or disable it{rotate}",
    )


def trigger_id(workflow: str, block: str) -> str:
    """Return `workflow:block`. A name that would need escaping in an address becomes a short safe form and a hash."""
    if not _PLAIN.fullmatch(workflow):
        short = re.sub(r"[^A-Za-z0-9_.-]+", "-", workflow).strip("-")[:SHORT]
        workflow = f"{short}~{hashlib.sha256(workflow.encode()).hexdigest()[:10]}"
    return f"{workflow}:{block}"


def page_of(id: str) -> tuple[Pages, str] | None:
    """Return ("form", `orders:intake`) for `form:orders:intake`, or None if the id has no public page."""
    if id.count(":") != 2:
        return None
    if id.startswith(FORM):
        return "form", id.removeprefix(FORM)
    return ("chat", id.removeprefix(CHAT)) if id.startswith(CHAT) else None


async def declared_by(parts: Parts, workflow: str, document: Any) -> Declared:
    """Return the triggers that `document` declares, stored as `workflow`. Raises CompileError if one of its triggers
    cannot start runs, InputInvalid if the input of a schedule does not fit: a schedule that can only fail is no
    version."""
    now_ms = parts.clock.now_ms()
    schedules: list[ScheduleRow] = []
    webhooks: list[WebhookRow] = []
    for block, kind, params in await aside(partial(_blocks, document)):
        plan = await parts.compiler.plan(document, block)
        id = trigger_id(workflow, block)
        if kind.startswith(EVENT):
            schedules.append(_polled(parts, id, workflow, block, kind, params, now_ms))
            continue
        if kind == "schedule":
            schedules.append(await _schedule(parts, plan, id, workflow, block, params, now_ms))
            continue
        if kind != "webhook":
            id = (FORM if kind == "form_trigger" else CHAT) + id
            wait_s = float(params.get("wait_s", WAIT_S)) if kind == "form_trigger" else WEBHOOK_TIMEOUT_S
            respond = "run" if kind == "form_trigger" and wait_s else "immediate"
            page = {"auth": "token", "respond": respond, "timeout_s": wait_s}
            params = {**page, "enabled": params.get("enabled", True)}
        webhooks.append(webhook_row(id, _spec(WebhookSpec, workflow, block, params), now_ms, "document"))
    return Declared(tuple(schedules), tuple(webhooks))


def draft_webhook(document: Any, id: str, trigger: str, now_ms: int) -> WebhookRow | None:
    """Return the row that the block `trigger` of this document would be; None if it is no enabled webhook."""
    for block, kind, params in _blocks(document):
        if block == trigger and kind == "webhook":
            return webhook_row(id, _spec(WebhookSpec, "", block, params), now_ms, "document")
    return None


def turned_off(declared: Declared) -> Declared:
    """Return the same with all schedules and webhooks off. Triggers that a document declares off keep the state that
    people set, so one that is turned on by hand stays on."""
    return Declared(
        tuple(replace(row, enabled=False, declared=False) for row in declared.schedules),
        tuple(replace(row, enabled=False, declared=False) for row in declared.webhooks),
    )


class StartOf(NamedTuple):
    """A stored workflow as one trigger starts it: its name and version, its plan, and the trigger's node."""

    workflow: str
    version: int
    plan: Plan
    node: Node

    @property
    def params(self) -> dict[str, Any]:
        params: dict[str, Any] = orjson.loads(bytes(self.node.params))
        return params


async def start_of(parts: Parts, row: ScheduleRow | WebhookRow) -> StartOf:
    stored = await find_version(parts.store, row.workflow, row.version)
    plan = await parts.compiler.plan(stored.document, row.trigger)
    return StartOf(stored.name, stored.version, plan, plan.nodes[plan.regions[0].entries[0]])


def _blocks(document: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """List id, type and params of enabled trigger blocks that become rows. The document compiles."""
    blocks = as_ours(document).document.get("blocks") if isinstance(document, Mapping) else None
    return [
        (id, block["type"], block.get("params") or {})
        for id, block in (blocks.items() if isinstance(blocks, Mapping) else ())
        if isinstance(block, Mapping) and _is_row(block.get("type")) and block.get("enabled", True)
    ]


def _is_row(type: Any) -> bool:
    return isinstance(type, str) and (type in TYPES or type.startswith(EVENT))


def schedule_row(id: str, spec: ScheduleSpec, now_ms: int, origin: Origin) -> ScheduleRow:
    return view_of(
        ScheduleRow,
        spec,
        id=id,
        input=orjson.dumps(spec.input),
        declared=spec.enabled if origin == "document" else None,
        origin=origin,
        next_run_at_ms=cron.parse(spec.cron, spec.tz).next(now_ms),
        created_at_ms=now_ms,
        updated_at_ms=now_ms,
        made_by=present_actor(),
    )


def webhook_row(id: str, spec: WebhookSpec, now_ms: int, origin: Origin) -> WebhookRow:
    return view_of(
        WebhookRow,
        spec,
        id=id,
        generation=new_generation(),
        timeout_ms=max(1, round(spec.timeout_s * 1000)) if spec.timeout_s else 0,
        headers=orjson.dumps(spec.headers),
        declared=spec.enabled if origin == "document" else None,
        origin=origin,
        created_at_ms=now_ms,
        updated_at_ms=now_ms,
    )


def new_generation() -> int:
    """Return a random one: a webhook that is created again under an old id must not have its old secret."""
    return secrets.randbits(62)


async def _schedule(
    parts: Parts, plan: Plan, id: str, workflow: str, block: str, params: Mapping[str, Any], now_ms: int
) -> ScheduleRow:
    spec = _spec(ScheduleSpec, workflow, block, params)
    try:
        await check_input(plan, spec.input, parts.services.sandbox.matches)
    except InputInvalid as error:
        inside = (error.pointer or "").removeprefix("/input")
        raise InputInvalid(
            f"block {block!r}: {error.message}",
            code=error.code,
            pointer=f"/blocks/{escape(block)}/params/input{inside}",
            hint=error.hint,
            **error.extra,
        ) from error
    return schedule_row(id, spec, now_ms, "document")


def _polled(
    parts: Parts, id: str, workflow: str, block: str, type: str, params: Mapping[str, Any], now_ms: int
) -> ScheduleRow:
    """Return the row of a trigger that polls, from now on. What makes it another source is its `input`; what makes it
    another registration at the service, its `push`."""
    polling = Polling(params)
    source = {"type": type, **{name: value for name, value in params.items() if name not in SAME_SOURCE}}
    spec = ScheduleSpec(workflow, f"@every {polling.every_s}s", trigger=block, overlap="allow", enabled=polling.enabled)
    row = schedule_row(id, spec, now_ms, "document")
    settings = orjson.dumps(source, option=orjson.OPT_SORT_KEYS)
    push = None
    handler = parts.registry.handler(type)
    if isinstance(handler, EventBlock) and handler.is_pushed(params):
        given = {name: value for name, value in params.items() if name not in Polling.declared}
        push = orjson.dumps({"type": type, "params": given}, option=orjson.OPT_SORT_KEYS)
    return replace(row, input=settings, next_run_at_ms=now_ms, poll=UNREAD, push=push)


def _spec(kind: type[Spec], workflow: str, block: str, params: Mapping[str, Any]) -> Spec:
    """Return the settings in the params of a trigger block, which have the same names."""
    given = {name: params[name] for name in kind.__struct_fields__ if params.get(name) is not None}
    return kind(**{**given, "workflow": workflow, "version": None, "trigger": block})
