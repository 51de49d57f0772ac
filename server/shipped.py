"""The examples that come with weft: in a checkout beside the packages, in a wheel inside of this one."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent


def examples_folder(package: Path = PACKAGE) -> Path:
    """For the folder of this package."""
    inside = package / "examples"
    return inside if inside.is_dir() else package.parent / "examples"
