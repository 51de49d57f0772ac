"""`evaluator`: a language model scores a text by metrics, each between its bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compiler.catalog import BlockSpec, Finding, Params
from executor.blocks.llm.base import Message
from executor.blocks.types.asking import ATTEMPTS, SPENT, ask, model_params
from executor.blocks.types.shared_params import invalid
from executor.kernel.handler.base import Context, Done
from executor.kernel.values.coerce import coerce
from executor.kernel.values.payload import render

_NAME = "^[A-Za-z][A-Za-z0-9_]{0,63}$"
_BOUNDS = {"min": 0.0, "max": 10.0}

_PARAMS: dict[str, Any] = {
    "type": "object",
    "required": ["model", "metrics"],
    "additionalProperties": False,
    "properties": {
        **model_params(3, 1.5),
        "content": {
            "title": "Content",
            "description": "What is scored.",
            "x-ui": {"order": 1, "widget": "longtext", "rows": 4},
        },
        "metrics": {
            "type": "array",
            "title": "Metrics",
            "description": "Each gets a score.",
            "minItems": 1,
            "maxItems": 20,
            "x-ui": {"order": 2, "widget": "list"},
            "items": {
                "type": "object",
                "required": ["name"],
                "additionalProperties": False,
                "properties": {
                    "name": {
                        "type": "string",
                        "title": "Name",
                        "description": "Letters, digits and _; a letter first.",
                        "pattern": _NAME,
                        "x-ui": {"order": 1, "widget": "text"},
                    },
                    "description": {
                        "type": "string",
                        "title": "Description",
                        "description": "What it measures.",
                        "x-ui": {"order": 2, "widget": "longtext", "rows": 2},
                    },
                    "min": {
                        "type": "number",
                        "title": "Lowest score",
                        "description": "Lower scores are refused.",
                        "default": 0,
                        "x-ui": {"order": 3, "widget": "number"},
                    },
                    "max": {
                        "type": "number",
                        "title": "Highest score",
                        "description": "Higher scores are refused.",
                        "default": 10,
                        "x-ui": {"order": 4, "widget": "number"},
                    },
                },
            },
        },
        "instructions": {
            "type": "string",
            "title": "Instructions",
            "description": "More about how to score.",
            "x-ui": {"order": 9, "widget": "longtext", "rows": 3, "advanced": True},
        },
    },
}


def _check(params: Params) -> tuple[Finding, ...]:
    found: list[Finding] = []
    names: set[str] = set()
    metrics = params.get("metrics")
    for at, metric in enumerate(metrics if isinstance(metrics, list) else ()):
        if not isinstance(metric, dict):
            continue
        name = metric.get("name")
        if isinstance(name, str):
            if name in names:
                found.append(
                    Finding("param_invalid", f"/metrics/{at}/name", f'The metric "{name[:80]}" is listed twice.')
                )
            names.add(name)
        low, high = (metric.get(bound, default) for bound, default in _BOUNDS.items())
        if _is_number(low) and _is_number(high) and low >= high:
            message = f"The lowest score {low:g} is not below the highest score {high:g}."
            found.append(Finding("param_invalid", f"/metrics/{at}/min", message))
    return tuple(found)


def _output_from(params: Params) -> dict[str, Any]:
    metrics = params.get("metrics")
    names = (
        [m["name"] for m in metrics if isinstance(m, dict) and isinstance(m.get("name"), str)]
        if isinstance(metrics, list)
        else []
    )
    return {
        "type": "object",
        "properties": {
            "scores": {"type": "object", "properties": {name: {"type": "number"} for name in names}},
            "reasons": {"type": "object", "properties": {name: {"type": "string"} for name in names}},
            **SPENT,
        },
    }


class Evaluator:
    spec = BlockSpec(
        type="evaluator",
        title="Evaluator",
        description="Has a language model score a text.",
        category="action",
        params=_PARAMS,
        check=_check,
        effect="read",
        attempts=ATTEMPTS,
        output_from=_output_from,
        sentence="{model} scores {metrics[].name} | Score {metrics[].name}",
        icon="evaluator",
    )

    async def run(self, ctx: Context) -> Done:
        """Output {"scores", "reasons", "model", "usage", "cost"}. Raises BlockError: params_invalid; output_invalid
        when a score is missing or out of bounds, twice; and those of ModelClient.reply."""
        metrics = _metrics(ctx.params.get("metrics"))
        lines = [f"- {name}, from {low:g} to {high:g}: {about}" for name, (about, low, high) in metrics.items()]
        more = render(ctx.params.get("instructions") or "")
        told = "Score the content of the next message by these metrics:\n" + "\n".join([*lines, more]).strip()
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

        messages = [Message("system", told), Message("user", render(ctx.params.get("content")) or "(no content)")]
        answer, spent = await ask(ctx, messages, schema, out_of_bounds)
        scores = {name: answer[name]["score"] for name in metrics}
        reasons = {name: answer[name]["reason"] for name in metrics}
        return Done({"scores": scores, "reasons": reasons, **spent.as_output()})


def _metrics(listed: Any) -> dict[str, tuple[str, float, float]]:
    """Return name -> description, lowest and highest score. Raises BlockError(params_invalid)."""
    found: dict[str, tuple[str, float, float]] = {}
    for metric in listed if isinstance(listed, list) else ():
        if not isinstance(metric, dict) or not isinstance(metric.get("name"), str):
            raise invalid("each metric must have a name")
        low, high = (_bound(metric, bound, default) for bound, default in _BOUNDS.items())
        if low >= high:
            raise invalid(f"the lowest score of {metric['name']} must be below its highest score")
        found[metric["name"]] = (str(metric.get("description") or "").strip(), low, high)
    if not found:
        raise invalid("metrics is required")
    return found


def _bound(metric: dict[str, Any], name: str, default: float) -> float:
    value = coerce("number", metric.get(name))
    if value is None or value == "":
        return default
    if not _is_number(value):
        raise invalid(f"{name} of {metric['name']} must be a number")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


block = Evaluator()
