"""weft for Python programs: everything that a user touches, under one name.

    import weft

    async with weft.open("runs.db") as engine:
        run = await engine.run(document, {"amount": 12}, timeout_s=60)

A name is loaded when it is first used, so that `import weft` costs next to nothing. To add one: a word in `_PLACES`,
then `python -m tests.support.weft_names`, which writes `__init__.pyi` for type checkers and editors. `make docs` makes
the reference of the names from their docstrings.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Modules and the public names that they define; `module:name` where the name in the module is another one.
_PLACES = {
    "asyncio:CancelledError": "Cancelled",
    "compiler.builder.errors": "BuildError DefinitionError",
    "compiler.builder.tools": "handoff tool",
    "compiler.signature": "Param",
    "compiler.tracing.blocks": "HttpResponse Mailed Rows agent email http sql",
    "compiler.tracing.calls": "Answer approve continue_as_new sleep",
    "compiler.tracing.asks": "Ask Query Update",
    "compiler.tracing.durable": "DurableFunction durable",
    "compiler.tracing.policy": "Retry",
    "compiler.tracing.steps": "step",
    "compiler.tracing.ways": "attempt each otherwise when",
    "compiler.tracing.workflow": "call workflow",
    "executor.blocks.durable.group": "group",
    "executor.blocks.durable.together": "FirstCompleted first gather shield timeout",
    "executor.blocks.durable.opened": "Child callback start",
    "executor.blocks.durable.values": "info now patched random state uuid",
    "executor.blocks.durable.waits": "form signal until",
    "executor.blocks.types.typed": "TypedBlock block",
    "executor.errors": (
        "AlreadyAnswered AnswerInvalid BadRequest BlockError Conflict InputInvalid LimitExceeded NotFound "
        "NotDeterministic QueueFull Refused StepFailed StepTimeout StoreError WeftError"
    ),
    "executor.kernel.handler.base": "StepContext Done Patch Suspend context",
    "executor.live": "Live RunFinished TextDelta ToolFinished ToolStarted WaitClosed WaitOpened",
    "executor.open.embed:open_engine": "open",
    "executor.open.engine": "Engine",
    "executor.open.sync": "SyncEngine open_sync",
    "server.client.async_client": "AsyncClient",
    "server.client.client": "Client",
    "server.client.errors": "ApiError ClientError RunFailed ServerUnreachable",
    "server.client.stream": "Event",
}
_NAMES = {name: place for place, names in _PLACES.items() for name in names.split()}

__all__ = sorted(_NAMES)  # noqa: PLE0605 - type checkers read __init__.pyi


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("weft")
    if name == "draw":
        return import_module("weft.draw")
    place = _NAMES.get(name)
    if place is None:
        raise AttributeError(f"module 'weft' has no attribute {name!r}{_hint(name)}")
    module, _, inside = place.partition(":")
    value = getattr(import_module(module), inside or name)
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    return f": it is weft.draw.{name}" if name in import_module("weft.draw").__all__ else ""


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, "draw"})
