"""The border of an attempt, which no secret crosses: handlers hold handles of them, and whatever leaves here has both
taken out. Outputs, errors and requests of waits pass it on their way into facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from msgspec.structs import replace

from compiler.keys import NodeKey
from compiler.plan import Node
from executor.errors import BlockError
from executor.kernel.core import facts as f
from executor.kernel.core.events import Deferred, ErrorInfo
from executor.kernel.handler.base import Done, Suspend
from executor.kernel.process.tracebacks import shortened
from executor.kernel.run.attempt_log import unicode
from executor.kernel.run.loaded import LoadedRun
from executor.kernel.run.parts import Parts
from executor.kernel.run.results import AtEach, Payload, Result, assigned, run_error
from executor.kernel.values.payload import check, encode
from executor.kernel.values.schema import check_output
from executor.kernel.values.seal import seal


class Border:
    def __init__(self, run: LoadedRun, parts: Parts) -> None:
        self.run_id = run.id
        self.redactor = parts.redactor
        self._fold = run.fold
        self._services = parts.services
        self._vault = parts.vault
        self._clock = parts.clock

    def clean(self, output: Any, data: bytes) -> bytes:
        """Return `data`, the JSON of an output, without secrets. Can be called in a thread. Raises BlockError."""
        check(output, data)
        return self.redactor.redact_json(data)

    def full(self, size: int) -> ErrorInfo | None:
        """Return why so many more bytes are too many for the run, or None."""
        limits = self._services.limits
        return run_error(limits) if self._fold.bytes + size > limits.run_bytes else None

    def payload(self, node: Node, done: Done, output: bytes) -> Payload:
        """Return the payload of a block that succeeded. `output` is JSON from which secrets were removed."""
        payload = Payload(output)
        if done.patches:
            redact, clean = self.redactor.redact, self.redactor.redact_value
            payload.patches = [[p.op, redact(p.path), clean(p.value)] for p in done.patches]
        if node.policy.assign:
            payload.patches += assigned(node, orjson.loads(output))
        if done.response is not None:
            payload.response = self.redactor.redact_value(done.response)
        payload.next = done.next
        return payload

    async def external(self, node: Node, output: Any) -> bytes | ErrorInfo:
        """Encode an output from outside (an answer, a signal, a child) as JSON, or return why it cannot be this node's.
        It may be over the bounds though all in it is not: with what is added to an answer, or with all ends of a
        child."""
        try:
            data = encode(output)
        except BlockError as error:
            return self._refused(node, error)
        return await self.misfit(node, data) or data

    async def misfit(self, node: Node, output: bytes) -> ErrorInfo | None:
        """Return why such an output does not fit this node's schema, or None."""
        try:
            await check_output(node, output, self._services.sandbox.matches)
        except BlockError as error:
            return self._refused(node, error)
        return None

    def _refused(self, node: Node, error: BlockError) -> ErrorInfo:
        return self.shown(ErrorInfo(error.code, error.message, error.retryable, node.block, error.hint))

    def suspended(self, key: NodeKey, attempt: int, waits: Sequence[tuple[Suspend, f.WaitStep | None]]) -> Result:
        """Return the result of a handler that waits. Raises BlockError if a request is not JSON."""
        (first, step), *others = waits
        beside = _beside(others)
        at_ms = self._clock.now_ms()
        fact = f.NodeSuspended(at_ms, key, attempt, first.kind, first.due_ms, first.on_expire, step, beside)
        return Result(fact, self._asked(waits))

    def waits(
        self, key: NodeKey, attempt: int, waits: Sequence[tuple[Suspend, f.WaitStep]], drops: tuple[int, ...]
    ) -> Result:
        """Return the result of a handler that runs and opens waits. Raises BlockError if a request is not JSON."""
        fact = f.HandlerWaits(self._clock.now_ms(), key, attempt, _beside(waits), drops)
        return Result(fact, self._asked(waits))

    def left(self, key: NodeKey, attempt: int, waits: Sequence[tuple[Suspend, f.WaitStep]], again: AtEach) -> Result:
        """Return the result of a handler that is entered again at the end of each wait. Raises BlockError if a request
        is not JSON."""
        at_ms, opens = self._clock.now_ms(), _beside(waits)
        fact = f.HandlerLeft(at_ms, key, attempt, opens, again.drops, again.due_ms, again.received_seq)
        return Result(fact, self._asked(waits))

    def lacks(self, key: NodeKey, attempt: int, question: Suspend) -> Result:
        """Return the result of a handler whose code does not fit the run."""
        fact = f.AttemptLost(self._clock.now_ms(), key, attempt, reason="code")
        return Result(fact, self._asked([(question, None)]))

    def _asked(self, waits: Sequence[tuple[Suspend, f.WaitStep | None]]) -> Payload:
        suspends = {None if step is None else step.n: self._without_secrets(each) for each, step in waits}
        for suspend in suspends.values():
            _check_json(suspend)
        return Payload(suspends=suspends)

    def erred(
        self,
        key: NodeKey,
        attempt: int,
        error: ErrorInfo,
        retry_at_ms: int | None = None,
        deferred: Deferred | None = None,
    ) -> Result:
        fact = f.NodeErred(self._clock.now_ms(), key, attempt, self.shown(error), retry_at_ms, deferred)
        return Result(fact, Payload())

    def shown(self, error: ErrorInfo) -> ErrorInfo:
        texts = (error.message, error.hint, error.traceback)
        message, hint, traceback = (unicode(self.redactor.redact_cut(text)) for text in texts)
        args = None if error.args is None else self.redactor.redact_value(error.args)
        return ErrorInfo(
            error.code, message, error.retryable, error.block, hint, shortened(traceback), error.type, args
        )

    def _without_secrets(self, suspend: Suspend) -> Suspend:
        redact, clean, label = self.redactor.redact, self.redactor.redact_value, self.redactor.label
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
        names = self._services.secrets | self._vault.opened_names
        return seal(target, self._vault.values, names, self.redactor)


def _beside(waits: Sequence[tuple[Suspend, f.WaitStep | None]]) -> tuple[f.WaitBeside, ...]:
    return tuple(f.WaitBeside(step, its.kind, its.due_ms, its.on_expire) for its, step in waits if step is not None)


def _check_json(suspend: Suspend) -> None:
    """Raises BlockError. What cannot be written down would take the run out of memory, again and again."""
    asked = [dict(suspend.request), suspend.schema, list(suspend.actions), suspend.name, suspend.correlation]
    try:
        orjson.dumps([*asked, suspend.on_expire, suspend.due_ms])
    except TypeError as error:
        message = f"the request of the block is not JSON: {error}"
        raise BlockError(message, code="payload_invalid", retryable=False) from error
