"""The settings of the server, read once from the environment. `SettingsError` names the variable.

What there is to set is the table `Variables`. The checks at the end are of values that have the right type and still
cannot be meant.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from compiler.document import POOL_PATTERN
from executor.blocks.http.addresses import Allowed
from executor.blocks.http.binding import checked_hosts
from executor.blocks.http.parts import checked_places
from executor.blocks.llm.endpoints import Endpoints
from executor.blocks.services import MailSettings
from executor.blocks.vault.command import External
from executor.errors import BadRequest
from executor.kernel.handler.needs import AlertSettings
from executor.kernel.process.extras import install
from server.oidc.settings import OidcSettings
from server.reach import (
    CHARS_MIN_PUBLIC,
    OFF,
    POSTGRES,
    SettingsError,
    authority,
    database_address,
    database_path,
    is_loopback,
    is_token,
)
from server.tokens import CHARS_MIN, MADE_BY
from server.variables import (
    ENV_PREFIX,
    FIELDS,
    HOSTS_PREFIX,
    MODEL_PREFIX,
    PLACES_PREFIX,
    PRICE_PREFIX,
    ROWS,
    SECRET_PREFIX,
    Variables,
    check_names,
    network,
)

LOST = "lost"  # value of WEFT_OLD_SECRET_KEY if the key is lost
SECRET_BYTES_MIN = 16
_ADDRESS = r"@*[^\s@]+@\S*[^\s@]@*"
_HOST = r"[A-Za-z0-9_.:\[\]%-]+"
_NAMESPACE = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"  # of Kubernetes: a DNS label
_FUNCTION = r"[A-Za-z_][\w.]*:[A-Za-z_]\w*|[^\W\d]\w*(\.[^\W\d]\w*)*|.*\.py"


T = TypeVar("T")


class Limits(Struct, frozen=True):
    """Bounds of the HTTP layer. Bytes, seconds and counts, by their names."""

    request_bytes: int = 2 * 1024 * 1024
    header_bytes: int = 32 * 1024
    head_bytes: int = 64 * 1024  # address and headers while they arrive
    head_s: float = 10.0
    connections: int = 4000
    waiting_per_address: int = 200
    requests: int = 2500
    json_depth: int = 68  # documents and inputs may be 64 deep, and there is an envelope around them
    json_containers: int = 200_000  # arrays and objects
    body_s: float = 30.0
    write_s: float = 3.5  # for a database in trouble, from the arrival of a request; the answer comes soon after it
    streams: int = 2000
    streams_per_run: int = 100
    stream_send_s: float = 15.0
    stream_ping_s: float = 15.0
    stream_chunk_bytes: int = 64 * 1024
    frame_cache_bytes: int = 8 * 1024 * 1024


class Settings(Variables, frozen=True):
    """The table, and values that are in no single variable. `public_url` is WEFT_BASE_URL; `base_url` (no trailing
    slash) falls back to host and port. `db_address`: of a PostgreSQL database, in place of the file; it may have a
    password in it. If `token` is None, no credential is needed, unless `token_file` is set: then `with_token` reads or
    makes the token."""

    db_address: str | None = None
    token_file: bool = False
    env: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    secret_hosts: dict[str, str] = field(default_factory=dict)
    secret_places: dict[str, str] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    prices: dict[str, str] = field(default_factory=dict)
    limits: Limits = Limits()

    def __repr__(self) -> str:
        """Show the settings without secret values: they end up in logs and tracebacks."""
        return (
            f"Settings(database={self.database!r}, base_url={self.base_url!r}, token={'set' if self.token else None})"
        )

    @property
    def database(self) -> str:
        """The file, or the address without what may be secret."""
        if self.db_address is None:
            return self.db_path
        try:
            parts = urlsplit(self.db_address)
        except ValueError:
            return "a PostgreSQL database"
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def base_url(self) -> str:
        """The URL at which clients reach the server, without a slash at the end."""
        if self.public_url:
            return self.public_url.rstrip("/")
        return f"http://{self.authority}"

    @property
    def authority(self) -> str:
        """`host:port` under which this process reaches itself."""
        return authority(self.host, self.port)

    @property
    def retention_ms(self) -> int | None:
        """The age at which ended runs are deleted, or None if they are kept."""
        return _ms(self.retention_days, 86_400)

    @property
    def alerts(self) -> AlertSettings:
        waiting_ms, queued_ms = _ms(self.alert_waiting_s), _ms(self.alert_queued_s)
        return AlertSettings(self.alert_email, self.alert_webhook, waiting_ms, queued_ms, self.error_workflow)

    @property
    def file_bytes(self) -> int:
        return self.file_max * 1024 * 1024

    @property
    def mail(self) -> MailSettings:
        return self._part(MailSettings, "mail")

    @property
    def oidc(self) -> OidcSettings | None:
        return None if self.oidc_issuer is None else self._part(OidcSettings, "oidc")

    def _part(self, type: type[T], prefix: str) -> T:
        return type(**{name: getattr(self, f"{prefix}_{name}") for name in type.__annotations__})

    @property
    def folders_of_sqlite(self) -> tuple[str, ...]:
        if self.sqlite_folders or self.db_address is not None:
            return self.sqlite_folders
        return (str(Path(self.db_path).parent / "databases"),)

    @property
    def workflow_env(self) -> dict[str, str]:
        """The values that `${NAME}` may read in every param."""
        return {"WEFT_BASE_URL": self.base_url, **self.env, **(self.secrets if self.unbound_secrets else {})}

    @property
    def model_keys(self) -> dict[str, str]:
        """Keys of the servers of models, by name. Workflows cannot read them."""
        names = {f"{name.upper()}_API_KEY" for name in Endpoints(self.models).names()}
        return {name: value for name, value in self.secrets.items() if name in names}

    @property
    def kept_secrets(self) -> dict[str, External]:
        """The secrets that `${NAME}` may read in params for secrets, with their hosts and places."""
        keys = self.secrets if self.unbound_secrets else self.model_keys
        hosts = {name: checked_hosts(_listed(text)) for name, text in self.secret_hosts.items()}
        places = {name: checked_places(_listed(text)) for name, text in self.secret_places.items()}
        return {
            name: External(value, hosts.get(name, ()), places.get(name, ()))
            for name, value in self.secrets.items()
            if name not in keys
        }

    @property
    def secret_names(self) -> frozenset[str]:
        """Names whose values are redacted wherever something is recorded or shown."""
        kept = self.secrets if self.unbound_secrets else ()
        return (frozenset(self.env) - frozenset(self.not_secret)) | frozenset(kept)

    @property
    def otlp_url(self) -> str | None:
        """The address for traces: with the protocol's path, unless the setting has one."""
        if self.otlp_endpoint is None:
            return None
        base = self.otlp_endpoint.rstrip("/")
        return base if urlsplit(base).path else f"{base}/v1/traces"

    @property
    def otlp_header_map(self) -> dict[str, str]:
        found = {}
        for part in filter(None, (self.otlp_headers or "").split(",")):
            name, equals, value = part.partition("=")
            if not re.fullmatch(r"[A-Za-z0-9-]+", name.strip()) or not equals or not value.strip().isprintable():
                raise SettingsError("WEFT_OTLP_HEADERS must have the form name=value, with commas between several")
            found[name.strip()] = value.strip()
        return found

    @property
    def unloggable(self) -> list[str]:
        """Values that no line of the log may hold: what workflows keep secret, and the server's own credentials."""
        values = [*(self.workflow_env[name] for name in sorted(self.secret_names)), *self.secrets.values()]
        return [
            *values,
            *(self.otlp_header_map.values() if self.otlp_headers else ()),
            *filter(None, (self.token, self.secret_key, self.old_secret_key, self.mail_password, self.notify_webhook)),
            *filter(None, (self.alert_webhook, self.oidc_client_secret)),
        ]

    def check(self) -> None:
        """Raise SettingsError on a combination that must not start."""
        self.check_shared()
        if self.db_address is not None and self.token is None and self.token_file:
            raise SettingsError(
                "WEFT_TOKEN must be set with a PostgreSQL database, to the same value for each server. Create one with "
                f"{MADE_BY}"
            )
        if self.oidc_issuer is not None and self.token is None and not self.token_file:
            raise SettingsError("WEFT_OIDC_ISSUER has no effect with WEFT_TOKEN=off. Unset one of them")
        public = not is_loopback(self.host)
        if self.token is None:
            if public and not self.token_file:
                raise SettingsError(
                    f"refusing to listen on {self.host} without a token: everyone who can reach this address could run "
                    "workflows. Unset WEFT_TOKEN to have a token created, or listen on 127.0.0.1."
                )
            return
        shortest = CHARS_MIN_PUBLIC if public else CHARS_MIN
        if len(self.token) < shortest or not is_token(self.token):
            where = f" to listen on {self.host}" if public else ""
            raise SettingsError(
                f"WEFT_TOKEN must have at least {shortest} characters{where}, of ASCII and without spaces. Unset "
                f"it to have a token created at the first start, or create one with {MADE_BY}"
            )

    def check_shared(self) -> None:
        """Beside a database of several processes there is no file that they could share a key in. Raises
        SettingsError."""
        if self.db_address is not None and self.secret_key is None:
            raise SettingsError(
                "WEFT_SECRET_KEY must be set with a PostgreSQL database, to the same value for each server: it seals "
                f"resume links. Create one with {MADE_BY}"
            )


