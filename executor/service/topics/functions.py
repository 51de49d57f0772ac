"""Requests to runs of durable functions: queries of the state that they published, and updates, which they answer;
`engine.functions`. An update is a signal with a reserved name, and its answer an event of the run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final, ParamSpec, TypeVar, Unpack, overload

import msgspec
import orjson
from msgspec import Struct

from compiler.signature import Unfit, read, write
from compiler.tracing.asks import SIGNAL, Query, Update
from compiler.tracing.durable import TYPE, DurableFunction
from compiler.tracing.duration import Duration, seconds_of
from executor.blocks.types.durable import DurableBlock
from executor.errors import BadRequest, BlockError, Conflict, NotFound, Refused
from executor.kernel.journal.codec import data_of
from executor.kernel.journal.reader import Records, load_plan, newest, output_of
from executor.kernel.process.tracebacks import log_raised, traceback_of
from executor.kernel.read.find import existing_run, find_run
from executor.kernel.run.new_run import new_run_id
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.values.payload import encode
from executor.service.parts import Parts, Topic
from executor.service.topics.events import Events
from executor.service.topics.signals import Signals

P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")

QUERY_S: Final = 10.0  # the time of a query's function


class Answered(Struct, frozen=True):
    """The answer to an update, in JSON. `refused`: why it was not carried out. `run`: the one that has answered, which
    may be one that continues the run that was asked."""

    run: str
    id: str
    answer: Any
    refused: str | None


class Functions(Topic):
    def __init__(self, parts: Parts, events: Events, signals: Signals) -> None:
        super().__init__(parts)
        self._events = events
        self._signals = signals

    # --- queries ---

    @overload
    async def query(self, query: Query[P, R], run: str, /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    async def query(self, query: str, run: str, /, **arguments: Any) -> Any: ...

    async def query(self, query: Any, run: str, /, *args: Any, **kwargs: Any) -> Any:
        """Return the answer of a query, `query(order.eta, run)`, computed from the state that the run published last.
        The run is not entered, and may have ended. Raises NotFound, BadRequest, Conflict (it has published nothing
        yet) and BlockError (the function failed)."""
        if isinstance(query, Query):
            return query.read(await self.compute(run, query, query.given(*args, **kwargs)))
        return await self.compute(run, query, kwargs)

    async def compute(self, run: str, query: Query[..., Any] | str, arguments: Mapping[str, Any]) -> Any:
        """The same in JSON."""
        async with existing_run(self._store, run) as row:
            called, durable = await self._function_of(row)
            if isinstance(query, str):
                if durable is None:
                    raise self._lacking(called)
                found = _named(durable, "query", durable.queries, query)
            else:
                found = query
                _check(run, called, "query", found)
            record = await newest(self._store, run, "node.state")
            data = b"null" if record is None else await output_of(self._store, record) or b"null"
        state = orjson.loads(data)
        try:
            async with asyncio.timeout(QUERY_S):
                answer = await asyncio.to_thread(_computed, found, state, arguments, record is not None)
        except TimeoutError:
            message = f"query {found.name} took longer than {QUERY_S:g} s"
            raise BlockError(message, code="timeout", retryable=False) from None
        return self._parts.redactor.redact_value(answer)

    # --- updates ---

    @overload
    async def update(
        self,
        run: str,
        update: Update[A, R],
        value: A = ...,
        *,
        id: str | None = None,
        by: str | None = None,
        **within: Unpack[Duration],
    ) -> R: ...

    @overload
    async def update(
        self,
        run: str,
        update: str,
        value: Any = None,
        *,
        id: str | None = None,
        by: str | None = None,
        **within: Unpack[Duration],
    ) -> Any: ...

    async def update(
        self,
        run: str,
        update: Any,
        value: Any = None,
        *,
        id: str | None = None,
        by: str | None = None,
        **within: Unpack[Duration],
    ) -> Any:
        """Send a request to a run, and return the answer of its function: `update(run, order.add, item, seconds=10)`.
        It is stored until the function takes it. The same `id` again is the same request. Raises NotFound, BadRequest,
        Refused, Conflict (the run has ended) and TimeoutError: the request is kept, and answered later."""
        id = id or new_run_id(self._clock.now_ms())
        given = update.given(value) if isinstance(update, Update) else value
        answered = await self.ask(run, update, given, id, by, seconds_of(within))
        if answered is None:
            name = update.name if isinstance(update, Update) else update
            raise TimeoutError(f"run {run} has not answered update {name} in time; id={id!r} asks for its answer again")
        if answered.refused is not None:
            raise Refused(answered.refused, run=answered.run, id=answered.id)
        return update.read(answered.answer) if isinstance(update, Update) else answered.answer

    async def ask(
        self, run: str, update: Update[Any, Any] | str, value: Any, id: str, by: str | None, timeout_s: float | None
    ) -> Answered | None:
        """The same in JSON. Returns None after `timeout_s`."""
        row = await find_run(self._store, run)
        called, durable = await self._function_of(row)
        name = update if isinstance(update, str) else update.name
        found = update
        if durable is not None and isinstance(update, str):
            found = _named(durable, "update", durable.updates, update)
        if isinstance(found, Update):
            _check(run, called, "update", found)
            await asyncio.to_thread(_taken, found, value)
        id = self._parts.redactor.redact(id)
        payload, key = {"update": id, "value": value}, SIGNAL + id
        _, new, same = await self._signals.post(run, SIGNAL + name, payload, dedupe_key=key, by=by, pointer="")
        if not same:
            raise Conflict(
                f"the id {id!r} was used for another update of run {run}",
                code="update_id_reused",
                hint="use a new id for each request",
            )
        try:
            async with asyncio.timeout(timeout_s):
                return await self._answer(run, id, row.seq, new)
        except TimeoutError:
            return None

    async def _answer(self, run: str, id: str, seq: int, new: bool) -> Answered:
        """Wait for the answer. `new`: there is none up to event `seq`. Raises Conflict."""
        while True:
            continued_as: str | None = None
            async with aclosing(self._records(run, seq, new)) as records:
                async for record in records:
                    if record.type == "run.finished":
                        continued_as = data_of(record).get("continued_as")
                    elif record.type == "update.answered" and (data := data_of(record))["update"] == id:
                        output = await output_of(self._store, record)
                        return Answered(run, id, orjson.loads(output or b"null"), data.get("refused"))
            if continued_as is None:
                raise Conflict(f"run {run} has ended, and has not answered update {id!r}", code="run_ended")
            run, new = continued_as, False
            seq = (await find_run(self._store, run)).seq

    async def _records(self, run: str, seq: int, new: bool) -> AsyncGenerator[Record, None]:
        """Yield the answers, and the end of the run, among its events, until it has ended; with `new` after `seq`."""
        types = ("update.answered", "run.finished")
        if not new:
            async for record in Records(self._store, run, upto=seq, types=types):
                yield record
                if record.type == "run.finished":
                    return
        following = self._events.follow(run, seq)
        try:
            async for records in following:
                for record in records:
                    if record.type in types:
                        yield record
        finally:
            await following.aclose()

    # --- their functions ---

    async def _function_of(self, row: RunRow) -> tuple[str, DurableFunction[..., Any] | None]:
        """Return the name of the durable function that a run runs, and the function, if it is here. Raises NotFound."""
        plan = await load_plan(self._store, row.plan_hash)
        node = next((node for node in plan.nodes if node.type == TYPE), None)
        if node is None:
            message = f"run {row.id} is one of workflow {row.workflow!r}, which is no durable function"
            raise NotFound(message, code="not_durable", hint="only durable functions have queries and updates")
        called = str(msgspec.json.decode(node.params).get("function"))
        return called, self._here().get(called)

    def _here(self) -> Mapping[str, DurableFunction[..., Any]]:
        block = self._parts.registry.handler(TYPE) if self._parts.registry.get(TYPE) is not None else None
        return block.functions if isinstance(block, DurableBlock) else {}

    def _lacking(self, called: str) -> NotFound:
        here = ", ".join(sorted(self._here())) or "none"
        message = f"this process does not have the durable function {called!r}; it has: {here}"
        return NotFound(
            message, code="function_lacking", hint="start it with the file of the function in WEFT_FUNCTIONS"
        )


def _named(durable: DurableFunction[..., Any], kind: str, all: Mapping[str, R], name: str) -> R:
    if name not in all:
        has = ", ".join(all) or "none"
        message = f"durable function {durable.called!r} has no {kind} {name!r}; it has: {has}"
        raise NotFound(message, code=f"{kind}_not_found")
    return all[name]


def _check(run: str, called: str, kind: str, found: Query[..., Any] | Update[Any, Any]) -> None:
    if found.durable != called:
        message = f"{kind} {found.name!r} belongs to {found.durable!r}, and run {run} is one of {called!r}"
        raise NotFound(message, code=f"{kind}_not_found")


def _taken(update: Update[Any, Any], value: Any) -> None:
    try:
        update.taken(value)
    except Unfit as error:
        message = f"the value of update {update.name}: {error.message}"
        raise BadRequest(message, code="update_invalid", pointer=f"/value{error.pointer}") from None


def _computed(query: Query[..., Any], state: Any, arguments: Mapping[str, Any], is_published: bool) -> Any:
    try:
        taken = read(query.state, state)
    except Unfit as error:
        if not is_published:
            raise Conflict("the run has published no state yet", code="state_missing") from None
        message = f"the state does not fit the type of query {query.name}: {error.message}"
        raise Conflict(message, code="state_invalid") from None
    try:
        given = query.signature.arguments(arguments)
    except Unfit as error:
        pointer = f"/arguments{error.pointer}"
        raise BadRequest(f"query {error.message}", code="arguments_invalid", pointer=pointer) from None
    try:
        answer = write(query.function(taken, **given))
        encode(answer)
        return answer
    except Exception as error:
        traceback = traceback_of(error, query.function)
        log_raised(query.name, "a query", error)
        message = f"query {query.name}: {type(error).__name__}: {error}"
        raise BlockError(message, code="function_failed", retryable=False, traceback=traceback) from None
