"""The code of a durable function while it runs: what steps, workflows and waits do when it awaits them."""

from __future__ import annotations

from asyncio import CancelledError, Future, wait
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from itertools import count
from typing import Any, Final, NoReturn, cast

from msgspec import Struct
from msgspec.structs import replace

from compiler.signature import Unfit, read, write
from compiler.tracing.asks import SIGNAL, Ask, Update
from compiler.tracing.body import present_body
from compiler.tracing.calls import Answer
from compiler.tracing.durable import DurableFunction
from compiler.tracing.steps import Step
from compiler.tracing.trace import refuse_drawn
from compiler.tracing.workflow import FunctionWorkflow
from executor.blocks.durable.blocks import Blocks
from executor.blocks.durable.tries import StepCall, declared
from executor.blocks.types.approval import block as approval
from executor.blocks.types.callback import block as callback
from executor.blocks.types.form import block as form
from executor.blocks.types.run_workflow import block as run_workflow
from executor.blocks.types.signal import block as signal
from executor.errors import BlockError, StepFailed
from executor.kernel.handler.base import Access, Block, Leaving, StepContext, Suspend
from executor.kernel.handler.durable import DurableCalls
from executor.kernel.run.mismatch import CodeUnfit

DROPPED: Final = ("dropped",)  # arguments of the cancel of a call that lost against another one


class Info(Struct, frozen=True):
    """The run of a durable function. `by`: who started it, `user:ada` or `token:ID`, or None for a trigger, another
    run, or a program. `replaying`: the code does again what it did before."""

    run: str
    workflow: str
    by: str | None
    replaying: bool


class Attempt:
    """The present attempt, as the contexts that the code holds ask it: the code may stay in memory from one attempt to
    the next. Without one, the code is being ended."""

    own: Access | None = None

    def __getattr__(self, name: str) -> Any:
        if self.own is None:
            raise Leaving
        return getattr(self.own, name)


