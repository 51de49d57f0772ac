"""`weft add`, `weft packages` and `weft new-connector`: connectors and blocks that others have made, and making one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from server.cli.common import Refused, call, counted, refused_by, show
from server.cli.render import plain

if TYPE_CHECKING:
    from server.packages.contents import Package
    from server.packages.index import Index

INDEX = click.option("--index", envvar="WEFT_PACKAGES", metavar="FILE|URL", help="A signed index (WEFT_PACKAGES).")
KEY = click.option("--key", envvar="WEFT_PACKAGES_KEY", metavar="KEY", help="Its public key (WEFT_PACKAGES_KEY).")


@click.command()
@click.argument("package", metavar="NAME[==VERSION]|FILE|URL")
@click.option("--to", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER", help="Put it there instead.")
@click.option("--sha256", "hash", metavar="HASH", help="The file must have this hash. Needed for a URL.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@INDEX
@KEY
@click.pass_obj
def add(
    url: str, package: str, to: Path | None, hash: str | None, yes: bool, index: str | None, key: str | None
) -> None:
    """Install connectors and blocks that others have made.

    NAME is a package of a signed index; FILE or URL is a package itself: a wheel, or JSON. It is checked, and shown
    with the hosts and scopes that it uses, before anything of it is installed. JSON is added to the server, or written
    to FOLDER; a wheel is installed in this Python, or in FOLDER, without what it requires.
    """
    from executor.errors import WeftError

    try:
        file, data, found, source = _found(package, hash, index, key)
    except WeftError as error:
        raise refused_by(error) from None
    for line in _described(found, source):
        click.echo(plain(line))
    if not yes and not click.confirm("Install it?"):
        raise Refused("Nothing was installed.", code=1)
    if found.is_wheel:
        _install(file, data, to)
    elif to is not None:
        to.mkdir(parents=True, exist_ok=True)
        for one, document in zip(found.connectors, found.documents.values(), strict=True):
            (to / f"{one.service}.json").write_bytes(document)
    else:
        for document in found.documents.values():
            _put(url, document)
    where = f" in {to}" if to is not None else "" if found.is_wheel else " on the server"
    click.echo(f"Installed {plain(found.name)} {plain(found.version)}".rstrip() + f"{where}.")


def _found(package: str, hash: str | None, index: str | None, key: str | None) -> tuple[str, bytes, Package, str]:
    """Return the name of the file, its bytes, what is in it, and where it is from. Raises BadRequest."""
    from server.packages.contents import open_package, refused
    from server.packages.index import beside, name_of, read_location, sha256

    is_address = "://" in package
    if not is_address and not Path(package).is_file() and not package.endswith((".whl", ".json")):
        name, _, version = package.partition("==")
        location, known = _index(index, key)
        entry = known.find(name, version)
        data = read_location(beside(location, entry.file))
        return name_of(entry.file), data, entry.checked(data), f"signed, of {location}"
    if is_address and hash is None:
        raise refused("a package at an address needs its hash: --sha256 HASH, from who made it")
    data = read_location(package)
    found = sha256(data)
    if hash is not None and found != hash.lower():
        raise refused(f"{package} has the hash {found}, not {hash}: it is another file")
    file = name_of(package) if is_address else Path(package).name
    return file, data, open_package(file, data), f"{package}, not signed, sha256 {found}"


def _index(index: str | None, key: str | None) -> tuple[str, Index]:
    from server.packages.index import read_index

    if not index:
        raise Refused(
            "There is no index of packages.",
            "Set WEFT_PACKAGES to its address and WEFT_PACKAGES_KEY to its public key.",
        )
    if not key:
        raise Refused(f"There is no key for the index {index}.", "Set WEFT_PACKAGES_KEY to its public key.")
    return index, read_index(index, key)


def _described(found: Package, source: str) -> Iterator[str]:
    yield f"{found.name} {found.version}".rstrip() + f" ({source})"
    for one in found.connectors:
        left = " (left out: weft has one of this service)" if found.is_wheel and _is_of_weft(one.service) else ""
        yield f"  connector.{one.service}: {one.title}, {counted(len(one.operations), 'operation')}{left}"
    yield f"  sends requests to: {', '.join(found.hosts) or 'no host'}"
    if found.scopes:
        yield f"  asks for the scopes: {', '.join(found.scopes)}"
    if found.blocks:
        yield f"  has Python code ({', '.join(found.blocks)}): it can do all that the server can"
    if found.requires:
        yield f"  requires what is not installed with it: {', '.join(found.requires)}"


def _is_of_weft(service: str) -> bool:
    return files("executor.blocks.connectors").joinpath("services", f"{service}.json").is_file()


def _put(url: str, document: bytes) -> None:
    call(url, lambda client: client.put_connector(json.loads(document)))


def _install(file: str, data: bytes, to: Path | None) -> None:
    with TemporaryDirectory(prefix="weft-package-") as folder:
        wheel = Path(folder, file)
        wheel.write_bytes(data)  # what was checked, wherever it was read from
        place = () if to is None else ("--target", str(to.resolve()), "--upgrade")
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", *place, str(wheel)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # no text of others but the name of the file
    if done.returncode != 0:
        raise Refused(f"pip could not install {file}: {done.stderr.strip()[-1000:]}")


@click.group()
def packages() -> None:
    """Packages of connectors and blocks, and signed indexes of them."""


@packages.command(name="list")
@INDEX
@KEY
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def list_packages(index: str | None, key: str | None, as_json: bool) -> None:
    """List the packages of the index, whose signature is checked."""
    from executor.errors import WeftError

    try:
        _, known = _index(index, key)
    except WeftError as error:
        raise refused_by(error) from None
    code = {True: "  Python code", False: ""}
    lines = [plain(f"{one.name} {one.version}  {', '.join(one.hosts)}{code[one.code]}") for one in known.packages]
    show(to_builtins(known.packages), as_json, lines, "The index has no packages.")


@packages.command()
@click.argument("documents", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--name", required=True, help="Name of the package.")
@click.option("--version", required=True, help="Its version.")
@click.option("-o", "--to", "target", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
def pack(documents: tuple[Path, ...], name: str, version: str, target: Path) -> None:
    """Make a JSON package of connector DOCUMENTS, with a manifest of the hosts and scopes that they use."""
    from executor.errors import WeftError
    from server.packages.contents import open_package, packed

    try:
        made = json.dumps(packed(name, version, [json.loads(one.read_bytes()) for one in documents]), indent=1).encode()
        found = open_package(target.name, made)
    except json.JSONDecodeError as error:
        raise Refused(f"A document is no JSON: {error}.") from None
    except WeftError as error:
        raise refused_by(error) from None
    target.write_bytes(made + b"\n")
    for line in _described(found, str(target)):
        click.echo(plain(line))


@packages.command(name="key")
@click.option("-o", "--to", "target", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
def make_key(target: Path) -> None:
    """Make a key that signs indexes: FILE has the private key, and its public key is printed."""
    from executor.errors import WeftError
    from server.packages.index import needs_cryptography, new_key

    try:
        needs_cryptography()
    except WeftError as error:
        raise refused_by(error) from None
    private, public = new_key()
    try:
        target.touch(mode=0o600, exist_ok=False)
    except OSError as error:
        raise Refused(f"{target} cannot be made: {error.strerror or error}.") from None
    target.write_text(f"{private}\n")
    click.echo(public)


@packages.command()
@click.argument("listed", metavar="PACKAGE…", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--signing-key", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--to", "target", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
def index(listed: tuple[str, ...], signing_key: Path, target: Path) -> None:
    """Write a signed index of packages: FILE and FILE.sig. The packages lie beside it, or below."""
    from executor.errors import WeftError
    from server.packages.index import index_of, sign

    folder = target.resolve().parent
    try:
        named = {str(Path(one).resolve().relative_to(folder)): Path(one).read_bytes() for one in listed}
        data = index_of(named)
        signature = sign(data, signing_key.read_text())
    except WeftError as error:
        raise refused_by(error) from None
    except ValueError:
        raise Refused(f"The packages have to lie in {folder}, beside the index.") from None
    target.write_bytes(data)
    Path(f"{target}.sig").write_bytes(signature)
    click.echo(f"{counted(len(named), 'package')} in {target}, signed in {target}.sig")


@click.command(name="new-connector")
@click.argument("name")
@click.option("--to", type=click.Path(path_type=Path), metavar="FOLDER", help="Default: weft-NAME.")
def new_connector(name: str, to: Path | None) -> None:
    """Write a repository of a connector NAME.

    It has the document, tests that pass, a README, and what makes it a package."""
    if re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) is None:
        raise Refused(f"NAME must have small letters, digits and _ only, and begin with a letter, not {name!r}.")
    if _is_of_weft(name):
        raise Refused(f"weft has a connector {name}, which a package cannot replace.", "Use another name.")
    folder = to or Path(f"weft-{name.replace('_', '-')}")
    if folder.exists() and any(folder.iterdir()):
        raise Refused(f"{folder} is not empty.")
    for source, place in _template(files("server.packages").joinpath("template")):
        target = folder / place.replace("NAME", name).removesuffix(".in")
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text().replace("@NAME@", name).replace("@TITLE@", name.replace("_", " ").title())
        target.write_text(text.replace("@DIST@", f"weft-{name.replace('_', '-')}"))
    click.echo(f"{folder} has a connector with two operations. Its tests: cd {folder} && python -m pytest")


def _template(folder: Traversable, place: str = "") -> Iterator[tuple[Traversable, str]]:
    for one in sorted(folder.iterdir(), key=lambda each: each.name):
        if one.is_dir():
            yield from _template(one, f"{place}{one.name}/")
        else:
            yield one, f"{place}{one.name}"
