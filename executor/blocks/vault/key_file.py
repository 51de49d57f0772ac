"""The key file beside a database: 64 hexadecimal digits, for its owner alone (mode 0600). A server and programs on the
same SQLite file have the same key by it. Every command imports this, so it imports nothing heavy.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from executor.errors import StoreError

KEY_BYTES: Final = 32


def key_path(database: Path | str) -> Path:
    return Path(database).with_suffix(".key")


def read_or_make(path: Path) -> tuple[bytes, bool]:
    """Return the key, and True if its file was made just now. Raises StoreError."""
    is_new = not path.exists()
    if is_new:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_once(path, os.urandom(KEY_BYTES).hex())
        except OSError as error:
            message = f"the key file {path} cannot be created: {error.strerror or error}"
            raise StoreError(message, code="key_unwritable") from None
    return read(path), is_new


def read(path: Path) -> bytes:
    """Raises StoreError."""
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError) as error:
        raise StoreError(f"the key file {path} cannot be read: {error}", code="key_unreadable") from None
    if len(key) != KEY_BYTES:
        message = f"the key file {path} is damaged: it must contain {2 * KEY_BYTES} hexadecimal digits"
        raise StoreError(message, code="key_unreadable")
    return key


def write_once(path: Path, text: str) -> None:
    """Write a file for its owner alone, and link it into place: two processes that start together agree on one."""
    draft = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        os.unlink(draft)
