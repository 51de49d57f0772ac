"""The settings in effect, each with its source and its error: `weft config`. Secret values are not included."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

from server.reach import OFF, SettingsError, database_path, token_path
from server.settings import load_settings
from server.variables import (
    ENV_PREFIX,
    FIELDS,
    KNOWN,
    OF_JOBS,
    OF_TESTS,
    PREFIXES,
    ROWS,
    SECRET_PREFIX,
    Variables,
    check_names,
)

Source = Literal["variable", "option", "file", "default"]
SET: Final = "(set, not shown)"
# The default of other settings may stand for a folder or host worth showing; these have none.
_NOT_OF_THE_SERVER: Final = ("WEFT_URL", "WEFT_WEB")
_NAME: Final = re.compile(r"WEFT_[A-Z0-9_]+")


class Setting(Struct, frozen=True):
    """`value`: as text, null where nothing is set and there is no default. `problem`: why a server would not start."""

    name: str
    value: str | None
    source: Source
    problem: str | None = None


def effective(environ: Mapping[str, str], options: Mapping[str, str]) -> list[Setting]:
    """Return all settings, in the order of `KNOWN`, then those with their own names (`WEFT_ENV_<NAME>` and so on), then
    names that do not exist. `options` are those of the command line, by the variable that they replace; an empty one
    counts as not set."""
    merged = {name: value for name, value in {**environ, **options}.items() if name.startswith("WEFT_")}
    problems = problems_of(merged)
    names = [name for name in KNOWN if name not in _NOT_OF_THE_SERVER]
    others = {*OF_JOBS, *OF_TESTS, *_NOT_OF_THE_SERVER}
    names += sorted(name for name in merged if name not in KNOWN and (name not in others or name in problems))
    plain = {name.strip() for name in merged.get("WEFT_NOT_SECRET", "").split(",")}
    found = []
    for name in names:
        text = merged.get(name)
        if text:
            source: Source = "option" if options.get(name) else "variable"
            found.append(Setting(name, _shown(name, text, plain), source, problems.get(name)))
        else:
            found.append(_without(name, merged, problems.get(name)))
    return found


def problems_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the errors, by the name of the variable. A wrong variable is left out when the next error is looked for,
    so that one does not hide another."""
    found: dict[str, str] = {}
    left = dict(environ)
    for name in environ:
        try:
            check_names({name: environ[name]})
        except SettingsError as error:
            found[name] = str(error)
            del left[name]
    for _ in range(len(left) + 1):
        try:
            load_settings(left)
            break
        except SettingsError as error:
            text = str(error)
            named = _NAME.findall(text)
            wrong = next((name for name in named if left.get(name) and name not in found), None)
            if wrong is None:  # a missing one: other errors cannot be found without it
                found.setdefault(named[0] if named else "WEFT_DB", text)
                break
            found[wrong] = text
            del left[wrong]
    return found


def _without(name: str, environ: Mapping[str, str], problem: str | None) -> Setting:
    if name in ("WEFT_TOKEN", "WEFT_SECRET_KEY") and problem is None:
        try:
            path = Path(database_path(environ))
        except SettingsError:
            return Setting(name, None, "default", problem)
        path = token_path(str(path)) if name == "WEFT_TOKEN" else path.with_suffix(".key")
        return Setting(name, f"{path}{'' if path.exists() else ' (made at the first start)'}", "file", problem)
    if name == "WEFT_DB" and environ.get("WEFT_DATA"):
        return Setting(name, f"{environ['WEFT_DATA'].rstrip('/')}/weft.db", "variable", problem)
    return Setting(name, _default(name), "default", problem)


def _default(name: str) -> str | None:
    value = getattr(Variables(), FIELDS.get(name, ""), None)
    if value is None or value == ():
        return None
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(name: str, text: str, plain: set[str]) -> str:
    if name == "WEFT_TOKEN" and text == OFF:
        return text
    begins = next((prefix for prefix in PREFIXES if name.startswith(prefix)), None)
    if name in KNOWN:
        is_secret = name in FIELDS and ROWS[FIELDS[name]]["secret"]
    elif begins == ENV_PREFIX:
        is_secret = name.removeprefix(ENV_PREFIX) not in plain
    else:
        is_secret = begins in (None, SECRET_PREFIX)  # a misspelt name may be that of a secret
    if is_secret or begins == ENV_PREFIX:
        return SET if is_secret else text
    return ",".join(map(_without_credentials, text.split(",")))


def _without_credentials(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        return text if "@" not in text else SET
    if not parts.scheme or not parts.netloc:
        return text
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def lines_of(settings: list[Setting], *, all_of_them: bool) -> Iterator[str]:
    """Return lines for people: settings that are set or wrong, and with `all_of_them` the defaults as well."""
    shown = [one for one in settings if all_of_them or one.source != "default" or one.problem]
    width = max((len(one.name) for one in shown), default=0)
    values = max((min(len(one.value or "-"), 60) for one in shown), default=0)
    for one in shown:
        yield f"{one.name.ljust(width)}  {(one.value or '-').ljust(values)}  {one.source}"
        if one.problem:
            yield f"{' ' * width}  ! {one.problem}"
