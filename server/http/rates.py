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


class Rates:
    """All limits of a server. `now_s` is a monotonic clock."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._misses = Buckets(MISSES, MISSES_PER_S, now_s)
        self._answers = Buckets(ANSWERS, ANSWERS_PER_S, now_s)
        self._proved = Buckets(HOOKS, HOOKS_PER_S, now_s)
        self._refused = Buckets(REFUSED_HOOKS, REFUSED_HOOKS_PER_S, now_s)
        self._logins = Buckets(LOGINS, LOGINS_PER_S, now_s)
        self._logins_in_all = Buckets(LOGINS_IN_ALL, LOGINS_IN_ALL_PER_S, now_s)
        self._returns = Buckets(RETURNS, RETURNS_PER_S, now_s)
        self._noted = Buckets(NOTED, NOTED_PER_S, now_s)
        self._noted_in_all = Buckets(NOTED_IN_ALL, NOTED_IN_ALL_PER_S, now_s)
        self._left_out = 0

    def link_missed(self, address: str) -> None:
        """A request from `address` for a link that does not exist. Raises TooManyTries, as all below do."""
        refuse_after(self._misses.spend(address), "Too many requests to unknown links.")

    def link_answered(self, token: str) -> None:
        refuse_after(self._answers.spend(token), "Too many answers to this link.")

    def hook_proved(self, webhook: str, auth: Auth, address: str) -> None:
        """Count a verified request by webhook: senders without the secret do not use up the limit of those with it,
        even behind one proxy. Without `auth` nothing is verified, and each address is counted."""
        key = f"{webhook}\0{address}" if auth == "none" else webhook
        refuse_after(self._proved.spend(key), "Too many requests to this webhook.")

    def hook_refused(self, address: str) -> None:
        refuse_after(self._refused.spend(address), "Too many requests from this address were refused.")

    def login_missed(self, address: str) -> None:
        """A wrong token on the sign-in page. A right token always signs in, and so does the code of a link, which is
        never counted: nothing that others send keeps anyone out. What a guess is up against is the length of the
        token."""
        refuse_after(self._logins.spend(address) or self._logins_in_all.spend(""), "Too many sign-in attempts.")

    def sign_in_returned(self, state: str) -> None:
        """A sign-in came back from the provider: a copy of its signed cookie must not make this server ask the provider
        again and again."""
        refuse_after(self._returns.spend(state), "This sign-in has come back too often.")

    def refusal_recorded(self, address: str) -> int | None:
        """Return None if this refused sign-in has no audit row, else the number of refusals without one since the last
        row: guesses must be seen, and must not fill the disk. An address that uses up its own rows leaves those of
        others."""
        if self._noted.spend(address) or self._noted_in_all.spend(""):
            self._left_out += 1
            return None
        left_out, self._left_out = self._left_out, 0
        return left_out


def refuse_after(wait_s: float, message: str) -> None:
    if wait_s:
        seconds = math.ceil(wait_s)
        raise TooManyTries(message, hint=f"Try again in {seconds} s.", retry_after_s=seconds)