def _ms(time: float | None, seconds: int = 1) -> int | None:
    return None if time is None else round(time * seconds * 1000)


def load_settings(environ: Mapping[str, str] | None = None, *, serves: bool = True) -> Settings:
    """Settings from the environment (default: os.environ). `serves=False`: of a process that does not listen, and needs
    no token. Raises SettingsError."""
    env = os.environ if environ is None else environ
    check_names(env)
    raw = _read(env)
    try:
        settings = msgspec.convert(raw, Settings, strict=False)
    except msgspec.ValidationError as error:
        name = str(error).partition(" - at `$.")[2].rstrip("`")
        raise SettingsError(f"{ROWS[name]['name']} must be {_must_be(name)}, not {raw[name]!r}") from None
    for name in settings.env.keys() & settings.secrets.keys():
        raise SettingsError(f"{ENV_PREFIX}{name} and {SECRET_PREFIX}{name} are both set. Remove one of them")
    _check_values(settings)
    if settings.oidc is not None:
        settings.oidc.check()
    elif named := [name for name in env if name.startswith("WEFT_OIDC_") and env[name]]:
        raise SettingsError(f"{named[0]} needs WEFT_OIDC_ISSUER")
    if serves:
        settings.check()
    else:
        settings.check_shared()
    return settings


