"""A session at an SFTP server, with asyncssh. The server is dialled by the rules of `http`, and must prove that it has
a host key of the connection. Nothing of this machine is used: no agent, no keys, no known hosts, no settings of SSH.

A file is written under another name beside its own, and renamed once it is whole.
"""

from __future__ import annotations

import asyncio
import getpass
import logging
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final, cast

import asyncssh
from msgspec import Struct

from executor.blocks.http.binding import check_place, opened
from executor.blocks.http.parts import SIGN_IN
from executor.blocks.services import Services
from executor.blocks.types.mail import dialled
from executor.blocks.vault.connection import PRIVATE_KEY, Credential
from executor.errors import BlockError
from executor.kernel.values.files import too_large

SIGN_IN_S: Final = 30
CLOSE_S: Final = 5
PART_BYTES: Final = 1024 * 1024
# Without certificates of host keys, and without SHA-1.
_HOST_KEYS: Final = (
    "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "rsa-sha2-512", "rsa-sha2-256",
)  # fmt: skip
_CODES: Final = {asyncssh.SFTPNoSuchFile: "sftp_not_found", asyncssh.SFTPPermissionDenied: "sftp_denied"}
_LOST: Final = (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection)
_KINDS: Final = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))

try:
    getpass.getuser()
except (KeyError, OSError):  # in a container whose user has no name, which asyncssh asks for and does not use here
    os.environ["LOGNAME"] = "weft"
logging.getLogger("asyncssh").setLevel(logging.WARNING)  # it logs each connection


class Entry(Struct, frozen=True):
    """A file, folder or link at a server. `modified` is in Unix ms."""

    path: str
    name: str
    kind: str
    size: int
    modified: int

    @property
    def id(self) -> str:
        """Another file in its place has another one."""
        return f"{self.path}/" if self.kind == "folder" else f"{self.path}:{self.modified}:{self.size}"


class _Host(asyncssh.SSHClient):
    """Checks the host key, and signs in with `key`."""

    def __init__(self, prints: Iterable[str], key: asyncssh.SSHKey | None) -> None:
        self._prints = frozenset(prints)
        self._key = key
        self.is_connected = False
        self.shown = ""

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.is_connected = True

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.shown = f"{key.get_fingerprint()} ({key.get_algorithm()})"
        return key.get_fingerprint() in self._prints

    def public_key_auth_requested(self) -> asyncssh.SSHKey | None:
        key, self._key = self._key, None  # it is asked for again when it was refused
        return key


@asynccontextmanager
async def session(
    services: Services, place: tuple[str, int], credential: Credential, timeout_s: float
) -> AsyncIterator[Session]:
    """Sign in, and leave within `timeout_s`. Raises BlockError: sftp_host_key, sftp_login, sftp_not_found, sftp_denied,
    sftp_failed, address_refused, secret_host_refused; retryable: sftp_connection, sftp_timeout."""
    host, port = place[0].strip("[]"), place[1]
    check_place("sftp", host, port, [(SIGN_IN, credential.value)])
    shown = f"{place[0]}:{port}"
    try:
        async with asyncio.timeout(timeout_s):
            connection = await _connected(services, host, port, credential)
            try:
                yield Session(await connection.start_sftp_client(path_errors="replace"))
            finally:
                connection.close()
                with suppress(TimeoutError, OSError, asyncssh.Error):
                    async with asyncio.timeout(CLOSE_S):
                        await connection.wait_closed()
                connection.abort()
    except TimeoutError:
        raise BlockError(f"{shown} did not finish within {timeout_s:g} seconds", code="sftp_timeout") from None
    except (asyncssh.Error, OSError) as error:
        if isinstance(error, asyncssh.SFTPError) and not isinstance(error, _LOST):
            code = _CODES.get(type(error), "sftp_failed")
            raise _final(code, f"{shown} answered: {error.reason[:200] or type(error).__name__}") from error
        raise BlockError(f"the connection to {shown} failed: {str(error)[:200]}", code="sftp_connection") from error


async def _connected(services: Services, host: str, port: int, credential: Credential) -> asyncssh.SSHClientConnection:
    key, password = await asyncio.to_thread(_sign_in, credential)
    lines = credential.host_key.splitlines()
    prints = [line.rstrip("=") for line in lines if line.startswith("SHA256:")]
    try:
        known = [asyncssh.import_public_key(line) for line in lines if not line.startswith("SHA256:")]
    except asyncssh.KeyImportError as error:
        message = f"the connection {credential.connection} has a host key that cannot be read: {error}"
        raise _final("sftp_host_key", message) from None
    client = _Host([*prints, *(each.get_fingerprint() for each in known)], key)
    kinds = {each.get_algorithm() for each in known}  # a fingerprint is of any kind
    fitting = [one for one in _HOST_KEYS if one in kinds or (one.startswith("rsa-") and "ssh-rsa" in kinds)]
    link, _ = await dialled(services, host, port)
    try:
        return await asyncssh.connect(
            sock=link, config=None, client_factory=lambda: client, known_hosts=(known, [], []),
            username=credential.username, password=password, client_keys=None, gss_host=None, x509_trusted_certs=None,
            preferred_auth="publickey" if key else "password,keyboard-interactive", login_timeout=SIGN_IN_S,
            server_host_key_algs=_HOST_KEYS if prints or not fitting else fitting,
        )  # fmt: skip
    except asyncssh.HostKeyNotVerifiable as error:
        why = "which is not that of the connection" if lines else "and there is none in the connection"
        hint = "compare it with that of the server, then add the connection again with the host key "
        message = f"{host}:{port} shows the host key {client.shown}, {why} {credential.connection}"
        raise _final("sftp_host_key", message, hint=hint + client.shown.partition(" ")[0]) from error
    except asyncssh.KeyExchangeFailed as error:
        message = f"{host}:{port} has no host key of the kind that is expected, or only old algorithms: {error.reason}"
        raise _final("sftp_host_key", message) from error
    except asyncssh.PermissionDenied as error:
        message = f"{host}:{port} refused the user {credential.username!r} or the {'key' if key else 'password'}"
        raise _final("sftp_login", message, answer_status=401) from error
    except ValueError as error:  # a user name that SSH cannot send
        raise _final("sftp_login", f"cannot sign in: {error}") from error
    finally:
        if not client.is_connected:
            link.close()


