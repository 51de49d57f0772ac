"""The settings of the server: one struct, read once from the environment. `SettingsError` names the variable.

WEFT_HOST, WEFT_PORT     where to listen; port 0 takes a free one
WEFT_DB                  path of the SQLite file; its folder is created. Or WEFT_DATA: that folder, for weft.db in it
WEFT_TOKEN               bearer token that everything under /api asks for; without it one is made and kept in a file
                         beside the database, see server/tokens.py. `off` is none, on loopback alone
WEFT_ALLOWED_HOSTS       more names for the Host header, comma list; `name` (any port) or `name:port`
WEFT_BASE_URL            how this server is reached from outside, for links and for `${WEFT_BASE_URL}`
WEFT_ALLOW_PRIVATE       networks and `host:port` the http block may reach although they are private, comma list;
                         its own API only if the `host:port` of this server is named
WEFT_SECRET_KEY          seals resume links; without it a key file is made next to the database, mode 0600
WEFT_MAIL_TRANSPORT      `log` (default) or `smtp`; with WEFT_MAIL_FROM, _HOST, _PORT, _USER, _PASSWORD, _STARTTLS
WEFT_NOTIFY_EMAIL        mail addresses that hear of every wait for a person, comma list
WEFT_NOTIFY_WEBHOOK      a web address that does, by a signed POST of JSON; printed nowhere
WEFT_ENV_<NAME>          a value that workflows read as `${NAME}`; nothing else of the environment is visible to them
WEFT_NOT_SECRET          names of such values that need not be kept out of journal, events and errors, comma list
WEFT_SECRET_<NAME>       the same, but secret whatever WEFT_NOT_SECRET says; WEFT_SECRET_KEY is the one above
WEFT_FUNCTIONS           Python functions that blocks of type `python` may call, `package.module:function`, comma list
WEFT_LEASE_MS            how long a killed process keeps its runs before another, or the restarted one, takes them over
WEFT_RETENTION_DAYS      runs that ended longer ago are deleted; without it runs are kept for ever
WEFT_LOG                 log level: debug, info, warning (default), error
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from executor.http.addresses import Allowed
from executor.services import MailSettings
from server.tokens import CHARS_MIN, CHARS_MIN_PUBLIC, MADE_BY, OFF, is_token, read_or_make, write_once
from server.variables import (
    DEFAULT_DB,
    DEFAULT_HOST,
    DEFAULT_PORT,
    ENV_PREFIX,
    LISTS,
    MAIL,
    SECRET_PREFIX,
    TEXTS,
    SettingsError,
    authority,
    check_names,
    database_path,
    is_loopback,
)

SECRET_BYTES_MIN = 16
# A lease is renewed three times while it lasts: shorter ones would be lost to a slow disk, longer ones keep a run
# asleep.
LEASE_MS_MIN, LEASE_MS_MAX = 1_000, 3_600_000
RETENTION_DAYS_MAX = 36_500
LogLevel = Literal["debug", "info", "warning", "error"]
T = TypeVar("T")


class Limits(Struct, frozen=True):
    """Bounds of the HTTP layer. Bytes, seconds and counts as their names say."""

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
    write_s: float = 4.0  # for a lock of another process; the answer comes within a second of it
    streams: int = 2000
    streams_per_run: int = 100
    stream_send_s: float = 15.0
    stream_ping_s: float = 15.0
    stream_chunk_bytes: int = 64 * 1024
    frame_cache_bytes: int = 8 * 1024 * 1024
    drain_s: float = 10.0


class Settings(Struct, frozen=True):
    """See the module text. `public_url` is WEFT_BASE_URL; `base_url` (no trailing slash) falls back to host and port.
    `token` None: nothing asks for one, unless `token_file`: then `with_token` reads or makes it."""

    db_path: str = DEFAULT_DB
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    token: str | None = None
    token_file: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allow_private: tuple[str, ...] = ()
    public_url: str | None = None
    secret_key: str | None = None
    mail: MailSettings = field(default_factory=MailSettings)
    notify_email: tuple[str, ...] = ()
    notify_webhook: str | None = None
    env: dict[str, str] = {}
    secrets: dict[str, str] = {}
    not_secret: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    lease_ms: int = 15_000
    retention_days: float | None = None
    log_level: LogLevel = "warning"
    limits: Limits = Limits()

    def __repr__(self) -> str:
        """Without the values that must stay secret: settings end up in logs and tracebacks."""
        return f"Settings(db_path={self.db_path!r}, base_url={self.base_url!r}, token={'set' if self.token else None})"

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
        """After how long runs that have ended are deleted; None: never."""
        return None if self.retention_days is None else round(self.retention_days * 86_400_000)

    @property
    def workflow_env(self) -> dict[str, str]:
        """What `${NAME}` may read."""
        return {"WEFT_BASE_URL": self.base_url, **self.env, **self.secrets}

    @property
    def secret_names(self) -> frozenset[str]:
        """Names whose values are redacted wherever something is recorded or shown."""
        return (frozenset(self.env) - frozenset(self.not_secret)) | frozenset(self.secrets)

    @property
    def unloggable(self) -> list[str]:
        """Values that no line of the log may hold: what workflows keep secret, and the server's own credentials."""
        values = [self.workflow_env[name] for name in sorted(self.secret_names)]
        return [*values, *filter(None, (self.token, self.secret_key, self.mail.password, self.notify_webhook))]

    def check(self) -> None:
        """Raise SettingsError on a combination that must not start."""
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


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Settings from the environment (default: os.environ). Raises SettingsError."""
    env = os.environ if environ is None else environ
    check_names(env)
    raw: dict[str, object] = {}
    for name, key in TEXTS.items():
        if env.get(name):
            raw[key] = env[name]
    raw["db_path"] = database_path(env)
    raw["token_file"] = "token" not in raw
    if raw.get("token") == OFF:
        del raw["token"]
    for name, key in LISTS.items():
        if env.get(name):
            raw[key] = tuple(part.strip() for part in env[name].split(",") if part.strip())
    mail = {key: env[name] for name, key in MAIL.items() if env.get(name)}
    raw["mail"] = _convert(mail, MailSettings, MAIL)
    raw["env"] = _named(env, ENV_PREFIX)
    raw["secrets"] = _named({name: value for name, value in env.items() if name not in TEXTS}, SECRET_PREFIX)
    settings = _convert(raw, Settings, TEXTS | LISTS)
    for name in settings.env.keys() & settings.secrets.keys():
        raise SettingsError(f"{ENV_PREFIX}{name} and {SECRET_PREFIX}{name} are both set. Remove one of them")
    if settings.mail.transport not in ("log", "smtp"):
        raise SettingsError(f"WEFT_MAIL_TRANSPORT must be log or smtp, not {settings.mail.transport!r}")
    if settings.notify_webhook and urlsplit(settings.notify_webhook).scheme not in ("http", "https"):
        raise SettingsError("WEFT_NOTIFY_WEBHOOK must start with http:// or https://")
    for address in settings.notify_email:
        if "@" not in address.strip("@") or any(character.isspace() for character in address):
            raise SettingsError(f"WEFT_NOTIFY_EMAIL must be mail addresses separated by commas, not {address!r}")
    if settings.public_url and urlsplit(settings.public_url).scheme not in ("http", "https"):
        raise SettingsError("WEFT_BASE_URL must start with http:// or https://")
    if not 0 <= settings.port <= 65535:
        raise SettingsError("WEFT_PORT must be between 0 and 65535")
    if not LEASE_MS_MIN <= settings.lease_ms <= LEASE_MS_MAX:
        raise SettingsError(f"WEFT_LEASE_MS must be between {LEASE_MS_MIN} and {LEASE_MS_MAX}")
    if settings.retention_days is not None and not 0 < settings.retention_days <= RETENTION_DAYS_MAX:
        raise SettingsError(f"WEFT_RETENTION_DAYS must be more than 0 and at most {RETENTION_DAYS_MAX}")
    if settings.secret_key is not None and len(settings.secret_key) < SECRET_BYTES_MIN:
        raise SettingsError(f"WEFT_SECRET_KEY must have at least {SECRET_BYTES_MIN} characters")
    try:
        Allowed(settings.allow_private)
    except ValueError as error:
        raise SettingsError(
            f"WEFT_ALLOW_PRIVATE: {error}; use networks (10.0.0.0/8), addresses or names, with or without :port, "
            "separated by commas"
        ) from None
    settings.check()
    return settings


def with_token(settings: Settings) -> Settings:
    """With the token of the file beside the database, when it is to be that one. Raises SettingsError."""
    if settings.token is not None or not settings.token_file:
        return settings
    return replace(settings, token=read_or_make(settings.db_path))


def read_secret(settings: Settings) -> bytes:
    """32 bytes that seal resume links: from WEFT_SECRET_KEY, else from the key file beside the database, made on first
    use."""
    if settings.secret_key:
        return hashlib.sha256(settings.secret_key.encode()).digest()
    path = Path(settings.db_path).with_suffix(".key")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        write_once(path, secrets.token_hex(32))
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError) as error:
        raise SettingsError(f"the key file {path} cannot be read: {error}") from None
    if len(key) != 32:
        raise SettingsError(f"the key file {path} is damaged: it must contain 64 hexadecimal digits")
    return key


_WANTED = {  # what is no text; the values are no secrets
    "port": "a whole number",
    "lease_ms": "a whole number of milliseconds",
    "retention_days": "a number of days",
    "log_level": "debug, info, warning or error",
    "start_tls": "true or false",
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
