"""`run_workflow`: runs another workflow as a run of its own and waits for its end. Its output is that run's output.

The workflow is a stored one, by name, or a document: written here or built by another block."""

from __future__ import annotations

from typing import Any

import orjson

from compiler.catalog import Finding, Params
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import TypedParams, invalid, param
from executor.kernel.handler.base import ChildRequest, StepContext, Suspend
from executor.kernel.store.topics.workflows import VERSION_MAX
from executor.kernel.values.coerce import coerce


class _Params(TypedParams):
    workflow: str | None = param("Workflow", "Name of the workflow to run.", maxLength=200)
    version: Any = param(
        "Version",
        "Leave empty to use the active version when the run starts.",
        widget="number",
        advanced=True,
        anyOf=[{"type": "integer", "minimum": 1, "maximum": VERSION_MAX}, {"type": "null"}],
    )
    definition: Any = param(
        "Definition",
        "A workflow document instead of a name. References in it belong to that workflow.",
        advanced=True,
        anyOf=[{"type": "object", "x-weft": "literal"}, {"type": "string"}],
    )
    input: Any = param(
        "Input", "Input of the run. It is checked against the input schema of the workflow.", widget="keyvalues"
    )
    trigger: str | None = param("Trigger", "Id of the trigger block, when the workflow has several.", advanced=True)


def _check(params: Params) -> tuple[Finding, ...]:
    if all(params.get(name) in (None, "") for name in ("workflow", "definition")):
        return (Finding("required", "/workflow", "Workflow is required."),)
    return ()


@block_type(
    type="run_workflow",
    title="Run workflow",
    description="Runs another workflow and returns its output. Cancelling this run cancels the other one.",
    category="flow",
    params=_Params.json_schema,
    check=_check,
    effect="write",
    idempotent=True,  # an attempt that is lost has started nothing: child and wait come in one commit
    pauses=True,
    sentence="Run {workflow} with {input} | Run {workflow} | Run a workflow",
    icon="play",
)
async def block(ctx: StepContext) -> Suspend:
    """Raises BlockError: params_invalid, and the errors of FurtherRuns.prepare_child."""
    params = _Params(ctx.params)
    request = ChildRequest(
        workflow=params.workflow,
        definition=_definition(params.definition),
        version=_version(params.version),
        trigger=params.trigger,
        input=params.input,
    )
    if (request.workflow is None) == (request.definition is None):
        raise invalid("Choose a workflow or write a definition")
    if request.version is not None and request.workflow is None:
        raise invalid("A definition has no versions")
    child = await ctx.prepare_child(request)
    shown: dict[str, Any] = {"title": f"Run of {child.workflow}", "run": child.id, "workflow": child.workflow}
    if child.version is not None:
        shown["version"] = child.version
    return Suspend("child", request=shown, child=child)


def _definition(value: Any) -> dict[str, Any] | None:
    """Return an object, given as one or as JSON text, as language models write it."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise invalid(f"definition is text, but not JSON: {error.msg}") from None
    if not isinstance(value, dict):
        raise invalid("definition must be a workflow document: an object")
    return value


def _version(value: Any) -> int | None:
    number = coerce("integer", value)
    if number is None or number == "":
        return None
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= VERSION_MAX:
        raise invalid(f"version must be a whole number from 1 to {VERSION_MAX}, not {str(number)[:40]!r}")
    return number
