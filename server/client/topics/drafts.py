"""Drafts: documents that are being edited. A change names the revision that it changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from server.client.call import Call, call, new_key, present

if TYPE_CHECKING:
    from server.client.answers import (
        DraftDeleted,
        DraftPage,
        DraftRunAccepted,
        DraftSaved,
        DraftVersion,
        DraftView,
        InputList,
    )


class Drafts:
    """`/api/drafts`."""

    @call
    def create_draft(
        self, document: Mapping[str, Any], name: str | None = None, base_version: int | None = None
    ) -> Call[DraftView]:
        """`base_version`: the version of the workflow `name` that the document is a copy of."""
        return Call("POST", "/api/drafts", body=present(document=document, name=name, base_version=base_version))

    @call
    def drafts(self, before: str | None = None, limit: int = 200) -> Call[DraftPage]:
        """List drafts without their documents, latest change first; `next` is the `before` of the following page."""
        return Call("GET", "/api/drafts", params=present(before=before, limit=limit))

    @call
    def draft(self, draft: str) -> Call[DraftView]:
        """Return a draft with its document, revision and findings."""
        return Call("GET", "/api/drafts/{id}", (draft,))

    @call
    def save_draft(
        self, draft: str, rev: int, document: Mapping[str, Any], name: str | None = None
    ) -> Call[DraftSaved]:
        """Change revision `rev`. ApiError 409 `draft_changed`: there is a newer one, in `problem["current"]`."""
        return Call("PUT", "/api/drafts/{id}", (draft,), body=present(document=document, name=name), rev=rev)

    @call
    def delete_draft(self, draft: str, rev: int | None = None) -> Call[DraftDeleted]:
        """Delete a draft. Its runs and versions are kept."""
        return Call("DELETE", "/api/drafts/{id}", (draft,), rev=rev)

    @call
    def run_draft(
        self,
        draft: str,
        input: Any = None,
        *,
        rev: int | None = None,
        trigger: str | None = None,
        stop_after: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[DraftRunAccepted]:
        """Start a run of a draft as it is stored, otherwise as `start`; with `rev` only at that revision."""
        body = present(input=input, trigger=trigger, stop_after=stop_after)
        return Call("POST", "/api/drafts/{id}/run", (draft,), body=body, rev=rev, key=idempotency_key or new_key())

    @call
    def store_draft(
        self, draft: str, name: str | None = None, *, rev: int | None = None, activate_triggers: bool = False
    ) -> Call[DraftVersion]:
        """Store it as the next version of its workflow, as `deploy` does."""
        body = present(name=name, activate_triggers=activate_triggers or None)
        return Call("POST", "/api/drafts/{id}/versions", (draft,), body=body, rev=rev)

    @call
    def draft_inputs(self, draft: str) -> Call[InputList]:
        """Inputs of its last runs, newest first."""
        return Call("GET", "/api/drafts/{id}/inputs", (draft,))
