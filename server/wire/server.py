"""The shapes that concern the server itself: problems, health, examples, environment names, signing in, upkeep, and the
demo endpoint."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from compiler.diagnostics import Diagnostic
from executor.service.topics.environment import EnvName
from executor.service.upkeep.job import GcJob


class Problem(Struct, frozen=True):
    """A refusal, RFC 9457. More members by code."""

    type: str
    title: str
    status: int
    code: Annotated[str, Meta(description="Stable code for programs.")]
    detail: Annotated[str, Meta(description="Description for people.")]
    pointer: Annotated[str, Meta(description="RFC 6901 pointer into the request body.")] | UnsetType = UNSET
    hint: str | UnsetType = UNSET
    diagnostics: list[Diagnostic] | UnsetType = UNSET


class Health(Struct, frozen=True):
    """The database works."""

    status: Literal["ok"]


class Version(Struct, frozen=True):
    """`version`: of the installed package, or "unknown" if it is not installed. `signed_in`: the request came from a
    browser with a session, which can sign out. `read_only`: every request that changes something is refused."""

    version: str
    signed_in: bool
    read_only: bool


class EnvNames(Struct, frozen=True):
    """The environment values, by name. The values themselves never leave the server."""

    env: list[EnvName]


class Example(Struct, frozen=True):
    """A workflow that comes with weft; `name` is that of its file."""

    name: str
    title: str
    description: str
    document: dict[str, Any]


class Examples(Struct, frozen=True):
    """The examples, in the order of a tour."""

    examples: list[Example]


class LoginRequest(Struct, forbid_unknown_fields=True):
    """POST /login. `code`: of a sign-in link."""

    token: str | None = None
    code: str | None = None


class SignInLink(Struct, frozen=True):
    """`url` signs in one browser, once, within `expires_in_s` seconds."""

    url: str
    expires_in_s: int


class SignedIn(Struct, frozen=True):
    """`signed_in`: this browser has a session. `at_provider`: after signing out, the page of the OpenID Connect
    provider that signs the browser out there too."""

    signed_in: bool
    at_provider: str | None = None


class SessionsEnded(Struct, frozen=True):
    """The number of sessions ended."""

    ended: int


class CacheCleared(Struct, frozen=True):
    """The number of deleted results."""

    cleared: int


class CacheQuery(Struct, frozen=True):
    workflow: Annotated[str, Meta(description="Only results of this workflow.")] | None = None


class GcRequest(Struct, forbid_unknown_fields=True):
    """POST /api/upkeep/gc. Deletes runs that ended more than `older_than_s` ago, except the `keep` newest of each
    workflow. With `keep` alone, all other ended runs are deleted; with neither, none."""

    older_than_s: Annotated[float, Meta(ge=0, le=10_000_000_000)] | None = None
    keep: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    dry_run: bool = False


class GcAccepted(Struct, frozen=True):
    """`created` is false if a deletion was in progress already: then `job` is that one, with its own age and `keep`."""

    created: bool
    job: GcJob


FAIL_MAX = 1000
DELAY_MS_MAX = 30_000


class EchoQuery(Struct, frozen=True):
    fail: Annotated[int, Meta(le=FAIL_MAX, description="Number of 503 responses for one key.")] = 0
    key: Annotated[str, Meta(description="The key to count by. Default: the Idempotency-Key header.")] | None = None
    delay_ms: Annotated[int, Meta(le=DELAY_MS_MAX, description="Delay of the response.")] = 0


class Echo(Struct, frozen=True):
    """The request. `call`: its number among those with the same key."""

    method: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    call: int
