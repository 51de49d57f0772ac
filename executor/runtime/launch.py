"""One attempt of one node: resolve its inputs, run the handler, turn whatever happens into a fact. Never raises.

An attempt's outcome is a `Result`: the fact for the core, and beside it the payload that the core must not see. This is
also the border that secrets do not cross: handlers see them, whatever leaves here has them taken out.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import orjson

from compiler.keys import NodeKey, Path
from compiler.plan import Node
from executor.blocks.base import ChildRequest, Context, Done, Outcome, Sized, Suspend, Tested
from executor.core import facts as f
from executor.core.events import Deferred, ErrorInfo
from executor.errors import BlockError, Fenced
from executor.runtime.attempt_log import AttemptLog, Stream, unicode
from executor.runtime.cached import ResultCache
from executor.runtime.checkpoints import Checkpoints
from executor.runtime.loaded import LoadedRun
from executor.runtime.parts import Parts
from executor.runtime.results import Payload, Result, assigned
from executor.runtime.time_limit import OutOfTime, TimeLimit
from executor.sandbox import Bound
from executor.store.patience import with_retries
from executor.store.rows import CacheRow, NewRun
from executor.values.coerce import truthy
from executor.values.payload import check, dump
from executor.values.payload import encode as encode_payload
from executor.values.redact import seal
from executor.values.resolve import Template, compile_template
from executor.values.schema import ASIDE_BYTES, check_output

log = logging.getLogger("weft.launch")

Keep = Callable[[str, Stream], None]

# Plans whose nodes are kept prepared; as many as recovery keeps decoded.
PLANS_MAX = 256


@dataclass(frozen=True, slots=True)
class _Found:
    """An earlier output that stands for this attempt's."""

    row: CacheRow


class _Prepared:
    """What every run of a plan needs of a node, made once."""

    __slots__ = ("template", "wired")

    def __init__(self, node: Node, addresses: Sequence[str]) -> None:
        self.template: Template = compile_template(node, addresses)
        self.wired = frozenset(edge.handle for edge in node.out)


