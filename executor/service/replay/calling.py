"""Calls of models in a replay, which cost money: they stop at a budget.

A block that asks a model for something else than in the recording is entered. Its calls of the model are made; another
step with the input of a recorded one has its output, as an approval of the same tool has its answer; a tool that only
computes is executed. Everything else would reach outside, and stops the block. It remembers nothing."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn, cast

import orjson
from msgspec import Struct

from compiler.keys import NodeKey
from executor.blocks.services import Services
from executor.errors import Fenced
from executor.kernel.core.events import StepEffect
from executor.kernel.handler.base import MakeSuspend, Stepped, Suspend
from executor.kernel.handler.base import StepKind as Kind
from executor.kernel.run.attempt import Attempt, Host
from executor.kernel.run.kept import RunMemory
from executor.kernel.run.results import Arrivals
from executor.kernel.run.step_work import new_call
from executor.kernel.run.steps import AttemptSteps
from executor.kernel.values.money import nanos_of, usd_of
from executor.kernel.values.payload import dump
from executor.service.replay.recording import Outcome, Used, tokens_in

MODELS: Final = frozenset({"agent", "evaluator", "guardrail", "model_router"})  # block types that ask a model


class Budget(Struct):
    """The dollars that calls of models may cost in one answer. `spent_usd` may be above them by the last call; `calls`:
    the models that were called, with what they used, until that is stored."""

    usd: float
    spent_usd: float = 0.0
    calls: list[tuple[str, Stepped]] = []

    async def refusal(self, services: Services, model: str) -> str:
        """Return why the model is not called, or "". Raises BlockError: there is no such model."""
        if self.spent_usd >= self.usd:
            return "the budget is spent"
        if await services.models.is_priced(model):
            return ""
        name = model.partition(":")[0].upper()
        return f"the price of {model} is not known, so the budget cannot be kept: set WEFT_PRICE_{name}"

    def pay(self, cost_usd: float) -> None:
        self.spent_usd = usd_of(nanos_of(self.spent_usd) + nanos_of(cost_usd))


class PaidAttempt(Attempt):
    """`would`: what the block would have done outside, for which it was stopped; `refused`: why its model was not
    called."""

    def __init__(self, host: Host, key: NodeKey, number: int, was: Outcome | None, budget: Budget, used: Used) -> None:
        super().__init__(host, key, number, 0, Arrivals())
        self._known = {} if was is None else was.steps
        self._budget = budget
        self._used = used
        self.would = self.refused = ""

    def steps(self) -> AttemptSteps:
        return cast(AttemptSteps, self)

    def memory(self) -> RunMemory:
        return cast(RunMemory, self)

    async def recall(self, *_: object) -> list[Any]:
        return []

    async def remember(self, *_: object) -> bool:
        return False

    async def step(
        self, kind: Kind, name: str, input: Any, work: Callable[[], Awaitable[Any]], effect: StepEffect
    ) -> Any:
        if kind == "model":
            return await self._ask(name, work)
        known = self._known.get(new_call(self.host.border, 0, kind, name, input).input_hash)
        if known is not None:
            return known.result()
        if kind == "tool" and effect != "none":
            self._stop(would=f"call the tool {name}")
        return await work()

    async def wait(self, suspend: Suspend | MakeSuspend, name: str) -> Any:
        known = self._known.get(new_call(self.host.border, 0, "wait", name, None).input_hash)
        if known is not None and isinstance(suspend, Suspend):
            answer = known.result()  # without the arguments that it was for: these are looked up as well
            return {name: answer[name] for name in ("action", "reason") if name in answer}
        self._stop(would="ask a person" if isinstance(suspend, Suspend) else f"start a run of {name}")

    async def _ask(self, model: str, work: Callable[[], Awaitable[Any]]) -> Any:
        if refused := await self._budget.refusal(cast(Services, self.services), model):
            self._stop(refused=refused)
        began_s = time.monotonic()
        stepped: Stepped = await work()
        self._used.add(stepped.cost, tokens_in(stepped.usage), round(1000 * (time.monotonic() - began_s)), calls=1)
        self._budget.calls.append((model, stepped))
        self._budget.pay(self._budget.usd if stepped.cost is None else stepped.cost)  # unknown: no further call
        return orjson.loads(dump(stepped.output))

    def _stop(self, would: str = "", refused: str = "") -> NoReturn:
        self.would, self.refused = would, refused
        raise Fenced(would or refused)  # not a BlockError, which an agent would show to its model
