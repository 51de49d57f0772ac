"""`model_router`: a language model chooses a way, one of those that are listed."""

from __future__ import annotations

from typing import Any

from compiler.catalog import BlockSpec, Case, Finding, Params
from executor.blocks.llm.base import Message
from executor.blocks.types.asking import ATTEMPTS, SPENT, ask, model_params
from executor.blocks.types.condition import named_cases
from executor.blocks.types.shared_params import CASE_ID, CASE_TITLE, invalid
from executor.kernel.handler.base import Context, Done
from executor.kernel.values.payload import render

_PARAMS: dict[str, Any] = {
    "type": "object",
    "required": ["model", "routes"],
    "additionalProperties": False,
    "properties": {
        **model_params(3, 1.5),
        "context": {
            "title": "Context",
            "description": "What the model decides about, such as a message.",
            "x-ui": {"order": 1, "widget": "longtext", "rows": 4},
        },
        "routes": {
            "type": "array",
            "title": "Routes",
            "description": "The model chooses one of them.",
            "minItems": 1,
            "maxItems": 50,
            "x-ui": {"order": 2, "widget": "list", "handles": "id"},
            "items": {
                "type": "object",
                "required": ["id"],
                "additionalProperties": False,
                "properties": {
                    "id": CASE_ID,
                    "title": CASE_TITLE,
                    "description": {
                        "type": "string",
                        "title": "Description",
                        "description": "When the model should choose this route.",
                        "x-ui": {"order": 3, "widget": "longtext", "rows": 2},
                    },
                },
            },
        },
        "instructions": {
            "type": "string",
            "title": "Instructions",
            "description": "More about how to choose.",
            "x-ui": {"order": 9, "widget": "longtext", "rows": 3, "advanced": True},
        },
    },
}


def _cases(params: Params) -> tuple[Case, ...]:
    return named_cases(params, "routes")


def _check(params: Params) -> tuple[Finding, ...]:
    found: list[Finding] = []
    ids: set[str] = set()
    routes = params.get("routes")
    for at, route in enumerate(routes if isinstance(routes, list) else ()):
        if not isinstance(route, dict):
            continue
        id = route.get("id")
        if isinstance(id, str) and id in ids:
            found.append(Finding("param_invalid", f"/routes/{at}/id", f'The route "{id[:80]}" is listed twice.'))
        elif isinstance(id, str):
            ids.add(id)
    return tuple(found)


class ModelRouter:
    spec = BlockSpec(
        type="model_router",
        title="Model router",
        description="Continues on the route that a language model chooses.",
        category="flow",
        params=_PARAMS,
        handles=(),
        cases=_cases,
        check=_check,
        effect="read",
        attempts=ATTEMPTS,
        output={
            "type": "object",
            "properties": {
                "route": {"type": "string"},
                "title": {"type": "string"},
                "reason": {"type": "string"},
                **SPENT,
            },
        },
        sentence="{model} chooses {routes[].id} | Choose {routes[].id}",
        icon="model_router",
    )

    async def run(self, ctx: Context) -> Done:
        """Output {"route", "title", "reason", "model", "usage", "cost"}. Raises BlockError: params_invalid,
        output_invalid when the model chooses no route of the list, twice; and those of ModelClient.reply."""
        routes = {
            str(route["id"]): route
            for route in ctx.params.get("routes") or ()
            if isinstance(route, dict) and "id" in route
        }
        if not routes:
            raise invalid("routes is required")
        schema = {
            "type": "object",
            "properties": {
                "reason": {"type": "string", "description": "Why, in one sentence."},
                "route": {"type": "string", "enum": list(routes)},
            },
            "required": ["reason", "route"],
            "additionalProperties": False,
        }
        listed = "\n".join(f"- {id}: {_about(route)}" for id, route in routes.items())
        more = render(ctx.params.get("instructions") or "")
        told = f"Choose the route that fits the context best. The routes are:\n{listed}\n{more}".strip()
        messages = [Message("system", told), Message("user", render(ctx.params.get("context")) or "(no context)")]
        answer, spent = await ask(ctx, messages, schema)
        route = answer["route"]
        title = str(routes[route].get("title") or "")
        return Done({"route": route, "title": title, "reason": answer["reason"], **spent.as_output()}, route=route)


def _about(route: dict[str, Any]) -> str:
    title, description = (str(route.get(name) or "").strip() for name in ("title", "description"))
    return ": ".join(filter(None, (title, description))) or "(no description)"


block = ModelRouter()