def _read(env: Mapping[str, str]) -> dict[str, Any]:
    raw: dict[str, Any] = {key: env[name] for name, key in FIELDS.items() if env.get(name)}
    for key in raw:
        if get_origin(_type_of(key)) is tuple:
            raw[key] = _listed(raw[key])
    address = database_address(env)
    if address is None:
        raw["db_path"] = database_path(env)
    elif env.get("WEFT_DATA"):
        raise SettingsError("WEFT_DB and WEFT_DATA are both set: remove one of them. WEFT_DATA is a folder for a file.")
    else:
        raw["db_address"] = address
    raw["token_file"] = "token" not in raw
    if raw.get("token") == OFF:
        del raw["token"]
    rules = (HOSTS_PREFIX, PLACES_PREFIX)
    secrets = {name: value for name, value in env.items() if name not in FIELDS and not name.startswith(rules)}
    raw["env"] = _named(env, ENV_PREFIX)
    raw["secrets"] = _named(secrets, SECRET_PREFIX)
    raw["secret_hosts"] = _named(env, HOSTS_PREFIX)
    raw["secret_places"] = _named(env, PLACES_PREFIX)
    raw["models"] = _named(env, MODEL_PREFIX)
    raw["prices"] = _named(env, PRICE_PREFIX)
    return raw


def _named(env: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in env.items() if name.startswith(prefix)}


def _type_of(field: str) -> Any:
    of = Variables.__annotations__[field]
    return getattr(of if hasattr(of, "__metadata__") else get_args(of)[0], "__origin__", of)


