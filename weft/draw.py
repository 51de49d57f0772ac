"""The builder: classes for drawn workflows, which make the same documents as the editor. See
docs/howto/write-in-python.md.

    from weft.draw import Http, Sequence, Set, Workflow

    flow = Workflow("flow", Sequence(Http("https://example.com", id="page"), Set("<page.data>")))
"""

from compiler.builder.blocks import (
    Agent,
    Approval,
    Branch,
    Break,
    Case,
    ChatTrigger,
    ContinueAsNew,
    Each,
    File,
    Form,
    FormTrigger,
    Function,
    Http,
    Loop,
    Note,
    Response,
    Router,
    RunWorkflow,
    Schedule,
    SendEmail,
    Set,
    Signal,
    Sleep,
    Sql,
    Start,
    Variables,
    Webhook,
)
from compiler.builder.step import Block, Container, Edge, End, Graph, Parallel, Reference, Sequence, ref
from compiler.builder.workflow import Workflow

__all__ = [
    "Agent",
    "Approval",
    "Block",
    "Branch",
    "Break",
    "Case",
    "ChatTrigger",
    "Container",
    "ContinueAsNew",
    "Each",
    "Edge",
    "End",
    "File",
    "Form",
    "FormTrigger",
    "Function",
    "Graph",
    "Http",
    "Loop",
    "Note",
    "Parallel",
    "Reference",
    "Response",
    "Router",
    "RunWorkflow",
    "Schedule",
    "SendEmail",
    "Sequence",
    "Set",
    "Signal",
    "Sleep",
    "Sql",
    "Start",
    "Variables",
    "Webhook",
    "Workflow",
    "ref",
]
