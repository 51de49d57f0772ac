"""The waits of runs: the inbox over all runs, answers by link, questions withdrawn; `engine.waits`.

The row of a wait decides which was first: an answer, an expiry or a withdrawal; the run then reads a message about it.
For a wait for a signal, the run itself decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

import orjson
from msgspec import Struct

from compiler.keys import join_key, parse_wait, split_key
from compiler.plan import Plan
from executor.errors import AlreadyAnswered, Conflict, CorruptJournal, NotFound
from executor.kernel.core.messages import Answer, Withdrawn, encode
from executor.kernel.handler.needs import NotifySettings
from executor.kernel.journal.reader import load_plan
from executor.kernel.read.find import find_run
from executor.kernel.run.answers import (
    ASK_PEOPLE,
    CANCELLABLE,
    Answerer,
    answer_message,
    check_answer,
    check_answerer,
    needs_sign_in,
    starter_of,
)
from executor.kernel.run.links import Purpose, purpose_of, token_of
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.outbox import NotificationRow
from executor.kernel.store.topics.waits import WaitRow, WaitStatus
from executor.kernel.values.seal import unsealed_names
from executor.service.parts import Topic
from executor.service.views import NotificationView, WaitShown, WaitView, view_of
from executor.service.views.lane import function_of

# A node key may open a wait in each attempt: 100 by its retry policy, and 10 that were lost.
ATTEMPTS_MAX: Final = 200


class WaitFilter(Struct, frozen=True):
    """A filter of the inbox; None matches any. `before` is the `next` of the previous page. `counts`: count waits,
    too."""

    status: WaitStatus | None = "pending"
    run: str | None = None
    kind: str | None = None
    workflow: str | None = None
    before: str | None = None
    limit: int = 200
    counts: bool = True


class WaitPage(Struct, frozen=True):
    """Oldest first. `counts`: by status, of those that match the filter except for its status; COUNT_MAX means so many
    or more. None if not requested."""

    waits: list[WaitView]
    next: str | None
    counts: dict[WaitStatus, int] | None


class Background(Struct, frozen=True):
    """The origin of a question and what follows each button, as names of blocks. `starter`: who started the run;
    None if a trigger did. `after`: by button, for those that lead to a block. `on_expire`: of the wait."""

    on_expire: str
    starter: str | None
    started_at_ms: int
    trigger: str
    before: tuple[str, ...]
    after: Mapping[str, tuple[str, ...]]


class Waits(Topic):
    async def page(self, where: WaitFilter) -> WaitPage:
        """Return a page of waits. Cursors are `run/wait id`."""
        before: tuple[str, str] | None = None
        if where.before is not None:
            run, _, wait = where.before.partition("/")
            before = (run, wait)
        rows = await self._store.list_waits(
            where.status, where.run, where.limit, kind=where.kind, workflow=where.workflow, before=before
        )
        counts: dict[WaitStatus, int] | None = None
        if where.counts:
            found = await self._store.count_waits(where.run, where.kind, where.workflow)
            counts = {status: found.get(status, 0) for status in get_args(WaitStatus)}
        return WaitPage(
            await self.views(rows),
            f"{rows[-1].run_id}/{rows[-1].id}" if len(rows) == where.limit else None,
            counts,
        )

    async def find(self, link: str) -> WaitView:
        return await self.view(await self.by_token(token_of(link), "resume"))

    async def get(self, run: str, wait: str) -> WaitView:
        """Find a wait by its id, or by the key of the node that waits, or waited last. Raises NotFound, and Conflict if
        several questions of the node are open."""
        return await self.view(await self._row(run, wait))

    async def background(self, wait: WaitShown) -> Background:
        """Return what is known of the question besides its own words. Reads the plan, not the journal: the page is
        public. Raises NotFound."""
        run = await find_run(self._store, wait.run)
        plan = await load_plan(self._store, run.plan_hash)
        trigger = plan.nodes[plan.regions[0].entries[0]].name
        starter, late = await starter_of(self._store, wait.run), (await self._row(wait.run, wait.id)).on_expire
        number = plan.node_index(split_key(wait.key)[0])
        if number is None:
            return Background(late, starter, run.created_at_ms, trigger, (), {})
        before = tuple(dict.fromkeys(plan.nodes[source].name for source in plan.sources[number]))
        after: dict[str, tuple[str, ...]] = {}
        for edge in plan.nodes[number].out:
            names = (*after.get(edge.handle, ()), plan.nodes[edge.target].name)
            after[edge.handle] = tuple(dict.fromkeys(names))
        return Background(late, starter, run.created_at_ms, trigger, before, after)

    async def answer(
        self,
        link: str | WaitShown | None = None,
        fields: Mapping[str, Any] | None = None,
        action: str | None = None,
        by: str | None = None,
        who: Answerer | None = None,
        *,
        run: str | None = None,
        node: str | None = None,
    ) -> WaitView:
        """Answer a wait, once: by its resume link or the token in it, or by the wait as `list` returns it, or by `run`
        and `node`, the key of the node that waits. `by`: the name that the person gave; `who`: the signed-in user,
        which is recorded if the wait is for certain people. Raises NotFound, AnswerInvalid (still open),
        SignInRequired, NotYours, AlreadyAnswered (`extra["wait"]` has who answered)."""
        if isinstance(link, WaitShown):
            return await self.answer_wait(link.run, link.id, fields, action, by, who)
        if link is None and run is not None and node is not None:
            return await self.answer_wait(run, node, fields, action, by, who)
        if link is None or run is not None or node is not None:
            raise TypeError("answer() takes a link, or a wait, or run= and node=")
        return await self._answer(await self.by_token(token_of(link), "resume"), fields, action, by, who)

    async def answer_wait(
        self,
        run: str,
        wait: str,
        fields: Mapping[str, Any] | None = None,
        action: str | None = None,
        by: str | None = None,
        who: Answerer | None = None,
    ) -> WaitView:
        """Like `answer`, by the run and the wait, as in `get`: for callers who need no link to prove their right."""
        return await self._answer(await self._row(run, wait), fields, action, by, who)

    async def _answer(
        self, row: WaitRow, fields: Mapping[str, Any] | None, action: str | None, by: str | None, who: Answerer | None
    ) -> WaitView:
        parts = self._parts
        now_ms = parts.clock.now_ms()
        if row.status != "pending" or row.kind not in ASK_PEOPLE:
            raise answered_before(await self.view(row))
        await check_answerer(self._store, row, who)
        if who is not None and needs_sign_in(orjson.loads(row.request)):
            by = who.name
        admitted = await parts.files.admit(dict(fields or {}), "/fields")
        cleaned = await check_answer(row, admitted.value, action, parts.services.sandbox.matches)
        cleaned, by = parts.redactor.redact_value(cleaned), by and parts.redactor.redact(by)
        response = orjson.dumps({**cleaned, **({"action": action} if action is not None else {})})
        await parts.files.hold(row.run_id, admitted.files)
        return await self.record_answer(row, response, by, answer_message(row, cleaned, action, by, now_ms), now_ms)

    async def record_answer(
        self, row: WaitRow, response: bytes, by: str | None, answer: Answer, now_ms: int
    ) -> WaitView:
        """The first answer to a pending wait wins; raises AlreadyAnswered for all others, NotFound when its run
        ended and was deleted meanwhile."""
        owned, message = self._parts.owned, encode(answer)
        here = await owned.answer(row, response, by, message, now_ms) if owned.answer is not None else None
        run: RunRow | None = None
        if here is not None:
            answered, run = here
        else:
            answered = await self._store.answer_wait(row.token_hash, response, by, message, now_ms)
        if answered is None:
            again = await self._store.get_wait(row.run_id, row.id)
            if again is None or again.token_hash == row.token_hash:
                raise _no_such_link()
            return await self.record_answer(again, response, by, answer, now_ms)  # it has a new link since it was read
        if not answered.won:
            raise answered_before(await self.view(answered.wait))
        if here is None:
            self._parts.wake(row.run_id)  # the run continues while the reply is made
        return await self.view(answered.wait, run)

    async def cancel(self, run: str, wait: str, by: str | None = None, reason: str = "") -> WaitView:
        """Take a question back: its block fails with `wait_cancelled`. `wait` as in `get`. Raises NotFound,
        AlreadyAnswered, Conflict."""
        row = await self._row(run, wait)
        if row.status != "pending":
            raise answered_before(await self.view(row))
        if row.kind not in CANCELLABLE:
            raise Conflict(
                f"a wait for a {row.kind} cannot be withdrawn",
                code="wait_not_cancellable",
                hint="send the signal, cancel the child run, or cancel this run",
            )
        now_ms = self._clock.now_ms()
        withdrawn = encode(Withdrawn(row.id, now_ms, by, reason))
        done = await self._store.cancel_wait(run, row.id, by, withdrawn, now_ms)
        if done is None:  # its run ended and was deleted meanwhile
            raise _no_such_wait(run, wait)
        if not done.won:
            raise answered_before(await self.view(done.wait))
        self._parts.wake(run)
        return await self.view(done.wait)

    async def by_token(self, token: str, purpose: Purpose) -> WaitRow:
        """Raises NotFound, also for a token of the other purpose."""
        known = self._parts.links.hash(token, purpose)
        row = await self._store.find_wait(known)
        if row is None:  # the key may have changed since the link was made
            row = await self._store.find_old_wait(known, self._clock.now_ms())
        if row is None or purpose_of(row.kind) != purpose:
            raise _no_such_link()
        return row

    async def _row(self, run: str, wait: str) -> WaitRow:
        row = await self._store.get_wait(run, wait)
        if row is None:
            await find_run(self._store, run)
            of_node = await self._store.list_waits(None, run, ATTEMPTS_MAX, key=wait)
            asked = [row for row in of_node if row.status == "pending" and row.kind in CANCELLABLE]
            if len(asked) > 1:  # side by side in a durable function
                raise _several(run, wait, [row.id for row in asked])
            # Each of the others began when the one before it had ended, or is a timer beside the question.
            row = max(asked or of_node, key=lambda wait: parse_wait(wait.id)[1], default=None)
        if row is None:
            raise _no_such_wait(run, wait)
        return row

    # --- views ---

    async def view(self, row: WaitRow, run: RunRow | None = None) -> WaitView:
        """`run`: if its row was read just now. Raises NotFound when its run was deleted meanwhile."""
        views = await self.views([row], run)
        if not views:
            raise _no_such_wait(row.run_id, row.id)
        return views[0]

    async def views(self, rows: Sequence[WaitRow], run: RunRow | None = None) -> list[WaitView]:
        """Return views of the waits, except those whose run was deleted. `run`: that of all, if it was read just
        now."""
        runs: dict[str, tuple[RunRow, Plan]] = {}
        for run_id in {row.run_id for row in rows}:
            if (found := run or await self._store.get_run(run_id)) is not None:
                try:
                    runs[run_id] = found, await load_plan(self._store, found.plan_hash)
                except CorruptJournal:  # unless its plan went with it
                    if await self._store.get_run(run_id) is not None:
                        raise
        rows = [row for row in rows if row.run_id in runs]
        notifications = await self._notifications(rows)
        now_ms = self._clock.now_ms()
        return [
            _wait_view(
                runs[row.run_id][1],
                runs[row.run_id][0],
                row,
                now_ms,
                self.link(row),
                notifications.get((row.run_id, row.id), ()),
            )
            for row in rows
        ]

    def link(self, row: WaitRow) -> str | None:
        """Return the address of the answer while it is pending, or None if no link answers it."""
        if row.status != "pending" or row.kind not in CANCELLABLE:
            return None
        return self._parts.links.url_of(row.run_id, row.id, row.kind, row.token_hash)

    async def _notifications(self, rows: Sequence[WaitRow]) -> Mapping[tuple[str, str], Sequence[NotificationView]]:
        notifications: dict[tuple[str, str], list[NotificationView]] = {}
        waits = {(row.run_id, row.id): row for row in rows if row.kind in CANCELLABLE}
        server = self._parts.services.notify
        for row in await self._store.list_notifications(list(waits)) if waits else ():
            key = row.run_id, row.wait_id
            notifications.setdefault(key, []).append(_notification_view(row, waits[key], server))
        return notifications

    async def list(
        self, status: WaitStatus | None = "pending", run: str | None = None, limit: int = 200
    ) -> list[WaitView]:
        return await self.views(await self._store.list_waits(status, run, limit))


def _no_such_link() -> NotFound:
    return NotFound("this link is not valid", code="wait_not_found", hint="the link may be incomplete: copy all of it")


def _no_such_wait(run: str, wait: str) -> NotFound:
    return NotFound(
        f"run {run} has no wait {wait!r}",
        code="wait_not_found",
        hint="use the key of the waiting node, such as ask@review#2, or the id of the wait",
    )


def _several(run: str, node: str, ids: Sequence[str]) -> Conflict:
    return Conflict(
        f"{node} of run {run} waits for several answers", hint=f"use the id of one of these waits: {', '.join(ids)}"
    )


def answered_before(view: WaitView) -> AlreadyAnswered:
    if view.status == "answered":
        message = f"this was already answered{f' by {view.answered_by}' if view.answered_by else ''}"
    elif view.status == "pending":
        message = f"a wait for a {view.kind} cannot be answered"
    else:
        message = f"this wait is {view.status}: it can no longer be answered"
    return AlreadyAnswered(
        message, code="already_answered" if view.status == "answered" else f"wait_{view.status}", wait=view
    )


# --- views ---


def _wait_view(
    plan: Plan,
    run: RunRow,
    row: WaitRow,
    now_ms: int,
    link: str | None,
    notifications: Sequence[NotificationView] = (),
) -> WaitView:
    """`link` is None if no link can answer it, or if it is over."""
    request: dict[str, Any] = orjson.loads(row.request)
    number = plan.node_index(row.node)
    node = plan.nodes[number] if number is not None else None
    label = (function_of(node) or node.name) if node else row.node
    return view_of(
        WaitView,
        row,
        run=row.run_id,
        workflow=run.workflow,
        key=join_key(row.node, row.path),
        block=node.block if node else row.node,
        label=label,
        request=request,
        schema=None if row.schema is None else orjson.loads(row.schema),
        actions=tuple(request.get("actions") or ()),
        age_s=max(0, now_ms - row.opened_at_ms) / 1000,
        title=str(request.get("title") or label),
        run_status=run.status,
        response=None if row.response is None else orjson.loads(row.response),
        link=link,
        notifications=tuple(notifications),
    )


def _notification_view(row: NotificationRow, wait: WaitRow, server: NotifySettings) -> NotificationView:
    reminder = row.created_at_ms > wait.opened_at_ms
    # The sender cancels it when it is due.
    status = "cancelled" if reminder and row.status == "pending" and wait.status != "pending" else row.status
    return view_of(
        NotificationView,
        row,
        to=_shown_target(row, server),
        status=status,
        reminder=reminder,
        due_at_ms=row.due_at_ms if status == "pending" else None,
        error=row.error or None,
    )


def _shown_target(row: NotificationRow, server: NotifySettings) -> str:
    """Return the mail addresses, or only the server of a request: the rest of an address may be a credential."""
    target: dict[str, Any] = unsealed_names(row.content)
    if row.channel == "email":
        return ", ".join(server.email if target.get("server") else target["to"])
    if row.channel == "job":
        return f"Kubernetes, namespace {target['namespace']}"
    url = (server.webhook or "") if target.get("server") else target["url"]
    return place_of(url) or "an address that cannot be read"


def place_of(url: str) -> str | None:
    """Return the server of an address, or None if the address cannot be read."""
    import httpx  # loaded by the client, with the first request

    try:
        parsed = httpx.URL(url)
        return f"{parsed.scheme}://{parsed.netloc.decode()}"
    except (httpx.InvalidURL, ValueError):
        return None
