"""The hosts to which the stored secrets of an attempt may be sent, their places in a request, and the values of their
handles. Clients check them before each request, also after a redirect. A context variable holds them, because blocks of
other packages use the clients, too.

All secrets of an attempt count for each request, unless the parts of the request are declared (`using`): then those in
the parts count, before anything was encoded, and those that are found in the request itself.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from executor.blocks.http import handles
from executor.blocks.http.parts import Part, is_place, place_of, text_of
from executor.errors import BadRequest, BlockError

IsIn = Callable[[str, str], bool]
Opened = Callable[[str], tuple[str, str] | None]
Redact = Callable[[str], str]


class Rules(NamedTuple):
    """The rules of one secret: `hosts` that it may be sent to, and `places` in a request where it may stand; without
    places it may stand anywhere. `variables` hold both, if it is a secret of the environment."""

    hosts: Sequence[str]
    places: Sequence[str] = ()
    variables: tuple[str, str] | None = None


RulesOf = Mapping[str, Rules]


class _Bound(NamedTuple):
    """The binding of one secret. `is_in` returns True if the secret of a name is in a text, in any usual encoding; None
    if it counts always. `opened` returns the name and the value of a handle; `made`: handles of texts that were made of
    it (`derived`). `counts`: for a request that may have no trace of it."""

    rules: Rules
    is_in: IsIn | None
    opened: Opened | None
    redact: Redact | None
    made: dict[str, str]
    counts: bool = True


_BOUND: ContextVar[Mapping[str, _Bound] | None] = ContextVar("hosts of secrets", default=None)
_LABEL: Final = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?"
_HOST = re.compile(
    rf"(?P<scheme>https?://)?(?P<host>(\*\.{_LABEL}\.)?{_LABEL}(\.{_LABEL})*|\[[0-9a-f:.]+\])(:(?P<port>[0-9]{{1,5}}))?"
)
_HTTPS: Final = 443
HOSTS_MAX: Final = 50


@contextmanager
def bound_to(
    rules: RulesOf,
    is_in: IsIn | None = None,
    opened: Opened | None = None,
    redact: Redact | None = None,
) -> Iterator[None]:
    """Bind secrets to hosts and places inside this context. `rules`: by the name of each secret that is used within,
    `connection:<name>` for a connection. See `_Bound` for the others; `redact` removes secrets from a text."""
    if not rules:
        yield
        return
    new = {name: _Bound(its, is_in, opened, redact, {}) for name, its in rules.items()}
    with _set({**(_BOUND.get() or {}), **new}):
        yield


@contextmanager
def using(*parts: Any) -> Iterator[None]:
    """Declare that the requests inside are made of these JSON values and of no other secret."""
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


def is_bound() -> bool:
    return bool(_BOUND.get())


def counts() -> bool:
    return any(each.counts for each in (_BOUND.get() or {}).values())


def value_of(handle: str) -> str:
    """Raises BlockError(secret_misplaced) if the handle belongs to no secret that is used here."""
    for name, each in (_BOUND.get() or {}).items():
        if handle in each.made:
            return each.made[handle]
        found = each.opened(handle) if each.opened is not None else None
        if found is not None and found[0] == name:
            return found[1]
    message = "a secret is used outside of the block call that it was given to"
    raise BlockError(message, code="secret_misplaced", retryable=False)


def opened(text: str) -> str:
    """Return `text` with values in the places of handles, at the last moment. Raises BlockError(secret_misplaced)."""
    return handles.filled(text, value_of)


def opened_bytes(data: bytes) -> bytes:
    return handles.filled_bytes(data, value_of)


def derived(text: str, make: Callable[[str], str]) -> str:
    """Apply `make` to the opened text, and return a handle of the result; without a handle in the text, the result
    itself. The handle counts within the same `bound_to`. Raises BlockError(secret_misplaced)."""
    found = handles.handles_in(text)
    if not found:
        return make(text)
    made = handles.new_handle()
    value = make(opened(text))
    for name, each in (_BOUND.get() or {}).items():
        if any(_is_of(name, each, handle) for handle in found):
            each.made[made] = value
    return made


def basic(pair: str) -> str:
    """Return the header of `name:password`."""
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def without_secrets(text: str) -> str:
    return next((each.redact(text) for each in (_BOUND.get() or {}).values() if each.redact is not None), text)


def check_place(scheme: str, host: str, port: int, parts: Sequence[Part] = (), *, chosen: bool = False) -> None:
    """Check that secrets may be sent to this host, in their places. `scheme`: `https`, `http`, or that of another
    protocol; `host`: as it is dialled, in ASCII; `parts`: the data that goes there. `chosen`: the host was chosen by a
    server or a secret, so it is not shown. Raises BlockError: secret_host_refused, secret_misplaced."""
    bound = _BOUND.get()
    if not bound:
        return
    texts: list[str] | None = None
    for name, each in bound.items():
        if not each.counts:
            if texts is None:
                texts = [text_of(part) for part in parts if part[1]]
            if not _found(name, each, texts):
                continue
        if not any(_fits(pattern, scheme, host.lower().rstrip("."), port) for pattern in each.rules.hosts):
            raise _refused(name, each.rules, "" if chosen else shown_place(scheme, host, port))
        if each.rules.places:
            stands = place_of(parts, each.rules.places, partial(_stands_in, name, each))
            if stands is not None:
                raise _misplaced(name, each.rules, stands.partition(":")[0] if chosen else stands)


def check_no_place(where: str) -> None:
    """Check that no secret counts here, as `where` is not a host. Raises BlockError(secret_host_refused)."""
    for name, each in (_BOUND.get() or {}).items():
        if each.counts:
            kind, _, short = name.rpartition(":")
            message = f"the {kind or 'secret'} {short} cannot be written to {where}"
            raise BlockError(message, code="secret_host_refused", retryable=False)


def is_host(text: str) -> bool:
    """Return True for a name, an address, or `*.` in front of a name with a dot; perhaps with a port, and perhaps with
    `https://` in front, or with a port `http://`."""
    found = _HOST.fullmatch(text) if len(text) <= 255 else None
    if found is None or (found["scheme"] == "http://" and found["port"] is None):
        return False
    return found["port"] is None or 0 < int(found["port"]) < 65536


def checked_hosts(hosts: Sequence[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(host.strip().lower().rstrip(".") for host in hosts))
    wrong = next((host for host in found if not is_host(host)), None)
    if wrong is not None or len(found) > HOSTS_MAX:
        message = f"{wrong!r} is not a host" if wrong is not None else f"there can be at most {HOSTS_MAX} hosts"
        hint = "such as api.example.com, *.example.com:8443, db.example.com:5432 or http://127.0.0.1:8080"
        raise BadRequest(message, code="secret_hosts_invalid", pointer="/hosts", hint=hint)
    return found


def may_go_to(hosts: Sequence[str], url: str) -> bool:
    """Return True if a secret with these hosts may be sent to the address."""
    try:
        parts = urlsplit(url)
        port = parts.port or (_HTTPS if parts.scheme == "https" else 80)
    except ValueError:
        return False
    return any(_fits(each, parts.scheme, (parts.hostname or "").rstrip("."), port) for each in hosts)


def _refused(name: str, rules: Rules, place: str) -> BlockError:
    hosts = rules.hosts
    where = f"only to {', '.join(hosts)}" if hosts else "nowhere: it has no hosts"
    kind, colon, short = name.rpartition(":")
    message = f"the {kind or 'secret'} {short} cannot be sent to {place or 'this place'}, {where}"
    hint = "" if hosts else "an administrator can set it again with hosts"
    if rules.variables is not None:
        hint = f"start the server with {rules.variables[0]}={','.join([*hosts, *([place] if place else [])])}"
    elif place:
        hint = f"an administrator can set the secret again with this host: weft secret set {name} --hosts {place}"
        if colon:
            hint = f"an administrator can add the {kind} again with this host: --hosts {place}"
        if any(_HOST.fullmatch(each) and "://" not in each and _bare(each) == _bare(place) for each in hosts):
            hint += ". A host without a port means https on port 443"
    return BlockError(message, code="secret_host_refused", retryable=False, hint=hint)


def _misplaced(name: str, rules: Rules, stands: str) -> BlockError:
    kind, colon, short = name.rpartition(":")
    message = f"the {kind or 'secret'} {short} stands in {stands}, and may stand only in {', '.join(rules.places)}"
    wanted = [*rules.places, stands] if is_place(stands) else []
    hint = "move it there"
    if rules.variables is not None:
        new = f"{rules.variables[1]}={','.join(wanted)}" if wanted else f"no {rules.variables[1]}"
        hint += f", or start the server with {new}"
    elif not colon:
        given = "".join(f" --in {place}" for place in wanted)
        hint += f", or an administrator can set it again: weft secret set {name} --hosts {','.join(rules.hosts)}{given}"
    return BlockError(message, code="secret_misplaced", retryable=False, hint=hint)


def _bare(place: str) -> str:
    found = _HOST.fullmatch(place)
    return found["host"] if found is not None else place


def shown_place(scheme: str, host: str, port: int) -> str:
    """Format a place as `--hosts` takes it."""
    shown = f"[{host.strip('[]')}]" if ":" in host else host.lower().rstrip(".")
    if scheme == "https":
        return shown if port == _HTTPS else f"{shown}:{port}"
    return f"http://{shown}:{port}" if scheme == "http" else f"{shown}:{port}"


def _is_of(name: str, bound: _Bound, handle: str) -> bool:
    found = bound.opened(handle) if bound.opened is not None else None
    return handle in bound.made or (found is not None and found[0] == name)


def _found(name: str, bound: _Bound, texts: Sequence[str]) -> bool:
    if bound.is_in is None:
        return True
    return any(
        bound.is_in(name, text) or any(_is_of(name, bound, handle) for handle in handles.handles_in(text))
        for text in texts
    )


def _stands_in(name: str, bound: _Bound, text: str) -> bool:
    """Return True if the text has a handle of the secret, or its value; of a connection, handles are enough."""
    if any(_is_of(name, bound, handle) for handle in handles.handles_in(text)):
        return True
    return bound.is_in is not None and bound.is_in(name, text)


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


def _fits(pattern: str, scheme: str, host: str, port: int) -> bool:
    """Return True if the place fits. A pattern without a port means https on 443. HTTP without TLS has to be named;
    other protocols need the port."""
    found = _HOST.fullmatch(pattern)
    if found is None or int(found["port"] or _HTTPS) != port:
        return False
    wanted = (found["scheme"] or "").removesuffix("://")
    if scheme in ("http", "https"):
        if (wanted or "https") != scheme:
            return False
    elif wanted or found["port"] is None:
        return False
    place = f"[{host.strip('[]')}]" if ":" in host else host
    name = found["host"]
    return place.endswith(name[1:]) and place != name[2:] if name.startswith("*.") else place == name
