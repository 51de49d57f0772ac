"""Workflows, drafts, runs and their waits, as methods of both clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from server.client.call import Call, Document, call, document_of, new_key, present, route
from server.client.errors import ClientError

if TYPE_CHECKING:
    from server.client import answers

# A resume link, its token, or a wait with a link.
Link = str | Mapping[str, Any] | None


class RunCalls:
    """Calls about workflows and runs."""

    # `/api/workflows`, `/api/validate`, `/api/blocks`, `/api/examples`

    @route("POST", "/api/validate")
    def validate(self, document: Mapping[str, Any], trigger: str | None = None) -> Call[answers.Validation]:
        """The findings of a document, which is not stored."""

    @call
    def deploy(
        self,
        document: Document,
        name: str | None = None,
        *,
        activate_triggers: bool = False,
        replaces: int | None = None,
    ) -> Call[answers.SavedWorkflow]:
        """Store a document, or a workflow in Python, as a version and make it the active one; the same document again
        is the same version. `activate_triggers`: its schedules and webhooks start runs even if it has blocks that were
        not imported. `replaces`: ApiError 409 `would_replace` if another version is active; 0: if any is. ApiError 422:
        it has errors, listed in `diagnostics`."""
        params = present(activate_triggers=int(activate_triggers) or None, replaces=replaces)
        return Call("POST", "/api/workflows", params=params, body=present(document=document_of(document), name=name))

    @route("GET", "/api/workflows")
    def workflows(self) -> Call[answers.WorkflowPage]:
        """All of them, with the active version and the last run of each."""

    @route("PUT", "/api/workflows/{name}/folder")
    def put_in_folder(self, name: str, folder: str) -> Call[answers.WorkflowFolder]:
        """Move a workflow to a folder of the front page, '' for none."""

    @route("PUT", "/api/workflows/{name}/title")
    def rename(self, name: str, title: str) -> Call[answers.WorkflowTitle]:
        """Show `title` in place of the name; it is found by both. '' for the name."""

    @route("GET", "/api/workflows/{name}")
    def workflow(
        self, name: str, version: int | None = None, *, converted: bool = False
    ) -> Call[answers.WorkflowVersion]:
        """Return a version with its document; the active one without a number. `converted`: in the format weft/1, if it
        was imported."""

    @route("GET", "/api/workflows/{name}/versions")
    def versions(self, name: str, before: int | None = None, limit: int = 200) -> Call[answers.VersionPage]:
        """Newest first; `next` is the `before` of the following page."""

    @route("PUT", "/api/workflows/{name}/active")
    def activate(self, name: str, version: int, *, activate_triggers: bool = False) -> Call[answers.SavedWorkflow]:
        """Make a stored version the active one. `activate_triggers`: as for `deploy`."""

    @call
    def delete_workflow(self, name: str) -> Call[answers.WorkflowDeleted]:
        """Delete a workflow with its versions, schedules and webhooks. ApiError 409: a run of it is open."""
        return Call("DELETE", "/api/workflows/{name}", (name,), body={})

    @route("GET", "/api/workflows/{name}/inputs")
    def inputs(self, name: str) -> Call[answers.InputList]:
        """Inputs of its last runs, newest first."""

    @route("GET", "/api/workflows/{name}/plan", reads="text")
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

    @route("GET", "/api/blocks")
    def blocks(self) -> Call[answers.BlockList]:
        """The block types, with the JSON Schemas of their parameters."""

    @route("GET", "/api/examples")
    def examples(self) -> Call[answers.Examples]:
        """Workflows that come with weft."""

    # `/api/drafts`

    @route("POST", "/api/drafts")
    def create_draft(
        self, document: Mapping[str, Any], name: str | None = None, base_version: int | None = None
    ) -> Call[answers.DraftView]:
        """`base_version`: the version of the workflow `name` that the document is a copy of."""

    @route("GET", "/api/drafts")
    def drafts(self, before: str | None = None, limit: int = 200) -> Call[answers.DraftPage]:
        """List drafts without their documents, latest change first; `next` is the `before` of the following page."""

    @route("GET", "/api/drafts/{id}")
    def draft(self, draft: str) -> Call[answers.DraftView]:
        """Return a draft with its document, revision and findings."""

    @route("PUT", "/api/drafts/{id}")
    def save_draft(
        self, draft: str, rev: int, document: Mapping[str, Any], name: str | None = None
    ) -> Call[answers.DraftSaved]:
        """Change revision `rev`. ApiError 409 `draft_changed`: there is a newer one, in `problem["current"]`."""

    @route("PUT", "/api/drafts/{id}/folder")
    def put_draft_in_folder(self, draft: str, folder: str) -> Call[answers.DraftFolder]:
        """Move a draft to a folder of the front page, '' for none."""

    @route("DELETE", "/api/drafts/{id}")
    def delete_draft(self, draft: str, rev: int | None = None) -> Call[answers.DraftDeleted]:
        """Delete a draft. Its runs and versions are kept."""

    @route("POST", "/api/drafts/{id}/run")
    def run_draft(
        self,
        draft: str,
        input: Any = None,
        *,
        rev: int | None = None,
        trigger: str | None = None,
        stop_after: str | None = None,
        step: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[answers.DraftRunAccepted]:
        """Start a run of a draft as it is stored, otherwise as `start`; with `rev` only at that revision. `step`: run
        one block alone, {"block", "given"}."""

    @route("POST", "/api/drafts/{id}/versions")
    def store_draft(
        self,
        draft: str,
        name: str | None = None,
        *,
        rev: int | None = None,
        activate_triggers: bool = False,
        replaces: int | None = None,
    ) -> Call[answers.DraftVersion]:
        """Store it as the next version of its workflow. ApiError 409 `would_replace`: the version in
        `problem["active"]` is active and the draft is not based on it; `replaces` names it."""

    @route("POST", "/api/drafts/{id}/listen")
    def listen(self, draft: str, trigger: str) -> Call[answers.DraftAddress]:
        """Return an address of the webhook block `trigger` that runs the draft for 10 minutes."""

    @route("POST", "/api/drafts/{id}/poll")
    def poll_draft(self, draft: str, trigger: str, after: str | None = None) -> Call[answers.DraftEvent]:
        """Run the draft with the newest event of the source of the block `trigger`. With `after`, first '', then that
        of the answer before: with the next one, once there is one."""

    @route("GET", "/api/drafts/{id}/inputs")
    def draft_inputs(self, draft: str) -> Call[answers.InputList]:
        """Inputs of its last runs, newest first."""

    # `/api/runs`, `/api/workflows/{name}/runs`, `/api/cache`

    @call
    def start(
        self,
        workflow: str | Document,
        input: Any = None,
        *,
        trigger: str | None = None,
        version: int | None = None,
        stop_after: str | None = None,
        priority: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[answers.RunAccepted]:
        """Start a run of a stored workflow by its name (without `version` the active one), or of a document or a
        workflow in Python.

        `stop_after`: id of the last block to run; `priority` from -10 to 10, in place of that of the workflow. Without
        an `idempotency_key` the call makes one of its own, so a lost answer never starts a second run. With your own
        key neither does a program that restarts and repeats the call; `created` is then false.
        """
        key = idempotency_key or new_key()
        body = present(input=input, trigger=trigger, version=version, stop_after=stop_after, priority=priority)
        if isinstance(workflow, str):
            return Call("POST", "/api/workflows/{name}/runs", (workflow,), body=body, key=key)
        return Call("POST", "/api/runs", body={"document": document_of(workflow), **body}, key=key)

    @route("GET", "/api/runs")
    def runs(
        self,
        *,
        workflow: str | None = None,
        draft: str | None = None,
        parent: str | None = None,
        status: str | None = None,
        since: int | None = None,
        until: int | None = None,
        text: str | None = None,
        by: str | None = None,
        key: str | None = None,
        not_status: str | None = None,
        not_workflow: str | None = None,
        not_by: str | None = None,
        not_text: str | None = None,
        before: str | None = None,
        limit: int = 50,
        counts: bool = False,
    ) -> Call[answers.RunPage]:
        """List runs, newest first; `next` is the `before` of the following page. `parent`: those that this run started;
        `since`, `until`: those created then, in Unix milliseconds; `text`: those that have it in their id, idempotency
        key or error; `by`: those that this person or token started; `key`: that with this idempotency key; `not_…`: not
        those; `counts`: also the number of runs by status, which takes longer."""

    @call
    def get_run(self, run: str, *, wait_s: float | None = None) -> Call[answers.RunDetail]:
        """The run with its nodes, variables and waits. `wait_s`: first wait so many seconds, at most 60, until it has
        ended or only an answer or a signal can move it."""
        return Call("GET", "/api/runs/{id}", (run,), present(wait=wait_s), wait_s=wait_s or 0)

    @call
    def delete_run(self, run: str) -> Call[answers.RunDeleted]:
        """Delete a run with the runs that it started. ApiError 409: it cannot be deleted yet."""
        return Call("DELETE", "/api/runs/{id}", (run,), body={})

    @route("GET", "/api/runs/{id}/document")
    def run_document(self, run: str) -> Call[answers.RunDocument]:
        """The document that the run was made from."""

    @route("GET", "/api/runs/{id}/plan", reads="text")
    def run_plan(self, run: str, *, form: str = "json", expanded: bool = False) -> Call[str]:
        """The plan of the run as text. `form`: json, text, dot or mermaid."""

    @route("GET", "/api/runs/{id}/graph")
    def graph(self, run: str) -> Call[answers.RunGraph]:
        """Nodes and edges with their states, for drawing."""

    @route("POST", "/api/runs/{id}/cancel")
    def cancel(self, run: str, reason: str = "", *, now: bool = False) -> Call[answers.Cancelled]:
        """ApiError 409: it had ended already, or was failing."""

    @call
    def signal(
        self,
        run: str,
        name: str,
        payload: Any = None,
        *,
        correlation: str | None = None,
        dedupe_key: str | None = None,
        by: str | None = None,
    ) -> Call[answers.SignalAccepted]:
        """Send a message to a run. Without a `dedupe_key` the call makes one of its own, so that a lost answer never
        sends it twice; `new` is false if the key was used before in this run."""
        body = present(payload=payload, correlation=correlation, dedupe_key=dedupe_key, by=by)
        key = new_key() if dedupe_key is None else None
        return Call("POST", "/api/runs/{id}/signals/{name}", (run, name), body=body, key=key)

    @route("GET", "/api/runs/{id}/signals")
    def signals(
        self,
        run: str,
        *,
        name: str | None = None,
        correlation: str | None = None,
        received_after: int | None = None,
        limit: int = 200,
    ) -> Call[answers.SignalList]:
        """List the signals of a run in order of arrival, including those that a wait received. `received_after`: Unix
        milliseconds."""

    @call
    def send_update(
        self,
        run: str,
        name: str,
        value: Any = None,
        *,
        id: str | None = None,
        by: str | None = None,
        wait_s: float = 0,
    ) -> Call[answers.UpdateAnswer]:
        """Send a request to a durable function, and wait at most `wait_s` seconds for its answer. `update` waits as
        long as it takes. The same `id` again is the same request. ApiError 409: it was refused (`update_refused`), or
        the run has ended."""
        body, params = present(value=value, id=id, by=by), {"wait": wait_s}
        path = "/api/runs/{id}/updates/{name}"
        return Call("POST", path, (run, name), params, body, key=id or new_key(), wait_s=wait_s)

    @call
    def send_query(self, run: str, name: str, arguments: Mapping[str, Any] | None = None) -> Call[answers.QueryAnswer]:
        """Query the state that a durable function published last. ApiError 404: there is no such query, or the server
        does not have the function. ApiError 409: nothing was published yet."""
        return Call("POST", "/api/runs/{id}/queries/{name}", (run, name), body={"arguments": dict(arguments or {})})

    # `rerun`, `fork`, `retry` and `migrate` of `/api/runs/{id}`

    @route("POST", "/api/runs/{id}/rerun")
    def rerun(
        self,
        run: str,
        start: str | None = None,
        *,
        input: Any = None,
        version: int | str | None = None,
        draft: str | None = None,
        document: Mapping[str, Any] | None = None,
        again: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[answers.RunAccepted]:
        """Start a new run that reuses the results before block `start`; without `start` everything runs again. `input`
        defaults to that of the run. With a `version` (a number, "active" or "draft"), the id of a `draft`, or a
        `document`, the run continues with that: what is unchanged is not run again, except the blocks `again`."""

    @route("POST", "/api/runs/rerun")
    def rerun_many(
        self,
        runs: Sequence[str],
        start: str | None = None,
        *,
        input: Any = None,
        version: int | str | None = None,
        draft: str | None = None,
        document: Mapping[str, Any] | None = None,
        again: Sequence[str] | None = None,
        preview: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[answers.RerunsAnswer]:
        """`rerun` for each of at most 100 runs; one that is refused has an `error`. `preview`: only the blocks that
        would run."""

    @route("GET", "/api/runs/{id}/rerun")
    def rerun_preview(self, run: str, start: str) -> Call[answers.RerunPreview]:
        """Return the blocks that `rerun` would reuse, run again and skip."""

    @route("GET", "/api/runs/{id}/continuation")
    def continuation(
        self, run: str, version: int | str = "draft", *, draft: str | None = None, start: str | None = None
    ) -> Call[answers.Continuation]:
        """Return for each block whether `rerun` with this version would run it."""

    @route("POST", "/api/runs/{id}/fork")
    def fork(
        self,
        run: str,
        seq: int | None = None,
        outputs: Mapping[str, Any] | None = None,
        *,
        steps: Mapping[str, Mapping[str, Any]] | None = None,
        params: Mapping[str, Mapping[str, Any]] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[answers.ForkAccepted]:
        """Start a new run that continues from event `seq` of this one, with these outputs, by node key, in place of the
        recorded ones; `steps`: results of steps, by node key and number; `params` of blocks, from there on."""

    @route("GET", "/api/runs/{id}/fork")
    def fork_preview(
        self, run: str, seq: int | None = None, *, node: str | None = None, step: int | None = None
    ) -> Call[answers.ForkPreview]:
        """Return what a fork takes over, and what it may do again."""

    @call
    def retry(self, run: str, key: str, *, idempotency_key: str | None = None) -> Call[answers.RetryAccepted]:
        """Run one node again: the next attempt of an open run now, or a new run if it has ended; `how` shows which."""
        path = "/api/runs/{id}/nodes/{key}/retry"
        return Call("POST", path, (run, key), body={}, key=idempotency_key or new_key())

    @route("POST", "/api/runs/{id}/migrate")
    def migrate(self, run: str, version: int) -> Call[answers.MigrateAnswer]:
        """Move an open run to another version of its workflow. ApiError 409: it does not fit; `conflicts` of `problem`
        are the reasons."""

    # `/api/waits`, `/api/resume/{token}`, `/callbacks/{token}`

    @route("GET", "/api/waits")
    def waits(
        self,
        *,
        status: str = "pending",
        kind: str | None = None,
        workflow: str | None = None,
        run: str | None = None,
        before: str | None = None,
        limit: int = 200,
        counts: bool = False,
    ) -> Call[answers.WaitPage]:
        """List waits, oldest first; `next` is the `before` of the following page. `counts`: also the number of waits by
        status. The `link` of a pending one answers it."""

    @route("GET", "/api/runs/{id}/waits/{key}")
    def wait(self, run: str, wait: str) -> Call[answers.Wait]:
        """Return one wait by its id, or the latest of the node with this key."""

    @call
    def withdraw(self, run: str, wait: str, *, by: str | None = None, reason: str = "") -> Call[answers.Wait]:
        """Take a question back; `wait` is its id or the key of the node that waits. ApiError 409: it was over."""
        return Call("DELETE", "/api/runs/{id}/waits/{key}", (run, wait), body=present(by=by, reason=reason))

    @route("POST", "/api/runs/{id}/waits/{key}")
    def answer_wait(
        self,
        run: str,
        wait: str,
        action: str | None = None,
        fields: Mapping[str, Any] | None = None,
        *,
        by: str | None = None,
    ) -> Call[answers.Wait]:
        """Answer a wait without its link, once, as the holder of this client's token; `wait` is its id or the key of
        the node that waits. ApiError as in `answer`; 403: it is for others."""

    @call
    def read_link(self, link: Link) -> Call[answers.PublicWait]:
        """Return the question of a resume link, given as the link, its token or its wait. Reading it changes
        nothing."""
        return Call("GET", "/api/resume/{token}", (token_of(link),))

    @call
    def answer(
        self,
        link: Link,
        action: str | None = None,
        fields: Mapping[str, Any] | None = None,
        *,
        by: str | None = None,
    ) -> Call[answers.PublicWait]:
        """Answer a wait by its link, its token, or the wait itself, once. `action` is one of its `actions`. ApiError
        409: already answered. 422: the fields do not fit its form, the wait stays open."""
        body = present(action=action, fields=dict(fields or {}), by=by)
        return Call("POST", "/api/resume/{token}", (token_of(link),), body=body)

    @call
    def call_back(self, link: Link, value: Any) -> Call[answers.CallbackTaken]:
        """Answer the wait of a callback block: any JSON."""
        return Call("POST", "/callbacks/{token}", (token_of(link),), body=value)


def token_of(link: Link) -> str:
    """The last part of the path of a link; a token is itself. Raises ClientError for a wait without a link."""
    if isinstance(link, Mapping):
        link = link.get("link")
    if not link:
        raise ClientError(
            "The wait has no link.", "It was answered or it expired, or the token of this client has the role viewer."
        )
    return unquote(urlsplit(link).path.rstrip("/").rpartition("/")[2])
