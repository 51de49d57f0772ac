"""An evaluation: with which model a document is played, on which rows beside recorded runs, and how results are scored.

A row has no recording: its blocks that would reach outside stop, except models that may be called, and blocks whose
outputs the row has. A judge is a workflow that is played in the same way, on {input, output, expected}."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from statistics import fmean
from typing import Annotated, Any, Final, Literal

import orjson
from msgspec import Meta, Struct

from executor.blocks.connectors.pages import at
from executor.errors import BadRequest, BlockError
from executor.kernel.handler.needs import Sandbox
from executor.kernel.journal.given import is_same
from executor.kernel.values.payload import render
from executor.service.replay.calling import MODELS
from executor.service.views.diff import PREVIEW_CHARS, ValueDiff, value_diffs
from executor.service.views.run import Slices

ROWS_MAX: Final = 200  # of one request
_SPENT: Final = frozenset({"model", "usage", "cost"})  # in the output of a block that asked a model
_ASIDE: Final = _SPENT | {"rounds", "tool_calls", "memory"}


class DataRow(Struct, forbid_unknown_fields=True):
    """The input of a run that there was not. `expected`: what its output is compared with; `pins`: outputs that stand
    for those of blocks, by their ids."""

    input: Any = None
    expected: Any = None
    pins: dict[str, Any] = {}


class Judge(Struct, forbid_unknown_fields=True):
    """A workflow that returns a score, or a model and the criteria by which an `evaluator` block scores with it."""

    workflow: str | None = None
    model: str | None = None
    criteria: str = ""


class Scorer(Struct, forbid_unknown_fields=True):
    """`at`: the JSON pointer of the value in the output of the run. `expected`: of all rows; else that of the row, or
    the recorded output. `contains`: the value as text has the expected text; `regex`: the expected pattern
    (JavaScript) matches it."""

    by: Literal["same", "contains", "regex", "judge"] = "same"
    at: str = ""
    expected: Any = None
    judge: Judge | None = None


class CallModels(Struct, forbid_unknown_fields=True):
    """No call is made once `budget_usd` is spent."""

    budget_usd: Annotated[float, Meta(ge=0, le=100_000)]


class Evaluation(Struct, forbid_unknown_fields=True):
    """`model` replaces that of all blocks that ask one. Without `call_models` a model that is asked for something else
    is not called. `rows` are played instead of recorded runs."""

    model: str | None = None
    call_models: CallModels | None = None
    rows: Annotated[list[DataRow], Meta(max_length=ROWS_MAX)] | None = None
    score: Scorer | None = None


class Scored(Struct, frozen=True):
    """`value`: from 0 to 1, null if there is no score, then `reason` is why. `output`: the beginning of the value as
    JSON. `difference`: the first one between the expected value (`a`) and this."""

    value: float | None
    reason: str
    output: str = ""
    difference: ValueDiff | None = None


def with_model(document: Any, model: str) -> Any:
    """Return the document with this model in all blocks that ask one. Raises BadRequest: there is none."""
    given = document.get("blocks") if isinstance(document, Mapping) else None
    blocks = given if isinstance(given, Mapping) else {}
    changed = {
        id: {**block, "params": {**block["params"], "model": model}}
        for id, block in blocks.items()
        if isinstance(block, Mapping) and block.get("type") in MODELS and "model" in (block.get("params") or {})
    }
    if not changed:
        hint = "leave out the model, or name a document that has an agent, an evaluator or a model router"
        raise BadRequest(f"no block asks a model that could be {model}", code="model_unused", hint=hint)
    return {**document, "blocks": {**blocks, **changed}}


def with_pins(document: Any, pins: Mapping[str, Any]) -> Any:
    """Raises BadRequest: there is no such block."""
    blocks = document["blocks"]
    if unknown := next((id for id in pins if id not in blocks), None):
        hint = f"the document has {', '.join(sorted(blocks))[:PREVIEW_CHARS]}"
        raise BadRequest(f"/rows: a row pins block '{unknown}', which is not there", code="pin_unknown", hint=hint)
    return {**document, "blocks": {**blocks, **{id: {**blocks[id], "pin": {"output": pins[id]}} for id in pins}}}


def judge_of(judge: Judge) -> dict[str, Any]:
    """Return a workflow of one evaluator. Raises BadRequest."""
    if judge.model is None or not judge.criteria.strip():
        hint = "give /score/judge a workflow, or a model and criteria"
        raise BadRequest("a judge is a workflow, or a model with criteria", code="judge_unknown", hint=hint)
    content = "Input: <start.input>\n\nOutput: <start.output>\n\nExpected: <start.expected>"
    metrics = [{"name": "score", "description": judge.criteria, "min": 0, "max": 1}]
    params = {"model": judge.model, "content": content, "metrics": metrics}
    blocks = {"start": {"type": "start"}, "judge": {"type": "evaluator", "params": params}}
    return {"format": "weft/1", "name": "judge", "blocks": blocks, "edges": [{"source": "start", "target": "judge"}]}


def verdict(output: Any) -> tuple[float | None, str]:
    """Return the score that the output of a judge is, and its reason."""
    fields = output if isinstance(output, Mapping) else {"score": output}
    found, why = (fields.get(one, fields.get(f"{one}s")) for one in ("score", "reason"))
    listed = list(found.values()) if isinstance(found, Mapping) else [found]
    numbers = [float(each) for each in listed if isinstance(each, int | float) and 0 <= each <= 1]
    if not numbers or len(numbers) < len(listed):
        shown = render(output)[:PREVIEW_CHARS]
        return None, f"the judge returned {shown}: a score is a number from 0 to 1, true or false"
    return fmean(numbers), "; ".join(map(str, why.values())) if isinstance(why, Mapping) else str(why or "")


def scored_part(output: bytes | None, pointer: str) -> Any:
    """Return the value at a pointer; of the whole output of an agent its content, of a function its result."""
    value = orjson.loads(output or b"null")
    if pointer:
        return at(pointer, value)
    if isinstance(value, dict) and value.keys() == {"result", "stdout"}:
        return value["result"]
    if isinstance(value, dict) and value.keys() >= _SPENT:
        value = value["content"] if "content" in value else {k: v for k, v in value.items() if k not in _ASIDE}
    return value


async def compared(scorer: Scorer, value: Any, expected: Any, sandbox: Sandbox) -> Scored:
    """Score without a judge."""
    shown = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    differences, _ = await value_diffs(orjson.dumps(expected), shown, Slices())
    text, preview, wanted = render(value), shown.decode()[:PREVIEW_CHARS], render(expected)
    if expected is None:
        return Scored(None, "no value is expected", preview)
    if scorer.by == "regex":
        try:
            fits = await asyncio.to_thread(sandbox.matches, wanted, text)
        except BlockError as error:
            return Scored(None, error.message, preview)
    else:
        fits = wanted in text if scorer.by == "contains" else is_same(value, expected) or text == expected
    is_compared = scorer.by in ("same", "judge") and not fits
    return Scored(float(fits), "", preview, differences[0] if differences and is_compared else None)