class Running:
    """Implements `Body`. `seed` gives the next value of which random numbers are made."""

    def __init__(
        self, ctx: StepContext, calls: DurableCalls, durable: DurableFunction[..., Any], is_changed: bool = False
    ) -> None:
        self.attempt = Attempt()
        self._ctx = ctx = replace(ctx, own=cast(Access, self.attempt))
        self.calls = calls
        self._durable = durable
        self._is_changed = is_changed
        self._seeds = count(1)
        self.blocks = Blocks(ctx, calls, self.end_of)

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.calls.now_ms / 1000, UTC)

    @property
    def info(self) -> Info:
        return Info(self._ctx.run_id, self._ctx.workflow, self.calls.by, self.calls.replaying)

    def seed(self) -> bytes:
        return sha256(f"{self.calls.seed}:{next(self._seeds)}".encode()).digest()

    async def step(self, step: Step[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        try:
            arguments = dict(step.plain.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise TypeError(f"{step.name}: {error}. It is {step.function.__name__}{step.plain}.") from None
        given = {name: _written(step.name, name, value) for name, value in arguments.items()}
        try:
            converted = step.signature.arguments(given)
        except Unfit as error:
            raise TypeError(f"{step.name}: {error.message}") from None

        call = StepCall(self._ctx, step, given, converted)
        try:
            output = await self.calls.step(step.name, given, call, step.effect, call.on_lost)
        except StepFailed as failed:
            raise declared(step, failed) or failed from None
        return _read(step.name, step.signature.returns, output)

    async def call(self, workflow: str | FunctionWorkflow[Any, Any], input: Any) -> Any:
        name, params, returns = _run_of(workflow, input)
        turns = self.calls.turns
        return _read(name, returns, await self.end_of(self.ask(run_workflow, name, params), turns))

    async def end_of(self, answer: Future[Any], turns: int = -1) -> Any:
        """Return the output of a child run that was started after so many turns. When the code does not need it any
        more, the run is cancelled, and the code continues after its end; at once if `first` does not need it."""
        try:
            await wait([answer])
        except CancelledError as cancelled:
            try:
                if turns != self.calls.turns and cancelled.args != DROPPED and not answer.done():
                    await self.calls.opened(answer, self._ctx.own.cancel_child)
                    await wait([answer])
            finally:
                if not answer.cancel() and not answer.cancelled():
                    answer.exception()  # looked at: the cancel is raised
            raise
        return answer.result()

    async def start(
        self, workflow: str | FunctionWorkflow[Any, Any], input: Any = None
    ) -> tuple[str, Future[Any], Callable[[Any], Any]]:
        """Return the id of the child run, the wait for its output, and what reads that."""
        name, params, returns = _run_of(workflow, input)
        answer, opened = await self._open(run_workflow, name, params)
        return opened["child"], answer, partial(_read, name, returns)

    async def callback(self, params: Mapping[str, Any], type: Any) -> tuple[Future[Any], str, Callable[[Any], Any]]:
        """Return the wait, which is open, its address, and what reads the body of a request."""
        answer, opened = await self._open(callback, params["title"], params)
        url = self._ctx.own.callback_url(opened["wait"])
        self.calls.mask(url, f"callback {opened['wait']}")
        return answer, url, lambda received: _read(params["title"], type, received["body"])

    async def _open(self, block: Block, name: str, params: Mapping[str, Any]) -> tuple[Future[Any], dict[str, Any]]:
        answer = self.ask(block, name, params)
        try:
            return answer, await self.calls.opened(answer)
        except BaseException:
            answer.cancel()
            raise

    async def sleep(self, seconds: float) -> None:
        await self.calls.sleep(self.calls.now_ms + round(seconds * 1000))

    def patched(self, name: str) -> bool:
        return self.calls.patched(name)

    async def until(self, time_ms: int) -> None:
        await self.calls.sleep(time_ms)

    async def approve(self, params: Mapping[str, Any], fields: Any) -> Answer[Any]:
        answer = dict(await self.ask(approval, params["title"], params))
        action, by = answer.pop("action", ""), answer.pop("answered_by", None)
        answer.pop("answered_at", None)
        is_type = fields is not None and not isinstance(fields, Mapping)
        return Answer(action, _read(params["title"], fields, answer) if is_type else answer, by)

    async def form(self, params: Mapping[str, Any], fields: Any) -> Any:
        answer = dict(await self.ask(form, params["title"], params))
        for name in ("answered_by", "answered_at"):
            answer.pop(name, None)
        return _read(params["title"], fields, answer)

    async def signal(self, params: Mapping[str, Any], type: Any) -> Any:
        return _read(params["name"], type, (await self.ask(signal, params["name"], params, _box(params)))["payload"])

    def refuse_type(self, error: BlockError) -> BaseException:
        """Return the error of a result that does not fit its type. If the run began with other code, the type may have
        been another."""
        return self.calls.refuse(CodeUnfit(error.message)) if self._is_changed else error

    def state(self, value: Any) -> None:
        written, type = _written("state", "value", value), self._durable.state
        if type is not None:
            try:
                read(type, written)
            except Unfit as error:
                message = f"weft.state: the value does not fit the type of {self._durable.called}: {error.message}"
                raise TypeError(message) from None
        self.calls.publish(written)

    async def next_ask(self, update: Update[Any, Any]) -> Ask[Any, Any]:
        name = SIGNAL + update.name
        wanted = Suspend("signal", request={"title": f"update {update.name}", "correlation": None}, name=name)

        async def suspend() -> Suspend:
            return wanted

        while True:
            taken = await self.calls.wait(wanted.request["title"], suspend, name)
            id, value = taken["payload"]["update"], taken["payload"]["value"]
            try:
                return Ask(update, id, update.taken(value), taken["received_by"])
            except Unfit as error:
                await self.answer(update.name, id, None, f"the value does not fit its type: {error.message}")

    async def answer(self, update: str, id: str, answer: Any, refused: str | None) -> None:
        await self.calls.answer(update, id, answer, refused)

    async def continue_as_new(self, input: Any) -> NoReturn:
        given = {name: _written(self._durable.name, name, value) for name, value in dict(input or {}).items()}
        try:
            self._durable.signature.arguments(given)
        except Unfit as error:
            raise TypeError(f"{self._durable.called}: {error.message}") from None
        self.calls.continue_as_new(given)

    def ask(self, block: Block, name: str, params: Mapping[str, Any], box: str | None = None) -> Future[Any]:
        """Wait as a block of this type does with these params."""
        ctx = replace(self._ctx, params=dict(params), now_ms=self.calls.now_ms)

        async def suspend() -> Suspend:
            return cast(Suspend, await block.run(ctx))

        return self.calls.wait(name, suspend, box)


def _box(params: Mapping[str, Any]) -> str:
    return f"{params['name']}\0{params.get('correlation')}"


def present(called: str) -> Running:
    """Raises RuntimeError: no durable function calls this; DefinitionError: a workflow function does."""
    refuse_drawn(called)
    body = present_body()
    if not isinstance(body, Running):
        raise RuntimeError(
            f"weft.{called}() works in a durable function: call it in one with @weft.durable, and not inside of a step"
        )
    return body


def _run_of(workflow: str | FunctionWorkflow[Any, Any], input: Any) -> tuple[str, dict[str, Any], Any]:
    """Return the name, the params of `run_workflow`, and the type of the output."""
    if isinstance(workflow, str):
        return workflow, {"workflow": workflow, "input": input}, None
    given = {name: _written(workflow.name, name, value) for name, value in dict(input or {}).items()}
    return workflow.name, {"definition": workflow.document(), "input": given}, workflow.signature.returns


def _written(what: str, name: str, value: Any) -> Any:
    try:
        return write(value)
    except Unfit as error:
        raise TypeError(f"{what}: argument {name} is {error.message}") from None


def _read(what: str, type: Any, value: Any) -> Any:
    """Raises BlockError, or what the code cannot catch: it does not fit the type."""
    if type is None:
        return value
    try:
        return read(type, value)
    except Unfit as error:
        message = f"{what}: the result does not fit its type: {error.message}"
        raised = BlockError(message, code="output_invalid", retryable=False)
        body = present_body()
        raise (body.refuse_type(raised) if isinstance(body, Running) else raised) from None
