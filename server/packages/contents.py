"""The contents of a package, read from its bytes: nothing of it is imported or executed.

A package is a JSON file with connectors and a manifest (`weft-package/1`), a single connector document, or a wheel with
the entry points `weft.connectors` and `weft.blocks`.
"""

from __future__ import annotations

import configparser
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from email.parser import HeaderParser
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from msgspec import Struct

from executor.blocks.connectors.document import FORMAT as CONNECTOR_FORMAT
from executor.blocks.connectors.document import Connector
from executor.blocks.connectors.stored import GROUP
from executor.blocks.connectors.validate import checked, read
from executor.errors import BadRequest

FORMAT: Final = "weft-package/1"
BYTES_MAX: Final = 20 * 1024 * 1024
FILES_MAX: Final = 2_000  # of a wheel
UNPACKED_MAX: Final = 100 * 1024 * 1024
NAME: Final = re.compile(r"[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?")
_PLACE: Final = re.compile(r"\{\{[^}]*\}\}")


class Package(Struct, frozen=True):
    """`documents`: its connectors, by file. `blocks`: entry points of block types, which are Python code. `requires`:
    what else has to be installed. `hosts` and `scopes`: what its connectors use."""

    name: str
    version: str
    is_wheel: bool
    documents: dict[str, bytes]
    connectors: tuple[Connector, ...]
    hosts: tuple[str, ...]
    scopes: tuple[str, ...]
    blocks: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()

    def check_declared(self, hosts: Sequence[str], scopes: Sequence[str], by: str) -> None:
        """Raises BadRequest if the package uses more than was declared."""
        for what, used, declared in (("host", self.hosts, hosts), ("scope", self.scopes, scopes)):
            more = sorted(set(used) - set(declared))
            if more:
                raise refused(
                    f"the package {self.name} uses the {what} {more[0]!r}, which {by} does not declare: it has "
                    f"{', '.join(sorted(declared)) or 'none'}"
                )


def refused(message: str, hint: str = "Nothing was installed.") -> BadRequest:
    return BadRequest(message, code="package_refused", hint=hint)


def open_package(file: str, data: bytes) -> Package:
    """Read a package; `file` is the name of its file. Raises BadRequest."""
    if len(data) > BYTES_MAX:
        raise refused(f"the file {file} is larger than {BYTES_MAX // 1024**2} MiB")
    return _wheel(file, data) if file.endswith(".whl") else _document(file, data)


def hosts_of(connectors: Iterable[Connector]) -> tuple[str, ...]:
    """Return the hosts to which connectors send requests. `*` is a part that a field or a credential fills in."""
    return tuple(sorted({host for one in connectors for address in _addresses(one) if (host := _host(address))}))


def scopes_of(connectors: Iterable[Connector]) -> tuple[str, ...]:
    """Return the scopes that connectors need, as `provider: scope`."""
    found = {f"{one.auth.provider}: {scope}" for one in connectors for scope in one.auth.scopes.split()}
    return tuple(sorted(found))


def packed(name: str, version: str, documents: Iterable[Any]) -> dict[str, Any]:
    """Return a JSON package of connector documents. Raises BadRequest."""
    given = list(documents)
    connectors = [checked(one) for one in given]
    hosts, scopes = hosts_of(connectors), scopes_of(connectors)
    return {"format": FORMAT, "name": name, "version": version, "hosts": hosts, "scopes": scopes, "connectors": given}


def _addresses(connector: Connector) -> Iterator[str]:
    yield connector.base_url
    yield from (one.base_url for one in connector.operations.values() if one.base_url)


def _host(address: str) -> str:
    parts = urlsplit(_PLACE.sub("WEFT-ANY", address))
    host = (parts.hostname or "").replace("weft-any", "*")
    return f"{host}:{parts.port}" if parts.port is not None else host


