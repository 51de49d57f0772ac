"""One attempt of one node: resolve its inputs, run the handler, turn whatever happens into a fact. Never raises.

An attempt's outcome is a `Result`: the fact for the core, and beside it the payload that the core must not see.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, lru_cache

import orjson

from compiler.catalog import BlockSpec
from compiler.keys import NodeKey, Path
from compiler.plan import Node
from executor.kernel.core import facts as f
from executor.kernel.handler.base import Done, Outcome, Sized, StepContext, Suspend, Tested, holds_handles
from executor.kernel.handler.needs import RulesOf
from executor.kernel.run.attempt import Attempt, Host, within
from executor.kernel.run.failures import failure
from executor.kernel.run.kept import ResultCache
from executor.kernel.run.new_run import as_key
from executor.kernel.run.places import Waiting
from executor.kernel.run.results import AtEach, Left, Payload, Result, assigned
from executor.kernel.run.steps import left_by, refused_in
from executor.kernel.store.topics.cache import CacheRow
from executor.kernel.store.topics.contents import files_in, names_files
from executor.kernel.store.topics.places import Ask
from executor.kernel.values.coerce import truthy
from executor.kernel.values.payload import dump
from executor.kernel.values.payload import encode as encode_payload
from executor.kernel.values.resolve import Template, compile_template, environment_names, names_elsewhere
from executor.kernel.values.schema import ASIDE_BYTES, check_output

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


class Launcher:
    """Runs attempts of one run. Time, params and values are those of the moment of the call."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._run_id = host.run.id
        self._plan = host.run.plan
        self._values = host.run.fold.values
        self._parts = host.parts
        self._border = host.border
        self._prepared = _prepared_nodes(host.run.plan.hash)

    @cached_property
    def _cache(self) -> ResultCache:
        return ResultCache(self.host.run.row, self._parts)

    async def run(self, own: Attempt, turn: int = 0, count: int = 0) -> Result:
        """Run an attempt. `turn` and `count` are for sentinels, see StepContext."""
        node = own.node
        try:
            outcome, cache_key = await self._outcome(own, turn, count)
            output = b"null"
            if isinstance(outcome, Done):
                output = dump(outcome.output)
                if len(output) > ASIDE_BYTES:  # each item may have to be looked at: others proceed meanwhile
                    output = await asyncio.to_thread(self._border.clean, outcome.output, output)
                else:
                    output = self._border.clean(outcome.output, output)
            if cache_key is not None and names_files(output) and not await self._are_its_own(output):
                cache_key = None  # who has the cached output has its files
            result = self._result(own, outcome, output, cache_key)
            if node.output_schema is not None and isinstance(outcome, Done) and result.payload.output is not None:
                await check_output(node, result.payload.output, self._parts.services.sandbox.matches)
            return result
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            if node.inline and isinstance(error, asyncio.CancelledError):
                raise  # it runs in the run loop's own task: that is what is being cancelled
            parts = self._parts
            return failure(error, node, own.started_as, own.number, self._border, parts.registry, parts.clock.now_ms())

    async def _outcome(self, own: Attempt, turn: int, count: int) -> tuple[Outcome | _Found | Left | None, str | None]:
        """Return the outcome, or None if `skip_if` was true, and the key to cache the output under, if it is to be
        cached."""
        key, node = own.started_as, own.node
        if node.pin is not None:
            return Done(orjson.loads(bytes(node.pin.output)), node.pin.route), None
        path = self._reader_path(key, node, turn)
        prepared = self._prepared.get(key[1])
        if prepared is None:
            spec = self._parts.registry.handler(node.type).spec
            prepared = self._prepared[key[1]] = _Prepared(node, spec)
        template = prepared.template
        rules = await self._open_secrets(prepared) if prepared.environment else {}
        skip_if = template.skip_if(self._values, path)
        if skip_if is not None and truthy((await own.evaluate([skip_if]))[0]):
            # A container is passed over by opening nothing: its end sentinel then leads on.
            return (Sized(0) if node.sentinel else None), None
        context = self._context(own, prepared, path, turn, count)
        cache_key: str | None = None
        if node.policy.cache is not None:
            cache_key = await self._cache_key(own, template, path, context)
            row = await self._cache.find(node, cache_key)
            if row is not None:
                return _Found(row), None
        if own.number > 1 and not node.inline:
            context.last_checkpoint = await self.host.checkpoints.last(own.key_text)
        handler = self._parts.registry.handler(node.type)
        try:
            if node.policy.limit is not None:
                await self._claim_place(own, template.limit_key(self._values, path))
                if cache_key is None:  # else the output is kept under what the params were
                    rules = await self._open_secrets(prepared) if prepared.environment else {}
                    context.params = template.fill(self._values, path)
                context.variables, context.now_ms = self._values.variables, self._parts.clock.now_ms()
            if node.inline:
                return await handler.run(context), None
            if rules and not holds_handles(handler):
                context.params = self._parts.vault.revealed(context.params, rules)
            with self._parts.vault.bound(rules) if rules else nullcontext():
                outcome = await within(own.limit, handler.run(context), self.host.loop)
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

    def _context(self, own: Attempt, prepared: _Prepared, path: Path, turn: int, count: int) -> StepContext:
        values = self._values
        broke = turn > 0 and values.broke((*own.started_as[0], (own.node.body, turn - 1)))
        return StepContext(
            own,
            prepared.template.fill(values, path),
            values.input,
            values.variables,
            self._parts.clock.now_ms(),
            prepared.wired,
            turn,
            count,
            broke,
        )

    async def _cache_key(self, own: Attempt, template: Template, path: Path, context: StepContext) -> str:
        """Return the cache key: of the value that the author chose, or else of the params."""
        bound = template.cache_key(self._values, path)
        return self._cache.key(own.node, context.params if bound is None else (await own.evaluate([bound]))[0])

    async def _claim_place(self, own: Attempt, limit_key: str) -> None:
        assert own.node.policy.limit is not None
        text, at_most = as_key(self._parts.redactor.redact(limit_key)), own.node.policy.limit.at_most
        ask = Ask(self._run_id, self.host.run.row.epoch, own.key_text, own.number, text, at_most)
        own.place = Waiting(ask)
        await self._parts.places.claim(own.place)

    async def _open_secrets(self, prepared: _Prepared) -> RulesOf:
        """Load their newest values, and return their rules. Raises BlockError."""
        vault = self._parts.vault
        return await self.host.ask(lambda: vault.open(prepared.environment, prepared.elsewhere), "reading secrets for")

    async def _are_its_own(self, output: bytes) -> bool:
        """Returns True if the run holds all files that an output names. Raises BlockError."""
        files = self._parts.files
        held = await self.host.ask(lambda: files.of_run(self._run_id, output), "looking for files of")
        return len(held) == len(files_in(output))

    def _reader_path(self, key: NodeKey, node: Node, turn: int) -> Path:
        """Return the path from which references are read. A loop's own test reads as if it stood in the body, at the
        next index."""
        if node.sentinel and node.type.startswith("loop"):
            return (*key[0], (node.body, turn))
        return key[0]

    def _result(
        self, own: Attempt, outcome: Outcome | _Found | Left | None, output: bytes, cache_key: str | None
    ) -> Result:
        """`output`: what a Done put out, encoded."""
        at_ms, key, attempt, node = self._parts.clock.now_ms(), own.started_as, own.number, own.node
        match outcome:
            case None:
                return Result(f.NodePassed(at_ms, key, attempt), Payload())
            case Done():
                payload = self._border.payload(node, outcome, output)
                ends, as_new = outcome.response is not None or outcome.next is not None, outcome.next is not None
                if cache_key is not None and not (outcome.patches or ends):
                    payload.cached = self._cache.row(node, cache_key, output, outcome.route)
                pinned = node.pin is not None
                return Result(
                    f.NodeDone(at_ms, key, attempt, outcome.route, ends, as_new=as_new, pinned=pinned), payload
                )
            case _Found(row):
                patches = assigned(node, orjson.loads(row.output)) if node.policy.assign else []
                return Result(f.NodeDone(at_ms, key, attempt, row.route, cached=True), Payload(row.output, patches))
            case Suspend():
                return self._border.suspended(key, attempt, [(outcome, None)])
            case Left(waits, AtEach() as again):
                return self._border.left(key, attempt, waits, again)
            case Left(waits):
                return self._border.suspended(key, attempt, waits)
            case Sized():
                items = None if outcome.items is None else encode_payload(list(outcome.items))
                items = None if items is None else self._parts.redactor.redact_json(items)
                return Result(f.RegionSizeKnown(at_ms, key, attempt, outcome.count), Payload(items))
            case Tested():
                return Result(f.LoopTested(at_ms, key, attempt, outcome.again), Payload())


@lru_cache(maxsize=PLANS_MAX)
def _prepared_nodes(plan_hash: str) -> dict[int, _Prepared]:
    """Return the prepared nodes by node number, filled as nodes run, shared by all runs of the plan."""
    return {}
