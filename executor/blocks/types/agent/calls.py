"""Calls of tools: the approval of a person, blocks and runs of workflows.

In the params of a block `{{name}}` is the argument of that name: its value if the text is nothing else, its text inside
of another one. It is encoded for that text: in a URL it is one part of a path or of a query and nothing more, in JSON
it stays in its string (`executor.kernel.values.places`). The model fills in the fields of an operation of a connector
and the parameters of a query, and never what is asked, by which credential; the code of a function has the arguments as
a value, in `args`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from inspect import isawaitable, signature
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

from msgspec.structs import replace

from compiler.catalog import may_repeat
from compiler.plan import Retry
from compiler.tracing.steps import Step
from executor.blocks.http.binding import using
from executor.blocks.sandbox.simple import Unsure, compile_simple
from executor.blocks.types.agent.tools import PLACE, Tool, takes_arguments
from executor.blocks.types.params import invalid
from executor.blocks.types.typed import raised_in
from executor.errors import BadRequest, BlockError
from executor.kernel.core.decide_attempts import delay_ms
from executor.kernel.core.events import StepEffect
from executor.kernel.handler.base import Access, Block, ChildRequest, Done, StepContext, Steps, Suspend
from executor.kernel.values.payload import Bound, render
from executor.kernel.values.places import fill, form_of
from executor.kernel.values.schema import violations

if TYPE_CHECKING:
    from executor.kernel.store.run_rows import NewRun

TIMEOUT_S: Final = 300.0  # of a call of a function without a timeout of its own
RESULT_MAX: Final = 256 * 1024  # characters of a result that the model gets


def problem_with(ctx: StepContext, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Return what is wrong with these arguments, or None. Raises BlockError(params_invalid) if the schema is not
    valid."""
    try:
        found = violations(tool.schema, arguments, ctx.services.sandbox.matches)
    except BadRequest as error:
        raise BlockError(error.message, code="params_invalid", retryable=False, hint=error.hint) from error
    return "; ".join(f"{problem['pointer'] or 'arguments'}: {problem['message']}" for problem in found[:5]) or None


async def needs_approval(ctx: StepContext, tool: Tool, arguments: Mapping[str, Any]) -> bool:
    """Return True if a person must approve this call, by the tool or by its function. A condition is evaluated in a
    step, so only once."""
    if tool.step is not None and await _wants_approval(ctx, tool, tool.step, arguments):
        return True
    if tool.given.approve == "write":
        if tool.remote is not None:
            return not tool.remote.reads
        if tool.step is not None:
            return tool.step.effect == "write"
        return tool.block is None or _writes(tool.block, params_of(tool, arguments))
    if tool.given.approve != "if":
        return tool.given.approve == "always"
    condition = tool.given.approve_if
    if not isinstance(condition, Bound):
        return condition not in (None, "", False)

    async def work() -> bool:
        return await is_asked(ctx, condition, tool.schema, arguments)

    return bool(await ctx.step("step", f"approve {tool.name}?", arguments, work, effect="none"))


async def _wants_approval(ctx: StepContext, tool: Tool, step: Step[Any, Any], arguments: Mapping[str, Any]) -> bool:
    condition = step.approve
    if isinstance(condition, bool):
        return condition

    async def work() -> bool:
        given = step.with_defaults(arguments)
        names = signature(condition).parameters
        found = condition(**{name: value for name, value in given.items() if name in names})
        return bool(await found if isawaitable(found) else found)

    return bool(await ctx.step("step", f"approve {tool.name}?", dict(arguments), work, effect="none"))


def _writes(block: Block, params: Mapping[str, Any]) -> bool:
    """Return True if this call changes something outside. A run counts as such, because its effects are not known."""
    spec = block.spec
    return spec.effect == "write" and not (spec.only_reads is not None and spec.only_reads(params))


def question(ctx: StepContext, tool: Tool, arguments: Mapping[str, Any]) -> Suspend:
    """Return the approval request: the arguments can be edited, with one field for each."""
    needed = tool.schema.get("required") or ()
    edited = {name: _field(field, arguments, name, name in needed) for name, field in tool.editable.items()}
    where = {} if tool.server is None else {"server": tool.server.host}
    reason = {"type": "string", "title": "Reason", "description": "The model is informed of it, if you reject."}
    return Suspend(
        "approval",
        request={
            "title": f"Call {tool.name}?",
            "text": tool.description,
            "show": {"tool": tool.name, **where, "arguments": dict(arguments)},
            "actions": ["approve", "reject"],
            **({"by": tool.given.by} if tool.given.by else {}),
        },
        schema={"type": "object", "properties": {**edited, "reason": reason}},
        actions=("approve", "reject"),
    )


