"""Which hosts the stored secrets of an attempt may be sent to. The HTTP client asks before each request, also for those
that a redirect leads to, and so do mails and queries on PostgreSQL. A context variable carries it, because blocks of
other packages use the client, too.

All secrets of an attempt count for each request, unless it says what a request is made of (`using`): then those in
there count, before anything was encoded, and those that are found in the request itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from executor.errors import BlockError

Hosts = Mapping[str, Sequence[str]]
IsIn = Callable[[str, str], bool]


class _Bound(NamedTuple):
    """`is_in` says whether the secret of a name is in a text, in any usual encoding; None: it counts always. `counts`:
    for a request that may have no trace of it."""

    hosts: Sequence[str]
    is_in: IsIn | None
    counts: bool = True


_BOUND: ContextVar[Mapping[str, _Bound] | None] = ContextVar("hosts of secrets", default=None)
_LABEL: Final = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"((\*\.{_LABEL}\.)?{_LABEL}(\.{_LABEL})*|\[[0-9a-f:.]+\])(:[0-9]{{1,5}})?")


@contextmanager
def bound_to(hosts: Hosts, is_in: IsIn | None = None) -> Iterator[None]:
    """`hosts`: by the name of each secret that is used within, `connection:<name>` for a connection."""
    if not hosts:
        yield
        return
    with _set({**(_BOUND.get() or {}), **{name: _Bound(its, is_in) for name, its in hosts.items()}}):
        yield


@contextmanager
def using(*parts: Any) -> Iterator[None]:
    """What is sent within is made of these JSON values and of no other secret."""
    bound = _BOUND.get()
    if not bound:
        yield
        return
    texts = [text for part in parts for text in _texts(part)]
    with _set({name: each._replace(counts=each.counts and _found(name, each, texts)) for name, each in bound.items()}):
        yield


@contextmanager
def _set(bound: Mapping[str, _Bound]) -> Iterator[None]:
    token = _BOUND.set(bound)
    try:
        yield
    finally:
        with suppress(ValueError):  # an abandoned handler is closed in the context of whatever frees it
            _BOUND.reset(token)


def check_place(host: str, port: int, *sent: str | bytes | None) -> None:
    """`host`: as it is dialled, in ASCII; `sent`: what goes there. Raises BlockError(secret_host_refused)."""
    bound = _BOUND.get()
    if not bound:
        return
    texts: list[str] | None = None
    for name, each in bound.items():
        if not each.counts:
            if texts is None:
                texts = [part.decode(errors="replace") if isinstance(part, bytes) else part for part in sent if part]
            if not _found(name, each, texts):
                continue
        hosts = each.hosts
        if not any(_fits(pattern, host.lower().rstrip("."), port) for pattern in hosts):
            where = f"only to {', '.join(hosts)}" if hosts else "nowhere: it has no hosts"
            kind, colon, short = name.rpartition(":")
            message = f"the {kind or 'secret'} {short} cannot be sent to {host}:{port}, {where}"
            hint = f"an administrator can set the secret again with this host: weft secret set {name} --hosts {host}"
            if colon:
                hint = f"an administrator can add the {kind} again with this host"
            raise BlockError(message, code="secret_host_refused", retryable=False, hint=hint)


def check_no_place(where: str) -> None:
    """`where`: what is no host, so no secret can be sent there. Raises BlockError(secret_host_refused)."""
    for name, each in (_BOUND.get() or {}).items():
        if each.counts:
            kind, _, short = name.rpartition(":")
            message = f"the {kind or 'secret'} {short} cannot be written to {where}"
            raise BlockError(message, code="secret_host_refused", retryable=False)


def is_host(text: str) -> bool:
    """A name, an address, or `*.` in front of a name with a dot; perhaps with a port."""
    return len(text) <= 255 and _HOST.fullmatch(text) is not None


def _found(name: str, bound: _Bound, texts: Sequence[str]) -> bool:
    return bound.is_in is None or any(bound.is_in(name, text) for text in texts)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts(name)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, int | float):  # a secret of digits
        yield str(value)


def _fits(pattern: str, host: str, port: int) -> bool:
    place = f"[{host.strip('[]')}]" if ":" in host else host
    bare, colon, number = pattern.rpartition(":")
    if colon and number.isdecimal() and not bare.endswith(":"):
        if int(number) != port:
            return False
        pattern = bare
    return place.endswith(pattern[1:]) and place != pattern[2:] if pattern.startswith("*.") else place == pattern
