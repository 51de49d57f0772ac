"""The tasks that are left before a workflow runs, such as to connect an account: made of the findings about it and of
the block types, in the order in which a person does them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from compiler.catalog import Catalog
from compiler.diagnostics import Diagnostic
from compiler.references import escape, find, unescape

Kind = Literal["connect", "secret", "model", "python", "replace", "choose", "fill", "triggers"]
TASKS_MAX: Final = 200
_ORDER: Final = {kind: n for n, kind in enumerate(get_args(Kind))}
_NAMED_MAX: Final = 3


class Task(Struct, frozen=True, omit_defaults=True):
    """One thing to do. `id` stays the same until it is done; `pointers` are the params that it fills in.

    connect   an account of a service, for all blocks of its type. `name`: the connection that the blocks name already,
              which is not there or not signed in
    secret    store the secret `name`
    model     give the blocks a model that the server can ask; `name` is its endpoint
    python    build Python on the machine of the server
    replace   a block or a tool that was not imported
    choose    a value that the service lists: see `x-ui.choices` of the param
    fill      another param that is required
    triggers  publish the workflow: these blocks start runs from then on
    """

    id: str
    kind: Kind
    title: str
    blocks: tuple[str, ...]
    pointers: tuple[str, ...] = ()
    type: str = ""
    name: str = ""
    hint: str = ""


class _Place(Struct, frozen=True):
    """A param, of a block or of the tool of an agent. `called` names them."""

    block: str
    called: str
    type: str
    params: Mapping[str, Any]
    at: str
    name: str


def tasks(
    document: Any, found: Iterable[Diagnostic], catalog: Catalog, unready: Callable[[str], str] = lambda model: ""
) -> tuple[Task, ...]:
    """Return the tasks of a document of weft/1. `found` are the findings about it; `unready` returns what is missing
    for a model, or nothing."""
    blocks = document.get("blocks") if isinstance(document, Mapping) else None
    blocks = blocks if isinstance(blocks, Mapping) else {}
    made: dict[str, Task] = {}
    for task in (*_of_findings(blocks, found, catalog), *_models(blocks, catalog, unready)):
        first = made.setdefault(task.id, task)
        if first is not task:
            joined = {name: tuple(dict.fromkeys((*getattr(first, name), *getattr(task, name)))) for name in _JOINED}
            made[task.id] = replace(first, **joined)
    listed = sorted(made.values(), key=lambda task: _ORDER[task.kind])[:TASKS_MAX]
    starting = [id for id, block in blocks.items() if _starts(block, catalog)] if listed else []
    return (*listed, *([_triggers(blocks, starting)] if starting else []))


_JOINED: Final = ("blocks", "pointers")


def _of_findings(blocks: Mapping[str, Any], found: Iterable[Diagnostic], catalog: Catalog) -> Iterator[Task]:
    for each in found:
        block = each.block or _block_in(each.pointer)
        if block not in blocks:
            continue
        match each.code:
            case "required":
                yield from _required(each, blocks, block, catalog)
            case "connection_unknown" | "connection_needs_sign_in":
                if (place := _place(blocks, block, each.pointer)) is not None:
                    name = str(place.params.get(place.name, ""))
                    yield _connect(place, catalog, name)
            case "env_unknown":
                for name in dict.fromkeys(one.text for one in find(_text(blocks, each.pointer)) if one.env):
                    if f"${{{name}}}" in each.message:
                        title = f"Set the secret {name}"
                        yield Task(f"secret:{name}", "secret", title, (block,), (each.pointer,), "", name, each.hint)
            case "python_missing":
                yield Task("python", "python", "Build Python", (block,), hint=each.hint)
            case "not_imported":
                what = _called(blocks, block)
                if (place := _place(blocks, block, f"{each.pointer}/workflow")) is not None and "tools" in place.at:
                    what = f"the tool {place.called} of {what}"
                yield Task(
                    f"replace:{each.pointer}", "replace", f"Replace {what}", (block,), (each.pointer,), hint=each.hint
                )


def _required(each: Diagnostic, blocks: Mapping[str, Any], block: str, catalog: Catalog) -> Iterator[Task]:
    pointer = each.pointer
    if each.field and pointer.endswith("/params"):
        pointer = f"{pointer}/{each.field}"
    place = _place(blocks, block, pointer)
    if place is None:
        return
    schema = _schema(place, catalog)
    if place.name == "credential" and "connection" in _properties(place, catalog):
        yield _connect(place, catalog)
        return
    of = f" in {place.called}"
    title = str(schema.get("title") or place.name)
    if "choices" in schema.get("x-ui", {}):
        yield Task(f"choose:{place.at}", "choose", f"Choose {title}{of}", (block,), (place.at,), place.type)
    elif place.name == "model":
        yield Task(f"model:{place.at}", "model", f"Choose a model{of}", (block,), (place.at,), place.type)
    else:
        yield Task(f"fill:{place.at}", "fill", f"Fill in {title}{of}", (block,), (place.at,), place.type)


def _connect(place: _Place, catalog: Catalog, name: str = "") -> Task:
    spec = catalog.get(place.type)
    at = f"{place.at.rpartition('/')[0]}/connection"
    title = f"Connect {spec.title if spec is not None and spec.category == 'connector' else place.called}"
    return Task(f"connect:{place.type}:{name}", "connect", title, (place.block,), (at,), place.type, name)


def _models(blocks: Mapping[str, Any], catalog: Catalog, unready: Callable[[str], str]) -> Iterator[Task]:
    for id, block in blocks.items():
        place = _place(blocks, id, f"{_params_at(id)}/model")
        if (
            place is None
            or block.get("enabled") is False
            or not {"model", "api_key"} <= set(_properties(place, catalog))
        ):
            continue
        model = place.params.get("model")
        has_key = any(place.params.get(name) for name in ("api_key", "connection"))
        if isinstance(model, str) and model and not any(find(model)) and not has_key and (hint := unready(model)):
            endpoint = model.partition(":")[0]
            title = f"Set up the models of {endpoint}"
            at = f"{_params_at(id)}/model"
            yield Task(f"model:{endpoint}", "model", title, (id,), (at,), place.type, endpoint, hint)


def _triggers(blocks: Mapping[str, Any], starting: list[str]) -> Task:
    named = [_called(blocks, id) for id in starting[:_NAMED_MAX]]
    more = f" and {len(starting) - _NAMED_MAX} more" if len(starting) > _NAMED_MAX else ""
    hint = "They start runs from then on. Until all is done, leave them off."
    return Task("triggers", "triggers", f"Publish, to turn on {', '.join(named)}{more}", tuple(starting), hint=hint)


def _starts(block: Any, catalog: Catalog) -> bool:
    """Return whether a block starts runs by itself once its workflow is published."""
    if not isinstance(block, Mapping) or block.get("enabled") is False:
        return False
    spec = catalog.get(str(block.get("type")))
    return spec is not None and spec.trigger and not spec.preferred


def _place(blocks: Mapping[str, Any], block: str, pointer: str) -> _Place | None:
    """Return the param at a pointer, which may lead into the params of a tool."""
    own = blocks.get(block)
    steps = [unescape(step) for step in pointer.split("/")[1:]]
    if not isinstance(own, Mapping) or len(steps) < 4 or steps[:1] != ["blocks"] or steps[2] != "params":
        return None
    params = own.get("params")
    params = params if isinstance(params, Mapping) else {}
    at, called = f"{_params_at(block)}/{pointer.split('/')[4]}", _called(blocks, block)
    if steps[3] != "tools" or len(steps) < 6:
        return _Place(block, called, str(own.get("type")), params, at, steps[3])
    tools = params.get("tools")
    tool = (
        tools[int(steps[4])] if isinstance(tools, list) and steps[4].isdecimal() and int(steps[4]) < len(tools) else {}
    )
    tool = tool if isinstance(tool, Mapping) else {}
    called = f'"{str(tool.get("name") or tool.get("workflow") or steps[4])[:80]}"'
    inner = tool.get("params")
    if steps[5] != "params" or len(steps) < 7:
        return _Place(block, called, "", tool, "/".join(pointer.split("/")[:7]), steps[5])
    of_tool = inner if isinstance(inner, Mapping) else {}
    return _Place(block, called, str(tool.get("block")), of_tool, "/".join(pointer.split("/")[:8]), steps[6])


def _params_at(block: str) -> str:
    return f"/blocks/{escape(block)}/params"


def _properties(place: _Place, catalog: Catalog) -> Mapping[str, Any]:
    spec = catalog.get(place.type)
    found: Mapping[str, Any] = spec.params.get("properties", {}) if spec is not None else {}
    return found


def _schema(place: _Place, catalog: Catalog) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _properties(place, catalog).get(place.name, {})
    return found


def _called(blocks: Mapping[str, Any], id: str) -> str:
    block = blocks[id]
    return f'"{str((block.get("name") if isinstance(block, Mapping) else "") or id)[:80]}"'


def _block_in(pointer: str) -> str:
    steps = pointer.split("/")
    return unescape(steps[2]) if len(steps) > 2 and steps[1] == "blocks" else ""


def _text(blocks: Mapping[str, Any], pointer: str) -> str:
    value: Any = {"blocks": blocks}
    for step in pointer.split("/")[1:]:
        value = _item(value, unescape(step))
    return value if isinstance(value, str) else ""


def _item(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return value[int(name)] if name.isdecimal() and len(name) < 6 and int(name) < len(value) else None
    return value.get(name) if isinstance(value, Mapping) else None
