"""The block types that the web tests use are those of this version. To record them again, after a change of a block:
`python -m tests.web.test_catalogue`."""

from __future__ import annotations

import json
from pathlib import Path

from executor.blocks.registry import Registry

FIXTURE = Path(__file__).parents[2] / "web" / "test" / "fixtures" / "blocks.json"


def recorded() -> str:
    return json.dumps({"blocks": Registry.load().catalogue()}, indent=1, ensure_ascii=False) + "\n"


def test_the_fixture_is_the_catalogue() -> None:
    assert FIXTURE.read_text() == recorded()


if __name__ == "__main__":
    FIXTURE.write_text(recorded())
