"""Sending a call until it has an answer: which failures are retried, when, and for how long. There is no network and no
clock here, so both clients share it: a driver sends the requests that it yields and sends back the responses.

A call that is safe to send twice (GET, PUT, or one with an idempotency key) is sent again after a lost connection and
after a temporary refusal. 429 is retried for every call: the server did nothing. A first connection that is refused is
an error at once: a wrong address is more likely than a server that restarts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import Any

import httpx
import msgspec

from server.client.call import ANSWER_S, Call
from server.client.errors import not_weft, refusal, unreachable

PATIENCE_S = 60.0  # a restart of the server takes a few seconds; a minute without it is worth telling
PAUSE_FIRST_S, PAUSE_MAX_S = 0.25, 5.0
CONNECT_S = 5.0
PASSING = frozenset({429, 502, 503, 504})  # refusals that the same request may not meet a moment later

# Yields a request to send, or seconds to wait. Receives the response, the transport error, or None after a pause.
Exchange = Generator[httpx.Request | float, httpx.Response | httpx.TransportError | None, Any]


class Server:
    """One server as a client sees it. `patience_s` is how long in all a call waits while the server is away or refuses
    it for now."""

    def __init__(self, url: str, patience_s: float = PATIENCE_S) -> None:
        self.url = url.rstrip("/")
        self.patience_s = patience_s
        self.has_answered = False

    def request(self, http: httpx.Client | httpx.AsyncClient, call: Call[Any]) -> httpx.Request:
        """The call as it is sent."""
        headers = {"Accept": "*/*" if call.reads == "text" else "application/json"}
        if call.key is not None:
            headers["Idempotency-Key"] = call.key
        if call.rev is not None:
            headers["If-Match"] = f'"{call.rev}"'
        content = None
        if call.body is not None:
            content = msgspec.json.encode(call.body)
            headers["Content-Type"] = "application/json"
        return http.build_request(
            call.method,
            call.url,
            content=content,
            params={name: int(value) if isinstance(value, bool) else value for name, value in call.params.items()},
            headers=headers,
            timeout=httpx.Timeout(ANSWER_S + call.wait_s, connect=CONNECT_S),
        )

    def exchange(self, make: Callable[[], httpx.Request], call: Call[Any]) -> Exchange:
        """`make` makes the request for each try. Returns the answer. Raises ApiError, ServerUnreachable."""
        pauses = Pauses(self.patience_s)
        while True:
            came = yield make()
            if isinstance(came, httpx.Response):
                self.has_answered = True
                if came.status_code < 400:
                    return self._read(came, call)
                refused = refusal(came)
                again = call.again and (came.status_code == 429 or (call.is_safe and came.status_code in PASSING))
                pause_s = pauses.after(came.headers.get("Retry-After")) if again else None
                if pause_s is None:
                    raise refused
            else:
                assert isinstance(came, httpx.TransportError)
                never_sent = isinstance(came, httpx.ConnectError | httpx.ConnectTimeout)
                again = self.has_answered and call.again and (never_sent or call.is_safe)
                pause_s = pauses.after(None) if again else None
                if pause_s is None:
                    raise unreachable(self.url, came)
            yield pause_s

    def _read(self, response: httpx.Response, call: Call[Any]) -> Any:
        if call.reads == "text":
            return response.text
        try:
            answer = msgspec.json.decode(response.content)
        except ValueError:  # neither JSON nor UTF-8
            raise not_weft(self.url) from None
        if call.reads == "object" and not isinstance(answer, dict):
            raise not_weft(self.url)
        return answer


class Pauses:
    """The pauses before each try: each twice as long, or as long as the server asks, up to `patience_s` in all."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = self._left_s = patience_s
        self._next_s = PAUSE_FIRST_S

    def renew(self) -> None:
        """Begin the patience anew: the server has answered."""
        self._left_s = self._patience_s

    def after(self, retry_after: str | None) -> float | None:
        """Return the next pause in seconds, or None if the patience has ended."""
        said_s = max(0.1, float(retry_after)) if retry_after is not None and retry_after.isdecimal() else None
        pause_s = self._next_s * random.uniform(0.75, 1.0) if said_s is None else said_s
        if pause_s > self._left_s:
            return None
        self._left_s -= pause_s
        self._next_s = min(self._next_s * 2, PAUSE_MAX_S)
        return pause_s
