from __future__ import annotations

import httpx

VALUE = "a value of 20 letters"


async def test_secrets_are_set_listed_and_deleted_and_never_read(client: httpx.AsyncClient) -> None:
    spec = {"value": VALUE, "hosts": ["API.example.com", "*.example.org"], "places": ["header:X-Key", "body"]}
    made = await client.put("/api/secrets/API_KEY", json=spec)
    assert made.status_code == 200, made.text
    again = await client.put("/api/secrets/API_KEY", json={"value": VALUE + "2"})
    listed = await client.get("/api/secrets")
    assert [(one["name"], one["version"], one["hosts"]) for one in listed.json()["secrets"]] == [("API_KEY", 2, [])]
    assert made.json()["hosts"] == ["api.example.com", "*.example.org"]
    assert (made.json()["places"], again.json()["places"]) == (["header:X-Key", "body"], [])
    audit = await client.get("/api/audit")
    for response in (made, again, listed, audit):
        assert VALUE not in response.text
    assert (await client.get("/api/secrets/API_KEY")).status_code == 405
    assert (await client.post("/api/secrets/rekey")).json() == {"resealed": 0, "relinked": 0}
    assert (await client.delete("/api/secrets/API_KEY")).status_code == 200
    assert (await client.delete("/api/secrets/API_KEY")).status_code == 404


async def test_what_is_refused_does_not_quote_the_value(client: httpx.AsyncClient) -> None:
    for name, body in (
        ("API_KEY", {"value": "short"}),
        ("API_KEY", {"value": VALUE, "hosts": ["http://x.test"]}),
        ("API_KEY", {"value": VALUE, "places": ["Authorization"]}),
        ("API_KEY", {"value": VALUE, "more": VALUE}),
        ("API_KEY", {"value": [VALUE]}),
        ("api-key", {"value": VALUE}),
    ):
        refused = await client.put(f"/api/secrets/{name}", json=body)
        assert refused.status_code in (400, 422), refused.text
        assert VALUE not in refused.text