class Launcher:
    """Runs attempts of one run. Time, params and values are those of the moment of the call."""

    def __init__(self, run: LoadedRun, parts: Parts) -> None:
        self._run_id = run.id
        self._plan = run.plan
        self._codec = run.codec
        self._values = run.fold.values
        self._registry = parts.registry
        self._services = parts.services
        self._clock = parts.clock
        self._hub = parts.hub
        self._redactor = parts.redactor
        self._children = parts.children
        self._checkpoints = Checkpoints(parts.store, run.row, parts.clock, parts.redactor)
        self._cache = ResultCache(parts.store, run.row, parts.clock, parts.redactor, parts.services.sandbox.matches)
        self._prepared = _prepared_nodes(run.plan.hash)

    async def run(self, key: NodeKey, attempt: int, seq: int, keep: Keep, turn: int = 0, count: int = 0) -> Result:
        """One attempt, whose start is recorded by event `seq` at the latest. `keep` journals what it logs; `turn`,
        `count`: for sentinels, see Context."""
        node = self._plan.nodes[key[1]]
        try:
            outcome, cache_key = await self._outcome(key, node, attempt, seq, keep, turn, count)
            output = await self._encoded(outcome.output) if isinstance(outcome, Done) else b"null"
            result = self._result(key, node, attempt, outcome, output, cache_key)
            if node.output_schema is not None and isinstance(outcome, Done) and result.payload.output is not None:
                await check_output(node, result.payload.output, self._services.sandbox.matches)
            return result
        except BlockError as error:
            info = ErrorInfo(error.code, error.message, error.retryable, node.block, error.hint)
            return self._erred(key, attempt, info, error.retry_at_ms, error.deferred)
        except Fenced as error:  # of a checkpoint: what is said here is lost as well, for its append will be refused
            return self._erred(key, attempt, ErrorInfo(error.code, error.message, False, node.block))
        except TimeoutError as error:
            queued = f", {error.queued_s:.0f} s of it in the queue" if isinstance(error, OutOfTime) else ""
            message = f"the block took longer than {node.policy.timeout_ms / 1000:g} s{queued}"
            info = ErrorInfo("timeout", message, True, node.block)
            return self._erred(key, attempt, info)
        except asyncio.CancelledError:
            if node.inline:
                raise  # it runs in the run loop's own task: that is what is being cancelled
            return self._erred(key, attempt, ErrorInfo("cancelled", "the attempt was cancelled", False, node.block))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            # A handler's bug is the block's failure, not the run loop's: it is recorded like any other. So are a panic
            # in a library and `sys.exit()`: of the first the run would never hear, the second would end the process.
            reference = secrets.token_hex(4)
            log.exception("block %s (%s) raised [%s]", node.block, node.type, reference)
            message = f"{type(error).__name__}: {error} (server log reference {reference})"
            return self._erred(key, attempt, ErrorInfo("internal_error", message, False, node.block))

    async def encode_external(self, key: NodeKey, output: Any) -> bytes | ErrorInfo:
        """An output that came from outside (an answer, a signal, a child) as JSON, or why it cannot be this node's. It
        may be over the bounds though all in it is not: with what is said around an answer, with all ends of a child."""
        try:
            data = encode_payload(output)
        except BlockError as error:
            return self._refused(key, error)
        return await self.validate_output(key, data) or data

    async def validate_output(self, key: NodeKey, output: bytes) -> ErrorInfo | None:
        """Why such an output does not fit this node's schema."""
        try:
            await check_output(self._plan.nodes[key[1]], output, self._services.sandbox.matches)
        except BlockError as error:
            return self._refused(key, error)
        return None

    def _refused(self, key: NodeKey, error: BlockError) -> ErrorInfo:
        block = self._plan.nodes[key[1]].block
        return self._shown(ErrorInfo(error.code, error.message, error.retryable, block, error.hint))

    async def _outcome(
        self, key: NodeKey, node: Node, attempt: int, seq: int, keep: Keep, turn: int, count: int
    ) -> tuple[Outcome | _Found | None, str | None]:
        """None: `skip_if` was true. Second value: the key to keep the output under, if it is to be kept."""
        path = self._reader_path(key, node, turn)
        prepared = self._prepared.get(key[1])
        if prepared is None:
            addresses = self._registry.handler(node.type).spec.addresses
            prepared = self._prepared[key[1]] = _Prepared(node, addresses)
        template = prepared.template
        key_text = self._codec.key_text(key)
        attempt_log = AttemptLog(
            self._redactor,
            keep,
            lambda text: self._hub.delta(self._run_id, key_text, self._redactor.redact(text), seq),
        )
        checkpoints = self._checkpoints.writer(key_text, attempt)
        skip_if = template.skip_if(self._values, path)
        if skip_if is not None and truthy((await self._evaluate(key_text, attempt, [skip_if]))[0]):
            # A container is passed over by opening nothing: its end sentinel then leads on.
            return (Sized(0) if node.sentinel else None), None
        context = Context(
            run_id=self._run_id,
            workflow=self._plan.name,
            key=key_text,
            block=node.block,
            name=node.name,
            type=node.type,
            attempt=attempt,
            idempotency_key=f"{self._run_id}:{key_text}",
            params=template.fill(self._values, path),
            input=self._values.input,
            variables=self._values.variables,
            now_ms=self._clock.now_ms(),
            services=self._services,
            emit=attempt_log.emit,
            log=attempt_log.log,
            evaluate=lambda calls: self._evaluate(key_text, attempt, calls),
            checkpoint=checkpoints.keep,
            checkpoint_from_thread=checkpoints.keep_from_thread,
            wired=prepared.wired,
            turn=turn,
            count=count,
            broke=turn > 0 and self._values.broke((*key[0], (node.body, turn - 1))),
            prepare_child=self._prepare_child,
        )
        cache_key: str | None = None
        if node.policy.cache is not None:
            bound = template.cache_key(self._values, path)
            own = None if bound is None else (await self._evaluate(key_text, attempt, [bound]))[0]
            cache_key = self._cache.key(node, context.params if bound is None else own)
            row = await self._cache.find(node, cache_key)
            if row is not None:
                return _Found(row), None
        if attempt > 1 and not node.inline:
            context.last_checkpoint = await self._checkpoints.last(key_text)
        handler = self._registry.handler(node.type)
        try:
            if node.inline:
                return await handler.run(context), None
            limit = TimeLimit(node.policy.timeout_ms / 1000)
            context.waiting, context.queueing = limit.waiting, limit.queueing
            return await limit.around(handler.run(context)), cache_key
        finally:
            checkpoints.end()
            attempt_log.end()

    async def _prepare_child(self, request: ChildRequest) -> NewRun:
        """Secrets do not go on into another run's input: it reads them by name itself."""
        clean = self._redactor.redact_value
        request = replace(request, definition=clean(request.definition), input=clean(request.input))
        return await with_retries(
            lambda: self._children.prepare(self._run_id, request),
            what=f"preparing a child of run {self._run_id}",
            failed="the database could not be read",
            log=log,
        )

    def _reader_path(self, key: NodeKey, node: Node, turn: int) -> Path:
        """Where references are read from. A loop's own test reads as if it stood in the body, at the next index."""
        if node.sentinel and node.type.startswith("loop"):
            return (*key[0], (node.body, turn))
        return key[0]

    async def _evaluate(self, key_text: str, attempt: int, calls: Sequence[Bound]) -> list[Any]:
        seed = f"{self._run_id}:{key_text}:{attempt}"
        return await self._services.sandbox.evaluate(calls, now_ms=self._clock.now_ms(), seed=seed, owner=self._run_id)

    async def _encoded(self, output: Any) -> bytes:
        """JSON without secrets. Each item of a large output may have to be looked at, which is done in a thread: other
        runs and requests proceed meanwhile. Raises BlockError."""
        data = dump(output)

        def checked() -> bytes:
            check(output, data)
            return self._redactor.redact_json(data)

        return await asyncio.to_thread(checked) if len(data) > ASIDE_BYTES else checked()

    def _result(
        self,
        key: NodeKey,
        node: Node,
        attempt: int,
        outcome: Outcome | _Found | None,
        output: bytes,
        cache_key: str | None,
    ) -> Result:
        """`output`: what a Done put out, encoded."""
        at_ms = self._clock.now_ms()
        match outcome:
            case None:
                return Result(f.NodePassed(at_ms, key, attempt), Payload())
            case Done():
                redact, clean = self._redactor.redact, self._redactor.redact_value
                patches: list[list[Any]] = [[p.op, redact(p.path), clean(p.value)] for p in outcome.patches]
                if node.policy.assign:
                    patches += assigned(node, orjson.loads(output))
                payload = Payload(output, patches, response=clean(outcome.response))
                if cache_key is not None and not (outcome.patches or outcome.response):
                    payload.cached = self._cache.row(node, cache_key, output, outcome.route)
                return Result(f.NodeDone(at_ms, key, attempt, outcome.route, outcome.response is not None), payload)
            case _Found(row):
                patches = assigned(node, orjson.loads(row.output)) if node.policy.assign else []
                return Result(f.NodeDone(at_ms, key, attempt, row.route, cached=True), Payload(row.output, patches))
            case Suspend():
                fact = f.NodeSuspended(at_ms, key, attempt, outcome.kind, outcome.due_ms, outcome.on_expire)
                suspend = self._without_secrets(outcome)
                _check_json(suspend)
                return Result(fact, Payload(suspend=suspend))
            case Sized():
                items = None if outcome.items is None else encode_payload(list(outcome.items))
                items = None if items is None else self._redactor.redact_json(items)
                return Result(f.RegionSizeKnown(at_ms, key, attempt, outcome.count), Payload(items))
            case Tested():
                return Result(f.LoopTested(at_ms, key, attempt, outcome.again), Payload())

    def _without_secrets(self, suspend: Suspend) -> Suspend:
        redact, clean, label = self._redactor.redact, self._redactor.redact_value, self._redactor.label
        return replace(
            suspend,
            request=clean(suspend.request),
            schema=clean(suspend.schema),
            actions=[redact(action) for action in suspend.actions],
            name=None if suspend.name is None else label(suspend.name),
            correlation=None if suspend.correlation is None else label(suspend.correlation),
            messages=[(channel, self._sealed(target)) for channel, target in suspend.messages],
        )

    def _sealed(self, target: bytes) -> bytes:
        return seal(target, self._services.env, self._services.secrets, self._redactor)

    def _erred(
        self,
        key: NodeKey,
        attempt: int,
        error: ErrorInfo,
        retry_at_ms: int | None = None,
        deferred: Deferred | None = None,
    ) -> Result:
        fact = f.NodeErred(self._clock.now_ms(), key, attempt, self._shown(error), retry_at_ms, deferred)
        return Result(fact, Payload())

    def _shown(self, error: ErrorInfo) -> ErrorInfo:
        message, hint = (unicode(self._redactor.redact_cut(text)) for text in (error.message, error.hint))
        return ErrorInfo(error.code, message, error.retryable, error.block, hint)


@lru_cache(maxsize=PLANS_MAX)
def _prepared_nodes(plan_hash: str) -> dict[int, _Prepared]:
    """By node number, filled as nodes run, shared by all runs of the plan."""
    return {}


def _check_json(suspend: Suspend) -> None:
    """Raises BlockError. What cannot be written down would take the run out of memory, again and again."""
    asked = [dict(suspend.request), suspend.schema, list(suspend.actions), suspend.name, suspend.correlation]
    try:
        orjson.dumps([*asked, suspend.on_expire, suspend.due_ms])
    except TypeError as error:
        message = f"the request of the block is not JSON: {error}"
        raise BlockError(message, code="payload_invalid", retryable=False) from error
