"""Public forms: the page's content, and how a submission becomes a run; `engine.forms`.

A form is declared by a `form_trigger` block and is a row of the webhooks (see `declared.py`), which lists it, switches
it off and gives it another address.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct

from executor.errors import BadRequest, Fenced
from executor.kernel.process.acting import Reach
from executor.kernel.run.new_run import check_input
from executor.kernel.store.topics.webhooks import WebhookRow
from executor.service.parts import Parts, Topic
from executor.service.triggers.declared import FORM, StartOf
from executor.service.triggers.requests import Proof
from executor.service.triggers.webhooks import Delivered, Webhooks

# A page that was loaded once is one submission: a repeated request of its browser is the same delivery.
NONCE: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")


class FormView(Struct, frozen=True):
    """A form as visitors see it. `schema` is of type object."""

    id: str
    title: str
    text: str | None
    schema: dict[str, Any]
    submit: str
    done: str | None


class Forms(Topic):
    def __init__(self, parts: Parts, webhooks: Webhooks) -> None:
        super().__init__(parts)
        self._webhooks = webhooks

    async def find(self, name: str, token: str) -> FormView:
        row = await self._row(name, token)
        return _form_view(row, await self._webhooks.ready(row))

    async def submit(self, name: str, token: str, fields: dict[str, Any], nonce: str) -> Delivered:
        """Start a run with the submitted fields. Raises like `Webhooks.ready` and `check_input`, NotFound, BadRequest,
        FileNotYours (only files uploaded with the form are allowed), and Conflict (delivery_replayed, `run`)."""
        if not NONCE.fullmatch(nonce):
            raise BadRequest("the form is incomplete", code="delivery_invalid", hint="load the page again")
        row = await self._row(name, token)
        admitted = await self._parts.files.admit(fields, reach=Reach(uploaders=(token,)))
        with self._webhooks.noted(row.id):
            while True:
                start = await self._webhooks.ready(row)
                now_ms = self._clock.now_ms()
                checked = await check_input(start.plan, admitted.value, self._parts.services.sandbox.matches)
                try:
                    proof = Proof(f"form-{nonce}", None)
                    return await self._webhooks.deliver(row, start, checked, proof, now_ms, admitted.files)
                except Fenced:  # switched off, deleted or changed meanwhile: judged as things are now
                    row = await self._row(name, token)

    async def _row(self, name: str, token: str) -> WebhookRow:
        return await self._webhooks.page(FORM + name, token, "there is no form at this address", "form_not_found")


def _form_view(row: WebhookRow, start: StartOf) -> FormView:
    params = start.params
    schema = params.get("fields") or start.plan.input_schema or {}
    return FormView(
        id=row.id,
        title=params.get("title") or start.node.name or start.workflow,
        text=params.get("text") or None,
        schema={"type": "object", **schema},
        submit=params.get("submit") or "Submit",
        done=params.get("done") or None,
    )
