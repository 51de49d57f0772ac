"""Triggers, connectors, secrets, people and the server itself, as methods of both clients."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from server.client.call import Call, call, route

if TYPE_CHECKING:
    from server.client import answers


class ServerCalls:
    """Calls about what an installation has besides workflows and runs."""

    # `/api/schedules`, `/api/cron`

    @route("GET", "/api/schedules")
    def schedules(self, workflow: str | None = None) -> Call[answers.ScheduleList]:
        """List schedules by id, each with its next five times."""

    @route("GET", "/api/schedules/{id}")
    def schedule(self, schedule: str) -> Call[answers.ScheduleDetail]:
        """Return a schedule with the outcomes of its last times."""

    @route("PUT", "/api/schedules/{id}")
    def put_schedule(self, schedule: str, spec: answers.ScheduleSpec) -> Call[answers.ScheduleDetail]:
        """Add or change a schedule: `{"workflow": ..., "cron": ...}`, and its other members."""

    @route("DELETE", "/api/schedules/{id}")
    def delete_schedule(self, schedule: str) -> Call[answers.TriggerDeleted]:
        """Delete a schedule. Its runs are kept."""

    @route("POST", "/api/schedules/{id}/enable")
    def enable_schedule(self, schedule: str) -> Call[answers.ScheduleDetail]:
        """It continues with its next time from now."""

    @route("POST", "/api/schedules/{id}/disable")
    def disable_schedule(self, schedule: str) -> Call[answers.ScheduleDetail]:
        """It starts no run until it is enabled."""

    @route("POST", "/api/schedules/{id}/run")
    def run_schedule(self, schedule: str) -> Call[answers.RunAccepted]:
        """Start a run now, in addition to its times."""

    @route("GET", "/api/cron")
    def cron(self, expr: str, tz: str | None = None) -> Call[answers.CronPreview]:
        """Return the next five times of a cron expression; `tz` is UTC by default."""

    # `/api/webhooks`, which has public forms and chats as well.

    @route("GET", "/api/webhooks")
    def webhooks(self, workflow: str | None = None) -> Call[answers.WebhookList]:
        """List webhooks by id, without their secrets."""

    @route("GET", "/api/webhooks/{id}")
    def webhook(self, webhook: str) -> Call[answers.WebhookDetail]:
        """Return a webhook with its secret and its last deliveries."""

    @route("PUT", "/api/webhooks/{id}")
    def put_webhook(self, webhook: str, spec: answers.WebhookSpec) -> Call[answers.WebhookDetail]:
        """Add or change a webhook: `{"workflow": ...}`, and its other members."""

    @route("DELETE", "/api/webhooks/{id}")
    def delete_webhook(self, webhook: str) -> Call[answers.TriggerDeleted]:
        """Delete a webhook. Its runs are kept."""

    @route("POST", "/api/webhooks/{id}/enable")
    def enable_webhook(self, webhook: str) -> Call[answers.WebhookDetail]:
        """It takes requests again."""

    @route("POST", "/api/webhooks/{id}/disable")
    def disable_webhook(self, webhook: str) -> Call[answers.WebhookDetail]:
        """It refuses requests until it is enabled."""

    @route("POST", "/api/webhooks/{id}/rotate")
    def rotate_webhook(self, webhook: str) -> Call[answers.WebhookRotated]:
        """Create a new secret; the old one stops working."""

    # `/api/connectors`, `/api/blocks/{type}/choices`, `/api/mcp/check`

    @route("GET", "/api/connectors")
    def connectors(self) -> Call[answers.ConnectorList]:
        """List the connectors that were added to the installation, by service."""

    @route("GET", "/api/connectors/{service}")
    def connector(self, service: str) -> Call[answers.ConnectorDocument]:
        """Return the document of a connector."""

    @call
    def put_connector(self, document: Mapping[str, Any]) -> Call[answers.ConnectorView]:
        """Add one, or replace the document of its service."""
        service = str(document.get("service", ""))
        return Call("PUT", "/api/connectors/{service}", (service,), body={"document": dict(document)})

    @route("DELETE", "/api/connectors/{service}")
    def delete_connector(self, service: str) -> Call[answers.ConnectorDeleted]:
        """Workflows that use it can no longer be stored."""

    @route("POST", "/api/connectors/openapi")
    def import_openapi(
        self,
        description: Mapping[str, Any],
        operations: Sequence[str] = (),
        *,
        service: str | None = None,
        base_url: str | None = None,
    ) -> Call[answers.OpenApiImported]:
        """A connector of chosen operations of an OpenAPI description, not yet added. Without any, they are listed."""

    @route("POST", "/api/blocks/{type}/choices")
    def choices(
        self, block_type: str, field: str, params: Mapping[str, Any], *, search: str = "", cursor: str | None = None
    ) -> Call[answers.ChoiceList]:
        """List what a field of a connector can be, with the account in `params`. ApiError 400, `choices_wait`: the
        param at `pointer` has to be filled in first; 502: what the service answered."""

    @route("POST", "/api/mcp/check")
    def check_tool_server(
        self, url: str, headers: Mapping[str, str] | None = None, *, connection: str | None = None
    ) -> Call[answers.ToolServerChecked]:
        """List the tools of an MCP server, as an agent with this address, these headers and this connection gets them.
        ApiError 400: one of them cannot be used; 502: the server does not answer correctly."""

    # `/api/secrets`

    @route("GET", "/api/secrets")
    def secrets(self) -> Call[answers.SecretList]:
        """List secrets by name, without their values."""

    @route("PUT", "/api/secrets/{name}")
    def put_secret(
        self, name: str, value: str, hosts: Sequence[str] = (), places: Sequence[str] = ()
    ) -> Call[answers.SecretView]:
        """A first or a new value. `hosts`: where it may be sent to; `places`: where in a request it may stand, such as
        `header:Authorization`, or anywhere."""

    @route("DELETE", "/api/secrets/{name}")
    def delete_secret(self, name: str) -> Call[answers.SecretDeleted]:
        """Runs that read it fail from now on."""

    @call
    def rekey_secrets(self, *, grace_s: int = 7 * 86_400) -> Call[answers.SecretsResealed]:
        """Encrypt with the present key the values that were encrypted with an older one."""
        return Call("POST", "/api/secrets/rekey", params={"grace_s": grace_s})

    # `/api/connections`, `/api/oauth/code`

    @route("GET", "/api/connections")
    def connections(self) -> Call[answers.ConnectionList]:
        """List connections by name. `redirect_uri` is the address to register at OAuth providers."""

    @route("PUT", "/api/connections/{name}")
    def put_connection(self, name: str, spec: answers.ConnectionSpec) -> Call[answers.ConnectionView]:
        """Add or replace one: `{"kind": ..., "hosts": [...], "secret": ...}`, and the members of its kind."""

    @route("DELETE", "/api/connections/{name}")
    def delete_connection(self, name: str) -> Call[answers.ConnectionDeleted]:
        """Runs that use it fail from now on."""

    @route("GET", "/api/connections/{name}/uses")
    def connection_uses(self, name: str) -> Call[answers.ConnectionUses]:
        """The active versions and drafts that name it."""

    @route("POST", "/api/connections/{name}/test")
    def test_connection(
        self, name: str, *, service: str = "", base_url: str = "", connection: answers.ConnectionSpec | None = None
    ) -> Call[answers.ConnectionTest]:
        """Ask its service, or the connector `service`, who is signed in. `connection`: settings that are not stored
        yet."""

    @route("POST", "/api/connections/{name}/connect")
    def connect(self, name: str) -> Call[answers.SignIn]:
        """The `url` where a person signs in to the service."""

    @route("POST", "/api/oauth/code")
    def connected(
        self, state: str, *, code: str | None = None, error: str | None = None, iss: str | None = None
    ) -> Call[answers.ConnectionView]:
        """End a sign-in with the parameters of the address to which the provider sent the browser back."""

    # `/api/users`, `/api/me`

    @route("GET", "/api/me")
    def me(self) -> Call[answers.Me]:
        """Return the user or token of this client, and its role."""

    @route("GET", "/api/users")
    def users(self) -> Call[answers.UserList]:
        """List users by id."""

    @route("POST", "/api/users")
    def invite(self, id: str, role: str, name: str = "") -> Call[answers.Invited]:
        """Add a user; the `url` signs them in, once."""

    @route("POST", "/api/users/{id}/link")
    def link_for(self, id: str) -> Call[answers.Invited]:
        """Make a sign-in link as `invite` does, for an existing user."""

    @route("PUT", "/api/users/{id}/role")
    def set_role(self, id: str, role: str) -> Call[answers.UserChanged]:
        """viewer, approver, editor or admin."""

    @route("DELETE", "/api/users/{id}")
    def remove_user(self, id: str) -> Call[answers.UserChanged]:
        """Remove a user with their sessions and tokens."""

    # `/api/sessions`, `/api/me/sessions`, `/api/users/{id}/sessions`

    @route("POST", "/api/sign-in-links")
    def sign_in_link(self) -> Call[answers.SignInLink]:
        """Make a sign-in link: its `url` signs one browser in, once."""

    @route("GET", "/api/sessions")
    def sessions(self) -> Call[answers.SessionList]:
        """List the sessions of all users, seen last first."""

    @route("DELETE", "/api/sessions/{id}")
    def end_session(self, session: str) -> Call[answers.SessionsEnded]:
        """End a session of any user."""

    @call
    def end_sessions(self, user: str | None = None) -> Call[answers.SessionsEnded]:
        """End all sessions, or those of one user."""
        if user is None:
            return Call("DELETE", "/api/sessions")
        return Call("DELETE", "/api/users/{id}/sessions", (user,))

    @route("GET", "/api/me/sessions")
    def my_sessions(self) -> Call[answers.SessionList]:
        """List the sessions of the user of this client."""

    @call
    def end_my_sessions(self, session: str | None = None) -> Call[answers.SessionsEnded]:
        """End one session of the user of this client, or all."""
        if session is None:
            return Call("DELETE", "/api/me/sessions")
        return Call("DELETE", "/api/me/sessions/{id}", (session,))

    # `/api/tokens`

    @route("GET", "/api/tokens")
    def tokens(self) -> Call[answers.TokenList]:
        """List tokens without their secrets, oldest first."""

    @route("POST", "/api/tokens")
    def make_token(
        self, name: str, role: str, days: int = 90, workflows: Sequence[str] | None = None
    ) -> Call[answers.TokenMade]:
        """Create a token. `token` is shown only in this answer. `workflows` are the only ones that it may reach; None
        for all."""

    @route("DELETE", "/api/tokens/{id}")
    def revoke_token(self, id: str) -> Call[answers.TokenRevoked]:
        """It is refused from now on."""

    # `/api/audit`

    @route("GET", "/api/audit")
    def audit(
        self,
        limit: int = 100,
        actor: str | None = None,
        *,
        text: str | None = None,
        since: int | None = None,
        until: int | None = None,
        before: int | None = None,
    ) -> Call[answers.AuditPage]:
        """Newest first; `next` is the `before` of the following page. `actor`: such as `user:ada`; `text`: in action,
        object or detail; `since` and `until`: Unix milliseconds, `since` included."""

    @route("GET", "/api/audit/verification")
    def verify_audit(self) -> Call[answers.Verified]:
        """Check that the rows of the audit are as they were written."""

    # `/healthz`, `/readyz`, `/api/version`, `/api/env`, `/api/upkeep`

    @route("GET", "/healthz", again=False)
    def health(self) -> Call[answers.Health]:
        """It reads its database. ApiError 503: it does not; sent once."""

    @route("GET", "/readyz", again=False)
    def ready(self) -> Call[answers.Health]:
        """It writes to its database as well. ApiError 503 or 507: why it does not; sent once."""

    @route("GET", "/api/version")
    def server_version(self) -> Call[answers.Version]:
        """Return the version of weft on the server."""

    @route("GET", "/api/stats")
    def stats(self) -> Call[answers.ServerStats]:
        """Return the work that is open in its database, and the counts of the answering process since its start."""

    @route("GET", "/metrics", reads="text")
    def metrics(self) -> Call[str]:
        """Numbers of the process and of its database, in the text format of Prometheus."""

    @route("GET", "/api/openapi.json")
    def openapi(self) -> Call[dict[str, Any]]:
        """The description of this API."""

    @route("GET", "/api/env")
    def env(self) -> Call[answers.EnvNames]:
        """Names of the environment that documents may read, and which do; no values."""

    @route("POST", "/api/upkeep/gc")
    def gc(
        self, *, older_than_s: float | None = None, keep: int = 0, dry_run: bool = False
    ) -> Call[answers.GcAccepted]:
        """Start to delete old runs. Returns the job, or the one already in progress."""

    @route("GET", "/api/upkeep/gc/{id}")
    def gc_job(self, id: str) -> Call[answers.GcJob]:
        """Return the state of a deletion job: counts of what it has deleted so far, or would delete."""

    # The memory of agents: `/api/memory`

    @route("GET", "/api/memory")
    def memories(self, workflow: str | None = None) -> Call[answers.MemoryList]:
        """Conversations, the latest first."""

    @route("GET", "/api/memory/turns")
    def memory(self, key: str, *, workflow: str = "", scope: str = "") -> Call[answers.MemoryTurns]:
        """Return the turns of one conversation: of a workflow, or of a scope."""

    @route("DELETE", "/api/memory")
    def delete_memory(self, key: str, *, workflow: str = "", scope: str = "") -> Call[answers.MemoryForgotten]:
        """Delete the turns of one conversation. Returns how many there were."""

    # `/api/knowledge`

    @route("GET", "/api/knowledge")
    def collections(self) -> Call[answers.CollectionList]:
        """List collections of documents."""

    @route("GET", "/api/knowledge/{collection}")
    def collection(self, collection: str) -> Call[answers.CollectionView]:
        """Return a collection."""

    @route("POST", "/api/knowledge")
    def create_collection(
        self,
        name: str,
        model: str,
        *,
        description: str = "",
        chunk_chars: int | None = None,
        overlap_chars: int | None = None,
    ) -> Call[answers.CollectionView]:
        """Make a collection. `model`: of embeddings, such as openai:text-embedding-3-small; it stays."""

    @route("DELETE", "/api/knowledge/{collection}")
    def delete_collection(self, collection: str) -> Call[answers.KnowledgeDeleted]:
        """Delete a collection with its documents."""

    @route("GET", "/api/knowledge/{collection}/documents")
    def documents(
        self, collection: str, *, name: str | None = None, after: str | None = None
    ) -> Call[answers.DocumentList]:
        """List versions of documents, or those of the document `name`."""

    @call
    def add_document(
        self,
        collection: str,
        name: str,
        text: str | None = None,
        *,
        data: bytes | None = None,
        media_type: str = "",
        title: str = "",
        source: str = "",
    ) -> Call[answers.DocumentView]:
        """Add a text, or the bytes of a file, as a new version if the document is there. A run embeds it."""
        given = {"text": text, "data": None if data is None else b64encode(data).decode()}
        about = {"name": name, "media_type": media_type, "title": title, "source": source}
        return Call("PUT", "/api/knowledge/{collection}/documents", (collection,), body={**about, **given})

    @route("DELETE", "/api/knowledge/{collection}/documents")
    def delete_document(self, collection: str, name: str) -> Call[answers.KnowledgeDeleted]:
        """Delete a document: its text, its vectors and its words."""

    @route("POST", "/api/knowledge/{collection}/search")
    def search_knowledge(
        self, collection: str, query: str, *, limit: int = 5, mode: Literal["hybrid", "vector", "text"] = "hybrid"
    ) -> Call[answers.SearchResults]:
        """Return the passages that fit a question best."""

    # `/api/usage`, `/api/models`

    @route("GET", "/api/models")
    def models(self) -> Call[answers.Models]:
        """List the endpoints of language models, and their models with known prices."""

    @route("GET", "/api/usage")
    def usage(
        self, *, by: str = "day", first: str | None = None, to: str | None = None, workflow: str | None = None
    ) -> Call[answers.UsagePage]:
        """Return tokens and costs by day, workflow or model, of the days (such as 2026-11-01, in UTC) from `first` to
        `to`."""

    @route("GET", "/api/run-times")
    def run_times(
        self, since: int, until: int, parts: int = 1, *, workflow: str | None = None
    ) -> Call[answers.RunTimes]:
        """Count the runs that were created in each part of a time, by status."""

    @route("DELETE", "/api/cache")
    def clear_cache(self, workflow: str | None = None) -> Call[answers.CacheCleared]:
        """Delete cached results: all, or those of runs of one workflow."""

    @route("GET", "/api/cards")
    def cards(
        self,
        folder: str | None = None,
        text: str | None = None,
        order: Literal["run", "changed", "name"] = "run",
        since: int | None = None,
        after: int = 0,
        limit: int = 24,
    ) -> Call[answers.CardPage]:
        """Workflows as the front page shows them; `next` is the `after` of the following page."""
