"""Rate limits of links, webhooks and tokens: guesses by address, answers by link, requests by webhook, wrong sign-ins
by address and in all.

A link that exists always works, whatever other requests come from its address: behind a proxy all people share one
address, and one of them must not be able to lock out the others. Only links that do not exist are counted by address.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from executor.kernel.store.topics.webhooks import Auth
from server.http.errors import TooManyTries

KEYS_MAX = 10_000  # the least recently used keys are forgotten, which only lets them try more
MISSES, MISSES_PER_S = 30, 0.5
# Fifty people may press at the same moment; a program that tries forms takes half a second of a processor each time.
ANSWERS, ANSWERS_PER_S = 100, 0.5
LOGINS, LOGINS_PER_S = 10, 10 / 60
LOGINS_IN_ALL, LOGINS_IN_ALL_PER_S = 60, 1.0
RETURNS, RETURNS_PER_S = 5, 1 / 60
NOTED, NOTED_PER_S = 5, 1 / 600
NOTED_IN_ALL, NOTED_IN_ALL_PER_S = 30, 1 / 300  # at most 320 rows on the first day, some 100 KiB
# A sender that catches up sends a burst; a flood is refused with Retry-After.
HOOKS, HOOKS_PER_S = 120, 20.0
REFUSED_HOOKS, REFUSED_HOOKS_PER_S = 60, 1.0


class Buckets:
    """Token buckets: `burst` tries at once for each key, and one more each 1 / `per_s` seconds."""

    def __init__(self, burst: int, per_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._per_s = per_s
        self._now_s = now_s
        # key -> tries left, and the time of that count
        self._tries: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def spend(self, key: str) -> float:
        """Return 0 if this try is allowed, else the seconds until the next one is."""
        now_s = self._now_s()
        left, at_s = self._tries.pop(key, (float(self._burst), now_s))
        left = min(self._burst, left + (now_s - at_s) * self._per_s)
        fine = left >= 1
        self._tries[key] = (left - 1 if fine else left, now_s)
        if len(self._tries) > KEYS_MAX:
            self._tries.popitem(last=False)
        return 0.0 if fine else (1 - left) / self._per_s


class LinkRates:
    """Limits for tokens in links: wrong tokens by address, answers by token."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._misses = Buckets(MISSES, MISSES_PER_S, now_s)
        self._answers = Buckets(ANSWERS, ANSWERS_PER_S, now_s)

    def missed(self, address: str) -> None:
        """A request from `address` for a link that does not exist. Raises TooManyTries."""
        refuse_after(self._misses.spend(address), "Too many requests to unknown links.")

    def answering(self, token: str) -> None:
        """A post to a link that exists. Raises TooManyTries."""
        refuse_after(self._answers.spend(token), "Too many answers to this link.")


class HookRates:
    """Limits for webhooks: verified requests are counted by webhook, refused ones by address. So senders without the
    secret do not use up the limit of those with it, even if a proxy gives all of them one address."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._proved = Buckets(HOOKS, HOOKS_PER_S, now_s)
        self._refused = Buckets(REFUSED_HOOKS, REFUSED_HOOKS_PER_S, now_s)

    def proved(self, webhook: str, auth: Auth, address: str) -> None:
        """Count a verified request. Without `auth` nothing is verified, and each address is counted by itself. Raises
        TooManyTries."""
        key = f"{webhook}\0{address}" if auth == "none" else webhook
        refuse_after(self._proved.spend(key), "Too many requests to this webhook.")

    def refused(self, address: str) -> None:
        """Raises TooManyTries."""
        refuse_after(self._refused.spend(address), "Too many requests from this address were refused.")


class LoginRates:
    """Wrong tokens of the sign-in page are counted, by address and in all: more of them are refused for a while. A
    right token always signs in, and so does the code of a link, which is never counted: nothing that others send keeps
    anyone out. What a guess is up against is the length of the token."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._by_address = Buckets(LOGINS, LOGINS_PER_S, now_s)
        self._in_all = Buckets(LOGINS_IN_ALL, LOGINS_IN_ALL_PER_S, now_s)

    def missed(self, address: str) -> None:
        """A wrong token from `address`. Raises TooManyTries."""
        refuse_after(self._by_address.spend(address) or self._in_all.spend(""), "Too many sign-in attempts.")


class ReturnRates:
    """Limits how often one sign-in may return from the provider: a copy of its signed cookie must not make this server
    ask the provider again and again."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._by_state = Buckets(RETURNS, RETURNS_PER_S, now_s)

    def returned(self, state: str) -> None:
        """Raises TooManyTries."""
        refuse_after(self._by_state.spend(state), "This sign-in has come back too often.")


class Refusals:
    """Limits which refused sign-ins have an audit row: guesses must be seen, and must not fill the disk. An address
    that uses up its own rows leaves those of others."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._by_address = Buckets(NOTED, NOTED_PER_S, now_s)
        self._in_all = Buckets(NOTED_IN_ALL, NOTED_IN_ALL_PER_S, now_s)
        self._left_out = 0

    def spend(self, address: str) -> int | None:
        """Return None if this refusal has no row, else the number of refusals without one since the last row."""
        if self._by_address.spend(address) or self._in_all.spend(""):
            self._left_out += 1
            return None
        left_out, self._left_out = self._left_out, 0
        return left_out


def refuse_after(wait_s: float, message: str) -> None:
    """Raises TooManyTries unless `wait_s` is 0."""
    if wait_s:
        seconds = math.ceil(wait_s)
        raise TooManyTries(message, hint=f"Try again in {seconds} s.", retry_after_s=seconds)