def _must_be(field: str) -> str:
    of = _type_of(field)
    if get_origin(of) is Literal:
        *first, last = get_args(of)
        return f"{', '.join(first)} or {last}"
    if of is bool:
        return "true or false"
    row = ROWS[field]
    kind = {int: "a whole number", float: "a number"}[of] + (f" of {row['of']}" if row["of"] else "")
    if "gt" in row:
        return f"{kind}, more than {row['gt']} and at most {row['le']}"
    return kind + (f" between {row['ge']} and {row['le']}" if "le" in row else f", at least {row['ge']}")


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _check_values(settings: Settings) -> None:
    _check_forms(settings)
    _check_mail(settings)
    _check_models(settings)
    _check_rules(settings, settings.secret_hosts, HOSTS_PREFIX, "hosts", checked_hosts)
    _check_rules(settings, settings.secret_places, PLACES_PREFIX, "places", checked_places)
    if settings.alert_queued_s is not None and not (settings.alert_email or settings.alert_webhook):
        raise SettingsError("WEFT_ALERT_QUEUED_S needs WEFT_ALERT_EMAIL or WEFT_ALERT_WEBHOOK")
    _check_paths(settings)
    _check_networks(settings)
    _check_extras(settings)
    for name, key in (("WEFT_SECRET_KEY", settings.secret_key), ("WEFT_OLD_SECRET_KEY", settings.old_secret_key)):
        if key is not None and len(key) < SECRET_BYTES_MIN and (name, key) != ("WEFT_OLD_SECRET_KEY", LOST):
            raise SettingsError(f"{name} must have at least {SECRET_BYTES_MIN} characters")
    try:
        shlex.split(settings.secrets_command or "")
    except ValueError as error:  # a shell could not read it either
        raise SettingsError(f"WEFT_SECRETS_COMMAND cannot be read: {error}") from None


def _check_forms(settings: Settings) -> None:
    forms = (
        ("WEFT_ALLOWED_HOSTS", settings.allowed_hosts, _HOST, "names, with or without :port"),
        ("WEFT_NOTIFY_EMAIL", settings.notify_email, _ADDRESS, "mail addresses"),
        ("WEFT_ALERT_EMAIL", settings.alert_email, _ADDRESS, "mail addresses"),
        ("WEFT_POOLS", settings.pools, POOL_PATTERN, "names of letters, digits and . _ -"),
        ("WEFT_KUBERNETES", settings.kubernetes, _NAMESPACE, "names of namespaces"),
        ("WEFT_FUNCTIONS", settings.functions, _FUNCTION, "package.module:function, or a module or a file of steps"),
    )
    for variable, values, form, must_be in forms:
        for value in values:
            if not re.fullmatch(form, value):
                raise SettingsError(f"{variable} must be {must_be}, separated by commas, not {value!r}")
    for prefix, names in (
        (ENV_PREFIX, settings.env),
        (SECRET_PREFIX, settings.secrets),
        (MODEL_PREFIX, settings.models),
        (PRICE_PREFIX, settings.prices),
    ):
        for name in names:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise SettingsError(f"{prefix}{name} must have a name behind {prefix} of letters, digits and _")
    _check_url("WEFT_NOTIFY_WEBHOOK", settings.notify_webhook)
    _check_url("WEFT_ALERT_WEBHOOK", settings.alert_webhook)
    _check_url("WEFT_BASE_URL", settings.public_url, bare=True)
    _check_url("WEFT_OTLP_ENDPOINT", settings.otlp_endpoint, bare=True)
    _check_host("WEFT_HOST", "WEFT_PORT", settings.host)
    _check_host("WEFT_METRICS_HOST", "WEFT_METRICS_PORT", settings.metrics_host)


def _check_url(variable: str, url: str | None, *, bare: bool = False) -> None:
    """Check a URL. `bare`: without user, query and fragment, as paths are appended to it."""
    if url is None:
        return
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise SettingsError(f"{variable} must be a URL such as https://weft.example") from None
    if parts.scheme not in ("http", "https"):
        raise SettingsError(f"{variable} must start with http:// or https://")
    if not parts.hostname:
        raise SettingsError(f"{variable} must be a URL with a host, such as https://weft.example")
    if bare and (parts.query or parts.fragment or parts.username is not None):
        raise SettingsError(f"{variable} must be a URL without user, query and fragment")


def _check_host(variable: str, port_variable: str, host: str) -> None:
    if not re.fullmatch(_HOST, host):
        raise SettingsError(f"{variable} must be an address or a name such as 127.0.0.1, not {host!r}")
    if re.fullmatch(r"[^:\[\]]+:\d+", host):
        raise SettingsError(f"{variable} must be an address without a port, not {host!r}. The port is {port_variable}")


def _check_mail(settings: Settings) -> None:
    """Check the mail server. The sender may have a name before the address: `weft <weft@example.org>`."""
    sender = settings.mail_sender
    if "@" not in sender.strip("@<> ") or "\n" in sender or "\r" in sender:
        raise SettingsError(f"WEFT_MAIL_FROM must be a mail address, not {sender!r}")
    _check_host("WEFT_MAIL_HOST", "WEFT_MAIL_PORT", settings.mail_host)
    if settings.mail_password and not settings.mail_username:
        raise SettingsError("WEFT_MAIL_PASSWORD needs WEFT_MAIL_USER")