def _sign_in(credential: Credential) -> tuple[asyncssh.SSHKey | None, str | None]:
    """Return the private key or the password. Opening a key that has a passphrase takes a while, on purpose."""
    text = opened(credential.value)
    if not text.startswith(PRIVATE_KEY):
        return None, text
    key, end, rest = text.partition("-----END")
    line, _, passphrase = rest.lstrip().partition("\n")
    try:
        return asyncssh.import_private_key(f"{key}{end} {line}\n", passphrase.strip("\r\n") or None), None
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:  # neither has parts of the key
        message = f"the private key of the connection {credential.connection} cannot be opened: {error}"
        raise _final("sftp_login", message, hint="add it again with all its lines, and with its passphrase") from None


class Session:
    """A session. Its methods raise the errors of asyncssh, which `session` makes BlockErrors, and BlockError."""

    def __init__(self, client: asyncssh.SFTPClient) -> None:
        self._client = client

    async def find(self, path: str) -> Entry | None:
        try:
            return _entry(path, await self._client.lstat(path))
        except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath):
            return None

    async def names(self, folder: str) -> AsyncGenerator[Entry]:
        async with aclosing(cast("AsyncGenerator[asyncssh.SFTPName]", self._client.scandir(folder))) as names:
            async for one in names:
                name = one.filename
                assert isinstance(name, str), "the folder is one"
                if name not in (".", ".."):
                    yield _entry(name if folder == "." else f"{folder.rstrip('/')}/{name}", one.attrs)

    async def stat(self, path: str) -> Entry:
        """`find`, of what a link leads to."""
        return _entry(path, await self._client.stat(path))

    async def content(self, entry: Entry, bytes_max: int) -> AsyncGenerator[bytes]:
        """Yield the parts of a file. Raises LimitExceeded, BlockError; sftp_changed if it is another one at its end."""
        if entry.kind != "file":  # a pipe would have no end
            raise _final("sftp_failed", f"{entry.path[:200]!r} is not a file")
        if entry.size > bytes_max:
            raise too_large(bytes_max)
        async with self._client.open(entry.path, "rb") as file:
            while part := cast("bytes", await file.read(PART_BYTES)):
                yield part
            if _entry(entry.path, await file.stat()) != entry:
                raise BlockError(f"{entry.path[:200]!r} changed while it was read", code="sftp_changed")

    async def write(self, path: str, content: AsyncIterable[bytes], size: int) -> None:
        """Write all of a file, in the place of one that is there."""
        try:
            async with self._client.open(path, "wb") as file:
                async for part in content:
                    await file.write(part)
                with suppress(asyncssh.SFTPOpUnsupported):
                    await file.fsync()
        except asyncssh.SFTPError:  # such as a full disk
            await self.discard(path)
            raise
        found = await self.find(path)
        if found is None or found.size != size:
            message = f"the server has {0 if found is None else found.size:,} of {size:,} bytes"
            raise BlockError(message, code="sftp_failed")

    async def place(self, part: str, path: str, *, overwrite: bool) -> None:
        """`rename` what was written; if that fails, it is discarded. Raises BlockError(sftp_exists)."""
        try:
            await self.rename(part, path, overwrite=overwrite)
        except (asyncssh.SFTPError, BlockError) as error:
            if not isinstance(error, _LOST):
                await self.discard(part)
            raise

    async def rename(self, old: str, new: str, *, overwrite: bool) -> None:
        """Raises BlockError(sftp_exists)."""
        if overwrite:
            with suppress(asyncssh.SFTPOpUnsupported):
                return await self._client.posix_rename(old, new)
        await self.check_free(new)
        await self._client.rename(old, new)

    async def check_free(self, path: str) -> None:
        """Raises BlockError(sftp_exists)."""
        if await self.find(path) is not None:
            hint = "let the block overwrite it; if it does, this server replaces no files: delete it before"
            raise _final("sftp_exists", f"{path[:200]!r} is there already", hint=hint)

    async def discard(self, path: str) -> None:
        with suppress(asyncssh.SFTPError):
            await self._client.remove(path)

    async def remove(self, entry: Entry) -> None:
        with suppress(asyncssh.SFTPNoSuchFile):
            await (self._client.rmdir if entry.kind == "folder" else self._client.remove)(entry.path)

    async def make(self, folder: str) -> None:
        """Make a folder and those above it that are missing."""
        await self._client.makedirs(folder, exist_ok=True)


def _entry(path: str, attrs: asyncssh.SFTPAttrs) -> Entry:
    mode = attrs.permissions or 0
    kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "other")
    name = path.rstrip("/").rpartition("/")[2] or path
    return Entry(path, name, kind, attrs.size or 0, (attrs.mtime or 0) * 1000)


def _final(code: str, message: str, **more: Any) -> BlockError:
    return BlockError(message, code=code, retryable=False, **more)
