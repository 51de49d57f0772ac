# Made from `_PLACES` in __init__.py by `python -m tests.support.weft_names`.
# fmt: off
# ruff: noqa: I001

from compiler.builder.actions import (
    Agent, ContinueAsNew, File, Function, HitEndpoint, Http, Note, Response, RunWorkflow, SendEmail, Set, Sleep,
    Sql, Variables
)
from compiler.builder.control import (Branch, Break, Case, Each, Loop, Router)
from compiler.builder.errors import (BuildError)
from compiler.builder.people import (Approval, Form, Signal)
from compiler.builder.shapes import (Edge, End, Graph, Parallel)
from compiler.builder.step import (Block, Container, Sequence)
from compiler.builder.triggers import (ChatTrigger, FormTrigger, Schedule, Start, Webhook)
from compiler.builder.values import (Ref, ref)
from compiler.builder.workflow import (Workflow)
from compiler.schema_of import (Param)
from compiler.tracing.calls import (
    approve, attempt, call, continue_as_new, each, http, in_order, otherwise, sleep, when
)
from compiler.tracing.errors import (TraceError)
from compiler.tracing.steps import (step)
from compiler.tracing.workflow import (workflow)
from executor.blocks.types.typed import (TypedBlock, block)
from executor.errors import (
    AlreadyAnswered, AnswerInvalid, BadRequest, BlockError, Conflict, InputInvalid, LimitExceeded, NotFound,
    QueueFull, StoreError, WeftError
)
from executor.kernel.handler.base import (Context, Done, Patch, Suspend, context)
from executor.open.embed import (open_engine)
from executor.open.engine import (Engine)
from server.client.async_client import (AsyncClient)
from server.client.client import (Client)
from server.client.errors import (ApiError, ClientError, RunFailed, ServerUnreachable)
from server.client.stream import (Event)

__version__: str
open = open_engine

__all__ = [
    "Agent", "AlreadyAnswered", "AnswerInvalid", "ApiError", "Approval", "AsyncClient", "BadRequest", "Block",
    "BlockError", "Branch", "Break", "BuildError", "Case", "ChatTrigger", "Client", "ClientError", "Conflict",
    "Container", "Context", "ContinueAsNew", "Done", "Each", "Edge", "End", "Engine", "Event", "File", "Form",
    "FormTrigger", "Function", "Graph", "HitEndpoint", "Http", "InputInvalid", "LimitExceeded", "Loop",
    "NotFound", "Note", "Parallel", "Param", "Patch", "QueueFull", "Ref", "Response", "Router", "RunFailed",
    "RunWorkflow", "Schedule", "SendEmail", "Sequence", "ServerUnreachable", "Set", "Signal", "Sleep", "Sql",
    "Start", "StoreError", "Suspend", "TraceError", "TypedBlock", "Variables", "Webhook", "WeftError",
    "Workflow", "approve", "attempt", "block", "call", "context", "continue_as_new", "each", "http", "in_order",
    "open", "otherwise", "ref", "sleep", "step", "when", "workflow"
]
