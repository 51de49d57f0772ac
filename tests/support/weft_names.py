"""weft/__init__.pyi: the names of `weft` as imports, for type checkers and editors.

To write it after a change of `weft._PLACES`: `python -m tests.support.weft_names`.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import weft

OUT = Path(weft.__file__).with_suffix(".pyi")
HEAD = (
    "# Made from `_PLACES` in __init__.py by `python -m tests.support.weft_names`.\n# fmt: off\n# ruff: noqa: I001\n\n"
)


def stub() -> str:
    """The whole file."""
    imports, others = ["from weft import draw as draw"], ["__version__: str"]
    for place, names in vars(weft)["_PLACES"].items():
        module, _, inside = place.partition(":")
        others += [f"{names} = {inside}"] if inside else []
        imports += _wrapped(f"from {module} import (", (inside or names).split())
    exported = _wrapped("__all__ = [", [f'"{name}"' for name in weft.__all__])
    return HEAD + "\n".join([*imports, "", *others, "", *exported, ""])


def _wrapped(before: str, names: list[str]) -> list[str]:
    """Return `before` and the names as one line, or as lines with the names indented."""
    end = "]" if before.endswith("[") else ")"
    line = f"{before}{', '.join(names)}{end}"
    return (
        [line]
        if len(line) <= 120
        else [before, *textwrap.wrap(", ".join(names), 112, initial_indent="    ", subsequent_indent="    "), end]
    )


if __name__ == "__main__":
    OUT.write_text(stub(), encoding="utf-8")
