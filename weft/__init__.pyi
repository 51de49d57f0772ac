# Made from `_PLACES` in __init__.py by `python -m tests.support.weft_names`.
# fmt: off
# ruff: noqa: I001

from weft import draw as draw
from asyncio import (CancelledError)
from compiler.builder.errors import (BuildError, DefinitionError)
from compiler.builder.tools import (handoff, tool)
from compiler.signature import (Param)
from compiler.tracing.blocks import (HttpResponse, Mailed, Rows, agent, email, http, sql)
from compiler.tracing.calls import (Answer, approve, continue_as_new, sleep)
from compiler.tracing.asks import (Ask, Query, Update)
from compiler.tracing.durable import (DurableFunction, durable)
from compiler.tracing.policy import (Retry)
from compiler.tracing.steps import (step)
from compiler.tracing.ways import (attempt, each, otherwise, when)
from compiler.tracing.workflow import (call, workflow)
from executor.blocks.durable.group import (group)
from executor.blocks.durable.together import (FirstCompleted, first, gather, shield, timeout)
from executor.blocks.durable.opened import (Child, callback, start)
from executor.blocks.durable.values import (info, now, patched, random, state, uuid)
from executor.blocks.durable.waits import (form, signal, until)
from executor.blocks.types.typed import (TypedBlock, block)
from executor.errors import (
    AlreadyAnswered, AnswerInvalid, BadRequest, BlockError, Conflict, InputInvalid, LimitExceeded, NotFound,
    NotDeterministic, QueueFull, Refused, StepFailed, StepTimeout, StoreError, WeftError
)
from executor.kernel.handler.base import (StepContext, Done, Patch, Suspend, context)
from executor.live import (Live, RunFinished, TextDelta, ToolFinished, ToolStarted, WaitClosed, WaitOpened)
from executor.open.embed import (open_engine)
from executor.open.engine import (Engine)
from executor.open.sync import (SyncEngine, open_sync)
from server.client.async_client import (AsyncClient)
from server.client.client import (Client)
from server.client.errors import (ApiError, ClientError, RunFailed, ServerUnreachable)
from server.client.stream import (Event)

__version__: str
Cancelled = CancelledError
open = open_engine

__all__ = [
    "AlreadyAnswered", "Answer", "AnswerInvalid", "ApiError", "Ask", "AsyncClient", "BadRequest", "BlockError",
    "BuildError", "Cancelled", "Child", "Client", "ClientError", "Conflict", "DefinitionError", "Done",
    "DurableFunction", "Engine", "Event", "FirstCompleted", "HttpResponse", "InputInvalid", "LimitExceeded",
    "Live", "Mailed", "NotDeterministic", "NotFound", "Param", "Patch", "Query", "QueueFull", "Refused",
    "Retry", "Rows", "RunFailed", "RunFinished", "ServerUnreachable", "StepContext", "StepFailed",
    "StepTimeout", "StoreError", "Suspend", "SyncEngine", "TextDelta", "ToolFinished", "ToolStarted",
    "TypedBlock", "Update", "WaitClosed", "WaitOpened", "WeftError", "agent", "approve", "attempt", "block",
    "call", "callback", "context", "continue_as_new", "durable", "each", "email", "first", "form", "gather",
    "group", "handoff", "http", "info", "now", "open", "open_sync", "otherwise", "patched", "random", "shield",
    "signal", "sleep", "sql", "start", "state", "step", "timeout", "tool", "until", "uuid", "when", "workflow"
]
