"""One attempt of one node: resolve its inputs, run the handler, turn whatever happens into a fact. Never raises.

An attempt's outcome is a `Result`: the fact for the core, and beside it the payload that the core must not see.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import orjson
from msgspec import Struct

from compiler.catalog import BlockSpec
from compiler.keys import NodeKey, Path
from compiler.plan import Node
from executor.errors import BlockError, Fenced, Lost, NotFound
from executor.kernel.core import facts as f
from executor.kernel.core.events import ErrorInfo
from executor.kernel.handler.base import (
    ChildRequest,
    Context,
    Done,
    Outcome,
    Over,
    Sized,
    Suspend,
    Tested,
    holds_handles,
)
from executor.kernel.handler.needs import RulesOf
from executor.kernel.handler.secret_places import environment_names, names_elsewhere
from executor.kernel.journal.codec import Codec
from executor.kernel.journal.reader import read
from executor.kernel.process.observe import Doing, with_parent
from executor.kernel.process.tracebacks import traceback_of
from executor.kernel.run.ahead import Ahead
from executor.kernel.run.attempt import AttemptLog, Keep, NoHeartbeat, OutOfTime, StepNote, TimeLimit
from executor.kernel.run.border import Border, not_again
from executor.kernel.run.kept import Begun, Checkpoints, CheckpointWriter, ResultCache, RunMemory
from executor.kernel.run.loaded import LoadedRun
from executor.kernel.run.new_run import as_key
from executor.kernel.run.parts import Parts
from executor.kernel.run.places import Place, Waiting
from executor.kernel.run.results import Payload, Result, assigned
from executor.kernel.run.steps import AttemptSteps, Left, StepJournal, left_by, refused_in
from executor.kernel.store.patience import with_retries
from executor.kernel.store.run_rows import NewRun
from executor.kernel.store.topics.cache import CacheRow
from executor.kernel.store.topics.contents import files_in, names_files
from executor.kernel.store.topics.places import Ask
from executor.kernel.values.coerce import truthy
from executor.kernel.values.payload import Bound, dump
from executor.kernel.values.payload import encode as encode_payload
from executor.kernel.values.resolve import Template, compile_template
from executor.kernel.values.schema import ASIDE_BYTES, check_output

log = logging.getLogger("weft.launch")

# Plans whose nodes are kept prepared; as many as recovery keeps decoded.
PLANS_MAX = 256


@dataclass(frozen=True, slots=True)
class _Found:
    """An earlier output that stands for this attempt's."""

    row: CacheRow


class _Prepared:
    """The parts of a node that every run of a plan shares, made once."""

    __slots__ = ("elsewhere", "environment", "template", "wired")

    def __init__(self, node: Node, spec: BlockSpec) -> None:
        self.template: Template = compile_template(node, spec.addresses)
        self.environment = environment_names(node)
        self.elsewhere = _shared(names_elsewhere(node, spec) if self.environment else frozenset())
        self.wired = _shared(frozenset(edge.handle for edge in node.out))


@lru_cache(maxsize=1_000)
def _shared(names: frozenset[str]) -> frozenset[str]:
    """Return one object for all nodes with the same names, and for those with none: it takes 216 bytes."""
    return names


def _doing(run: str, workflow: str, codec: Codec, key: NodeKey, attempt: int) -> Doing:
    return Doing(run, workflow, codec.key_text(key), attempt)


class _Attempt(Struct):  # made for each attempt: a dataclass takes three times as long
    """The objects of a handler while it runs. `begun` waits until its start is on disk, or is None if it is already."""

    key: NodeKey
    node: Node
    number: int
    key_text: str
    keep: Keep
    begun: Begun | None
    log: AttemptLog
    limit: TimeLimit
    over: Over

    def end(self) -> None:
        self.over.end()
        self.log.end()