def _document(file: str, data: bytes) -> Package:
    try:
        found: Any = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise refused(f"the file {file} is neither a wheel nor JSON: {error}") from None
    format = found.get("format") if isinstance(found, dict) else None
    if format == CONNECTOR_FORMAT:
        return _made(found.get("service", ""), "", False, {file: data})
    if format != FORMAT:
        raise refused(f"the format of {file} is {format!r}, not {FORMAT} or {CONNECTOR_FORMAT}")
    name, version, listed = found.get("name"), found.get("version"), found.get("connectors")
    if not isinstance(name, str) or NAME.fullmatch(name) is None or not isinstance(version, str):
        raise refused(f"the file {file} has no name of small letters, digits, ., _ and -, or no version")
    if not isinstance(listed, list) or not listed:
        raise refused(f"the file {file} has no connectors")
    package = _made(name, version, False, {f"connectors/{n}": orjson.dumps(one) for n, one in enumerate(listed)})
    package.check_declared(_texts(found, "hosts", file), _texts(found, "scopes", file), "its manifest")
    return package


def _texts(found: dict[str, Any], name: str, file: str) -> list[str]:
    value = found.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise refused(f"the {name} of {file} must be a list of texts")
    return value


def _made(name: str, version: str, is_wheel: bool, documents: dict[str, bytes], **more: tuple[str, ...]) -> Package:
    connectors = []
    for file, data in documents.items():
        try:
            connectors.append(read(data))
        except BadRequest as error:
            [first, *_] = error.extra["errors"]
            raise refused(f"the connector {file} is not valid: {first['pointer'] or '/'}: {first['message']}") from None
    used = hosts_of(connectors), scopes_of(connectors)
    return Package(name, version, is_wheel, documents, tuple(connectors), *used, **more)


def _wheel(file: str, data: bytes) -> Package:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if len(infos) > FILES_MAX or sum(one.file_size for one in infos) > UNPACKED_MAX:
                raise refused(f"the file {file} has more than {FILES_MAX} files or {UNPACKED_MAX // 1024**2} MiB")
            for one in infos:
                if one.filename.startswith("/") or ".." in one.filename.split("/"):
                    raise refused(f"the file {file} has a file outside of itself: {one.filename[:200]}")
            return _of_archive(file, archive, [one.filename for one in infos])
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError, configparser.Error) as error:
        raise refused(f"the file {file} is no wheel: {error}") from None


def _of_archive(file: str, archive: zipfile.ZipFile, names: list[str]) -> Package:
    about = [name for name in names if name.count("/") == 1 and name.endswith(".dist-info/METADATA")]
    if len(about) != 1:
        raise refused(f"the file {file} is no wheel: it has {len(about)} files METADATA")
    metadata = HeaderParser().parsestr(archive.read(about[0]).decode())
    points = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    listed = about[0].replace("METADATA", "entry_points.txt")
    if listed in names:
        points.read_string(archive.read(listed).decode())
    documents: dict[str, bytes] = {}
    for module in dict(points[GROUP]).values() if points.has_section(GROUP) else ():
        folder = module.partition(":")[0].strip().replace(".", "/") + "/"
        inside = [name for name in names if name.startswith(folder) and "/" not in name.removeprefix(folder)]
        documents |= {name: archive.read(name) for name in inside if name.endswith(".json")}
    blocks = tuple(points["weft.blocks"]) if points.has_section("weft.blocks") else ()
    if not documents and not blocks:
        raise refused(
            f"{file} brings neither connectors nor blocks: it has no entry points weft.connectors, weft.blocks"
        )
    name, requires = str(metadata["Name"]).lower().replace("_", "-"), metadata.get_all("Requires-Dist") or ()
    more = tuple(one for one in requires if "extra ==" not in one and not re.match(r"weft\b(?!-)", one))
    # Finding connectors imports their package.
    code = tuple(
        one for one in names if one.endswith((".py", ".so", ".pyd", ".pth")) and archive.getinfo(one).file_size
    )
    return _made(name, str(metadata["Version"]), True, documents, blocks=blocks or code[:1], requires=more)
