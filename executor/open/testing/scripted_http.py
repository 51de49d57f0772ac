"""Answers that a test gives, in the place of the services that blocks reach by HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec
from msgspec import Struct, field

from executor.blocks.http.client import GuardedClient
from executor.errors import BlockError

if TYPE_CHECKING:
    import httpcore

T = TypeVar("T", bound=GuardedClient)
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class HttpAnswer(Struct, frozen=True):
    """An answer with more than a JSON value. `json` is sent if there is no `body`."""

    status: int = 200
    json: Any = None
    headers: Mapping[str, str] = {}
    body: bytes | None = None


class HttpRequest(Struct, frozen=True):
    """A request as it would have been sent, values of secrets included. `headers`: names in lower case."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        """Return the body as a JSON value. Raises msgspec.DecodeError."""
        return msgspec.json.decode(self.body)


class ScriptedHttp:
    """The network of `testing.engine(http=...)` and `testing.run_block(http=...)`: nothing leaves the process. The
    rules of requests hold, except those about addresses: secrets go only to their hosts, bodies have bounds.

    answers   JSON values by request, `{"GET https://api.example.com/prices/*": {"price": 3}}`, such as those of a
              recorded file; `on` has more
    requests  what was sent, in order
    """

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self.requests: list[HttpRequest] = []
        self._scripts: dict[str, list[Any]] = {}
        for request, answer in (answers or {}).items():
            self.on(request, answer)

    def on(self, request: str, *script: Any) -> Self:
        """Answer `request`, a method and a URL in which `*` is any text, with these, in order, and with the
        last one from then on: a JSON value, an HttpAnswer, an exception (OSError: the connection is lost), or a
        function that gets the HttpRequest and returns one of these. Of several patterns that fit, the last one answers.
        """
        method, _, url = request.partition(" ")
        if method not in METHODS or not url or not script:
            raise ValueError(f'{request!r} needs a method, a URL and an answer: on("GET https://example.com/*", {{}})')
        self._scripts[request] = list(script)
        return self

    def client(self, kind: type[T] = GuardedClient) -> T:  # type: ignore[assignment]  # the default is a T
        """Return the HTTP client of an engine."""
        return kind(pool=lambda **_: _Pool(self))

    def answer(self, request: HttpRequest) -> HttpAnswer:
        """Record a request and return its answer. Raises BlockError(http_not_scripted)."""
        self.requests.append(request)
        asked = f"{request.method} {request.url}"
        fitting = (each for each in reversed(self._scripts) if fnmatchcase(asked, _pattern(each)))
        script = self._scripts.get(next(fitting, ""))
        if script is None:
            known = ", ".join(self._scripts) or "none"
            message = f"the test has no answer for {asked}; there are: {known}"
            raise BlockError(message, code="http_not_scripted", retryable=False)
        return _made(script.pop(0) if len(script) > 1 else script[0], request)


def _pattern(request: str) -> str:
    """Only `*` is special: `?` and `[` stand in URLs."""
    return request.replace("[", "[[]").replace("?", "[?]")


def _made(answer: Any, request: HttpRequest) -> HttpAnswer:
    if callable(answer) and not isinstance(answer, type):
        answer = answer(request)
    if isinstance(answer, BaseException):
        raise answer
    return answer if isinstance(answer, HttpAnswer) else HttpAnswer(json=answer)


class _Pool:
    """The pool that the HTTP client has in the place of connections."""

    def __init__(self, scripted: ScriptedHttp) -> None:
        self._scripted = scripted

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        import httpcore

        url = request.url
        default = {b"http": 80, b"https": 443}.get(url.scheme)
        port = "" if url.port in (None, default) else f":{url.port}"
        address = f"{url.scheme.decode()}://{url.host.decode()}{port}{url.target.decode()}"
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.headers}
        body = b"".join([piece async for piece in request.stream]) if request.stream is not None else b""  # type: ignore[union-attr]  # asynchronous, as the pool is
        try:
            answer = self._scripted.answer(HttpRequest(request.method.decode(), address, headers, body))
        except OSError as error:
            raise httpcore.ReadError(str(error) or "the connection was lost") from error
        content = answer.body if answer.body is not None else msgspec.json.encode(answer.json)
        known = {name.lower() for name in answer.headers}
        more = {} if "content-type" in known or answer.body is not None else {"content-type": "application/json"}
        sent = [(name.encode(), value.encode("latin-1")) for name, value in {**more, **answer.headers}.items()]
        return httpcore.Response(answer.status, headers=sent, content=content)

    async def aclose(self) -> None: ...
