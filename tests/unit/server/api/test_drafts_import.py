"""JSON that is no workflow is refused when a draft is made of it, as the editor's import does."""

from __future__ import annotations

from typing import Any

import httpx
import pytest


@pytest.mark.parametrize("document", [{"hello": 1}, {}, {"nodes": [], "edges": []}])
async def test_json_that_is_no_workflow_is_refused(client: httpx.AsyncClient, document: dict[str, Any]) -> None:
    refused = await client.post("/api/drafts", json={"document": document, "name": "file"})
    assert (refused.status_code, refused.json()["code"]) == (422, "format_unknown")
    assert (refused.json()["detail"], refused.json()["pointer"]) == ("This JSON is not a workflow.", "/document")
    assert "exported from n8n or Sim" in refused.json()["hint"]
    assert (await client.get("/api/drafts")).json()["drafts"] == []


async def test_a_workflow_with_errors_is_accepted(client: httpx.AsyncClient) -> None:
    made = await client.post("/api/drafts", json={"document": {"format": "weft/1", "blocks": {"a": {}}}})
    assert made.status_code == 201 and made.json()["diagnostics"]
