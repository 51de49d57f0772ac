# Made of `Engine` and its topics by `python -m tests.support.sync_engine`.
# fmt: off
# ruff: noqa

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Generator
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from compiler.compile import Compiled
from compiler.diagnostics import Diagnostic
from compiler.document import Described
from compiler.plan import Plan
from compiler.setup import Task
from compiler.tracing.asks import Query
from compiler.tracing.asks import Update
from compiler.tracing.duration import Duration
from compiler.tracing.workflow import Composed
from datetime import date
from executor.blocks.knowledge.collections import Mode
from executor.blocks.knowledge.collections import Passage
from executor.blocks.llm.base import Model
from executor.blocks.llm.client import Offer
from executor.blocks.services import MailSettings
from executor.blocks.vault.connection import Connection
from executor.kernel.core.messages import Answer
from executor.kernel.handler.base import Block
from executor.kernel.run.answers import Answerer
from executor.kernel.run.awaited import AwaitedRun
from executor.kernel.run.links import Purpose
from executor.kernel.store.run_rows import EventFilter
from executor.kernel.store.run_rows import NewRun
from executor.kernel.store.run_rows import Record
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import RunStatus
from executor.kernel.store.topics.alerts import AlertRow
from executor.kernel.store.topics.drafts import DraftHead
from executor.kernel.store.topics.run_lists import Without
from executor.kernel.store.topics.schedules import FireRow
from executor.kernel.store.topics.schedules import ScheduleRow
from executor.kernel.store.topics.usage import By
from executor.kernel.store.topics.waits import WaitRow
from executor.kernel.store.topics.waits import WaitStatus
from executor.kernel.store.topics.webhooks import Auth
from executor.kernel.store.topics.webhooks import WebhookRow
from executor.kernel.store.topics.workflows import DeletedWorkflow
from executor.kernel.store.topics.workflows import VersionRow
from executor.kernel.store.topics.workflows import WorkflowHead
from executor.kernel.store.topics.workflows import WorkflowRow
from executor.live import Live
from executor.service.replay.evaluate import Evaluation
from executor.service.topics.backtests import Backtest
from executor.service.topics.backtests import KeptView
from executor.service.topics.connection_tests import ConnectionTest
from executor.service.topics.connections import ConnectionView
from executor.service.topics.connections import SignIn
from executor.service.topics.drafts import DraftView
from executor.service.topics.drafts import Step
from executor.service.topics.functions import A
from executor.service.topics.functions import Answered
from executor.service.topics.functions import P
from executor.service.topics.functions import R
from executor.service.topics.history import RunState
from executor.service.topics.knowledge import CollectionView
from executor.service.topics.knowledge import DocumentView
from executor.service.topics.lifecycle import Forked
from executor.service.topics.lifecycle import MigrateAnswer
from executor.service.topics.lifecycle import Retried
from executor.service.topics.reruns import Continuation
from executor.service.topics.reruns import Target
from executor.service.topics.rewinds import ForkPreview
from executor.service.topics.rewinds import Params
from executor.service.topics.rewinds import Steps
from executor.service.topics.secrets import EnvUse
from executor.service.topics.secrets import SecretView
from executor.service.topics.secrets import SecretsResealed
from executor.service.topics.waits import Background
from executor.service.topics.waits import WaitFilter
from executor.service.topics.waits import WaitPage
from executor.service.triggers.declared import ScheduleSpec
from executor.service.triggers.declared import StartOf
from executor.service.triggers.declared import WebhookSpec
from executor.service.triggers.requests import Proof
from executor.service.triggers.requests import Received
from executor.service.triggers.schedules import ScheduleView
from executor.service.triggers.webhooks import Delivered
from executor.service.triggers.webhooks import DeliveryView
from executor.service.triggers.webhooks import RefusalView
from executor.service.triggers.webhooks import WebhookView
from executor.service.upkeep.gc import Collected
from executor.service.upkeep.gc import GcJob
from executor.service.views import NodeDetail
from executor.service.views import RerunPreview
from executor.service.views import RunDocument
from executor.service.views import RunEvent
from executor.service.views import RunGraph
from executor.service.views import RunView
from executor.service.views import SavedWorkflow
from executor.service.views import SignalView
from executor.service.views import Submitted
from executor.service.views import UsageView
from executor.service.views import WaitShown
from executor.service.views import WaitView
from executor.service.views import Why
from executor.service.views.diff import RunDiff
from executor.service.views.lane import Lane
from pathlib import Path
from typing import Any
from typing import Literal
from typing import Self, overload
from typing import Unpack
import builtins

