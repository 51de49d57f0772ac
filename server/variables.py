"""The WEFT_ variables: which there are, where the files of an installation are, and how its server is reached.

Every command reads this, so it imports nothing heavy. What the values mean is in server/settings.py.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
from collections.abc import Mapping

ENV_PREFIX = "WEFT_ENV_"
SECRET_PREFIX = "WEFT_SECRET_"  # noqa: S105 - the name of a variable, not a value
DEFAULT_DB = "./.weft/weft.db"
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8765
DEFAULT_URL = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"
DATABASE_FILE = "weft.db"  # in the folder WEFT_DATA

# Names and the fields of server.settings.Settings that hold them: texts and numbers, comma lists, and those of `mail`.
TEXTS = {
    "WEFT_DB": "db_path",
    "WEFT_HOST": "host",
    "WEFT_PORT": "port",
    "WEFT_TOKEN": "token",
    "WEFT_BASE_URL": "public_url",
    "WEFT_SECRET_KEY": "secret_key",
    "WEFT_NOTIFY_WEBHOOK": "notify_webhook",
    "WEFT_LEASE_MS": "lease_ms",
    "WEFT_RETENTION_DAYS": "retention_days",
    "WEFT_LOG": "log_level",
}
LISTS = {
    "WEFT_ALLOWED_HOSTS": "allowed_hosts",
    "WEFT_ALLOW_PRIVATE": "allow_private",
    "WEFT_NOT_SECRET": "not_secret",
    "WEFT_NOTIFY_EMAIL": "notify_email",
    "WEFT_FUNCTIONS": "functions",
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
OTHERS = ("WEFT_DATA", "WEFT_URL", "WEFT_WEB")  # the folder of the files; for clients; for the installation
# Those of the test suite and the benchmarks, which start servers and commands from where they are set.
OF_TESTS = frozenset(
    [
        "WEFT_BENCH_DIR", "WEFT_CHROMIUM", "WEFT_CONFORMANCE_DIR", "WEFT_CRASH_KILLS", "WEFT_CRASH_SEED",
        "WEFT_FUZZ_EXAMPLES", "WEFT_SIM_SEEDS", "WEFT_SIM_START", "WEFT_SOAK_SECONDS", "WEFT_WEB_ROOT",
        "WEFT_WORLD_SEEDS", "WEFT_WORLD_START",
    ]
)  # fmt: skip
KNOWN = (*TEXTS, *LISTS, *MAIL, *OTHERS)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_REACHED_AS = {"": DEFAULT_HOST, "0.0.0.0": DEFAULT_HOST, "::": "::1"}  # noqa: S104 - names of "all interfaces"


class SettingsError(ValueError):
    """A setting is missing or wrong; the text says which and how to fix it."""


def check_names(environ: Mapping[str, str]) -> None:
    """Raise SettingsError for a WEFT_ name that does not exist: a misspelt setting would have no effect."""
    for name in sorted(environ):
        if not name.startswith("WEFT_") or name in KNOWN or name in OF_TESTS:
            continue
        if name.startswith((ENV_PREFIX, SECRET_PREFIX)):
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
    for name, value in (("WEFT_DB", file), ("WEFT_DATA", folder)):
        if found := _SCHEME.match(value or ""):
            raise SettingsError(
                f"{name} must be a path, not a {found[1]}:// address: this version of weft keeps everything in one "
                f"SQLite file and cannot use a database server. Example: {name}="
                + ("/var/lib/weft/weft.db" if name == "WEFT_DB" else "/var/lib/weft")
            )
    return os.path.join(folder, DATABASE_FILE) if folder else file or DEFAULT_DB


def server_url(environ: Mapping[str, str]) -> str:
    """The server that commands talk to: WEFT_URL, else the one that `weft serve` starts with these settings."""
    if environ.get("WEFT_URL"):
        return environ["WEFT_URL"]
    port = environ.get("WEFT_PORT", "")
    return f"http://{authority(environ.get('WEFT_HOST', ''), DEFAULT_PORT if port in ('', '0') else port)}"


def authority(host: str, port: int | str) -> str:
    """`host:port` under which a server that listens on `host` is reached from its own machine."""
    name = _REACHED_AS.get(host, host).strip("[]")
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
