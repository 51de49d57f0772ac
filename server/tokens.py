"""The server's token: WEFT_TOKEN, else one that is made at the first start and kept in a file beside the database.

Only its owner can read the file (mode 0600): accounts that can read the database have the token, and other users of the
machine do not. Every command imports this, so it imports nothing heavy.
"""

from __future__ import annotations

from executor.blocks.vault.key_file import write_once
from server.reach import SettingsError, read, token_path

CHARS_MIN = 8
MADE_BY = 'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'


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