class SyncEngine:
    """The topics and shortcuts of `weft.Engine` as methods that block, and streams as ordinary iterators. All threads
    of the process may share it. Made by `weft.open_sync`."""

    runs: _Runs
    events: _Events
    workflows: _Workflows
    drafts: _Drafts
    waits: _Waits
    signals: _Signals
    callbacks: _Callbacks
    functions: _Functions
    lifecycle: _Lifecycle
    history: _History
    backtests: _Backtests
    schedules: _Schedules
    webhooks: _Webhooks
    secrets: _Secrets
    connections: _Connections
    knowledge: _Knowledge
    usage: _Usage
    upkeep: _Upkeep
    def submit(self, workflow: str | Mapping[str, Any] | Described, *, input: Any=None, trigger: str | None=None, version: int | None=None, idempotency_key: str | None=None, stop_after: str | None=None, draft: DraftHead | None=None, priority: int | None=None, **arguments: Any) -> Submitted:
        """Start a run of a stored workflow (by name), of a workflow in Python, or of a document, which may be that of a
        `draft`. `arguments` of a workflow function are in place of its input: `submit(order, order="7")`. `priority`:
        in place of that of the workflow. Raises CompileError, NotFound, InputInvalid, BadRequest,
        QueueFull, and Conflict when `idempotency_key` was used for a different request."""
    def run(self, workflow: str | Mapping[str, Any] | Described, input: Any=None, *, trigger: str | None=None, version: int | None=None, idempotency_key: str | None=None, timeout_s: float | None=None, priority: int | None=None, **arguments: Any) -> RunView:
        """Start a run and wait until it has ended: `run(document, {"order": "7"})`, `run(order, order="7")`. After
        `timeout_s` (None for no limit) the view shows it as it is then, and it continues. Raises like `submit`."""
    def wait_finished(self, run: str, timeout_s: float) -> RunView:
        """Returns when the run has ended, or waits for a person or a signal, or for anything else that does not come by
        itself in this time, or after `timeout_s`, whichever is first."""
    def cancel(self, run: str, reason: str='', now: bool=False) -> bool:
        """Request the end of the run. Its cleanups run first, unless this is the second request, or with `now`. Returns
        False if it has ended."""
    @overload
    def follow(self, run: str, after: int=0, *, text: Literal[False]=False) -> Generator[list[Record], None, None]: ...
    @overload
    def follow(self, run: str, after: int=0, *, text: Literal[True]) -> Generator[Live, None, None]: ...
    def stream(self, run: str, after: int=0) -> Generator[RunEvent, None, None]:
        """Yield the events one after the other, decoded and with outputs. Raises NotFound."""
    def answer(self, link: str | WaitShown | None=None, fields: Mapping[str, Any] | None=None, action: str | None=None, by: str | None=None, who: Answerer | None=None, *, run: str | None=None, node: str | None=None) -> WaitView:
        """Answer a wait, once: by its resume link or the token in it, or by the wait as `list` returns it, or by `run`
        and `node`, the key of the node that waits. `by`: the name that the person gave; `who`: the signed-in user,
        which is recorded if the wait is for certain people. Raises NotFound, AnswerInvalid (still open),
        SignInRequired, NotYours, AlreadyAnswered (`extra["wait"]` has who answered)."""
    def signal(self, run: str, name: str, payload: Any=None, *, correlation: str | None=None, dedupe_key: str | None=None, by: str | None=None) -> tuple[int, bool]:
        """Send a signal. It is stored until a wait of its name opens. Returns its number, and True if it is new. Raises
        NotFound, BadRequest, Conflict (the run has ended)."""
    @overload
    def query(self, query: Query[P, R], run: str, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def query(self, query: str, run: str, /, **arguments: Any) -> Any: ...
    @overload
    def update(self, run: str, update: Update[A, R], value: A=..., *, id: str | None=None, by: str | None=None, **within: Unpack[Duration]) -> R: ...
    @overload
    def update(self, run: str, update: str, value: Any=None, *, id: str | None=None, by: str | None=None, **within: Unpack[Duration]) -> Any: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
    def close(self) -> None:
        """Stop working. Runs that are open continue when the database is opened again."""
        ...


class _Runs:
    def submit(self, workflow: str | Mapping[str, Any] | Described, *, input: Any=None, trigger: str | None=None, version: int | None=None, idempotency_key: str | None=None, stop_after: str | None=None, draft: DraftHead | None=None, priority: int | None=None, **arguments: Any) -> Submitted:
        """Start a run of a stored workflow (by name), of a workflow in Python, or of a document, which may be that of a
        `draft`. `arguments` of a workflow function are in place of its input: `submit(order, order="7")`. `priority`:
        in place of that of the workflow. Raises CompileError, NotFound, InputInvalid, BadRequest,
        QueueFull, and Conflict when `idempotency_key` was used for a different request."""
    def run(self, workflow: str | Mapping[str, Any] | Described, input: Any=None, *, trigger: str | None=None, version: int | None=None, idempotency_key: str | None=None, timeout_s: float | None=None, priority: int | None=None, **arguments: Any) -> RunView:
        """Start a run and wait until it has ended: `run(document, {"order": "7"})`, `run(order, order="7")`. After
        `timeout_s` (None for no limit) the view shows it as it is then, and it continues. Raises like `submit`."""
    def create(self, new: NewRun, plan: Plan, watched: AwaitedRun | None=None) -> tuple[RunRow, bool]:
        """Return the stored run, and True if it is new. Raises QueueFull, and Conflict if its idempotency key was used
        for another request. `watched`: of a caller who waits for its end."""
    def view(self, run: str, row: RunRow | None=None) -> RunView:
        """Return the run as it is now (or at `row`, if that is known). All data of a waiting run is of one time, so it
        shows if the run continues without a person or a signal. Raises NotFound."""
    def row(self, run: str) -> RunRow:
        """Return the run's own row, without its nodes: cheap."""
    def graph(self, run: str) -> RunGraph: ...
    def plan(self, run: str) -> Plan: ...
    def document(self, run: str) -> RunDocument: ...
    def lane(self, run: str, after: int=0, before: int | None=None) -> Lane:
        """Return the newest calls of a durable function: those that events after `after` are about, and that began
        before event `before`. Raises NotFound: no_lane."""
    def node(self, run: str, key: str, attempt: int | None=None, seq: int | None=None) -> NodeDetail:
        """Return one node key at an attempt (by default the last), after event `seq` (by default now). Raises
        NotFound."""
    def wait_finished(self, run: str, timeout_s: float) -> RunView:
        """Returns when the run has ended, or waits for a person or a signal, or for anything else that does not come by
        itself in this time, or after `timeout_s`, whichever is first."""
    def cancel(self, run: str, reason: str='', now: bool=False) -> bool:
        """Request the end of the run. Its cleanups run first, unless this is the second request, or with `now`. Returns
        False if it has ended."""
    def count(self, workflow: str | None=None, draft: str | None=None) -> dict[RunStatus, int]:
        """Count runs by status, for all statuses. COUNT_MAX means so many or more."""
    def last_inputs(self, workflow: str | None=None, draft: str | None=None, limit: int=10) -> builtins.list[Any]:
        """Return different inputs of the last runs, newest first; inputs over 64 KiB are left out."""
    def list(self, workflow: str | None=None, status: str | None=None, before: str | None=None, limit: int=50, draft: str | None=None, *, parent: str | None=None, since: int | None=None, until: int | None=None, text: str | None=None, by: str | None=None, key: str | None=None, without: Mapping[Without, str]=...) -> builtins.list[RunRow]:
        """List runs, newest first; `before` is the last id of the previous page, `parent` the run that started them,
        `by` the person or token. `key` (idempotency), `text` and `without` are looked for in 10,000 runs."""

class _Events:
    @overload
    def follow(self, run: str, after: int=0, *, text: Literal[False]=False) -> Generator[list[Record], None, None]: ...
    @overload
    def follow(self, run: str, after: int=0, *, text: Literal[True]) -> Generator[Live, None, None]: ...
    def stream(self, run: str, after: int=0) -> Generator[RunEvent, None, None]:
        """Yield the events one after the other, decoded and with outputs. Raises NotFound."""
    def find(self, run: str, where: EventFilter) -> tuple[list[Record], int]:
        """Return one page of the events that match, and the number of all that match. Raises NotFound."""

class _Workflows:
    def compile(self, document: Any, trigger: str | None=None) -> Compiled:
        """Return the plan and the diagnostics; never raises for errors of the document."""
    def validate(self, document: Any, trigger: str | None=None) -> list[Diagnostic]: ...
    def setup(self, document: Any, found: Sequence[Diagnostic]) -> tuple[Task, ...]:
        """Return the tasks that are left before a document runs. `found`: what `validate` found in it."""
    def missing(self, document: Any) -> list[Diagnostic]:
        """Return diagnostics for the connections that a document names and this server lacks, or that need a sign-in.
        They are read at this moment, because another process may have changed them."""
    def save(self, document: Any, name: str | None=None, *, activate_triggers: bool=False, replaces: int | None=None) -> SavedWorkflow:
        """Store it without its pins and make it the active version; the same document is the same version. Workflow
        functions that it calls are stored as well. With blocks that were not imported its schedules and webhooks are
        off, unless `activate_triggers`. `replaces`: the version that may be active before, 0 for none; None does not
        look. Raises CompileError, BadRequest, and Conflict (would_replace, `active`)."""
    def give(self, workflows: Iterable[Composed]) -> None:
        """Add workflows of this program: those that one of them calls are stored. Raises like `save_called`."""
    def save_called(self, *workflows: Composed) -> None:
        """Store the workflow functions that these call, each once. Raises CompileError, BadRequest, DefinitionError."""
    def version(self, name: str, version: int | None=None) -> WorkflowRow: ...
    def converted(self, document: bytes) -> bytes: ...
    def plan(self, name: str, version: int | None=None, trigger: str | None=None) -> Plan:
        """Return the plan of a run that starts at `trigger` now. Raises NotFound, CompileError."""
    def get(self, name: str) -> WorkflowHead: ...
    def versions(self, name: str, before: int | None=None, limit: int=200) -> list[VersionRow]: ...
    def activate(self, name: str, version: int, *, activate_triggers: bool=False) -> SavedWorkflow:
        """Run this version from now on where none is named, with its schedules and webhooks, as in `save`. Raises
        NotFound, CompileError."""
    def put_in_folder(self, name: str, folder: str) -> None:
        """Show a workflow in a folder of the front page, '' for none. Raises NotFound."""
    def title(self, name: str) -> str:
        """Return what is shown in place of the name."""
    def rename(self, name: str, title: str) -> None:
        """Show this text in place of the name of a workflow, '' for its name, which stays and is found by both. Raises
        NotFound, BadRequest, and Conflict (title_taken)."""
    def delete(self, name: str) -> DeletedWorkflow:
        """Delete a workflow with its versions, schedules and webhooks. Runs that have ended stay. Raises NotFound,
        Conflict."""

class _Drafts:
    def create(self, document: Mapping[str, Any], name: str | None=None, base_version: int | None=None) -> DraftView:
        """Store a draft. A document of another format is converted as far as possible: its diagnostics and description
        list the losses. Raises NoWorkflow for JSON that has nothing of a workflow."""
    def get(self, id: str) -> DraftView: ...
    def put(self, id: str, rev: int, document: Mapping[str, Any], name: str | None=None) -> DraftView:
        """Store the next revision. Raises NotFound, and Conflict (draft_changed, `current`) if `rev` is not the newest.
        The same document sent twice for one revision is one revision: the first answer may have been lost."""
    def delete(self, id: str, rev: int | None=None) -> None:
        """Delete a draft; its runs and versions stay. Raises NotFound, Conflict (draft_changed)."""
    def put_in_folder(self, id: str, folder: str) -> None:
        """Show a draft in a folder of the front page, '' for none; no new revision. Raises NotFound."""
    def run(self, id: str, *, rev: int | None=None, input: Any=None, trigger: str | None=None, stop_after: str | None=None, step: Step | None=None, idempotency_key: str | None=None) -> tuple[Submitted, int]:
        """Run the stored draft, or one `step` of it; also returns the revision that runs. Raises NotFound, BadRequest,
        Conflict (draft_changed), and the errors of Runs.submit."""
    def save_version(self, id: str, *, rev: int | None=None, name: str | None=None, activate_triggers: bool=False, replaces: int | None=None) -> tuple[SavedWorkflow, int]:
        """Store the draft as a version of workflow `name` (by default its own name), on which it is based from then on;
        also returns the revision. It replaces the version on which it is based; another one only if `replaces` is that
        version. Raises like `Workflows.save`, NotFound, Conflict (draft_changed)."""

class _Waits:
    def page(self, where: WaitFilter) -> WaitPage:
        """Return a page of waits. Cursors are `run/wait id`."""
    def find(self, link: str) -> WaitView: ...
    def get(self, run: str, wait: str) -> WaitView:
        """Find a wait by its id, or by the key of the node that waits, or waited last. Raises NotFound, and Conflict if
        several questions of the node are open."""
    def background(self, wait: WaitShown) -> Background:
        """Return what is known of the question besides its own words. Reads the plan, not the journal: the page is
        public. Raises NotFound."""
    def answer(self, link: str | WaitShown | None=None, fields: Mapping[str, Any] | None=None, action: str | None=None, by: str | None=None, who: Answerer | None=None, *, run: str | None=None, node: str | None=None) -> WaitView:
        """Answer a wait, once: by its resume link or the token in it, or by the wait as `list` returns it, or by `run`
        and `node`, the key of the node that waits. `by`: the name that the person gave; `who`: the signed-in user,
        which is recorded if the wait is for certain people. Raises NotFound, AnswerInvalid (still open),
        SignInRequired, NotYours, AlreadyAnswered (`extra["wait"]` has who answered)."""
    def answer_wait(self, run: str, wait: str, fields: Mapping[str, Any] | None=None, action: str | None=None, by: str | None=None, who: Answerer | None=None) -> WaitView:
        """Like `answer`, by the run and the wait, as in `get`: for callers who need no link to prove their right."""
    def record_answer(self, row: WaitRow, response: bytes, by: str | None, answer: Answer, now_ms: int) -> WaitView:
        """The first answer to a pending wait wins; raises AlreadyAnswered for all others, NotFound when its run
        ended and was deleted meanwhile."""
    def cancel(self, run: str, wait: str, by: str | None=None, reason: str='') -> WaitView:
        """Take a question back: its block fails with `wait_cancelled`. `wait` as in `get`. Raises NotFound,
        AlreadyAnswered, Conflict."""
    def by_token(self, token: str, purpose: Purpose) -> WaitRow:
        """Raises NotFound, also for a token of the other purpose."""
    def view(self, row: WaitRow, run: RunRow | None=None) -> WaitView:
        """`run`: if its row was read just now. Raises NotFound when its run was deleted meanwhile."""
    def views(self, rows: Sequence[WaitRow], run: RunRow | None=None) -> builtins.list[WaitView]:
        """Return views of the waits, except those whose run was deleted. `run`: that of all, if it was read just
        now."""
    def list(self, status: WaitStatus | None='pending', run: str | None=None, limit: int=200) -> builtins.list[WaitView]: ...

class _Signals:
    def send(self, run: str, name: str, payload: Any=None, *, correlation: str | None=None, dedupe_key: str | None=None, by: str | None=None) -> tuple[int, bool]:
        """Send a signal. It is stored until a wait of its name opens. Returns its number, and True if it is new. Raises
        NotFound, BadRequest, Conflict (the run has ended)."""
    def post(self, run: str, name: str, payload: Any, correlation: str | None=None, dedupe_key: str | None=None, by: str | None=None, pointer: str='/payload') -> tuple[int, bool, bool]:
        """Store a signal of any name. Returns its number, whether it is new, and whether the stored one is the same.
        `pointer`: the place of `payload` in the request. Raises as `send`."""
    def list(self, run: str, name: str | None=None, correlation: str | None=None, received_after_ms: int | None=None, limit: int=200) -> builtins.list[SignalView]: ...

class _Callbacks:
    def receive(self, token: str, body: Any, headers: Mapping[str, str]) -> WaitView:
        """Take `body` (any JSON value) as the answer. `headers`: names in lower case. Raises NotFound, AnswerInvalid
        (the wait is still open), AlreadyAnswered."""

class _Functions:
    @overload
    def query(self, query: Query[P, R], run: str, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def query(self, query: str, run: str, /, **arguments: Any) -> Any: ...
    def compute(self, run: str, query: Query[..., Any] | str, arguments: Mapping[str, Any]) -> Any:
        """The same in JSON."""
    @overload
    def update(self, run: str, update: Update[A, R], value: A=..., *, id: str | None=None, by: str | None=None, **within: Unpack[Duration]) -> R: ...
    @overload
    def update(self, run: str, update: str, value: Any=None, *, id: str | None=None, by: str | None=None, **within: Unpack[Duration]) -> Any: ...
    def ask(self, run: str, update: Update[Any, Any] | str, value: Any, id: str, by: str | None, timeout_s: float | None) -> Answered | None:
        """The same in JSON. Returns None after `timeout_s`."""

class _Lifecycle:
    def run_from(self, run: str, block: str | None=None, *, input: Any=None, idempotency_key: str | None=None) -> Submitted:
        """Start a run that takes over the outputs of `run` before `block` and runs `block` and all that follows from it
        again; without a block it takes over nothing. Raises NotFound, InputInvalid, Conflict (the block lies inside a
        container, the run is open, answers are not valid for the new run, or the key was used before)."""
    def go_on(self, run: str, target: Target, block: str | None=None, *, again: Collection[str]=..., input: Any=None, idempotency_key: str | None=None) -> Submitted:
        """Continue a run that has ended with another version, a draft or a document, as a new run: what is unchanged is
        taken over, and the rest runs. The blocks `again` run in any case, as do `block` and all that follows from it.
        Raises NotFound, BadRequest, CompileError, InputInvalid, Conflict."""
    def preview_go_on(self, run: str, target: Target | None, block: str | None=None, *, again: Collection[str]=...) -> Continuation:
        """Return what `go_on` would run. Without a target it is the run itself, again: from `block`, or all of it."""
    def preview_run_from(self, run: str, block: str | None=None) -> RerunPreview: ...
    def fork(self, run: str, seq: int | None=None, outputs: Mapping[str, Any] | None=None, *, steps: Steps | None=None, params: Params | None=None, idempotency_key: str | None=None) -> Forked:
        """Make a run that continues from event `seq` of `run`, with these outputs in place of recorded ones, other
        results of steps (by node key and number), and other params of blocks from there on. Without `seq` it is the
        last event at which the steps can have other results. Raises NotFound, BadRequest, CompileError, Conflict."""
    def preview_fork(self, run: str, seq: int | None=None, steps: Steps | None=None) -> ForkPreview: ...
    def retry(self, run: str, key: str, *, idempotency_key: str | None=None) -> Retried:
        """Run one node again; see Retried. Raises NotFound; Conflict: it does not wait for its next attempt, or it
        never started."""
    def migrate(self, run: str, version: int, wait_s: float=...) -> MigrateAnswer:
        """Move an open run to another version of its workflow. Its owner does it, and this waits for it. Raises
        NotFound, CompileError; Conflict: there is nothing to move, or it does not fit (`conflicts`)."""

class _History:
    def state(self, run: str, seq: int | None=None) -> RunState: ...
    def why(self, run: str, node: str | None=None, seq: int | None=None) -> list[Why]:
        """Explain every node that is not decided yet, or the given one (a node id or a whole key), after event `seq`.
        Raises NotFound."""
    def diff(self, a: str, b: str) -> RunDiff:
        """Return where two runs differ. Blocks with the same id are the same, in any version of the workflow. Raises
        NotFound."""

class _Backtests:
    def keep(self, run: str, note: str='') -> KeptView:
        """Keep an ended run as a test, or change its note. Raises NotFound, Conflict (run_open, kept_limit)."""
    def drop(self, run: str) -> bool:
        """Keep it no longer. Returns False if it was not kept. Raises NotFound."""
    def kept(self, workflow: str | None=None) -> list[KeptView]:
        """Return the kept runs: the one that was kept last comes first."""
    def play(self, workflow: str, *, document: Any=None, draft: str | None=None, version: int | None=None, kept: bool=False, last: int=..., before: str | None=None, evaluation: Evaluation | None=None) -> Backtest:
        """Replay runs of the workflow that have ended with a document, by default the active version, the newest
        first: those that are kept, or the last ones, after run `before`; or on rows. Nothing outside is called but
        models, if they may be. Raises NotFound, CompileError, BadRequest."""

class _Schedules:
    def all(self, workflow: str | None=None) -> list[ScheduleView]: ...
    def made_by(self, actor: str) -> list[str]:
        """List the ids of enabled schedules that this person or program made or last changed."""
    def get(self, id: str) -> ScheduleView: ...
    def fires(self, id: str) -> list[FireRow]: ...
    def put(self, id: str, spec: ScheduleSpec) -> tuple[ScheduleView, bool]:
        """Make or change a schedule of the API; also returns True if it is new. Raises BadRequest, NotFound,
        CompileError, InputInvalid, and Conflict for one that a document declares."""
    def delete(self, id: str) -> None: ...
    def switch(self, id: str, enabled: bool) -> ScheduleView:
        """Enable or disable a schedule. Enabling an enabled one changes nothing, unless it has no next fire time
        because its time zone was not known. Raises NotFound, ZoneUnknown."""
    def run_now(self, id: str) -> str:
        """Start a run beside the fire times of the schedule, even if it is disabled. Returns its id. One that polls
        does so now; Conflict if that starts no run. Raises NotFound, CompileError, InputInvalid, Conflict."""
    def alerts_of(self, row: ScheduleRow, due_ms: int) -> tuple[AlertRow, ...]:
        """Return the alerts about a missed fire time, for operators and for the addresses of the workflow."""

class _Webhooks:
    def all(self, workflow: str | None=None) -> list[WebhookView]: ...
    def get(self, id: str) -> WebhookView: ...
    def secret(self, id: str) -> str | None:
        """Return the secret with which senders sign, or which they send as token; None if the environment has it, or
        none is needed: the address of a page is its secret."""
    def deliveries(self, id: str) -> list[DeliveryView]: ...
    def refused(self, id: str) -> list[RefusalView]: ...
    def put(self, id: str, spec: WebhookSpec) -> tuple[WebhookView, bool]:
        """Make or change a webhook of the API; also returns True if it is new. Raises BadRequest, NotFound,
        CompileError, and Conflict for one that a document declares."""
    def delete(self, id: str) -> None: ...
    def switch(self, id: str, enabled: bool) -> WebhookView: ...
    def rotate(self, id: str) -> str:
        """Return a new secret in place of the old one; for a page, the last part of its new address. Raises NotFound,
        Conflict."""
    def receive(self, id: str, request: Received, admit: Callable[[Auth], None] | None=None) -> Delivered:
        """Start the run that a request is for. `admit` is called once the request has the proof that the webhook needs,
        and may raise. Raises like `ready` and `prove`, NotFound, InputInvalid, and Conflict (delivery_replayed, `run`)
        for a copy."""
    def page(self, id: str, token: str, message: str, code: str) -> WebhookRow:
        """Return the row of a public page: the token in its address proves that the visitor has the link. Raises
        NotFound, which does not reveal if the id or the token is wrong."""
    def ready(self, row: WebhookRow) -> StartOf:
        """Return the start of the webhook. Raises WebhookDisabled, WebhookNotReady."""
    def deliver(self, row: WebhookRow, start: StartOf, input: Any, proof: Proof, now_ms: int, files: Sequence[str]=...) -> Delivered:
        """Store the run with its checked input; `proof` names its delivery, `files` came with it. Raises Fenced: the
        row was changed since it was read; Conflict (delivery_replayed, `run`)."""
    def proof(self, row: WebhookRow, request: Received, now_ms: int) -> Proof:
        """Check the proof, also with the secrets of earlier keys while they are valid. Raises like `prove`."""

class _Secrets:
    def all(self) -> list[SecretView]: ...
    def set(self, name: str, value: str, hosts: Sequence[str]=..., places: Sequence[str]=..., *, by: str='') -> SecretView:
        """Set a first or a new value, which runs read from their next block call on. Raises BadRequest, Conflict,
        LimitExceeded."""
    def delete(self, name: str) -> None: ...
    def reseal(self) -> int:
        """Encrypt the secrets of known older keys with the present key, in small transactions. Returns their number."""
    def rekey(self, grace_ms: int) -> SecretsResealed:
        """Make this process's key the valid one: secrets are sealed with it, and open waits get new links. What the
        keys before have signed stays valid for `grace_ms` more. It can be interrupted and repeated."""

class _Connections:
    def all(self) -> list[ConnectionView]: ...
    def put(self, name: str, connection: Connection, hosts: Sequence[str], *, by: str='') -> ConnectionView:
        """Store a connection, or replace the one with this name: people then have to sign in again. Raises BadRequest,
        Conflict, LimitExceeded."""
    def delete(self, name: str) -> None: ...
    def used_by(self, name: str) -> list[EnvUse]: ...
    def test(self, name: str, service: str='', base_url: str='', new: tuple[Connection, Sequence[str]] | None=None) -> ConnectionTest:
        """Ask its service who is signed in, or that of `new`, which is not stored, with its hosts. `service`: the
        connector of the block that names it, with the `base_url` of the block. Raises BadRequest, NotFound,
        Conflict."""
    def begin(self, name: str, by: str) -> SignIn:
        """Begin a sign-in at its provider, in place of one that was begun before. Only `by` can end it, once. Raises
        NotFound, Conflict."""
    def end(self, state: str, by: str, *, code: str='', said: str='', issuer: str='') -> ConnectionView:
        """End a sign-in with the parameters that the provider gave the browser, which are valid once. Raises
        BadRequest, Conflict; BlockError if the provider does not answer."""

class _Knowledge:
    def all(self) -> list[CollectionView]: ...
    def get(self, name: str) -> CollectionView:
        """Raises NotFound."""
    def create(self, name: str, model: str, *, description: str='', chunk_chars: int=..., overlap_chars: int=...) -> CollectionView:
        """Make a collection. Its model and its sizes, in characters, stay. Raises BadRequest, Conflict,
        LimitExceeded."""
    def delete(self, name: str) -> None:
        """Delete a collection with its documents. Raises NotFound."""
    def documents(self, collection: str, after: str='', limit: int=100) -> list[DocumentView]:
        """List versions by the names of their documents. Raises NotFound."""
    def document(self, collection: str, name: str) -> list[DocumentView]:
        """Return the versions of a document: the visible one, then one that is pending. Raises NotFound."""
    def add(self, collection: str, name: str, data: bytes, media_type: str='', *, title: str='', source: str='') -> DocumentView:
        """Store a text or a file as the next version of a document, and start the run that embeds it. The same text
        again changes nothing, unless the run of the version before has failed. Raises NotFound, BadRequest,
        LimitExceeded."""
    def search(self, collection: str, query: str, limit: int=5, mode: Mode='hybrid') -> list[Passage]: ...
    def remove(self, collection: str, name: str) -> None:
        """Delete a document: its text, its vectors and its words. Raises NotFound."""

class _Usage:
    def between(self, first: date | None=None, last: date | None=None, *, by: By='day', workflow: str | None=None) -> tuple[date, date, UsageView]:
        """Sum the usage between two days in UTC, both included; by default the last 30 days. Includes the sums of runs
        deleted since. Raises BadRequest."""
    def models(self) -> list[Offer]:
        """List the endpoints of models, and the models whose prices are known."""

class _Upkeep:
    def begin(self, older_than_ms: int | None, keep: int=0, *, dry_run: bool=False) -> tuple[GcJob, bool]:
        """Begin the work of `collect`, or its dry run. Returns False with the job that is at work already. Raises
        Conflict."""
    def job(self, id: str) -> GcJob:
        """Raises NotFound: there is none of this id, or others came after it."""
    def collect(self, older_than_ms: int | None, keep: int=0, *, dry_run: bool=False, by_days: bool=False) -> Collected:
        """Do the same and wait for it. One process does it at a time. Raises Conflict: another one is at it."""
    def delete_run(self, run: str) -> int:
        """Delete the run and the runs below it; returns their number. Raises NotFound, Conflict (it is open, kept, or
        needed by another)."""

def open_sync(database: str | Path | None=None, *, functions: Mapping[str, Callable[..., Any]] | None=None, workflows: Iterable[Composed]=..., blocks: Iterable[Block]=..., env: Mapping[str, str] | None=None, secrets: Iterable[str] | Mapping[str, Iterable[str]]=..., models: Mapping[str, str | Model] | None=None, prices: Mapping[str, str] | None=None, allow_private: Iterable[str]=..., mail: MailSettings | None=None, base_url: str='http://127.0.0.1:8765', secret: bytes | None=None, processes: int | None=None, dask: str | None=None, sqlite_folders: Iterable[str | Path]=..., file_folders: Iterable[str | Path]=..., tune_gc: bool=True) -> SyncEngine:
    """Open `database` and work until the block is left. Runs that are open then continue when it is opened again.

    database       a SQLite file, made if missing, or a postgresql:// address; None for a file removed at the end
    functions, blocks  what blocks of type `python` may call, by name; block types beside those of installed packages
    workflows      workflows in Python, with their steps; called ones are stored
    env, secrets   the values that `${NAME}` reads, and the names of secrets among them, kept out of records. With hosts
                   (`{"KEY": ["api.example.com"]}`) the rules of stored secrets hold; a list of names trusts documents
    models         servers of language models, `{"local": "http://127.0.0.1:11434/v1"}` for `local:llama3`
    prices         of these, in US dollars for a million tokens: `{"local": "0.15/0.60"}`, as in WEFT_PRICE_LOCAL
    allow_private  networks and `host:port` that `http` blocks may reach although they are private
    base_url       the address in resume links: the server on the same database, if there is one
    secret         keys those links and seals stored secrets, 16 bytes or more. By default the key file of a SQLite file
                   (`runs.key`, made if missing), as of a server. On PostgreSQL, links end with this program without it
    processes, dask  for `policy.runner`: child processes, None for one a core; a scheduler, `tcp://host:8786`
    sqlite_folders, file_folders  folders with the SQLite files that `sql` blocks may open; whose files may start runs
    tune_gc        lets Python's garbage collector run less often, as `weft serve` does, unless the program has set it

    Raises StoreError if the database or its key cannot be used; DefinitionError if a workflow is no document."""
