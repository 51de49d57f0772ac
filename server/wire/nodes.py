"""The shapes of one node of a run that cross HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from executor.kernel.journal.projection import Status
from executor.service.views import AttemptView, ErrorJson, NodeDetail, StepView, view_of
from server.wire import Preview, beginning, fragment

Bytes = Annotated[int, Meta(description="Bytes of JSON.")]
Beginning = Annotated[str, Meta(description="Only when cut: the beginning of the JSON.")]


class CheckpointShown(Struct, frozen=True):
    """The last checkpoint that an attempt stored, its value cut to `preview` bytes."""

    attempt: Annotated[int, Meta(description="The attempt that stored it.")]
    at_ms: int
    value: Annotated[Any, Meta(description="Null also when cut.")]
    value_size: Bytes
    value_truncated: bool
    value_preview: Beginning | UnsetType = UNSET


class NodeShown(Struct, frozen=True):
    """One attempt of a node: its resolved parameters and its output, after event `seq`. Sizes are in bytes of JSON."""

    run: str
    key: str
    node: str
    block: str
    name: str
    type: str
    path: str
    seq: Annotated[int, Meta(description="State after this event.")]
    status: Status | Literal["pending"]
    attempt: Annotated[int, Meta(description="The attempt shown; 0: it did not run.")]
    attempts: tuple[AttemptView, ...]
    input: Annotated[Any, Meta(description="The resolved parameters; null when it did not start, or when cut.")]
    input_error: Annotated[ErrorJson | None, Meta(description="Why the parameters could not be resolved.")]
    output: Annotated[Any, Meta(description="Null also when cut.")]
    error: ErrorJson | None
    route: str | None
    reason: str | None
    because: str | None
    reused: bool
    checkpoint: Annotated[
        CheckpointShown | None, Meta(description="The last checkpoint of its attempts; null also with `seq`.")
    ]
    steps: Annotated[
        tuple[StepView, ...], Meta(description="The durable steps of its handler; event `finished_seq` has the output.")
    ]
    input_size: Bytes | None
    input_truncated: bool
    output_size: Bytes | None
    output_truncated: bool
    input_preview: Beginning | UnsetType = UNSET
    output_preview: Beginning | UnsetType = UNSET


class NodeQuery(Struct, frozen=True):
    attempt: Annotated[int, Meta(ge=0, description="This attempt. Default: the last one.")] | None = None
    seq: Annotated[int, Meta(ge=1, description="State after this event.")] | None = None
    only: Annotated[Literal["input", "output"], Meta(description="Return the JSON of one of the two alone.")] | None = (
        None
    )
    preview: Preview | None = None


def node_shown(detail: NodeDetail, preview: int | None) -> NodeShown:
    """Values over `preview` bytes are cut: the value is null, and the beginning of its JSON beside it."""
    stored, checkpoint = detail.checkpoint, None
    if stored is not None:
        value, size, truncated, begins = _cut(stored.value, preview)
        assert size is not None
        checkpoint = CheckpointShown(stored.attempt, stored.at_ms, value, size, truncated, begins)
    input, input_size, input_truncated, input_begins = _cut(detail.input, preview)
    output, output_size, output_truncated, output_begins = _cut(detail.output, preview)
    return view_of(
        NodeShown,
        detail,
        checkpoint=checkpoint,
        input=input,
        input_size=input_size,
        input_truncated=input_truncated,
        input_preview=input_begins,
        output=output,
        output_size=output_size,
        output_truncated=output_truncated,
        output_preview=output_begins,
    )


def _cut(data: bytes | None, preview: int | None) -> tuple[Any, int | None, bool, str | UnsetType]:
    """(value, bytes, whether it is cut, the beginning if it is)."""
    if data is None or preview is None or len(data) <= preview:
        return fragment(data), None if data is None else len(data), False, UNSET
    return None, len(data), True, beginning(data, preview)
