"""Installed data: the version of weft, and its examples: beside the packages in a checkout, inside this one in
a wheel.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent


def examples_folder(package: Path = PACKAGE) -> Path:
    inside = package / "examples"
    return inside if inside.is_dir() else package.parent / "examples"


def example(module: str) -> Any:
    """Return a module of the examples, such as `fleet.run`."""
    return import_module(f"{'server.examples' if (PACKAGE / 'examples').is_dir() else 'examples'}.{module}")


@cache
def installed_version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # 10 ms; every command imports this file

    try:
        return version("weft")
    except PackageNotFoundError:
        return "unknown"
