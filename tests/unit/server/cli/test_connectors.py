"""`weft connector`: a document is checked, and one is made of an OpenAPI description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from executor.blocks.connectors.validate import read
from server import cli

PETS: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Pets"},
    "servers": [{"url": "https://pets.example"}],
    "paths": {
        "/pets/{id}": {"get": {"operationId": "readPet"}},
        "/photos": {"post": {"requestBody": {"required": True, "content": {"image/png": {}}}}},
    },
}


def weft(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.weft, ["connector", *arguments], standalone_mode=False)
    return result.return_value if result.exception is None else 4, result.output or str(result.exception)


def test_a_description_becomes_a_document_that_passes_the_check(tmp_path: Path) -> None:
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(PETS))
    code, listed = weft("import", str(path))
    assert code == 0 and listed.splitlines() == [
        "read_pet     GET     /pets/{id}  GET /pets/{id}",
        "post_photos  POST    /photos  POST /photos"
        "  (not usable: it sends files, or a format other than JSON, forms and text)",
    ]
    code, made = weft("import", str(path), "--operation", "read_pet", "--service", "zoo")
    assert code == 0 and read(made.encode()).service == "zoo"
    (tmp_path / "zoo.json").write_text(made)
    assert weft("check", str(tmp_path / "zoo.json")) == (0, "connector.zoo: 1 operations\n")
    assert weft("import", str(path), "--operation", "nope")[0] == 4


def test_a_wrong_document_is_said_to_be_wrong_with_places(tmp_path: Path) -> None:
    path = tmp_path / "tea.json"
    path.write_text('{"format": "weft-connector/1", "service": "Tea"}')
    code, said = weft("check", str(path))
    assert code == 1 and "/service: " in said
    code, said = weft("check", str(path), "--json")
    assert code == 1 and "/service" in [one["pointer"] for one in json.loads(said)]
