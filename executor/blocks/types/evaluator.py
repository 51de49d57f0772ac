"""`evaluator`: a language model scores a text by metrics, each between its bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compiler.catalog import Finding, Params
from executor.blocks.llm.base import Message
from executor.blocks.types.asking import ATTEMPTS, SPENT, ModelParams, ask
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import TypedParams, invalid, listed, param, repeated, shape
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.payload import render

_NAME = "^[A-Za-z][A-Za-z0-9_]{0,63}$"
_BOUNDS = {"min": 0.0, "max": 10.0}


class _Metric(TypedParams):
    name: str = param("Name", "Letters, digits and _; a letter first.", required=True, pattern=_NAME)
    description: str | None = param("Description", "What it measures.", widget="longtext", rows=2)
    min: float = param("Lowest score", "Lower scores are refused.", default=0)
    max: float = param("Highest score", "Higher scores are refused.", default=10)


class _Params(ModelParams, shift=2, required=("model",)):
    content: Any = param("Content", "What is scored.", order=1, widget="longtext", rows=4)
    metrics: list[_Metric] = param("Metrics", "Each gets a score.", required=True, order=2, minItems=1, maxItems=20)
    instructions: Any = param(
        "Instructions",
        "More about how to score.",
        order=9,
        widget="longtext",
        rows=3,
        advanced=True,
        type="string",
    )


def _check(params: Params) -> tuple[Finding, ...]:
    found: list[Finding] = []
    for at, metric in listed(params.get("metrics")):
        low, high = (metric.get(bound, default) for bound, default in _BOUNDS.items())
        if _is_number(low) and _is_number(high) and low >= high:
            message = f"The lowest score {low:g} is not below the highest score {high:g}."
            found.append(Finding("param_invalid", f"/metrics/{at}/min", message))
    return (*found, *repeated(params, "metrics", "name", "metric"))


def _output_from(params: Params) -> dict[str, Any]:
    metrics = params.get("metrics")
    names = (
        [m["name"] for m in metrics if isinstance(m, dict) and isinstance(m.get("name"), str)]
        if isinstance(metrics, list)
        else []
    )
    return shape(
        scores={"type": "object", "properties": {name: {"type": "number"} for name in names}},
        reasons={"type": "object", "properties": {name: {"type": "string"} for name in names}},
        **SPENT,
    )


@block_type(
    type="evaluator",
    title="Evaluator",
    description="Has a language model score a text.",
    category="action",
    params=_Params.json_schema,
    check=_check,
    effect="read",
    attempts=ATTEMPTS,
    output_from=_output_from,
    sentence="{model} scores {metrics[].name} | Score {metrics[].name}",
    icon="evaluator",
)
async def block(ctx: StepContext) -> Done:
    """Output {"scores", "reasons", "model", "usage", "cost"}. Raises BlockError: params_invalid; output_invalid
    when a score is missing or out of bounds, twice; and those of ModelClient.reply."""
    params = _Params(ctx.params)
    metrics = _metrics(params.metrics)
    lines = [f"- {name}, from {low:g} to {high:g}: {about}" for name, (about, low, high) in metrics.items()]
    more = render(params.instructions or "")
    system = "Score the content of the next message by these metrics:\n" + "\n".join([*lines, more]).strip()
    scored = {
        name: {
            "type": "object",
            "description": f"{about} From {low:g} to {high:g}.".strip(),
            "properties": {
                "reason": {"type": "string", "description": "Why, in one sentence."},
                "score": {"type": "number"},
            },
            "required": ["reason", "score"],
            "additionalProperties": False,
        }
        for name, (about, low, high) in metrics.items()
    }
    schema = {
        "type": "object", "properties": scored, "required": list(scored), "additionalProperties": False,
    }  # fmt: skip

    def out_of_bounds(answer: dict[str, Any]) -> Sequence[str]:
        return [
            f"{name}: the score {answer[name]['score']} is not between {low:g} and {high:g}"
            for name, (_, low, high) in metrics.items()
            if not low <= answer[name]["score"] <= high
        ]

    messages = [Message("system", system), Message("user", render(params.content) or "(no content)")]
    answer, spent = await ask(ctx, params, messages, schema, out_of_bounds)
    scores = {name: answer[name]["score"] for name in metrics}
    reasons = {name: answer[name]["reason"] for name in metrics}
    return Done({"scores": scores, "reasons": reasons, **spent.as_output()})


def _metrics(listed: Sequence[_Metric]) -> dict[str, tuple[str, float, float]]:
    """Return name -> description, lowest and highest score. Raises BlockError(params_invalid)."""
    found: dict[str, tuple[str, float, float]] = {}
    for metric in listed:
        if metric.min >= metric.max:
            raise invalid(f"the lowest score of {metric.name} must be below its highest score")
        found[metric.name] = ((metric.description or "").strip(), metric.min, metric.max)
    if not found:
        raise invalid("metrics is required")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
