"""The server's token: WEFT_TOKEN, else one that is made at the first start and kept in a file beside the database.

Only its owner can read the file (mode 0600): accounts that can read the database have the token, and other users of the
machine do not. Every command imports this, so it imports nothing heavy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from executor.blocks.vault.key_file import write_once
from server.variables import SettingsError, database_address, database_path, is_loopback

OFF = "off"  # the value of WEFT_TOKEN for no token
CHARS_MIN, CHARS_MIN_PUBLIC = 8, 20
MADE_BY = 'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'


def token_path(db_path: str) -> Path:
    return Path(db_path).with_suffix(".token")


def read_or_make(db_path: str) -> str:
    """Return the token of the file, which is created if it is missing. Raises SettingsError."""
    import secrets  # a twentieth of the start of every command

    path = token_path(db_path)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            write_once(path, "weft_" + secrets.token_urlsafe(32))
    except OSError as error:
        raise SettingsError(f"the token file {path} cannot be created: {error.strerror or error}") from None
    return read(path)


def read(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the token file {path} cannot be read: {error}") from None
    if len(token) < CHARS_MIN_PUBLIC or not is_token(token):
        raise SettingsError(f"the token file {path} is damaged: delete it, and the next start creates a new token")
    return token


def is_token(text: str) -> bool:
    """Return whether a header can hold it as one word."""
    return text.isascii() and text.isprintable() and " " not in text


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
