"""The settings of the server: one struct, read once from the environment. `SettingsError` names the variable.

WEFT_HOST, WEFT_PORT     where to listen; port 0 takes a free one
WEFT_DB                  path of the SQLite file; its folder is created. Or WEFT_DATA: that folder, for weft.db in it.
                         Or a postgresql:// address; then WEFT_SECRET_KEY and WEFT_TOKEN have to be set
WEFT_BUS_DB              address of that PostgreSQL database for wake-ups, when WEFT_DB leads through a pooler
WEFT_TOKEN               bearer token that everything under /api requires; without it one is made and kept in a file
                         beside the database, see server/tokens.py. `off` is none, on loopback alone
WEFT_ALLOWED_HOSTS       more names for the Host header, comma list; `name` (any port) or `name:port`
WEFT_BASE_URL            how this server is reached from outside, for links and for `${WEFT_BASE_URL}`
WEFT_BEHIND_PROXY        addresses or networks of reverse proxies, comma list, whose X-Forwarded headers count.
                         Needs WEFT_BASE_URL, as links never follow a header
WEFT_ALLOW_PRIVATE       networks and `host:port` the http block may reach although they are private, comma list;
                         its own API only if the `host:port` of this server is named
WEFT_OIDC_ISSUER         the provider that signs people in (OpenID Connect); with WEFT_OIDC_CLIENT_ID, _CLIENT_SECRET,
                         _NAME, _ROLE, _GROUPS, _GROUPS_CLAIM, _DOMAINS, _SCOPES, _PRIVATE; see docs/howto/oidc.md
WEFT_SECRET_KEY          seals resume links; without it a key file is made next to the database, mode 0600
WEFT_OLD_SECRET_KEY      the previous key, until secrets and links made with it have ended; `lost` if it is lost
WEFT_MAIL_TRANSPORT      `log` (default) or `smtp`; with WEFT_MAIL_FROM, _HOST, _PORT, _USER, _PASSWORD, _STARTTLS
WEFT_NOTIFY_EMAIL        mail addresses notified of every wait for a person, comma list
WEFT_NOTIFY_WEBHOOK      a web address notified of the same, by a signed POST of JSON; never printed
WEFT_ALERT_EMAIL         mail addresses notified of failed runs and missed times of schedules, comma list
WEFT_ALERT_WEBHOOK       a web address notified of the same, by a signed POST of JSON; never printed
WEFT_ALERT_WAITING_S     and of waits that are open for longer than this; of none by default
WEFT_ALERT_QUEUED_S      and of runs that no worker has begun for longer than this; of none by default
WEFT_ERROR_WORKFLOW      a workflow that is started for each run that fails, unless its own settings name another
WEFT_ENV_<NAME>          a value that workflows read as `${NAME}`; nothing else of the environment is visible to them
WEFT_NOT_SECRET          names of such values that need not be kept out of journal, events and errors, comma list
WEFT_SECRET_<NAME>       a secret that `${NAME}` reads where one may stand; WEFT_SECRET_KEY is the one above. Keys of
                         servers of models, <NAME>_API_KEY, are sent to these alone
WEFT_SECRET_HOSTS_<NAME> hosts that this secret may be sent to, comma list; without it nowhere
WEFT_SECRET_IN_<NAME>    places in a request that it may stand in, comma list: header:<name>, query:<name>, path, body;
                         without it anywhere
WEFT_UNBOUND_SECRETS     true: these secrets may stand everywhere and be sent everywhere
WEFT_SECRETS_COMMAND     a program that is asked for secrets that are not stored; see docs/howto/secrets.md
WEFT_MODEL_<NAME>        URL of a server of language models: blocks name its models `<name>:<model>`. It may be private.
                         `anthropic+http://…` speaks the wire format of Anthropic, others that of OpenAI
WEFT_PRICE_<NAME>        what models of that server cost, in US dollars for a million tokens: input/cached input/output,
                         such as 0.15/0.075/0.60, or by model: `llama3=0/0 0.15/0.60`. It comes before the table
WEFT_FUNCTIONS           Python functions that blocks of type `python` may call, `package.module:function` each, or a
                         module or a file of steps, `flow.py`; comma list
WEFT_PROCESSES           child processes at the same time, for blocks with `policy.runner: process`; one for each core
WEFT_DASK                the scheduler of a Dask cluster, tcp://host:port, for blocks with `policy.runner: dask`
WEFT_KUBERNETES          namespaces in which `job` blocks may create Jobs, comma list; the first is the default
WEFT_CONNECTORS          a folder of connector documents, *.json: block types beside those of weft
WEFT_SQLITE_FOLDERS      folders with the SQLite files that `sql` blocks may open, comma list; without it the folder
                         `databases` beside the database file, and none beside a PostgreSQL database
WEFT_LEASE_MS            how long runs and messages of a killed process wait for another process, or for its restart
WEFT_POOLS               pools whose runs this process executes, comma list; without it `default`
WEFT_CONCURRENCY         runs that this process executes at the same time, 1,000 without it; runs that wait do not count
WEFT_QUEUE_MAX           runs of one pool that may wait for a worker; more are refused with 429. Without it any number
WEFT_FILE_MAX            largest file that can be uploaded or made by a block, in MiB; 100 without it
WEFT_RETENTION_DAYS      runs that ended longer ago are deleted; by default runs are kept
WEFT_METRICS_PORT        a port with /metrics and /healthz that need no token; 0 takes a free one
WEFT_METRICS_HOST        the address of that port, 127.0.0.1 without it; 0.0.0.0 in a container
WEFT_OTLP_ENDPOINT       a collector of OpenTelemetry that traces of runs are sent to, http://host:4318 (extra `otel`)
WEFT_OTLP_HEADERS        headers for it, `name=value`, separated by commas; kept out of the log
WEFT_READ_ONLY           true: show everything, execute and change nothing; see docs/howto/run-in-production.md
WEFT_LOG                 log level: debug, info, warning (default), error
WEFT_LOG_FORMAT          `text` (default), or `json`: one object for each line
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from compiler.document import POOL_PATTERN
from executor.blocks.http.addresses import Allowed
from executor.blocks.http.binding import checked_hosts
from executor.blocks.http.parts import checked_places
from executor.blocks.llm.endpoints import Endpoints
from executor.blocks.services import MailSettings
from executor.blocks.vault import key_file
from executor.blocks.vault.command import External, SecretsCommand
from executor.errors import BadRequest, StoreError
from executor.kernel.handler.needs import AlertSettings
from executor.kernel.process.extras import install
from server import setting_values as checked
from server.oidc.settings import OidcSettings
from server.tokens import CHARS_MIN, CHARS_MIN_PUBLIC, MADE_BY, OFF, is_token, read_or_make
from server.variables import (
    DEFAULT_DB,
    DEFAULT_HOST,
    DEFAULT_PORT,
    ENV_PREFIX,
    HOSTS_PREFIX,
    LISTS,
    MAIL,
    MODEL_PREFIX,
    OIDC,
    OIDC_LISTS,
    PLACES_PREFIX,
    PRICE_PREFIX,
    SECRET_PREFIX,
    TEXTS,
    SettingsError,
    authority,
    check_names,
    database_address,
    database_path,
    is_loopback,
    network,
)

LOST = "lost"  # value of WEFT_OLD_SECRET_KEY if the key is lost
SECRET_BYTES_MIN = 16
# A lease is renewed three times while it lasts: shorter ones would be lost to a slow disk, longer ones keep a run
# asleep.
LEASE_MS_MIN, LEASE_MS_MAX = 1_000, 3_600_000
RETENTION_DAYS_MAX = 36_500
PROCESSES_MAX = 1_000
ALERT_S_MAX = 31_536_000  # a year
FILE_MAX_MIB, FILE_LARGEST_MIB = 100, 2_048
CONCURRENCY_MAX = 1_000  # default of a worker; not imported, as each command reads settings
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
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
    drain_s: float = 10.0


class Settings(Struct, frozen=True):
    """See the module text. `public_url` is WEFT_BASE_URL; `base_url` (no trailing slash) falls back to host and port.
    If `token` is None, no credential is needed, unless `token_file` is set: then `with_token` reads or makes the
    token."""

    db_path: str = DEFAULT_DB
    bus_address: str | None = None  # of the same database, reached directly
    db_address: str | None = None  # of a PostgreSQL database, instead of the file; may have a password in it
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    token: str | None = None
    token_file: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allow_private: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    public_url: str | None = None
    secret_key: str | None = None
    old_secret_key: str | None = None
    secrets_command: str | None = None
    mail: MailSettings = field(default_factory=MailSettings)
    oidc: OidcSettings | None = None
    notify_email: tuple[str, ...] = ()
    notify_webhook: str | None = None
    alert_email: tuple[str, ...] = ()
    alert_webhook: str | None = None
    alert_waiting_s: float | None = None
    alert_queued_s: float | None = None
    error_workflow: str | None = None
    env: dict[str, str] = {}
    secrets: dict[str, str] = {}
    secret_hosts: dict[str, str] = {}
    secret_places: dict[str, str] = {}
    unbound_secrets: bool = False
    not_secret: tuple[str, ...] = ()
    models: dict[str, str] = {}
    prices: dict[str, str] = {}
    functions: tuple[str, ...] = ()
    processes: int | None = None
    pools: tuple[str, ...] = ()
    dask: str | None = None
    connectors: str | None = None
    kubernetes: tuple[str, ...] = ()
    sqlite_folders: tuple[str, ...] = ()
    lease_ms: int = 15_000
    concurrency: int = CONCURRENCY_MAX
    queue_max: int | None = None
    file_max: int = FILE_MAX_MIB
    retention_days: float | None = None
    metrics_host: str = DEFAULT_HOST
    metrics_port: int | None = None
    otlp_endpoint: str | None = None
    otlp_headers: str | None = None
    read_only: bool = False
    log_level: LogLevel = "warning"
    log_format: LogFormat = "text"
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
        return None if self.retention_days is None else round(self.retention_days * 86_400_000)

    @property
    def alerts(self) -> AlertSettings:
        """The alerts for operators, and their addresses."""
        waiting, queued = self.alert_waiting_s, self.alert_queued_s
        return AlertSettings(
            self.alert_email,
            self.alert_webhook,
            None if waiting is None else round(waiting * 1000),
            None if queued is None else round(queued * 1000),
            self.error_workflow,
        )

    @property
    def file_bytes(self) -> int:
        """The size of the largest file."""
        return self.file_max * 1024 * 1024

    @property
    def folders_of_sqlite(self) -> tuple[str, ...]:
        """The folders with the SQLite files of `sql` blocks."""
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
        """Raises SettingsError."""
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
            *filter(None, (self.oidc.client_secret if self.oidc else None,)),
            *(self.otlp_header_map.values() if self.otlp_headers else ()),
            *filter(None, (self.token, self.secret_key, self.old_secret_key, self.mail.password, self.notify_webhook)),
            *filter(None, (self.alert_webhook,)),
        ]

    def check(self) -> None:
        """Raise SettingsError on a combination that must not start."""
        self.check_shared()
        if self.db_address is not None and self.token is None and self.token_file:
            raise SettingsError(
                "WEFT_TOKEN must be set with a PostgreSQL database, to the same value for each server. Create one with "
                f"{MADE_BY}"
            )
        if self.oidc is not None and self.token is None and not self.token_file:
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


KEY_ITSELF = r"hex:([0-9A-Fa-f]{64})"  # WEFT_SECRET_KEY with what a key file has: its links stay valid


def load_settings(environ: Mapping[str, str] | None = None, *, serves: bool = True) -> Settings:
    """Settings from the environment (default: os.environ). `serves=False`: of a process that does not listen, and needs
    no token. Raises SettingsError."""
    env = os.environ if environ is None else environ
    check_names(env)
    settings = _convert(_read(env), Settings, TEXTS | LISTS)
    for name in settings.env.keys() & settings.secrets.keys():
        raise SettingsError(f"{ENV_PREFIX}{name} and {SECRET_PREFIX}{name} are both set. Remove one of them")
    _check_values(settings)
    if serves:
        settings.check()
    else:
        settings.check_shared()
    return settings


def _read(env: Mapping[str, str]) -> dict[str, object]:
    """Return the fields of Settings that the environment sets, as text. Raises SettingsError."""
    raw: dict[str, object] = {}
    for name, key in TEXTS.items():
        if env.get(name):
            raw[key] = env[name]
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
    for name, key in LISTS.items():
        if env.get(name):
            raw[key] = _listed(env[name])
    mail = {key: env[name] for name, key in MAIL.items() if env.get(name)}
    raw["mail"] = _convert(mail, MailSettings, MAIL)
    if oidc := [name for name in (*OIDC, *OIDC_LISTS) if env.get(name)]:
        raw["oidc"] = _read_oidc(env, oidc)
    raw["env"] = _named(env, ENV_PREFIX)
    raw["secret_hosts"] = _named(env, HOSTS_PREFIX)
    raw["secret_places"] = _named(env, PLACES_PREFIX)
    rules = (HOSTS_PREFIX, PLACES_PREFIX)
    named = {name: value for name, value in env.items() if name not in TEXTS and not name.startswith(rules)}
    raw["secrets"] = _named(named, SECRET_PREFIX)
    raw["models"] = _named(env, MODEL_PREFIX)
    raw["prices"] = _named(env, PRICE_PREFIX)
    return raw


def _read_oidc(env: Mapping[str, str], names: Sequence[str]) -> OidcSettings:
    """Read the settings of OpenID Connect; `names` are the variables that are set. Raises SettingsError."""
    if "WEFT_OIDC_ISSUER" not in names:
        raise SettingsError(f"{names[0]} needs WEFT_OIDC_ISSUER")
    texts = {OIDC[name]: env[name] for name in names if name in OIDC}
    lists = {OIDC_LISTS[name]: _listed(env[name]) for name in names if name in OIDC_LISTS}
    oidc = _convert({**texts, **lists}, OidcSettings, OIDC | OIDC_LISTS)
    oidc.check()
    return oidc


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _check_values(settings: Settings) -> None:
    """Check rules that types do not express. Raises SettingsError."""
    if settings.mail.transport not in ("log", "smtp"):
        raise SettingsError(f"WEFT_MAIL_TRANSPORT must be log or smtp, not {settings.mail.transport!r}")
    mail = settings.mail
    checked.check_mail(mail.sender, mail.host, mail.port, mail.username, mail.password)
    if settings.notify_webhook:
        checked.check_url("WEFT_NOTIFY_WEBHOOK", settings.notify_webhook)
    checked.check_addresses("WEFT_NOTIFY_EMAIL", settings.notify_email)
    _check_models(settings)
    _check_secret_rules(settings)
    _check_alerts(settings)
    if settings.public_url:
        checked.check_url("WEFT_BASE_URL", settings.public_url, bare=True)
    _check_places(settings)
    if settings.proxies:
        _check_proxies(settings)
    _check_numbers(settings)
    _check_extras(settings)
    if settings.connectors is not None and not Path(settings.connectors).is_dir():
        raise SettingsError(f"WEFT_CONNECTORS must be a folder, not {settings.connectors!r}")
    for name, key in (("WEFT_SECRET_KEY", settings.secret_key), ("WEFT_OLD_SECRET_KEY", settings.old_secret_key)):
        if key is not None and len(key) < SECRET_BYTES_MIN and (name, key) != ("WEFT_OLD_SECRET_KEY", LOST):
            raise SettingsError(f"{name} must have at least {SECRET_BYTES_MIN} characters")
    for pool in settings.pools:
        if not re.fullmatch(POOL_PATTERN, pool):
            raise SettingsError(
                f"WEFT_POOLS must be names of letters, digits and . _ -, separated by commas, not {pool!r}"
            )
    try:
        Allowed(settings.allow_private)
    except ValueError as error:
        raise SettingsError(
            f"WEFT_ALLOW_PRIVATE: {error}; use networks (10.0.0.0/8), addresses or names, with or without :port, "
            "separated by commas"
        ) from None


def _check_models(settings: Settings) -> None:
    for name, url in settings.models.items():
        try:
            Endpoints({name: url})
        except ValueError as error:
            raise SettingsError(f"{MODEL_PREFIX}{name}: {error}") from None
    for name, text in settings.prices.items():
        try:
            Endpoints(settings.models, {name: text})
        except ValueError as error:
            raise SettingsError(f"{PRICE_PREFIX}{name}: {error}") from None


def _check_secret_rules(settings: Settings) -> None:
    _check_rules(settings, settings.secret_hosts, HOSTS_PREFIX, "hosts", checked_hosts)
    _check_rules(settings, settings.secret_places, PLACES_PREFIX, "places", checked_places)


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


def _check_numbers(settings: Settings) -> None:
    if not 0 <= settings.port <= 65535:
        raise SettingsError("WEFT_PORT must be between 0 and 65535")
    if settings.metrics_port is not None and not 0 <= settings.metrics_port <= 65535:
        raise SettingsError("WEFT_METRICS_PORT must be between 0 and 65535")
    if not LEASE_MS_MIN <= settings.lease_ms <= LEASE_MS_MAX:
        raise SettingsError(f"WEFT_LEASE_MS must be between {LEASE_MS_MIN} and {LEASE_MS_MAX}")
    if settings.processes is not None and not 1 <= settings.processes <= PROCESSES_MAX:
        raise SettingsError(f"WEFT_PROCESSES must be between 1 and {PROCESSES_MAX}")
    if not 1 <= settings.concurrency <= CONCURRENCY_MAX:
        raise SettingsError(f"WEFT_CONCURRENCY must be between 1 and {CONCURRENCY_MAX}")
    if settings.queue_max is not None and settings.queue_max < 1:
        raise SettingsError("WEFT_QUEUE_MAX must be at least 1")
    if not 1 <= settings.file_max <= FILE_LARGEST_MIB:
        raise SettingsError(f"WEFT_FILE_MAX must be between 1 and {FILE_LARGEST_MIB:,} (MiB)")
    if settings.retention_days is not None and not 0 < settings.retention_days <= RETENTION_DAYS_MAX:
        raise SettingsError(f"WEFT_RETENTION_DAYS must be more than 0 and at most {RETENTION_DAYS_MAX}")


def _check_extras(settings: Settings) -> None:
    """Check settings that need a library which weft does not install by default."""
    if settings.otlp_endpoint is not None:
        checked.check_url("WEFT_OTLP_ENDPOINT", settings.otlp_endpoint, bare=True)
        if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
            raise SettingsError(f"WEFT_OTLP_ENDPOINT needs a library: {install('otel')}")
    if settings.otlp_headers is not None:
        _ = settings.otlp_header_map  # raises
    if settings.dask is not None:
        if urlsplit(settings.dask).scheme not in ("tcp", "tls") or not urlsplit(settings.dask).hostname:
            raise SettingsError("WEFT_DASK must have the form tcp://host:port or tls://host:port")
        if find_spec("distributed") is None:
            raise SettingsError(f"WEFT_DASK needs the library of Dask: {install('dask')}")
    if settings.kubernetes and find_spec("kr8s") is None:
        raise SettingsError(f"WEFT_KUBERNETES needs a library: {install('kubernetes')}")


def _check_alerts(settings: Settings) -> None:
    checked.check_addresses("WEFT_ALERT_EMAIL", settings.alert_email)
    if settings.alert_webhook:
        checked.check_url("WEFT_ALERT_WEBHOOK", settings.alert_webhook)
    told = settings.alert_email or settings.alert_webhook
    for name, seconds in (
        ("WEFT_ALERT_WAITING_S", settings.alert_waiting_s),
        ("WEFT_ALERT_QUEUED_S", settings.alert_queued_s),
    ):
        if seconds is None:
            continue
        if not 1 <= seconds <= ALERT_S_MAX:
            raise SettingsError(f"{name} must be between 1 and {ALERT_S_MAX} (seconds)")
        if name == "WEFT_ALERT_QUEUED_S" and not told:
            raise SettingsError(f"{name} needs WEFT_ALERT_EMAIL or WEFT_ALERT_WEBHOOK")


def _check_places(settings: Settings) -> None:
    """Hosts, paths and names."""
    checked.check_host("WEFT_HOST", "WEFT_PORT", settings.host)
    checked.check_host("WEFT_METRICS_HOST", "WEFT_METRICS_PORT", settings.metrics_host)
    checked.check_allowed_hosts(settings.allowed_hosts)
    checked.check_paths(None if settings.db_address else settings.db_path, settings.sqlite_folders)
    checked.check_bus(settings.bus_address, settings.db_address)
    checked.check_command(settings.secrets_command)
    checked.check_functions(settings.functions)
    checked.check_namespaces(settings.kubernetes)
    for prefix, names in (
        (ENV_PREFIX, settings.env),
        (SECRET_PREFIX, settings.secrets),
        (MODEL_PREFIX, settings.models),
        (PRICE_PREFIX, settings.prices),
    ):
        checked.check_names_of(prefix, names)


def _check_proxies(settings: Settings) -> None:
    if not settings.public_url:
        raise SettingsError("WEFT_BEHIND_PROXY needs WEFT_BASE_URL: the address of the proxy, for links and cookies")
    try:
        for text in settings.proxies:
            network(text)
    except ValueError as error:
        raise SettingsError(f"WEFT_BEHIND_PROXY: {error}; use the addresses of the proxies themselves") from None


def with_token(settings: Settings) -> Settings:
    """Return the settings with the token of the file beside the database, unless a token or `off` is set. Raises
    SettingsError."""
    if settings.token is not None or not settings.token_file:
        return settings
    return replace(settings, token=read_or_make(settings.db_path))


def read_secret(settings: Settings) -> bytes:
    """32 bytes that seal resume links: from WEFT_SECRET_KEY (`hex:` and the text of a key file is that key), else from
    the key file beside the database, made on first use."""
    if settings.secret_key:
        return _key_of(settings.secret_key)
    try:
        return key_file.read_or_make(key_file.key_path(settings.db_path))[0]
    except StoreError as error:
        raise SettingsError(error.message) from None


def _key_in(path: Path) -> bytes:
    try:
        return key_file.read(path)
    except StoreError as error:
        raise SettingsError(error.message) from None


def known_keys(settings: Settings, database: Path | str) -> list[bytes]:
    """Return the keys of a process on this database, the present one first; empty if it would make a new one. Raises
    SettingsError."""
    file = key_file.key_path(database) if isinstance(database, Path) else None
    if settings.secret_key is None and (file is None or not file.exists()):
        return []
    present = _key_of(settings.secret_key) if settings.secret_key else _key_in(file or Path())
    return [present, *old_secrets(settings)]


def old_secrets(settings: Settings) -> tuple[bytes, ...]:
    """Return the previous key, for secrets and links that still use it."""
    return (_key_of(settings.old_secret_key),) if settings.old_secret_key not in (None, LOST) else ()


def secrets_command(settings: Settings) -> SecretsCommand | None:
    """Raises SettingsError."""
    try:
        argv = shlex.split(settings.secrets_command or "")
    except ValueError as error:
        raise SettingsError(f"WEFT_SECRETS_COMMAND cannot be read: {error}") from None
    return SecretsCommand(argv) if argv else None


def _key_of(text: str) -> bytes:
    if found := re.fullmatch(KEY_ITSELF, text):
        return bytes.fromhex(found[1])
    return hashlib.sha256(text.encode()).digest()


_WANTED = {  # what is no text; the values are no secrets
    "port": "a whole number",
    "lease_ms": "a whole number of milliseconds",
    "concurrency": "a whole number of runs",
    "queue_max": "a whole number of runs",
    "retention_days": "a number of days",
    "alert_waiting_s": "a number of seconds",
    "alert_queued_s": "a number of seconds",
    "processes": "a whole number",
    "metrics_port": "a whole number",
    "log_level": "debug, info, warning or error",
    "log_format": "text or json",
    "start_tls": "true or false",
    "read_only": "true or false",
    "unbound_secrets": "true or false",
    "private": "true or false",
}


def _named(env: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in env.items() if name.startswith(prefix)}


def _convert(raw: Mapping[str, object], type: type[T], names: Mapping[str, str]) -> T:
    try:
        return msgspec.convert(raw, type, strict=False)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$.")
        key = where.rstrip("`")
        variable = next((name for name, known in names.items() if known == key), key or "a setting")
        if key in _WANTED:
            raise SettingsError(f"{variable} must be {_WANTED[key]}, not {raw[key]!r}") from None
        raise SettingsError(f"{variable}: {message}") from None
