"""The WEFT_ variables: which there are, where the files of an installation are, and how its server is reached.

Every command reads this, so it imports nothing heavy. What the values mean is in server/settings.py.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

ENV_PREFIX = "WEFT_ENV_"
SECRET_PREFIX = "WEFT_SECRET_"  # noqa: S105 - the name of a variable, not a value
HOSTS_PREFIX = "WEFT_SECRET_HOSTS_"  # before SECRET_PREFIX, with which it begins
PLACES_PREFIX = "WEFT_SECRET_IN_"  # the same
MODEL_PREFIX = "WEFT_MODEL_"
PRICE_PREFIX = "WEFT_PRICE_"
DEFAULT_DB = "./.weft/weft.db"
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8765
DEFAULT_URL = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"
DATABASE_FILE = "weft.db"  # in the folder WEFT_DATA

# Names and the fields of server.settings.Settings that hold them: texts and numbers, comma lists, and those of `mail`.
TEXTS = {
    "WEFT_DB": "db_path",
    "WEFT_BUS_DB": "bus_address",
    "WEFT_HOST": "host",
    "WEFT_PORT": "port",
    "WEFT_TOKEN": "token",
    "WEFT_BASE_URL": "public_url",
    "WEFT_SECRET_KEY": "secret_key",
    "WEFT_OLD_SECRET_KEY": "old_secret_key",
    "WEFT_SECRETS_COMMAND": "secrets_command",
    "WEFT_NOTIFY_WEBHOOK": "notify_webhook",
    "WEFT_ALERT_WEBHOOK": "alert_webhook",
    "WEFT_ALERT_WAITING_S": "alert_waiting_s",
    "WEFT_ALERT_QUEUED_S": "alert_queued_s",
    "WEFT_ERROR_WORKFLOW": "error_workflow",
    "WEFT_PROCESSES": "processes",
    "WEFT_CONNECTORS": "connectors",
    "WEFT_DASK": "dask",
    "WEFT_LEASE_MS": "lease_ms",
    "WEFT_CONCURRENCY": "concurrency",
    "WEFT_QUEUE_MAX": "queue_max",
    "WEFT_FILE_MAX": "file_max",
    "WEFT_RETENTION_DAYS": "retention_days",
    "WEFT_METRICS_HOST": "metrics_host",
    "WEFT_METRICS_PORT": "metrics_port",
    "WEFT_OTLP_ENDPOINT": "otlp_endpoint",
    "WEFT_OTLP_HEADERS": "otlp_headers",
    "WEFT_READ_ONLY": "read_only",
    "WEFT_UNBOUND_SECRETS": "unbound_secrets",
    "WEFT_LOG": "log_level",
    "WEFT_LOG_FORMAT": "log_format",
}
LISTS = {
    "WEFT_ALLOWED_HOSTS": "allowed_hosts",
    "WEFT_ALLOW_PRIVATE": "allow_private",
    "WEFT_BEHIND_PROXY": "proxies",
    "WEFT_NOT_SECRET": "not_secret",
    "WEFT_NOTIFY_EMAIL": "notify_email",
    "WEFT_ALERT_EMAIL": "alert_email",
    "WEFT_FUNCTIONS": "functions",
    "WEFT_KUBERNETES": "kubernetes",
    "WEFT_POOLS": "pools",
    "WEFT_SQLITE_FOLDERS": "sqlite_folders",
}
MAIL = {
    "WEFT_MAIL_TRANSPORT": "transport",
    "WEFT_MAIL_FROM": "sender",
    "WEFT_MAIL_HOST": "host",
    "WEFT_MAIL_PORT": "port",
    "WEFT_MAIL_USER": "username",
    "WEFT_MAIL_PASSWORD": "password",
    "WEFT_MAIL_STARTTLS": "start_tls",
}
OIDC = {
    "WEFT_OIDC_ISSUER": "issuer",
    "WEFT_OIDC_CLIENT_ID": "client_id",
    "WEFT_OIDC_CLIENT_SECRET": "client_secret",
    "WEFT_OIDC_NAME": "name",
    "WEFT_OIDC_ROLE": "role",
    "WEFT_OIDC_GROUPS_CLAIM": "groups_claim",
    "WEFT_OIDC_PRIVATE": "private",
}
OIDC_LISTS = {
    "WEFT_OIDC_DOMAINS": "domains",
    "WEFT_OIDC_GROUPS": "groups",
    "WEFT_OIDC_SCOPES": "scopes",
}
# The folder of the files; for clients; of the other server of `weft promote`; for the installation.
OTHERS = ("WEFT_DATA", "WEFT_URL", "WEFT_TO_TOKEN", "WEFT_WEB")
# Variables of a job's container, in which commands of weft may run.
OF_JOBS = ("WEFT_CALLBACK_URL", "WEFT_IDEMPOTENCY_KEY", "WEFT_RUN")
# Variables of the test suite and the benchmarks, which start servers and commands with them set.
OF_TESTS = frozenset(
    [
        "WEFT_BENCH_DIR", "WEFT_CHROMIUM", "WEFT_CLIENT", "WEFT_CONFORMANCE_DIR", "WEFT_CRASH_KILLS",
        "WEFT_CRASH_SEED", "WEFT_FUZZ_EXAMPLES", "WEFT_SIM_SEEDS", "WEFT_SIM_START", "WEFT_SOAK_SECONDS",
        "WEFT_TEST_DATABASE", "WEFT_TEST_POOL", "WEFT_TEST_POSTGRES", "WEFT_WEB_ROOT", "WEFT_WORLD_SEEDS",
        "WEFT_WORLD_START",
    ]
)  # fmt: skip
KNOWN = (*TEXTS, *LISTS, *MAIL, *OIDC, *OIDC_LISTS, *OTHERS)
POSTGRES = ("postgresql", "postgres")  # schemes of an address in WEFT_DB
PREFIX_MIN = {4: 8, 6: 16}  # of networks of proxies: a shorter one would be most of the internet
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_REACHED_AS = {"": DEFAULT_HOST, "0.0.0.0": DEFAULT_HOST, "::": "::1"}  # noqa: S104 - names of "all interfaces"


class SettingsError(ValueError):
    """A setting is missing or wrong; the text names it and the fix."""


def check_names(environ: Mapping[str, str]) -> None:
    """Raise SettingsError for a WEFT_ name that does not exist: a misspelt setting would have no effect."""
    for name in sorted(environ):
        if not name.startswith("WEFT_") or name in (*KNOWN, *OF_JOBS) or name in OF_TESTS:
            continue
        if name.startswith((ENV_PREFIX, SECRET_PREFIX, MODEL_PREFIX, PRICE_PREFIX)):
            continue
        own = {known.removeprefix("WEFT_"): known for known in KNOWN}
        near = difflib.get_close_matches(name.removeprefix("WEFT_"), own, n=1)
        hint = (
            f"did you mean {own[near[0]]}?"
            if near
            else f"values for workflows have the form {ENV_PREFIX}<NAME>; docs/howto/run-in-production.md has the list"
        )
        raise SettingsError(f"unknown setting {name}; {hint}")


def database_path(environ: Mapping[str, str]) -> str:
    """The database file: WEFT_DB, or `weft.db` in the folder WEFT_DATA, or the default. Raises SettingsError."""
    file, folder = environ.get("WEFT_DB"), environ.get("WEFT_DATA")
    if file and folder:
        raise SettingsError(
            f"WEFT_DB and WEFT_DATA are both set: remove one of them. WEFT_DATA is the folder of {DATABASE_FILE}, "
            "its key and its token; WEFT_DB is the path of the database file itself."
        )
    if database_address(environ) is not None:
        raise SettingsError(
            "WEFT_DB is the address of a PostgreSQL database, and this works on a SQLite file. Name a file with --db, "
            "or use the tools of PostgreSQL."
        )
    for name, value in (("WEFT_DB", file), ("WEFT_DATA", folder)):
        if found := _SCHEME.match(value or ""):
            raise SettingsError(
                f"{name} must be a path, not a {found[1]}:// address. "
                + (
                    "WEFT_DB may be a postgresql:// address too. Example: WEFT_DB=/var/lib/weft/weft.db"
                    if name == "WEFT_DB"
                    else "Example: WEFT_DATA=/var/lib/weft"
                )
            )
    return os.path.join(folder, DATABASE_FILE) if folder else file or DEFAULT_DB


def database_address(environ: Mapping[str, str]) -> str | None:
    """The PostgreSQL database that WEFT_DB names instead of a file."""
    address = environ.get("WEFT_DB") or ""
    found = _SCHEME.match(address)
    return address if found and found[1].lower() in POSTGRES else None


def server_url(environ: Mapping[str, str]) -> str:
    """Return the URL for commands: WEFT_URL, else that of the server that `weft serve` starts with these settings."""
    if environ.get("WEFT_URL"):
        return environ["WEFT_URL"]
    port = environ.get("WEFT_PORT", "")
    return f"http://{authority(environ.get('WEFT_HOST', ''), DEFAULT_PORT if port in ('', '0') else port)}"


def is_address(url: str) -> bool:
    """Return whether it can be the address of a server: http or https, and a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def authority(host: str, port: int | str) -> str:
    """`host:port` under which a server that listens on `host` is reached from its own machine."""
    name = _REACHED_AS.get(host, host).strip("[]")
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches the address `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """An address, or a network that is not most of the internet. Raises ValueError."""
    try:
        found = ipaddress.ip_network(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an address or a network") from None
    if found.prefixlen < PREFIX_MIN[found.version]:
        raise ValueError(f"{text!r} has too many addresses")
    return found
