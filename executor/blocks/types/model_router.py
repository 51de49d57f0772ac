"""`model_router`: a language model chooses a way, one of those that are listed."""

from __future__ import annotations

from typing import Any

from executor.blocks.llm.base import Message
from executor.blocks.types.asking import ATTEMPTS, SPENT, ModelParams, ask
from executor.blocks.types.condition import named_cases
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import CASE_ID, CASE_TITLE, TypedParams, invalid, param, repeated, shape
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.payload import render


class _Route(TypedParams):
    id: str = CASE_ID
    title: str | None = CASE_TITLE
    description: str | None = param(
        "Description", "When the model should choose this route.", widget="longtext", rows=2
    )


class _Params(ModelParams, shift=2, required=("model",)):
    context: Any = param(
        "Context", "What the model decides about, such as a message.", order=1, widget="longtext", rows=4
    )
    routes: list[_Route] = param(
        "Routes",
        "The model chooses one of them.",
        required=True,
        order=2,
        ui={"handles": "id"},
        minItems=1,
        maxItems=50,
    )
    instructions: Any = param(
        "Instructions",
        "More about how to choose.",
        order=9,
        widget="longtext",
        rows=3,
        advanced=True,
        type="string",
    )


@block_type(
    type="model_router",
    title="Model router",
    description="Continues on the route that a language model chooses.",
    category="flow",
    params=_Params.json_schema,
    handles=(),
    cases=lambda params: named_cases(params, "routes"),
    check=lambda params: tuple(repeated(params, "routes", "id", "route")),
    effect="read",
    attempts=ATTEMPTS,
    output=shape(route="string", title="string", reason="string", **SPENT),
    sentence="{model} chooses {routes[].id} | Choose {routes[].id}",
    icon="model_router",
)
async def block(ctx: StepContext) -> Done:
    """Output {"route", "title", "reason", "model", "usage", "cost"}. Raises BlockError: params_invalid,
    output_invalid when the model chooses no route of the list, twice; and those of ModelClient.reply."""
    params = _Params(ctx.params)
    routes = {route.id: route for route in params.routes}
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
    more = render(params.instructions or "")
    system = f"Choose the route that fits the context best. The routes are:\n{listed}\n{more}".strip()
    messages = [Message("system", system), Message("user", render(params.context) or "(no context)")]
    answer, spent = await ask(ctx, params, messages, schema)
    route = answer["route"]
    title = routes[route].title or ""
    return Done({"route": route, "title": title, "reason": answer["reason"], **spent.as_output()}, route=route)


def _about(route: _Route) -> str:
    described = ((text or "").strip() for text in (route.title, route.description))
    return ": ".join(filter(None, described)) or "(no description)"
