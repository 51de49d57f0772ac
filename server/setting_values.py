"""Values of settings that have the right type and still cannot be meant. Each check raises SettingsError, which names
the variable."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from server.variables import SettingsError

_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")  # of Kubernetes: a DNS label
_HOST = re.compile(r"[A-Za-z0-9_.:\[\]%-]+")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_url(variable: str, url: str, *, bare: bool = False) -> None:
    """Check a URL. `bare`: without user, query and fragment, as paths are appended to it."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise SettingsError(f"{variable} must be a URL such as https://weft.example") from None
    if parts.scheme not in ("http", "https"):
        raise SettingsError(f"{variable} must start with http:// or https://")
    if not parts.hostname:
        raise SettingsError(f"{variable} must be a URL with a host, such as https://weft.example")
    if bare and (parts.query or parts.fragment or parts.username is not None):
        raise SettingsError(f"{variable} must be a URL without user, query and fragment")


def check_addresses(variable: str, addresses: Iterable[str]) -> None:
    for address in addresses:
        if "@" not in address.strip("@") or any(character.isspace() for character in address):
            raise SettingsError(f"{variable} must be mail addresses separated by commas, not {address!r}")


def check_host(variable: str, port_variable: str, host: str) -> None:
    if not _HOST.fullmatch(host):
        raise SettingsError(f"{variable} must be an address or a name such as 127.0.0.1, not {host!r}")
    if re.fullmatch(r"[^:\[\]]+:\d+", host):
        raise SettingsError(f"{variable} must be an address without a port, not {host!r}. The port is {port_variable}")


def check_allowed_hosts(hosts: Iterable[str]) -> None:
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise SettingsError(
                f"WEFT_ALLOWED_HOSTS must be names, with or without :port, separated by commas, not {host!r}"
            )


def check_mail(sender: str, host: str, port: int, user: str | None, password: str | None) -> None:
    """`sender` may have a name before the address: `weft <weft@example.org>`."""
    if "@" not in sender.strip("@<> ") or "\n" in sender or "\r" in sender:
        raise SettingsError(f"WEFT_MAIL_FROM must be a mail address, not {sender!r}")
    if not _HOST.fullmatch(host) or re.fullmatch(r"[^:\[\]]+:\d+", host):
        raise SettingsError(f"WEFT_MAIL_HOST must be a name or an address without a port, not {host!r}")
    if not 1 <= port <= 65535:
        raise SettingsError("WEFT_MAIL_PORT must be between 1 and 65535")
    if password and not user:
        raise SettingsError("WEFT_MAIL_PASSWORD needs WEFT_MAIL_USER")


def check_paths(db_path: str | None, sqlite_folders: Iterable[str]) -> None:
    """Check that existing paths are of the right kind; missing ones may be created later."""
    if db_path is not None:
        path = Path(db_path)
        if path.is_dir():
            raise SettingsError(f"WEFT_DB must be a file, and {db_path!r} is a folder. Its folder is WEFT_DATA")
        above = next((each for each in path.absolute().parents if each.exists()), None)
        if above is not None and not above.is_dir():
            raise SettingsError(f"WEFT_DB cannot be {db_path!r}: {str(above)!r} is not a folder")
    for folder in sqlite_folders:
        if Path(folder).exists() and not Path(folder).is_dir():
            raise SettingsError(f"WEFT_SQLITE_FOLDERS must be folders, and {folder!r} is a file")


def check_names_of(prefix: str, names: Iterable[str]) -> None:
    """Check the names after the prefix of variables with their own names."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise SettingsError(f"{prefix}{name} must have a name behind {prefix} of letters, digits and _")


def check_functions(functions: Iterable[str]) -> None:
    for function in functions:
        if not (_FUNCTION.fullmatch(function) or _MODULE.fullmatch(function) or function.endswith(".py")):
            forms = "package.module:function, or a module or a file of steps, separated by commas"
            raise SettingsError(f"WEFT_FUNCTIONS must be {forms}, not {function!r}")


def check_namespaces(namespaces: Iterable[str]) -> None:
    for name in namespaces:
        if not _NAMESPACE.fullmatch(name):
            raise SettingsError(f"WEFT_KUBERNETES must be names of namespaces, separated by commas, not {name!r}")


def check_command(text: str | None) -> None:
    """Raises SettingsError when a shell could not read it either."""
    try:
        shlex.split(text or "")
    except ValueError as error:
        raise SettingsError(f"WEFT_SECRETS_COMMAND cannot be read: {error}") from None


def check_bus(bus: str | None, database: str | None) -> None:
    if bus is None:
        return
    if database is None:
        raise SettingsError("WEFT_BUS_DB needs a PostgreSQL database in WEFT_DB: with a file it has no effect")
    if urlsplit(bus).scheme not in ("postgresql", "postgres"):
        raise SettingsError("WEFT_BUS_DB must be a postgresql:// address, of the database in WEFT_DB")
