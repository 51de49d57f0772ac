"""Signed lists of packages: an operator chooses one, by its address and its public key (Ed25519).

Beside the list lies its signature, `index.json.sig`, of the bytes as they are. What it lists has a hash there, so
packages may lie anywhere.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

import msgspec
from msgspec import Struct

from executor.kernel.process.extras import install
from server.packages.contents import BYTES_MAX, NAME, Package, open_package, refused

FORMAT: Final = "weft-index/1"
TIMEOUT_S: Final = 30.0


class Entry(Struct, frozen=True):
    """A package in a list. `file`: its address, seen from that of the list."""

    name: str
    version: str
    file: str
    sha256: str
    hosts: list[str] = []
    scopes: list[str] = []
    code: bool = False

    def checked(self, data: bytes) -> Package:
        """Return the package, which is as the index describes it. Raises BadRequest."""
        found = sha256(data)
        if found != self.sha256:
            raise refused(
                f"the file {self.file} has the hash {found}, and the index lists {self.sha256}: it is another file"
            )
        package = open_package(name_of(self.file), data)
        if (package.name, package.version) != (self.name, self.version):
            raise refused(
                f"{self.file} is {package.name} {package.version}, and the index lists {self.name} {self.version}"
            )
        if package.blocks and not self.code:
            raise refused(
                f"the file {self.file} has Python code ({package.blocks[0]}), which the index does not declare"
            )
        package.check_declared(self.hosts, self.scopes, "the index")
        return package


class Index(Struct, frozen=True):
    packages: list[Entry]
    format: str = FORMAT

    def find(self, name: str, version: str = "") -> Entry:
        """Return the package of this name, of several versions the last one. Raises BadRequest."""
        found = [one for one in self.packages if one.name == name and version in ("", one.version)]
        if not found:
            of_name = [one.version for one in self.packages if one.name == name]
            listed = ", ".join(of_name or sorted({one.name for one in self.packages})) or "none"
            raise refused(f"the index has no package {name} {version}".rstrip(), f"It has: {listed[:1000]}")
        return found[-1]


def read_index(location: str, key: str) -> Index:
    """Read a list and check its signature. Raises BadRequest."""
    data, signature = read_location(location), read_location(f"{location}.sig")
    _check(data, signature, key, location)
    try:
        index = msgspec.json.decode(data, type=Index)
    except msgspec.DecodeError as error:
        raise refused(f"the file {location} is no index: {error}") from None
    if index.format != FORMAT:
        raise refused(f"the format of {location} is {index.format!r}, not {FORMAT}")
    return index


def index_of(files: Mapping[str, bytes]) -> bytes:
    """Return the list of these packages, by file. Raises BadRequest."""
    entries = []
    for file, data in files.items():
        package = open_package(name_of(file), data)
        if not package.version or NAME.fullmatch(package.name) is None:
            raise refused(f"the file {file} has no version: `weft packages pack` makes a package of a document", "")
        given = file, sha256(data), list(package.hosts), list(package.scopes), bool(package.blocks)
        entries.append(Entry(package.name, package.version, *given))
    return msgspec.json.format(msgspec.json.encode(Index(entries)), indent=1) + b"\n"


def read_location(location: str) -> bytes:
    """Return the bytes of a file or of an http:// or https:// address. Raises BadRequest."""
    if urlsplit(location).scheme in ("http", "https"):
        data = _downloaded(location)
    else:
        try:
            with Path(location).open("rb") as file:
                data = file.read(BYTES_MAX + 1)
        except OSError as error:
            raise refused(f"the file {location} cannot be read: {error.strerror or error}") from None
    if len(data) > BYTES_MAX:
        raise refused(f"the file {location} is larger than {BYTES_MAX // 1024**2} MiB")
    return data


def _downloaded(location: str) -> bytes:
    import httpx  # not for files

    data = b""
    try:
        with httpx.stream("GET", location, timeout=TIMEOUT_S) as answer:
            if answer.status_code != 200:
                raise refused(f"the file {location} answers {answer.status_code}")
            for part in answer.iter_bytes():
                data += part
                if len(data) > BYTES_MAX:
                    break
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise refused(f"the file {location} cannot be read: {error}") from None
    return data


def beside(location: str, file: str) -> str:
    """Return the address of a file that a list names."""
    if urlsplit(file).scheme in ("http", "https"):
        return file
    if urlsplit(location).scheme in ("http", "https"):
        return urljoin(location, file)
    return str(Path(location).parent / file)


def name_of(location: str) -> str:
    """Return the name of the file at an address."""
    return urlsplit(location).path.rpartition("/")[2]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def new_key() -> tuple[str, str]:
    """Return a private key and its public key, in base64."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    made = Ed25519PrivateKey.generate()
    return _text(made.private_bytes_raw()), _text(made.public_key().public_bytes_raw())


def sign(data: bytes, key: str) -> bytes:
    """Return the signature, in base64. Raises BadRequest."""
    needs_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.from_private_bytes(_bytes(key, 32, "the private key"))
    return f"{_text(private.sign(data))}\n".encode()


def _check(data: bytes, signature: bytes, key: str, location: str) -> None:
    needs_cryptography()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    public = Ed25519PublicKey.from_public_bytes(_bytes(key, 32, "WEFT_PACKAGES_KEY"))
    try:
        public.verify(_bytes(signature.decode("ascii", "replace"), 64, f"{location}.sig"), data)
    except InvalidSignature:
        raise refused(
            f"{location} is not signed with the key of this installation, or was changed after that"
        ) from None


def needs_cryptography() -> None:
    """Raises BadRequest without the library."""
    if find_spec("cryptography") is None:
        raise refused("signatures need the package cryptography", install("secrets"))


def _bytes(text: str, count: int, what: str) -> bytes:
    try:
        found = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != count:
        raise refused(f"{what} must be {count} bytes in base64")
    return found


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
