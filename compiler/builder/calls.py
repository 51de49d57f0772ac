"""Blocks of a document as Python calls: of their class, `Http("https://…", id="hit")`, or of `Block` if the class
cannot express all of it. A call can be carried out, which proves that it fits, or printed (`text.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any, Final

from msgspec import Struct, field

from compiler.builder import actions, control, people, triggers
from compiler.builder.errors import BuildError
from compiler.builder.step import Block, Container


class Call(Struct):
    """`cls(*args, **kwargs)`; among the arguments may be calls, and lists and objects of them."""

    cls: type[Any]
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)


CLASSES: Final[Mapping[str, type[Block]]] = {
    "start": triggers.Start,
    "schedule": triggers.Schedule,
    "webhook": triggers.Webhook,
    "form_trigger": triggers.FormTrigger,
    "chat_trigger": triggers.ChatTrigger,
    "http": actions.Http,
    "email": actions.SendEmail,
    "wait": actions.Sleep,
    "set": actions.Set,
    "variables": actions.Variables,
    "function": actions.Function,
    "sql": actions.Sql,
    "file": actions.File,
    "run_workflow": actions.RunWorkflow,
    "response": actions.Response,
    "continue_as_new": actions.ContinueAsNew,
    "agent": actions.Agent,
    "note": actions.Note,
    "approval": people.Approval,
    "form": people.Form,
    "signal": people.Signal,
    "condition": control.Branch,
    "router": control.Router,
    "loop": control.Loop,
    "parallel": control.Each,
    "break": control.Break,
}
_MODES: Final = {"for": "count", "each": "each", "while": "while_", "until": "until", "do_while": "do_while"}
_OPTIONS: Final = {
    "name": "name",
    "description": "description",
    "assign": "assign_to",
    "output_schema": "output",
    "enabled": "enabled",
    "at": "at",
    "size": "size",
}
_FIELDS: Final = (*_OPTIONS, "policy")  # in this order
_POLICY: Final = ("on_lost", "cache", "limit", "group", "runner", "skip_if")


def carry_out(value: Any) -> Any:
    """Return the objects that the calls in `value` make. Raises BuildError."""
    if isinstance(value, Call):
        arguments = [carry_out(one) for one in value.args]
        return value.cls(*arguments, **{key: carry_out(one) for key, one in value.kwargs.items()})
    if isinstance(value, list):
        return [carry_out(one) for one in value]
    if isinstance(value, dict):
        return {key: carry_out(one) for key, one in value.items()}
    return value


def of_block(block_id: str, block: Mapping[str, Any], parent: str | None, contains: bool) -> Call:
    """Return the call of a block without its steps. `contains`: there are blocks inside it."""
    options = _options(block_id, block, parent)
    cls = CLASSES.get(block["type"])
    params = block.get("params")
    if (
        cls is not None
        and (not contains or issubclass(cls, Container))
        and (params is None or isinstance(params, dict))
    ):
        call = _typed(cls, params or {}, options, "params" in block)
        if _makes(call, block_id, parent, block):
            return call
    if "params" in block:
        options = {"id": block_id, "params": params, **options}
    call = Call(Container if contains else Block, [block["type"]], {"id": block_id} | options)
    return call


def _makes(call: Call, block_id: str, parent: str | None, block: Mapping[str, Any]) -> bool:
    try:
        return bool(carry_out(call).block(block_id, parent) == block)
    except (BuildError, TypeError):
        return False


def _typed(cls: type[Block], params: dict[str, Any], options: dict[str, Any], has_params: bool) -> Call:
    left = dict(params)
    if cls is control.Branch:
        return _branch(left, options)
    kwargs: dict[str, Any] = {}
    if cls is control.Loop:
        mode = _MODES.get(str(left.pop("mode", None)), "count")
        param = {"count": "count", "each": "items"}.get(mode, "condition")
        if param in left:
            kwargs[mode] = left.pop(param)
    elif cls is control.Each and left.get("mode") in ("each", "count"):
        param = "items" if left.pop("mode") == "each" else "count"
        if param in left:
            kwargs[param] = left.pop(param)
    positional, named = _arguments(cls)
    renamed = cls.RENAMED
    args: list[Any] = []
    for argument in positional:
        if renamed.get(argument, argument) not in left:
            break
        args.append(left.pop(renamed.get(argument, argument)))
    for argument in (*positional[len(args) :], *named):
        if (param := renamed.get(argument, argument)) in left:
            kwargs[argument] = left.pop(param)
    if left or (has_params and not params):
        kwargs["params"] = left
    return Call(
        cls, args, {"id": options["id"], **kwargs, **{key: value for key, value in options.items() if key != "id"}}
    )


def _branch(params: dict[str, Any], options: dict[str, Any]) -> Call:
    cases = params.pop("cases", None)
    args = []
    for case in cases if isinstance(cases, list) else ():
        if not isinstance(case, dict) or not isinstance(case.get("id"), str):
            break
        rest = {"title": case["title"]} if "title" in case else {}
        args.append(Call(control.Case, [case["id"], *([case["when"]] if "when" in case else [])], rest))
    if params:
        options = options | {"params": params}
    return Call(control.Branch, args, options)


def _arguments(cls: type[Block]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the positional arguments, and of the others."""
    found = list(signature(cls.__init__).parameters.values())[1:]
    positional = tuple(one.name for one in found if one.kind is Parameter.POSITIONAL_OR_KEYWORD)
    return positional, tuple(one.name for one in found if one.kind is Parameter.KEYWORD_ONLY)


def _options(block_id: str, block: Mapping[str, Any], parent: str | None) -> dict[str, Any]:
    options: dict[str, Any] = {"id": block_id}
    more: dict[str, Any] = {}
    for key in sorted(block, key=lambda key: _FIELDS.index(key) if key in _FIELDS else len(_FIELDS)):
        value = block[key]
        if key in ("type", "params") or (key == "parent" and value == parent):
            continue
        if key == "policy" and isinstance(value, dict):
            options |= _policy(value)
        elif key in _OPTIONS and value is not None:
            options[_OPTIONS[key]] = value
        else:
            more[key] = value
    return options | ({"more": more} if more else {})


def _policy(policy: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    rest = dict(policy)
    retry = rest.get("retry")
    if isinstance(retry, dict):
        options["retry"] = rest.pop("retry")
        if list(retry) == ["max_attempts"] and type(retry["max_attempts"]) is int:
            options["retry"] = retry["max_attempts"]
    if rest.get("timeout_s") is not None:
        options["timeout"] = rest.pop("timeout_s")
    for key in _POLICY:
        if rest.get(key) is not None:
            options[key] = rest.pop(key)
    return options | ({"policy": rest} if rest or not policy else {})