class Launcher:
    """Runs attempts of one run. Time, params and values are those of the moment of the call."""

    def __init__(self, run: LoadedRun, parts: Parts, ahead: Ahead | None = None) -> None:
        self._run = run
        self._parts = parts
        self._ahead = ahead
        self._run_id = run.id
        self._plan = run.plan
        self._codec = run.codec
        self._values = run.fold.values
        self._registry = parts.registry
        self._services = parts.services
        self._clock = parts.clock
        self._redactor = parts.redactor
        self._vault = parts.vault
        self._limited: dict[tuple[NodeKey, int], Waiting] = {}
        self._border = Border(run, parts)
        self._loop = asyncio.get_running_loop()
        self._prepared = _prepared_nodes(run.plan.hash)
        # For lines of the log. Without this launcher, which tasks and timers that outlive an attempt would keep alive.
        self.doing: Callable[[NodeKey, int], Doing] = partial(_doing, run.id, run.row.workflow, run.codec)

    @cached_property
    def _checkpoints(self) -> Checkpoints:
        return Checkpoints(self._parts.store, self._run.row, self._clock, self._redactor)

    @cached_property
    def _cache(self) -> ResultCache:
        return ResultCache(
            self._parts.store, self._run.row, self._clock, self._redactor, self._services.sandbox.matches
        )

    def _memory(self) -> RunMemory:
        return RunMemory(self._parts.store, self._run.row, self._clock, self._redactor)

    def type_of(self, key: NodeKey) -> str:
        """Return the block type of this node key."""
        return self._plan.nodes[key[1]].type

    async def run(self, key: NodeKey, attempt: int, seq: int, keep: Keep, turn: int = 0, count: int = 0) -> Result:
        """Run one attempt, whose start is recorded by event `seq` at the latest. `keep` journals what it logs; `turn`
        and `count` are for sentinels, see Context."""
        node = self._plan.nodes[key[1]]
        try:
            outcome, cache_key = await self._outcome(key, node, attempt, seq, keep, turn, count)
            output = b"null"
            if isinstance(outcome, Done):
                output = dump(outcome.output)
                if len(output) > ASIDE_BYTES:  # each item may have to be looked at: others proceed meanwhile
                    output = await asyncio.to_thread(self._border.clean, outcome.output, output)
                else:
                    output = self._border.clean(outcome.output, output)
            if cache_key is not None and names_files(output) and not await self._are_its_own(output):
                cache_key = None  # who has the cached output has its files
            result = self._result(key, node, attempt, outcome, output, cache_key)
            if node.output_schema is not None and isinstance(outcome, Done) and result.payload.output is not None:
                await check_output(node, result.payload.output, self._services.sandbox.matches)
            return result
        except BlockError as error:
            traceback = error.traceback or self._traceback(node, error)
            info = ErrorInfo(error.code, error.message, error.retryable, node.block, error.hint, traceback)
            info = not_again(node, info) if error.uncertain else info
            return self._border.erred(key, attempt, info, error.retry_at_ms, error.deferred)
        except Lost as error:
            log.warning("block %s of run %s: %s", node.block, self._run_id, error.message)
            return Result(f.AttemptLost(self._clock.now_ms(), key, attempt, error.together, error.ask), Payload())
        except Fenced as error:  # of a checkpoint: what is logged here is lost as well, for its append will be refused
            return self._border.erred(key, attempt, ErrorInfo(error.code, error.message, False, node.block))
        except NoHeartbeat as error:
            info = ErrorInfo("heartbeat_timeout", str(error), True, node.block)
            return self._border.erred(key, attempt, not_again(node, info))
        except TimeoutError as error:
            queued = f", {error.queued_s:.0f} s of it in the queue" if isinstance(error, OutOfTime) else ""
            message = f"the block took longer than {node.policy.timeout_ms / 1000:g} s{queued}"
            info = ErrorInfo("timeout", message, True, node.block)
            return self._border.erred(key, attempt, not_again(node, info))
        except asyncio.CancelledError:
            if node.inline:
                raise  # it runs in the run loop's own task: that is what is being cancelled
            return self._border.erred(
                key, attempt, ErrorInfo("cancelled", "the attempt was cancelled", False, node.block)
            )
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            # A handler's bug is the block's failure, not the run loop's: it is recorded like any other. So are a panic
            # in a library and `sys.exit()`: the first would never reach the run, the second would end the process.
            reference = secrets.token_hex(4)
            log.exception("block %s (%s) raised [%s]", node.block, node.type, reference)
            message = f"{type(error).__name__}: {error} (server log reference {reference})"
            traceback = self._traceback(node, error)
            return self._border.erred(
                key, attempt, ErrorInfo("internal_error", message, False, node.block, traceback=traceback)
            )

    def _traceback(self, node: Node, error: BaseException) -> str:
        """Return the traceback of an error in a handler that is not a part of weft, else ""."""
        try:
            return traceback_of(error, type(self._registry.handler(node.type)))
        except NotFound:  # the block type is not here
            return ""

    def place_left(self, key: NodeKey, attempt: int) -> Place | None:
        """Return the place that an ended attempt had, or waited for: the append that records the end leaves it."""
        waiting = self._limited.pop((key, attempt), None) if self._limited else None
        return None if waiting is None else waiting.leave()

    def limits_in_use(self) -> set[str]:
        """Keys of places that attempts have, or wait for."""
        return {waiting.ask.key for waiting in self._limited.values()}

    async def encode_external(self, key: NodeKey, output: Any) -> bytes | ErrorInfo:
        """Encode an output from outside (an answer, a signal, a child) as JSON, or return why it cannot be this node's.
        It may be over the bounds though all in it is not: with what is added to an answer, or with all ends of a
        child."""
        try:
            data = encode_payload(output)
        except BlockError as error:
            return self._refused(key, error)
        return await self.validate_output(key, data) or data

    async def validate_output(self, key: NodeKey, output: bytes) -> ErrorInfo | None:
        """Return why such an output does not fit this node's schema, or None."""
        try:
            await check_output(self._plan.nodes[key[1]], output, self._services.sandbox.matches)
        except BlockError as error:
            return self._refused(key, error)
        return None

    def _refused(self, key: NodeKey, error: BlockError) -> ErrorInfo:
        block = self._plan.nodes[key[1]].block
        return self._border.shown(ErrorInfo(error.code, error.message, error.retryable, block, error.hint))

    async def _outcome(
        self, key: NodeKey, node: Node, attempt: int, seq: int, keep: Keep, turn: int, count: int
    ) -> tuple[Outcome | _Found | Left | None, str | None]:
        """Return the outcome, or None if `skip_if` was true, and the key to cache the output under, if it is to be
        cached."""
        path = self._reader_path(key, node, turn)
        prepared = self._prepared.get(key[1])
        if prepared is None:
            prepared = self._prepared[key[1]] = _Prepared(node, self._registry.handler(node.type).spec)
        template = prepared.template
        rules = await self._open_secrets(prepared) if prepared.environment else {}
        key_text = self._codec.key_text(key)
        skip_if = template.skip_if(self._values, path)
        if skip_if is not None and truthy((await self._evaluate(key_text, attempt, [skip_if]))[0]):
            # A container is passed over by opening nothing: its end sentinel then leads on.
            return (Sized(0) if node.sentinel else None), None
        own = self._begin(key, node, attempt, key_text, seq, keep)
        context = self._context(own, prepared, path, turn, count)
        cache_key: str | None = None
        if node.policy.cache is not None:
            cache_key = await self._cache_key(own, template, path, context)
            row = await self._cache.find(node, cache_key)
            if row is not None:
                return _Found(row), None
        if attempt > 1 and not node.inline:
            context.last_checkpoint = await self._checkpoints.last(key_text)
        handler = self._registry.handler(node.type)
        try:
            if node.policy.limit is not None:
                await self._take_place(own, template.limit_key(self._values, path))
                if cache_key is None:  # else the output is kept under what the params were
                    rules = await self._open_secrets(prepared) if prepared.environment else {}
                    context.params = template.fill(self._values, path)
                context.variables, context.now_ms = self._values.variables, self._clock.now_ms()
            if node.inline:
                return await handler.run(context), None
            if rules and not holds_handles(handler):
                context.params = self._vault.revealed(context.params, rules)
            with self._vault.bound(rules):
                outcome = await own.limit.around(handler.run(context))
            return outcome if context.steps is None else left_by(context) or outcome, cache_key
        except (asyncio.CancelledError, TimeoutError):
            raise
        except BaseException as error:
            if (left := left_by(context)) is not None:
                return left, None
            if (refused := refused_in(context)) is not None and isinstance(error, Exception):
                raise refused from error
            raise
        finally:
            own.end()

    def _begin(self, key: NodeKey, node: Node, attempt: int, key_text: str, seq: int, keep: Keep) -> _Attempt:
        begun = None if self._ahead is None else partial(self._ahead.reached, seq)
        return _Attempt(
            key,
            node,
            attempt,
            key_text,
            keep,
            begun,
            AttemptLog(self._redactor, keep, lambda text: self._show(key_text, self._redactor.redact(text), seq)),
            TimeLimit(node.policy.timeout_ms / 1000, (node.policy.heartbeat_timeout_ms or 0) / 1000),
            Over(),
        )

    def _context(self, own: _Attempt, prepared: _Prepared, path: Path, turn: int, count: int) -> Context:
        key, node, attempt, key_text = own.key, own.node, own.number, own.key_text
        values, log, limit = self._values, own.log, own.limit
        return Context(
            run_id=self._run_id,
            workflow=self._plan.name,
            key=key_text,
            block=node.block,
            name=node.name,
            type=node.type,
            attempt=attempt,
            idempotency_key=f"{self._run_id}:{key_text}",
            params=prepared.template.fill(values, path),
            input=values.input,
            variables=values.variables,
            now_ms=self._clock.now_ms(),
            services=self._services,
            wired=prepared.wired,
            turn=turn,
            count=count,
            broke=turn > 0 and values.broke((*key[0], (node.body, turn - 1))),
            runner=node.policy.runner,
            connections=self._parts.connections,
            cancelled=own.over,
            emit=log.emit,
            log=log.log,
            waiting=limit.waiting,
            queueing=limit.queueing,
            heartbeat=limit.heartbeat,
            clock=self._clock.now_ms,
            evaluate=partial(self._evaluate, key_text, attempt),
            checkpoint=partial(self._keep_checkpoint, own),
            checkpoint_from_thread=partial(self._keep_checkpoint_from_thread, own),
            make_memory=self._memory,
            make_steps=None if node.inline else partial(self._steps_of, own, asyncio.current_task()),
            prepare_child=partial(self._prepare_child, key_text, attempt),
            prepare_next=self._prepare_next,
            repeat_wanted=partial(self._repeat_wanted, key_text, attempt),
        )

    def _writer(self, own: _Attempt) -> CheckpointWriter:
        return CheckpointWriter(self._checkpoints, own.key_text, own.number, own.begun, own.over, self._loop)

    async def _keep_checkpoint(self, own: _Attempt, value: Any) -> None:
        await self._writer(own).keep(value)

    def _keep_checkpoint_from_thread(self, own: _Attempt, value: Any) -> None:
        self._writer(own).keep_from_thread(value)

    async def _repeat_wanted(self, key_text: str, attempt: int) -> bool:
        """Returns True if a person was asked about the previous attempt and chose to make this one."""
        node, _, path = key_text.partition("@")
        closed = read(self._parts.store, self._run_id, node=node, path=path or None, types=("wait.closed",))
        return any([r.attempt == attempt - 1 and (r.path or "") == path async for r in closed])

    async def _cache_key(self, own: _Attempt, template: Template, path: Path, context: Context) -> str:
        """Return the cache key: of the value that the author chose, or else of the params."""
        bound = template.cache_key(self._values, path)
        if bound is None:
            return self._cache.key(own.node, context.params)
        return self._cache.key(own.node, (await self._evaluate(own.key_text, own.number, [bound]))[0])

    async def _take_place(self, own: _Attempt, limit_key: str) -> None:
        """Wait for one of the places of its limit."""
        assert own.node.policy.limit is not None
        text, at_most = as_key(self._redactor.redact(limit_key)), own.node.policy.limit.at_most
        ask = Ask(self._run_id, self._run.row.epoch, own.key_text, own.number, text, at_most)
        waiting = self._limited[own.key, own.number] = Waiting(ask)
        await self._parts.places.claim(waiting)

    def _steps_of(self, own: _Attempt, main: asyncio.Task[Any] | None) -> AttemptSteps:
        known = self._run.state.steps.get(own.key)
        note = partial(_keep_note, own.keep)
        journal = StepJournal(self._parts.store, self._run_id, note, own.begun, self._loop)
        return AttemptSteps(
            own.node.name, own.number, {} if known is None else dict(known.by_n), journal, self._border, main
        )

    async def _open_secrets(self, prepared: _Prepared) -> RulesOf:
        """Load their newest values, and return their rules. Raises BlockError."""
        return await with_retries(
            lambda: self._vault.open(prepared.environment, prepared.elsewhere),
            what=f"reading secrets for run {self._run_id}",
            failed="the database could not be read",
            log=log,
        )

    async def _are_its_own(self, output: bytes) -> bool:
        """Returns True if the run holds all files that an output names. Raises BlockError."""
        held = await with_retries(
            lambda: self._parts.files.of_run(self._run_id, output),
            what=f"looking for files of run {self._run_id}",
            failed="the database could not be read",
            log=log,
        )
        return len(held) == len(files_in(output))

    def _show(self, key_text: str, text: str, seq: int) -> None:
        """Live text, to readers: not before the start of its attempt is on disk."""
        if self._ahead is None:
            self._parts.hub.delta(self._run_id, key_text, text, seq)
        else:
            self._ahead.after(seq, partial(self._parts.hub.delta, self._run_id, key_text, text, seq))

    async def _prepare_child(self, key_text: str, attempt: int, request: ChildRequest) -> NewRun:
        """Secrets do not go on into another run's input: it reads them by name itself."""
        clean = self._redactor.redact_value
        request = replace(request, definition=clean(request.definition), input=clean(request.input))
        tracing = self._services.tracing
        above = None if tracing is None else await tracing.traceparent(self._run_id, key_text, attempt)
        with with_parent(above):
            return await with_retries(
                lambda: self._parts.children.prepare(self._run_id, request),
                what=f"preparing a child of run {self._run_id}",
                failed="the database could not be read",
                log=log,
            )

    async def _prepare_next(self, input: Any) -> NewRun:
        clean = self._redactor.redact_value(input)
        return await with_retries(
            lambda: self._parts.continuations.prepare(self._run.row, self._plan, clean),
            what=f"preparing the run that continues run {self._run_id}",
            failed="the database could not be read",
            log=log,
        )

    def _reader_path(self, key: NodeKey, node: Node, turn: int) -> Path:
        """Return the path from which references are read. A loop's own test reads as if it stood in the body, at the
        next index."""
        if node.sentinel and node.type.startswith("loop"):
            return (*key[0], (node.body, turn))
        return key[0]

    async def _evaluate(self, key_text: str, attempt: int, calls: Sequence[Bound]) -> list[Any]:
        seed = f"{self._run_id}:{key_text}:{attempt}"
        return await self._services.sandbox.evaluate(calls, now_ms=self._clock.now_ms(), seed=seed, owner=self._run_id)

    def _result(
        self,
        key: NodeKey,
        node: Node,
        attempt: int,
        outcome: Outcome | _Found | Left | None,
        output: bytes,
        cache_key: str | None,
    ) -> Result:
        """`output`: what a Done put out, encoded."""
        at_ms = self._clock.now_ms()
        match outcome:
            case None:
                return Result(f.NodePassed(at_ms, key, attempt), Payload())
            case Done():
                payload = self._border.payload(node, outcome, output)
                ends, as_new = outcome.response is not None or outcome.next is not None, outcome.next is not None
                if cache_key is not None and not (outcome.patches or ends):
                    payload.cached = self._cache.row(node, cache_key, output, outcome.route)
                return Result(f.NodeDone(at_ms, key, attempt, outcome.route, ends, as_new=as_new), payload)
            case _Found(row):
                patches = assigned(node, orjson.loads(row.output)) if node.policy.assign else []
                return Result(f.NodeDone(at_ms, key, attempt, row.route, cached=True), Payload(row.output, patches))
            case Suspend():
                return self._border.suspended(key, attempt, [(outcome, None)])
            case Left(waits):
                return self._border.suspended(key, attempt, waits)
            case Sized():
                items = None if outcome.items is None else encode_payload(list(outcome.items))
                items = None if items is None else self._redactor.redact_json(items)
                return Result(f.RegionSizeKnown(at_ms, key, attempt, outcome.count), Payload(items))
            case Tested():
                return Result(f.LoopTested(at_ms, key, attempt, outcome.again), Payload())


def _keep_note(keep: Keep, note: StepNote) -> None:
    keep(note, "log")


@lru_cache(maxsize=PLANS_MAX)
def _prepared_nodes(plan_hash: str) -> dict[int, _Prepared]:
    """Return the prepared nodes by node number, filled as nodes run, shared by all runs of the plan."""
    return {}
