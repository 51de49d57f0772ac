"""An SFTP server on loopback, of a folder. It takes the user `ada` with a password or a key, and cuts connections."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh

from executor.blocks.vault.connection import Connection

PASSWORD = "a password of ada"
PASSPHRASE = "the passphrase of the key"


class Sftp:
    """`cut` ends the connection once: `write` in the middle of a file, or `before:` or `after:` another request, such
    as `after:posix_rename`. `asked` has the names of requests, `users` who signed in. `others`: other programs take
    away what arrives in the folder out, and put a new file in the place of one that went."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = 0
        self.cut = ""
        self.others = False
        self.asked: list[str] = []
        self.users: list[str] = []
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")
        self.key = asyncssh.generate_private_key("ssh-ed25519")

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def fingerprint(self) -> str:
        return self.host_key.get_fingerprint()

    @property
    def public_key(self) -> str:
        return self.host_key.export_public_key().decode().strip()

    def private_key(self, passphrase: str | None = None) -> str:
        return self.key.export_private_key("openssh", passphrase, rounds=1).decode()

    def connection(self, secret: str = PASSWORD, passphrase: str = "", host_key: str | None = None) -> Connection:
        host_key = self.fingerprint if host_key is None else host_key
        return Connection("ssh", secret, "ada", passphrase=passphrase, host_key=host_key)


class _Files(asyncssh.SFTPServer):
    def __init__(self, chan: asyncssh.SSHServerChannel[bytes], sftp: Sftp) -> None:
        super().__init__(chan, chroot=str(sftp.root).encode())
        self._sftp = sftp

    def _cuts(self, at: str) -> bool:
        if self._sftp.cut != at:
            return False
        self._sftp.cut = ""
        self.channel.get_connection().abort()
        return True

    def _ask(self, name: str, *args: Any) -> Any:
        self._sftp.asked.append(name)
        if self._cuts(f"before:{name}"):
            raise asyncssh.SFTPFailure("cut")
        result = getattr(super(), name)(*args)
        if self._sftp.others and name in ("posix_rename", "remove"):
            self._at_work(*(self._sftp.root / path.decode().lstrip("/") for path in args))
        if self._cuts(f"after:{name}"):
            raise asyncssh.SFTPFailure("cut")
        return result

    def _at_work(self, gone: Path, new: Path | None = None) -> None:
        if not gone.name.startswith("."):
            gone.write_text("a new one")
        elif new is not None and new.parent.name == "out":
            new.rename(self._sftp.root / f"taken-{len(self._sftp.asked)}")

    def write(self, file_obj: object, offset: int, data: bytes) -> int:
        if self._sftp.cut == "write":
            super().write(file_obj, offset, data[: len(data) // 2])
            self._cuts("write")
            raise asyncssh.SFTPFailure("cut")
        return super().write(file_obj, offset, data)  # type: ignore[return-value]  # it is not asynchronous

    def posix_rename(self, oldpath: bytes, newpath: bytes) -> None:
        self._ask("posix_rename", oldpath, newpath)

    def rename(self, oldpath: bytes, newpath: bytes) -> None:
        self._ask("rename", oldpath, newpath)

    def remove(self, path: bytes) -> None:
        self._ask("remove", path)

    def mkdir(self, path: bytes, attrs: asyncssh.SFTPAttrs) -> None:
        self._ask("mkdir", path, attrs)


class _Users(asyncssh.SSHServer):
    def __init__(self, sftp: Sftp) -> None:
        self._sftp = sftp

    def password_auth_supported(self) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return self._enter(username, password == PASSWORD)

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return self._enter(username, key.public_data == self._sftp.key.public_data)

    def _enter(self, username: str, fits: bool) -> bool:
        self._sftp.users += [username] if fits else []
        return fits and username == "ada"


@asynccontextmanager
async def sftp(root: Path, port: int = 0, **options: Any) -> AsyncIterator[Sftp]:
    root.mkdir(parents=True, exist_ok=True)
    server = Sftp(root)
    keys = options.pop("server_host_keys", [server.host_key])
    async with asyncssh.listen(
        "127.0.0.1", port, server_factory=lambda: _Users(server), server_host_keys=keys,
        sftp_factory=lambda chan: _Files(chan, server), config=[], **options,
    ) as listener:  # fmt: skip
        server.port = listener.get_port()
        yield server
