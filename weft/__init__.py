"""weft for Python programs: everything that a user touches, under one name.

    import weft

    async with weft.open("runs.db") as engine:
        run = await engine.run(document, {"amount": 12}, timeout_s=60)

A name is loaded when it is first used, so that `import weft` costs next to nothing. To add one: a row in `_NAMES`, the
same import below for type checkers and editors. `make docs` makes the reference of the names from their docstrings.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from compiler.builder.actions import Agent as Agent
    from compiler.builder.actions import ContinueAsNew as ContinueAsNew
    from compiler.builder.actions import File as File
    from compiler.builder.actions import Function as Function
    from compiler.builder.actions import HitEndpoint as HitEndpoint
    from compiler.builder.actions import Http as Http
    from compiler.builder.actions import Note as Note
    from compiler.builder.actions import Response as Response
    from compiler.builder.actions import RunWorkflow as RunWorkflow
    from compiler.builder.actions import SendEmail as SendEmail
    from compiler.builder.actions import Set as Set
    from compiler.builder.actions import Sleep as Sleep
    from compiler.builder.actions import Sql as Sql
    from compiler.builder.actions import Variables as Variables
    from compiler.builder.control import Branch as Branch
    from compiler.builder.control import Break as Break
    from compiler.builder.control import Case as Case
    from compiler.builder.control import Each as Each
    from compiler.builder.control import Loop as Loop
    from compiler.builder.control import Router as Router
    from compiler.builder.errors import BuildError as BuildError
    from compiler.builder.people import Approval as Approval
    from compiler.builder.people import Form as Form
    from compiler.builder.people import Signal as Signal
    from compiler.builder.shapes import Edge as Edge
    from compiler.builder.shapes import End as End
    from compiler.builder.shapes import Graph as Graph
    from compiler.builder.shapes import Parallel as Parallel
    from compiler.builder.step import Block as Block
    from compiler.builder.step import Container as Container
    from compiler.builder.step import Sequence as Sequence
    from compiler.builder.triggers import ChatTrigger as ChatTrigger
    from compiler.builder.triggers import FormTrigger as FormTrigger
    from compiler.builder.triggers import Schedule as Schedule
    from compiler.builder.triggers import Start as Start
    from compiler.builder.triggers import Webhook as Webhook
    from compiler.builder.values import Ref as Ref
    from compiler.builder.values import ref as ref
    from compiler.builder.workflow import Workflow as Workflow
    from compiler.schema_of import Param as Param
    from compiler.tracing.calls import approve as approve
    from compiler.tracing.calls import attempt as attempt
    from compiler.tracing.calls import call as call
    from compiler.tracing.calls import continue_as_new as continue_as_new
    from compiler.tracing.calls import each as each
    from compiler.tracing.calls import http as http
    from compiler.tracing.calls import in_order as in_order
    from compiler.tracing.calls import otherwise as otherwise
    from compiler.tracing.calls import sleep as sleep
    from compiler.tracing.calls import when as when
    from compiler.tracing.errors import TraceError as TraceError
    from compiler.tracing.steps import step as step
    from compiler.tracing.workflow import workflow as workflow
    from executor.blocks.types.typed import TypedBlock as TypedBlock
    from executor.blocks.types.typed import block as block
    from executor.errors import AlreadyAnswered as AlreadyAnswered
    from executor.errors import AnswerInvalid as AnswerInvalid
    from executor.errors import BadRequest as BadRequest
    from executor.errors import BlockError as BlockError
    from executor.errors import Conflict as Conflict
    from executor.errors import InputInvalid as InputInvalid
    from executor.errors import LimitExceeded as LimitExceeded
    from executor.errors import NotFound as NotFound
    from executor.errors import QueueFull as QueueFull
    from executor.errors import StoreError as StoreError
    from executor.errors import WeftError as WeftError
    from executor.kernel.handler.base import Context as Context
    from executor.kernel.handler.base import Done as Done
    from executor.kernel.handler.base import Patch as Patch
    from executor.kernel.handler.base import Suspend as Suspend
    from executor.kernel.handler.base import context as context
    from executor.open.embed import open_engine as open
    from executor.open.engine import Engine as Engine
    from server.client.async_client import AsyncClient as AsyncClient
    from server.client.client import Client as Client
    from server.client.errors import ApiError as ApiError
    from server.client.errors import ClientError as ClientError
    from server.client.errors import RunFailed as RunFailed
    from server.client.errors import ServerUnreachable as ServerUnreachable
    from server.client.stream import Event as Event

# The public name, and where it is: `module`, or `module:name` when it has another one there.
_NAMES = {
    "Agent": "compiler.builder.actions",
    "AlreadyAnswered": "executor.errors",
    "AnswerInvalid": "executor.errors",
    "ApiError": "server.client.errors",
    "Approval": "compiler.builder.people",
    "AsyncClient": "server.client.async_client",
    "BadRequest": "executor.errors",
    "Block": "compiler.builder.step",
    "BlockError": "executor.errors",
    "Branch": "compiler.builder.control",
    "Break": "compiler.builder.control",
    "BuildError": "compiler.builder.errors",
    "Case": "compiler.builder.control",
    "ChatTrigger": "compiler.builder.triggers",
    "Client": "server.client.client",
    "ClientError": "server.client.errors",
    "Conflict": "executor.errors",
    "Container": "compiler.builder.step",
    "ContinueAsNew": "compiler.builder.actions",
    "Context": "executor.kernel.handler.base",
    "Done": "executor.kernel.handler.base",
    "Each": "compiler.builder.control",
    "Edge": "compiler.builder.shapes",
    "End": "compiler.builder.shapes",
    "Engine": "executor.open.engine",
    "Event": "server.client.stream",
    "File": "compiler.builder.actions",
    "Form": "compiler.builder.people",
    "FormTrigger": "compiler.builder.triggers",
    "Function": "compiler.builder.actions",
    "Graph": "compiler.builder.shapes",
    "HitEndpoint": "compiler.builder.actions",
    "Http": "compiler.builder.actions",
    "InputInvalid": "executor.errors",
    "LimitExceeded": "executor.errors",
    "Loop": "compiler.builder.control",
    "NotFound": "executor.errors",
    "Note": "compiler.builder.actions",
    "Parallel": "compiler.builder.shapes",
    "Param": "compiler.schema_of",
    "Patch": "executor.kernel.handler.base",
    "QueueFull": "executor.errors",
    "Ref": "compiler.builder.values",
    "Response": "compiler.builder.actions",
    "Router": "compiler.builder.control",
    "RunFailed": "server.client.errors",
    "RunWorkflow": "compiler.builder.actions",
    "Schedule": "compiler.builder.triggers",
    "SendEmail": "compiler.builder.actions",
    "Sequence": "compiler.builder.step",
    "ServerUnreachable": "server.client.errors",
    "Set": "compiler.builder.actions",
    "Signal": "compiler.builder.people",
    "Sleep": "compiler.builder.actions",
    "Sql": "compiler.builder.actions",
    "Start": "compiler.builder.triggers",
    "StoreError": "executor.errors",
    "Suspend": "executor.kernel.handler.base",
    "TraceError": "compiler.tracing.errors",
    "TypedBlock": "executor.blocks.types.typed",
    "Variables": "compiler.builder.actions",
    "Webhook": "compiler.builder.triggers",
    "WeftError": "executor.errors",
    "Workflow": "compiler.builder.workflow",
    "approve": "compiler.tracing.calls",
    "attempt": "compiler.tracing.calls",
    "block": "executor.blocks.types.typed",
    "call": "compiler.tracing.calls",
    "context": "executor.kernel.handler.base",
    "continue_as_new": "compiler.tracing.calls",
    "each": "compiler.tracing.calls",
    "http": "compiler.tracing.calls",
    "in_order": "compiler.tracing.calls",
    "open": "executor.open.embed:open_engine",
    "otherwise": "compiler.tracing.calls",
    "ref": "compiler.builder.values",
    "sleep": "compiler.tracing.calls",
    "step": "compiler.tracing.steps",
    "when": "compiler.tracing.calls",
    "workflow": "compiler.tracing.workflow",
}

__all__ = [
    "Agent",
    "AlreadyAnswered",
    "AnswerInvalid",
    "ApiError",
    "Approval",
    "AsyncClient",
    "BadRequest",
    "Block",
    "BlockError",
    "Branch",
    "Break",
    "BuildError",
    "Case",
    "ChatTrigger",
    "Client",
    "ClientError",
    "Conflict",
    "Container",
    "Context",
    "ContinueAsNew",
    "Done",
    "Each",
    "Edge",
    "End",
    "Engine",
    "Event",
    "File",
    "Form",
    "FormTrigger",
    "Function",
    "Graph",
    "HitEndpoint",
    "Http",
    "InputInvalid",
    "LimitExceeded",
    "Loop",
    "NotFound",
    "Note",
    "Parallel",
    "Param",
    "Patch",
    "QueueFull",
    "Ref",
    "Response",
    "Router",
    "RunFailed",
    "RunWorkflow",
    "Schedule",
    "SendEmail",
    "Sequence",
    "ServerUnreachable",
    "Set",
    "Signal",
    "Sleep",
    "Sql",
    "Start",
    "StoreError",
    "Suspend",
    "TraceError",
    "TypedBlock",
    "Variables",
    "Webhook",
    "WeftError",
    "Workflow",
    "approve",
    "attempt",
    "block",
    "call",
    "context",
    "continue_as_new",
    "each",
    "http",
    "in_order",
    "open",
    "otherwise",
    "ref",
    "sleep",
    "step",
    "when",
    "workflow",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("weft")
    place = _NAMES.get(name)
    if place is None:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    module, _, inside = place.partition(":")
    value = getattr(import_module(module), inside or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
