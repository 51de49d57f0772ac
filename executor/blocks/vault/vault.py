"""The stored secrets that this process has opened. Each block call reads the newest version of those that it names."""

from __future__ import annotations

import logging
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from types import MappingProxyType
from typing import Any, Final

from executor.blocks.http.binding import Rules, RulesOf, bound_to, is_host
from executor.blocks.http.handles import filled, has_handle, new_handle
from executor.blocks.http.parts import is_place
from executor.blocks.vault.command import External, SecretsCommand
from executor.blocks.vault.connection import PREFIX, Connection, Credential, is_connection, opened
from executor.blocks.vault.sealing import Keys
from executor.errors import BlockError, StoreError
from executor.kernel.store.topics.secrets import SecretRow
from executor.kernel.store.topics.store import Store
from executor.kernel.values.redact import LiveRedactor, Redactor

log = logging.getLogger("weft.secrets")

VALUE_CHARS_MIN: Final = 8  # shorter ones cannot be kept out of records: they would match ordinary words
HOSTS_PREFIX: Final = "WEFT_SECRET_HOSTS_"
PLACES_PREFIX: Final = "WEFT_SECRET_IN_"
VALUES_KEPT: Final = 20  # per name from the command, which may give another value each time
USED_EVERY_MS: Final = 60_000  # the interval between writes of the time of the last use


