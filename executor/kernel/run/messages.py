"""Turns the messages of the inbox of a run into facts, which wait in its arrivals for the next turn."""

from __future__ import annotations

import logging
from typing import Any

import orjson

from compiler.keys import NodeKey, parse_key
from executor.errors import BlockError
from executor.kernel.core import facts as f
from executor.kernel.core import messages as m
from executor.kernel.core.decide_attempts import route_of_action
from executor.kernel.core.events import ErrorInfo
from executor.kernel.core.state import Wait
from executor.kernel.run import attention
from executor.kernel.run.answers import answer_output, refusal_error, withdrawal_error
from executor.kernel.run.border import Border
from executor.kernel.run.children import cancel_of_orphan, error_of_end
from executor.kernel.run.loaded import LoadedRun, WaitKey
from executor.kernel.run.parts import Parts
from executor.kernel.run.recorder import Recorder
from executor.kernel.run.results import Arrivals, Payload, assigned
from executor.kernel.store.topics.inbox import SignalRow
from executor.kernel.values.payload import encode as encode_payload

log = logging.getLogger("weft.run")


class Messages:
    def __init__(self, run: LoadedRun, parts: Parts, recorder: Recorder, border: Border, arrivals: Arrivals) -> None:
        self._run = run
        self._state = run.state
        self._store = parts.store
        self._files = parts.files
        self._clock = parts.clock
        self._recorder = recorder
        self._border = border
        self._arrivals = arrivals

    async def receive(self, message: m.Known | m.Unknown) -> None:
        match message:
            case m.Answer() as answer:
                await self._answered(answer)
            case m.ChildEnded() as ended:
                await self._child_ended(ended)
            case m.Expired() as expired:
                await self._expired(expired)
            case m.Withdrawn() as withdrawn:
                self._withdrawn(withdrawn)
            case m.Cancel(reason, now, asked):
                self._arrivals.add_first(f.CancelRequested(self._clock.now_ms(), reason, now, asked))
            case m.Retry(key):
                self._retry_wanted(key)
            case m.Unknown(type):
                log.error("run %s: ignored an inbox message of unknown type %r", self._run.id, type)

    async def match_signals(self) -> None:
        """Match the oldest signal to the oldest wait of its name and correlation. Both early signals and late ones are
        matched here."""
        results = self._arrivals.results
        facts = (result.fact for result in results)
        answered = {(fact.key, fact.attempt) for fact in facts if isinstance(fact, f.WaitAnswered)}
        waits = [wait for wait in self._recorder.signal_waits() if wait[0] not in answered]
        if not waits:
            return
        used = {result.payload.signal[0] for result in results if result.payload.signal is not None}
        for signal in await self._store.unconsumed_signals(self._run.id):
            if signal.seq in used:
                continue
            for key, name, correlation in waits:
                if name == signal.name and (correlation is None or correlation == signal.correlation):
                    await self._signalled(key, signal)
                    waits.remove((key, name, correlation))
                    break

    async def _answered(self, answer: m.Answer) -> None:
        if (found := self._run.open_wait(answer.wait)) is None:
            return
        key, wait = found
        node = self._run.plan.nodes[key[1]]
        if wait.kind == "attention":
            self._lost_attempt_answered(key, wait, answer)
        elif answer.refused:
            self._fail(key, wait, refusal_error(answer), answer.by)
        else:
            route = route_of_action(node, answer.action)
            await self._end(key, wait, answer_output(answer), Payload(), route, answer.by)

    async def _child_ended(self, ended: m.ChildEnded) -> None:
        if (found := self._run.open_wait(ended.wait)) is None:
            return  # the wait was closed before, and the child was cancelled
        key, wait = found
        payload = Payload(child=ended.run)
        if ended.status == "succeeded":
            output = bytes(ended.output)
            await self._files.hold(self._run.id, await self._files.of_run(ended.run, output))
            await self._end(key, wait, orjson.loads(output), payload)
        else:
            if ended.status == "cancelled" and await self._is_orphan():
                self._arrivals.add_first(cancel_of_orphan(self._clock.now_ms()))  # it was cancelled with the child
            self._arrivals.add(f.WaitFailed(self._clock.now_ms(), key, wait.attempt, error_of_end(ended)), payload)

    async def _is_orphan(self) -> bool:
        """Return True if the root of the family was cancelled. The runs between may not have passed it on yet."""
        root = self._run.row.root_id
        if root in (None, self._run.id) or self._state.is_cancelled:
            return False
        family = await self._store.get_family(str(root))
        return family is not None and family.over

    async def _signalled(self, which: WaitKey, signal: SignalRow) -> None:
        key, attempt = which
        wait = self._state.waits[key][attempt]
        output = {
            "payload": orjson.loads(signal.payload),
            "name": signal.name,
            "correlation": signal.correlation,
            "received_at": signal.received_at_ms,
            "received_by": signal.received_by,
        }
        payload = Payload(signal=(signal.seq, self._run.codec.wait_id(key, wait.attempt)))
        await self._end(key, wait, output, payload, "out", signal.received_by)

    async def _end(
        self, key: NodeKey, wait: Wait, output: Any, payload: Payload, route: str = "out", by: str | None = None
    ) -> None:
        """End the wait. What it brought becomes the block's output if it fits the bounds and the block's output
        schema."""
        at_ms = self._clock.now_ms()
        if wait.step is not None:
            await self._end_step(key, wait, output, payload, by)
            return
        encoded = await self._border.external(self._run.plan.nodes[key[1]], output)
        if isinstance(encoded, ErrorInfo):
            self._arrivals.add(f.WaitFailed(at_ms, key, wait.attempt, encoded, by), payload)
            return
        payload.output, payload.patches = encoded, assigned(self._run.plan.nodes[key[1]], output)
        self._arrivals.add(f.WaitAnswered(at_ms, key, wait.attempt, route, by), payload)

    async def _end_step(self, key: NodeKey, wait: Wait, output: Any, payload: Payload, by: str | None) -> None:
        """End the wait of a step. What it brought becomes the step's output, to which the block's schema does not
        apply."""
        at_ms = self._clock.now_ms()
        try:
            payload.output = encode_payload(output)
        except BlockError as error:
            info = ErrorInfo(error.code, error.message, error.retryable, None, error.hint)
            self._arrivals.add(f.WaitFailed(at_ms, key, wait.attempt, info, by), payload)
        else:
            self._arrivals.add(f.WaitAnswered(at_ms, key, wait.attempt, by=by), payload)

    def _withdrawn(self, withdrawn: m.Withdrawn) -> None:
        if (found := self._run.open_wait(withdrawn.wait)) is not None:
            self._fail(*found, withdrawal_error(withdrawn), withdrawn.by)

    def _fail(self, key: NodeKey, wait: Wait, error: ErrorInfo, by: str | None) -> None:
        self._arrivals.add(f.WaitFailed(self._clock.now_ms(), key, wait.attempt, error, by))

    def _lost_attempt_answered(self, key: NodeKey, wait: Wait, answer: m.Answer) -> None:
        assert answer.action is not None, "the answer was checked before it was posted"
        fields = answer.fields or {}
        fact, output = attention.answer(self._clock.now_ms(), key, wait, answer.action, fields, answer.by)
        payload = Payload()
        if isinstance(fact, f.WaitAnswered):
            payload = Payload(encode_payload(output))
            if wait.step is None:
                payload.patches = assigned(self._run.plan.nodes[key[1]], output)
        self._arrivals.add(fact, payload)

    async def _expired(self, expired: m.Expired) -> None:
        if (found := self._run.open_wait(expired.wait)) is None:
            return
        key, wait = found
        if wait.kind == "signal":
            await self.match_signals()  # one that has come by now is taken, however late it is looked for
        payload, error = Payload(), None
        if wait.on_expire not in ("fail", "continue", "skip"):
            output = {"action": wait.on_expire, "answered_by": None, "answered_at": expired.at_ms, "expired": True}
            data = encode_payload(output)
            if wait.step is not None:
                payload = Payload(data)
            elif (error := await self._border.misfit(self._run.plan.nodes[key[1]], data)) is None:
                payload = Payload(data, assigned(self._run.plan.nodes[key[1]], output))
        at_ms = max(self._clock.now_ms(), wait.due_ms or 0)
        self._arrivals.add(f.TimerFired(at_ms, key, wait.attempt, error), payload)

    def _retry_wanted(self, text: str) -> None:
        key = parse_key(self._run.plan, text)
        if key in self._state.retries:
            self._arrivals.add(f.RetryWanted(self._clock.now_ms(), key, self._state.retries[key][0]))