def _field(field: Any, arguments: Mapping[str, Any], name: str, needed: bool) -> dict[str, Any]:
    """`needed` is for the form only: a person who rejects the call need not fill in anything."""
    own = field if isinstance(field, dict) else {}
    given = {"default": arguments[name]} if name in arguments else {}
    return {**own, **given, **({"x-ui": {**(own.get("x-ui") or {}), "needed": True}} if needed else {})}


def effect_of(tool: Tool, params: Mapping[str, Any]) -> StepEffect:
    """Return the effect of the step that calls the tool. A call counts as a read if a repeat does no harm or the author
    allows it."""
    if tool.handoff is not None:
        return "none"
    if tool.given.on_lost == "retry" or (tool.step is not None and tool.step.policy.get("on_lost") == "retry"):
        return "read"
    if tool.remote is not None:
        return "read" if tool.remote.reads else "write"
    if tool.step is not None:
        return tool.step.effect
    assert tool.block is not None
    return effect_with(tool.block, params)


def effect_with(block: Block, params: Mapping[str, Any]) -> StepEffect:
    """Return the effect of a step whose work is this block. A call counts as a read if a repeat does no harm."""
    if block.spec.effect == "none":
        return "none"
    if block.spec.category == "connector":  # it recognizes its lost requests by a checkpoint, which a step has not
        return "write" if _writes(block, params) else "read"
    return "read" if may_repeat(block.spec, params) else "write"


class _Inside:
    """The attempt as a block inside of a step sees it: it has no steps, starts no runs, and sends no text."""

    def __init__(self, own: Access, type: str, call: str) -> None:
        self._own = own
        self.type = type
        self.idempotency_key = f"{own.idempotency_key}:{call}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def emit(self, text: str) -> None: ...

    async def checkpoint(self, value: Any) -> None:
        """Keep nothing: the checkpoint is that of the attempt, and its steps share it."""

    def steps(self) -> Steps:
        raise BlockError("blocks of this type have no steps", code="steps_not_available", retryable=False)

    async def prepare_child(self, request: ChildRequest) -> NewRun:
        raise invalid("a block inside of a step cannot start runs")


async def call_block(ctx: StepContext, block: Block, params: dict[str, Any], call: str) -> Any:
    """Return the output of the block. `call` identifies the call in the attempt. Raises BlockError."""
    own = cast(Access, _Inside(ctx.own, block.spec.type, call))
    inner = replace(ctx, own=own, params=params, last_checkpoint=None, steps=None, calls=None)
    with using(params):
        outcome = await block.run(inner)
    assert isinstance(outcome, Done)
    return outcome.output


async def call_step(ctx: StepContext, tool: Tool, step: Step[Any, Any], params: dict[str, Any], call: str) -> Any:
    """Call the function with its time limit, and again after an error as its policy says. Raises BlockError."""
    retry, limit_s = Retry(**step.policy.get("retry", {})), step.policy.get("timeout_s", TIMEOUT_S)
    for tries in count(1):
        try:
            async with asyncio.timeout(limit_s):
                assert tool.block is not None
                return await call_block(ctx, tool.block, params, call)
        except TimeoutError:
            error = BlockError(f"{step.name} took longer than {limit_s:g} s", code="timeout")
        except BlockError as raised:
            error = raised
            if step.retry is not None and not step.retry.permits(raised_in(error)):
                raise
        if tries >= retry.max_attempts or not error.retryable:
            raise error
        pause_ms = delay_ms(retry, f"{ctx.run_id}:{call}", ((), 0), tries)
        await asyncio.sleep(max(pause_ms, (error.retry_at_ms or 0) - ctx.clock()) / 1000)
    raise AssertionError("it counts without an end")


async def child_of(ctx: StepContext, tool: Tool, arguments: Mapping[str, Any]) -> Suspend:
    """Return the run of the workflow. Raises BlockError if there is no such workflow, or the input does not fit."""
    if tool.definition is not None:
        request = ChildRequest(definition=tool.definition, input=dict(arguments))
    else:
        request = ChildRequest(workflow=tool.given.workflow, version=tool.given.version, input=dict(arguments))
    child = await ctx.prepare_child(request)
    title = f"{tool.name}: run of {child.workflow}"
    return Suspend("child", request={"title": title, "run": child.id, "workflow": child.workflow}, child=child)