class Vault:
    """The secrets of a process. `values`: of the environment, and handles of the secrets opened so far. `kept`: secrets
    of the environment, which come before stored ones. `command` is called for names that are neither."""

    def __init__(
        self,
        store: Store,
        keys: Keys | None,
        environment: Mapping[str, str],
        redactor: LiveRedactor,
        now_ms: Callable[[], int],
        command: SecretsCommand | None = None,
        kept: Mapping[str, External] = MappingProxyType({}),
    ) -> None:
        self.keys = keys
        self.environment = environment
        self.values = Values(environment)
        self.kept = kept
        self.names = frozenset(kept)  # with stored ones, once they are loaded
        self._store = store
        self._redactor = redactor
        self._now_ms = now_ms
        self._used_at_ms: dict[str, int] = {}
        self._command = command
        self._finders: dict[str, tuple[str, Redactor]] = {}
        self._of_connections: dict[str, str] = {}
        self._given: dict[str, int] = {}  # the number of values there were for a name
        self._handles: dict[str, dict[str, str]] = {}  # by name: values and their handles, the last ones
        self._opened: dict[str, tuple[str, str]] = {}  # names and values by handle
        for name, secret in kept.items():
            self.values.stored[name] = self.handle_of(name, 1, secret.value)

    async def learn(self) -> None:
        """Load the stored secrets before anything is recorded: a value may come back in any answer."""
        try:
            rows = await self._store.list_secrets()
        except StoreError as error:
            log.warning("stored secrets are not known until blocks use them: %s", error)
            return
        self.know(rows)
        if self.keys is None:
            return
        known = []
        for row in rows:
            with suppress(BlockError):  # sealed with another key; a block that uses it fails with this error
                if is_connection(row):
                    known += self._new_values(row.name.removeprefix(PREFIX), opened(self.keys, row))
                else:
                    known.append((row.name, row.version, self.keys.open(row)))
        self._redactor.learn_all(known)

    def know(self, rows: Iterable[SecretRow]) -> None:
        self.names = frozenset(self.kept).union(row.name for row in rows if not is_connection(row))

    def is_given(self, name: str) -> bool:
        """Return True if the environment has a value of this name, which workflows read instead of a stored one."""
        return name in self.environment or name in self.kept

    def learn_connection(self, name: str, connection: Connection) -> None:
        """Keep the values of a connection out of records."""
        self._redactor.learn_all(self._new_values(name, connection))

    def need_keys(self) -> Keys:
        """Raises BlockError(secret_unreadable)."""
        if self.keys is None:
            raise BlockError("this process has no key for secrets", code="secret_unreadable")
        return self.keys

    def _new_values(self, name: str, connection: Connection) -> list[tuple[str, int, str]]:
        """Return the values that are new. The last VALUES_KEPT of each kind are kept."""
        found = []
        for what, value in connection.values():
            label = f"{PREFIX}{name}/{what}"
            if value and self._of_connections.get(label) != value:
                self._of_connections[label] = value
                self._given[label] = self._given.get(label, 0) % VALUES_KEPT + 1
                found.append((label, self._given[label], value))
        return found

    @property
    def opened_names(self) -> frozenset[str]:
        return frozenset(self.values.stored)

    async def open(self, names: Collection[str], elsewhere: Collection[str] = frozenset()) -> RulesOf:
        """Load the newest values of the secrets among the names, and return their rules. `elsewhere`: names in places
        where no secret may stand. Raises BlockError, StoreError."""
        wanted = [name for name in names if not self.is_given(name)]
        kept = {name: _rules_of_kept(name, self.kept[name]) for name in names if name in self.kept}
        for name in kept:
            _check_place_of(name, elsewhere)
        if not wanted:
            return kept
        rows = await self._store.get_secrets(wanted)
        missing = set(wanted).difference(row.name for row in rows)
        external = await self._command.get(missing) if self._command is not None and missing else {}
        for name in missing.difference(external):  # deleted
            self.values.stored.pop(name, None)
        self.names = self.names.difference(wanted).union((row.name for row in rows), external)
        for name in (*(row.name for row in rows), *external):
            _check_place_of(name, elsewhere)
        rules = kept | {name: self._take(name, secret) for name, secret in external.items()}
        for row in rows:
            if self.keys is None:
                raise BlockError(f"this process has no key for the secret {row.name}", code="secret_unreadable")
            value = self.keys.open(row)
            self._redactor.learn(row.name, row.version, value)
            self.values.stored[row.name] = self.handle_of(row.name, row.version, value)
            rules[row.name] = Rules(row.hosts, row.places)
        await self.note_use([row.name for row in rows])
        return rules

    def handle_of(self, name: str, version: int, value: str) -> str:
        """Return the handle of this value. The last values of a name keep theirs, for attempts that run with them."""
        known = self._handles.setdefault(name, {})
        handle = known.get(value)
        if handle is None:
            handle = known[value] = new_handle()
            self._opened[handle] = name, value
            self._redactor.learn(f"{name}~handle", version, handle)  # records have no handles either
            if len(known) > VALUES_KEPT:
                self._opened.pop(known.pop(next(iter(known))), None)
        return handle

    def credential(self, name: str, row: SecretRow, connection: Connection) -> Credential:
        return Credential(
            name,
            row.hosts,
            connection.kind,
            self.handle_of(row.name, row.version, connection.value),
            connection.username,
            *connection.place,
            connection.renews,
            self.opened,
            self._redactor.redact,
            connection.host_key,
        )

    def opened(self, handle: str) -> tuple[str, str] | None:
        return self._opened.get(handle)

    def revealed(self, value: Any, names: Collection[str]) -> Any:
        """Return a JSON value with the values of these names: for blocks of other packages, which dial themselves."""
        match value:
            case str():
                return filled(value, lambda handle: self._value_for(handle, names)) if has_handle(value) else value
            case dict():
                return {name: self.revealed(each, names) for name, each in value.items()}
            case list():
                return [self.revealed(each, names) for each in value]
            case _:
                return value

    def bound(self, rules: RulesOf) -> AbstractContextManager[None]:
        return bound_to(rules, self.is_in, self.opened, self._redactor.redact)

    def _value_for(self, handle: str, names: Collection[str]) -> str:
        name, value = self._opened.get(handle, ("", ""))
        return value if name in names else handle

    def is_in(self, name: str, text: str) -> bool:
        """Return True if the value that a block got for this name is in the text, in any usual encoding."""
        values = self._handles.get(name)
        if not values:
            return True  # its value is not known
        handle = self.values.stored.get(name, "")  # none: deleted meanwhile
        value = self._opened[handle][1] if handle in self._opened else next(reversed(values))
        known, finder = self._finders.get(name, ("", None))
        if finder is None or known != value:
            finder = Redactor([value])
            self._finders[name] = value, finder
        return finder.redact(text) != text

    def _take(self, name: str, secret: External) -> Rules:
        what = "has an invalid host" if not all(map(is_host, secret.hosts)) else ""
        what = what or ("has an invalid place" if not all(map(is_place, secret.places)) else "")
        if len(secret.value) < VALUE_CHARS_MIN or what:
            what = what or f"has fewer than {VALUE_CHARS_MIN} characters"
            raise BlockError(f"the secret {name} of the command {what}", code="secret_invalid", retryable=False)
        if secret.value not in self._handles.get(name, ()):
            self._given[name] = self._given.get(name, 0) % VALUES_KEPT + 1
            self._redactor.learn(name, self._given[name], secret.value)
        self.values.stored[name] = self.handle_of(name, self._given.get(name, 1), secret.value)
        return Rules(secret.hosts, secret.places)

    async def note_use(self, names: Collection[str]) -> None:
        """Write when they were last used, now and then."""
        now_ms = self._now_ms()
        late = [name for name in names if now_ms - self._used_at_ms.get(name, -USED_EVERY_MS) >= USED_EVERY_MS]
        if late:
            self._used_at_ms |= dict.fromkeys(late, now_ms)
            try:
                await self._store.use_secrets(late, now_ms)
            except StoreError as error:
                log.warning("the time of use of a secret is not recorded: %s", error)


def _rules_of_kept(name: str, secret: External) -> Rules:
    return Rules(secret.hosts, secret.places, (HOSTS_PREFIX + name, PLACES_PREFIX + name))


def _check_place_of(name: str, elsewhere: Collection[str]) -> None:
    if name in elsewhere:
        message = f"the secret {name} is used in a parameter that cannot contain secrets"
        hint = "secrets can be used in the URL, query, headers and body of a request, and in credentials"
        raise BlockError(message, code="secret_misplaced", retryable=False, hint=hint)


class Values(ChainMap[str, str]):
    def __init__(self, environment: Mapping[str, str]) -> None:
        self.stored: dict[str, str] = {}
        super().__init__(dict(environment), self.stored)
