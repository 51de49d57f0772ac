"""Seals the values of secrets: AES-256-GCM with a key that is derived from the key of the installation.

A sealed value belongs to one name and one version: moved to another row it cannot be opened.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from executor.errors import BlockError, Conflict
from executor.kernel.process.extras import install
from executor.kernel.run.links import key_id
from executor.kernel.store.topics.secrets import SecretRow

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FORM: Final = b"\x01"  # of sealed text: this byte, a nonce, and the text with its tag
NONCE_BYTES: Final = 12
MISSING: Final = "secrets_missing"  # the library
KEY_HINT: Final = "the key file or WEFT_SECRET_KEY is not the one that it was set with; set the secret again"


class Keys:
    """`secret` seals and opens; those `before` it only open, until everything is sealed with the first."""

    def __init__(self, secret: bytes, *before: bytes) -> None:
        keys = [(key_id(each), each) for each in (secret, *before)]
        self.id = keys[0][0]
        self._masters = dict(reversed(keys))
        self._derived: dict[str, bytes] = {}

    def seal(self, name: str, version: int, value: str) -> bytes:
        """Raises Conflict(secrets_missing)."""
        if not _is_installed():
            raise Conflict("stored secrets need the package cryptography", code=MISSING, hint=install("secrets"))
        nonce = os.urandom(NONCE_BYTES)
        return FORM + nonce + _cipher(self._key(self.id)).encrypt(nonce, value.encode(), _about(name, version))

    def open(self, row: SecretRow) -> str:
        """Raises BlockError: secret_unreadable, secrets_missing."""
        if not _is_installed():
            message = f"the secret {row.name} cannot be opened without the package cryptography"
            raise BlockError(message, code=MISSING, retryable=False, hint=install("secrets"))
        from cryptography.exceptions import InvalidTag

        if row.key_id not in self._masters or row.sealed[:1] != FORM:
            raise _unreadable(row.name)
        nonce, text = row.sealed[1 : 1 + NONCE_BYTES], row.sealed[1 + NONCE_BYTES :]
        try:
            opened = _cipher(self._key(row.key_id)).decrypt(nonce, text, _about(row.name, row.version))
        except (InvalidTag, ValueError):
            raise _unreadable(row.name) from None
        return opened.decode()

    def has(self, key_id: str) -> bool:
        return key_id in self._masters

    def _key(self, id: str) -> bytes:
        if id not in self._derived:
            self._derived[id] = _derive(self._masters[id])
        return self._derived[id]


def _is_installed() -> bool:
    return find_spec("cryptography") is not None


def _cipher(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _derive(master: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), 32, None, b"weft secrets").derive(master)


def _about(name: str, version: int) -> bytes:
    return f"secrets\0{name}\0{version}".encode()


def _unreadable(name: str) -> BlockError:
    return BlockError(f"the secret {name} cannot be opened", code="secret_unreadable", retryable=False, hint=KEY_HINT)