def _check_models(settings: Settings) -> None:
    checks: Iterable[tuple[str, Mapping[str, str], Mapping[str, str]]] = [
        *((f"{MODEL_PREFIX}{name}", {name: url}, {}) for name, url in settings.models.items()),
        *((f"{PRICE_PREFIX}{name}", settings.models, {name: text}) for name, text in settings.prices.items()),
    ]
    for variable, models, prices in checks:
        try:
            Endpoints(models, prices)
        except ValueError as error:
            raise SettingsError(f"{variable}: {error}") from None


def _check_rules(
    settings: Settings, rules: Mapping[str, str], prefix: str, kind: str, check: Callable[[Sequence[str]], object]
) -> None:
    for name, text in rules.items():
        if name not in settings.secrets:
            raise SettingsError(f"{prefix}{name} is set, and {SECRET_PREFIX}{name} is not")
        if name in settings.model_keys:
            what = f"is the key of a server of models and needs no {kind}"
            raise SettingsError(f"{SECRET_PREFIX}{name} {what}: remove {prefix}{name}")
        try:
            check(_listed(text))
        except BadRequest as error:
            hint = f"use {kind} {error.hint}, separated by commas"
            raise SettingsError(f"{prefix}{name}: {error.message}; {hint}") from None


def _check_paths(settings: Settings) -> None:
    """Check that existing paths are of the right kind; missing ones may be created later."""
    if settings.db_address is None:
        path = Path(settings.db_path)
        if path.is_dir():
            raise SettingsError(f"WEFT_DB must be a file, and {str(path)!r} is a folder. Its folder is WEFT_DATA")
        above = next((each for each in path.absolute().parents if each.exists()), None)
        if above is not None and not above.is_dir():
            raise SettingsError(f"WEFT_DB cannot be {str(path)!r}: {str(above)!r} is not a folder")
    for name, folders in ("SQLITE", settings.sqlite_folders), ("FILE", settings.file_folders):
        for folder in folders:
            if Path(folder).exists() and not Path(folder).is_dir():
                raise SettingsError(f"WEFT_{name}_FOLDERS must be folders, and {folder!r} is a file")
    if settings.connectors is not None and not Path(settings.connectors).is_dir():
        raise SettingsError(f"WEFT_CONNECTORS must be a folder, not {settings.connectors!r}")
    if settings.bus_address is not None:
        if settings.db_address is None:
            raise SettingsError("WEFT_BUS_DB needs a PostgreSQL database in WEFT_DB: with a file it has no effect")
        if urlsplit(settings.bus_address).scheme not in POSTGRES:
            raise SettingsError("WEFT_BUS_DB must be a postgresql:// address, of the database in WEFT_DB")


def _check_networks(settings: Settings) -> None:
    try:
        Allowed(settings.allow_private)
    except ValueError as error:
        raise SettingsError(
            f"WEFT_ALLOW_PRIVATE: {error}; use networks (10.0.0.0/8), addresses or names, with or without :port, "
            "separated by commas"
        ) from None
    if settings.proxies and not settings.public_url:
        raise SettingsError("WEFT_BEHIND_PROXY needs WEFT_BASE_URL: the address of the proxy, for links and cookies")
    try:
        for text in settings.proxies:
            network(text)
    except ValueError as error:
        raise SettingsError(f"WEFT_BEHIND_PROXY: {error}; use the addresses of the proxies themselves") from None


def _check_extras(settings: Settings) -> None:
    """Check settings that need a library which weft does not install by default."""
    if settings.otlp_endpoint is not None and not (find_spec("opentelemetry") and find_spec("opentelemetry.sdk")):
        raise SettingsError(f"WEFT_OTLP_ENDPOINT needs a library: {install('otel')}")
    _ = settings.otlp_header_map  # raises
    if settings.dask is not None:
        if urlsplit(settings.dask).scheme not in ("tcp", "tls") or not urlsplit(settings.dask).hostname:
            raise SettingsError("WEFT_DASK must have the form tcp://host:port or tls://host:port")
        if find_spec("distributed") is None:
            raise SettingsError(f"WEFT_DASK needs the library of Dask: {install('dask')}")
    if settings.kubernetes and find_spec("kr8s") is None:
        raise SettingsError(f"WEFT_KUBERNETES needs a library: {install('kubernetes')}")