def params_of(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params of the block for this call. A text is one mail address here, whatever is in it: which of its
    commas the author wrote is not known. Several are a list."""
    assert tool.block is not None
    if tool.given.function is not None:
        return {"function": tool.given.function, "arguments": dict(arguments)}
    spec, given = tool.block.spec, tool.given.params or {}
    if spec.type == "function":
        code = given.get("code")
        return {**given, "code": Bound(_with_args(code, given.get("language")), {ARGS: dict(arguments)})}
    places = {name: value for name, value in given.items() if takes_arguments(spec.type, name)}
    found: dict[str, Any] = given | filled(places, arguments, media_type=_media_type(given))
    for pointer in spec.addresses:
        name = pointer.removeprefix("/")
        if isinstance(found.get(name), str) and found[name]:
            found[name] = [found[name]]
    return found


def _with_args(code: Any, language: Any) -> str:
    if not isinstance(code, str):
        raise invalid("the code of the tool must be a program")
    args = 'args = __v["\\u0000args"]'
    return f"{args}\n{code}" if language == "python" else f"const {args}; {code}"


def filled(value: Any, arguments: Mapping[str, Any], path: tuple[str, ...] = (), media_type: str | None = None) -> Any:
    """Return the params with the arguments in their places, encoded for the text around them. A place without an
    argument is null, or nothing inside a text. `media_type`: of the body."""
    if isinstance(value, dict):
        return {name: filled(inner, arguments, (*path, name), media_type) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, arguments, path, media_type) for inner in value]
    if not isinstance(value, str):
        return value
    whole = PLACE.fullmatch(value.strip())
    if whole is not None:
        return arguments.get(whole[1])
    if path == ("url",):
        return PLACE.sub(lambda place: _in_url(arguments.get(place[1])), value)
    form = form_of(value, PLACE, media_type if path == ("body",) else None)
    return fill(value, PLACE, lambda place: arguments.get(place[1]), form)


def _in_url(value: Any) -> str:
    shown = "" if value is None else render(value)
    encoded = quote(shown, safe="")
    # Encoded or not, a part of a path that is only dots leads up.
    return encoded.replace(".", "%2E") if set(shown) <= {"."} else encoded


def _media_type(params: Mapping[str, Any]) -> str | None:
    headers = params.get("headers")
    named = headers if isinstance(headers, dict) else {}
    return next(
        (text for name, text in named.items() if name.lower() == "content-type" and isinstance(text, str)), None
    )


def shown_result(output: Any) -> str:
    """Return the result as text for the model, cut to RESULT_MAX characters."""
    shown = render(output)
    if len(shown) <= RESULT_MAX:
        return shown
    return f"{shown[:RESULT_MAX]}\n[cut: it has {len(shown)} characters]"


ARGS: Final = "\0args"
# The arguments are passed as a value and never become a part of the program. Besides its result, the program returns if
# the expression read something that is missing, or a text or an object that is not a number, and which arguments it
# read.
PROGRAM: Final = """(() => {
  let missing = false, loose = false
  const read = new Set()
  const watched = (value, name) => {
    if (value === null || value === undefined || (typeof value === 'number' && Number.isNaN(value))) missing = true
    if (typeof value === 'string' && Number.isNaN(Number(value))) loose = true
    if (typeof value !== 'object' || value === null) return value
    return new Proxy(value, { get(of, key) {
      if (key === Symbol.toPrimitive) loose = true
      if (typeof key === 'symbol' || (!Object.hasOwn(of, key) && key in of)) return of[key]
      if (name === undefined) read.add(key)
      return watched(of[key], name ?? key)
    } })
  }
  const says = ((args) => Boolean(%s
))(watched(__v["\\u0000args"]))
  return [says, missing, loose, [...read]]
})()"""
_ORDERS: Final = re.compile(r"(?<!=)[<>]")
_TEXTS: Final = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")
_ARGUMENTS: Final = re.compile(r"(?<![\w$.])args(?![\w$])")


async def is_asked(ctx: StepContext, condition: Bound, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Return True if a person must approve the call (`approve: if`). The result of the expression counts only if it
    compares values of one type: `"60 EUR" > 50` is false, and would let the call through. In doubt, approval is needed.
    Raises the errors of `ctx.evaluate`."""
    values = {**condition.values, ARGS: dict(arguments)}
    [[says, missing, loose, read]] = await ctx.evaluate(
        [replace(condition, source=PROGRAM % condition.source, values=values)]
    )
    if says or missing:
        return True
    alike = _compares_alike(condition, values)
    if alike is not None:
        return not alike
    # An expression that only the sandbox can compute: nothing is known of its comparisons.
    fields = schema.get("properties") or {}
    of_any_type = any(not isinstance(fields.get(name), dict) or "type" not in fields[name] for name in read)
    return of_any_type or (loose and _ORDERS.search(_TEXTS.sub("", condition.source)) is not None)


def _compares_alike(condition: Bound, values: Mapping[str, Any]) -> bool | None:
    """Return True if the expression compares only values of one type, or None if it is too complex to analyse."""
    compute = compile_simple(_ARGUMENTS.sub('__v["\\\\u0000args"]', condition.source), alike=True)
    if compute is None:
        return None
    try:
        compute(values, condition.texts)
    except Unsure:
        return False
    return True
