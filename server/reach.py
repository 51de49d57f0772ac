"""Paths of the files of an installation, and how a program finds its server and the token for it.

Every command and client reads this, so it imports nothing heavy, and nothing of weft: it is in the wheel of weft-client
too (docs/client_wheel.py).
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

DEFAULT_DB = "./.weft/weft.db"
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8765
DEFAULT_URL = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"
DATABASE_FILE = "weft.db"  # in the folder WEFT_DATA
POSTGRES = ("postgresql", "postgres")  # schemes of an address in WEFT_DB
OFF = "off"  # the value of WEFT_TOKEN for no token
CHARS_MIN_PUBLIC = 20  # of a token in a file, or of a server that others reach
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_REACHED_AS = {"": DEFAULT_HOST, "0.0.0.0": DEFAULT_HOST, "::": "::1"}  # noqa: S104 - names of "all interfaces"


class SettingsError(ValueError):
    """A setting is missing or wrong; the text names it and the fix."""


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


def find(environ: Mapping[str, str], url: str) -> str | None:
    """Return the token that a command sends to the server at `url`, or None if there is none: WEFT_TOKEN, else the
    token of the file, which is sent to a server on this machine only. Raises SettingsError."""
    token = environ.get("WEFT_TOKEN")
    if token:
        return None if token == OFF else token
    if not is_loopback(urlsplit(url).hostname or ""):
        return None
    if database_address(environ) is not None:
        return None  # of several servers: the token is WEFT_TOKEN
    path = token_path(database_path(environ))
    return read(path) if os.access(path, os.R_OK) else None


def is_token(text: str) -> bool:
    """Return whether a header can hold it as one word."""
    return text.isascii() and text.isprintable() and " " not in text


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


def token_path(db_path: str) -> Path:
    return Path(db_path).with_suffix(".token")


def read(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the token file {path} cannot be read: {error}") from None
    if len(token) < CHARS_MIN_PUBLIC or not is_token(token):
        raise SettingsError(f"the token file {path} is damaged: delete it, and the next start creates a new token")
    return token
