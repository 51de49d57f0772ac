"""The token and the keys that the settings of a server lead to, in variables or in files beside the database."""

from __future__ import annotations

import hashlib
import re
import shlex
from pathlib import Path

from msgspec.structs import replace

from executor.blocks.vault import key_file
from executor.blocks.vault.command import SecretsCommand
from executor.errors import StoreError
from server.reach import SettingsError
from server.settings import LOST, Settings
from server.tokens import read_or_make

KEY_ITSELF = r"hex:([0-9A-Fa-f]{64})"  # WEFT_SECRET_KEY with what a key file has: its links stay valid


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
    try:
        argv = shlex.split(settings.secrets_command or "")
    except ValueError as error:
        raise SettingsError(f"WEFT_SECRETS_COMMAND cannot be read: {error}") from None
    return SecretsCommand(argv) if argv else None


def _key_of(text: str) -> bytes:
    if found := re.fullmatch(KEY_ITSELF, text):
        return bytes.fromhex(found[1])
    return hashlib.sha256(text.encode()).digest()
