"""Workflows: check, store, read and delete them; what a document may hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from server.client.call import Call, call, present

if TYPE_CHECKING:
    from server.client.answers import (
        BlockList,
        Examples,
        InputList,
        SavedWorkflow,
        Validation,
        VersionPage,
        WorkflowDeleted,
        WorkflowPage,
        WorkflowVersion,
    )


class Workflows:
    """`/api/workflows`, `/api/validate`, `/api/blocks`, `/api/examples`."""

    @call
    def validate(self, document: Mapping[str, Any], trigger: str | None = None) -> Call[Validation]:
        """The findings of a document, which is not stored."""
        return Call("POST", "/api/validate", body=present(document=document, trigger=trigger))

    @call
    def deploy(
        self, document: Mapping[str, Any], name: str | None = None, *, activate_triggers: bool = False
    ) -> Call[SavedWorkflow]:
        """Store a document as a version and make it the active one; the same document again is the same version.
        `activate_triggers`: its schedules and webhooks start runs even if it has blocks that were not imported.
        ApiError 422: it has errors, listed in `diagnostics`."""
        params = present(activate_triggers=int(activate_triggers) or None)
        return Call("POST", "/api/workflows", params=params, body=present(document=document, name=name))

    @call
    def workflows(self) -> Call[WorkflowPage]:
        """All of them, with the active version and the last run of each."""
        return Call("GET", "/api/workflows")

    @call
    def workflow(self, name: str, version: int | None = None, *, converted: bool = False) -> Call[WorkflowVersion]:
        """Return a version with its document; the active one without a number. `converted`: in the format weft/1, if it
        was imported."""
        return Call("GET", "/api/workflows/{name}", (name,), present(version=version, converted=int(converted) or None))

    @call
    def versions(self, name: str, before: int | None = None, limit: int = 200) -> Call[VersionPage]:
        """Newest first; `next` is the `before` of the following page."""
        return Call("GET", "/api/workflows/{name}/versions", (name,), present(before=before, limit=limit))

    @call
    def activate(self, name: str, version: int, *, activate_triggers: bool = False) -> Call[SavedWorkflow]:
        """Make a stored version the active one. `activate_triggers`: as for `deploy`."""
        body = {"version": version, **present(activate_triggers=activate_triggers or None)}
        return Call("PUT", "/api/workflows/{name}/active", (name,), body=body)

    @call
    def delete_workflow(self, name: str) -> Call[WorkflowDeleted]:
        """Delete a workflow with its versions, schedules and webhooks. ApiError 409: a run of it is open."""
        return Call("DELETE", "/api/workflows/{name}", (name,), body={})

    @call
    def inputs(self, name: str) -> Call[InputList]:
        """Inputs of its last runs, newest first."""
        return Call("GET", "/api/workflows/{name}/inputs", (name,))

    @call
    def plan(
        self,
        name: str,
        *,
        version: int | None = None,
        trigger: str | None = None,
        form: str = "json",
        expanded: bool = False,
    ) -> Call[str]:
        """Return the plan that a run of a stored workflow would have, as text. `form`: json, text, dot or mermaid."""
        params = present(version=version, trigger=trigger, format=form, expanded=True if expanded else None)
        return Call("GET", "/api/workflows/{name}/plan", (name,), params, reads="text")

    @call
    def blocks(self) -> Call[BlockList]:
        """The block types, with the JSON Schemas of their parameters."""
        return Call("GET", "/api/blocks")

    @call
    def examples(self) -> Call[Examples]:
        """Workflows that come with weft."""
        return Call("GET", "/api/examples")
