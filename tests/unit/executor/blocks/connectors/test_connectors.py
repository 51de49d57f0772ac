"""Connector documents: what is wrong with one, how it is filled in, which pages are read."""

from __future__ import annotations

import copy
import logging
from pathlib import Path
from typing import Any

import orjson
import pytest

from compiler.compile import compile_document
from executor.blocks.connectors.block import ConnectorBlock, request_of
from executor.blocks.connectors.document import Pages
from executor.blocks.connectors.pages import after, at
from executor.blocks.connectors.stored import connectors
from executor.blocks.connectors.template import filled, filled_path, form_of_body
from executor.blocks.connectors.validate import checked, read
from executor.blocks.types.registry import Registry
from executor.errors import BadRequest, BlockError

Json = dict[str, Any]
TEA: Json = {
    "format": "weft-connector/1",
    "service": "tea",
    "title": "Tea",
    "base_url": "https://tea.example/api",
    "auth": {"kind": "query", "name": "key"},
    "operations": {
        "order": {
            "title": "Order tea",
            "method": "POST",
            "path": "/shops/{{shop}}/orders",
            "fields": {
                "shop": {"type": "string"},
                "boxes": {"type": "integer"},
                "kind": {"enum": ["green", "black"], "default": "green"},
            },
            "required": ["shop", "boxes"],
            "query": {"dry": False},
            "body": {"boxes": "{{boxes}}", "note": "{{boxes}} of {{kind}}"},
        },
        "list": {"title": "List orders", "path": "/orders", "pages": {"kind": "page", "items": "/orders", "size": 2}},
    },
}

SHOP = "/operations/order/fields/shop/choices"


def changed(path: str, value: Any) -> Json:
    """TEA with another value at a place; None: without it."""
    document = copy.deepcopy(TEA)
    *steps, last = path.split("/")[1:]
    at: Any = document
    for step in steps:
        at = at[step]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "pointer", "said"),
    [
        ("/service", "Tea shop", "/service", "does not match"),
        ("/service", None, "", "'service' is a required property"),
        ("/base_url", "ftp://tea.example", "/base_url", "does not match"),
        ("/base_url", "https://tea.example/?a=1", "/base_url", "does not match"),
        ("/operations/order/method", "SEND", "/operations/order/method", "is not one of"),
        ("/operations/order/oops", 1, "/operations/order", "oops"),
        ("/operations/order/required", ["shop", "boxes", "x"], "/operations/order/required/2", "There is no field 'x'"),
        ("/operations/order/required", ["boxes"], "/operations/order/required", "needs 'shop'"),
        ("/operations/order/body", {"a": "{{other}}"}, "/operations/order/body", "There is no field 'other'"),
        ("/operations/order/body", {}, "/operations/order/fields/boxes", "No part of a request uses it"),
        ("/operations/order/fields/shop", {"type": "text"}, "/operations/order/fields/shop", "not a JSON Schema"),
        ("/operations/order/fields/credential", {}, "/operations/order/fields/credential", "has another meaning"),
        ("/operations/list/query", {"s": "{{shop}}"}, "/operations/list/query", "There is no field 'shop'"),
        ("/operations/list/pages", {"kind": "cursor", "items": ""}, "/operations/list/pages", "need `next`"),
        ("/base_url", "https://{{shop}}.tea.example", "/base_url", "not a field of all operations"),
        (SHOP, {"operation": "orders"}, f"{SHOP}/operation", "There is no operation 'orders'"),
        (SHOP, {"operation": "order"}, f"{SHOP}/operation", "may change something"),
        (SHOP, {"operation": "list", "search": "text"}, f"{SHOP}/search", "has no field 'text'"),
        (SHOP, {"operation": "list", "with": {"a": 1}}, f"{SHOP}/with/a", "has no field 'a'"),
        (SHOP, {"operation": "list", "only": {"/a": ["{{x}}"]}}, f"{SHOP}/only", "There is no field 'x'"),
        (SHOP, {"operation": "list", "value": "id"}, f"{SHOP}/value", "does not match"),
        ("/operations/order/idempotent_s", 60, "/operations/order/idempotent_s", "Nothing recognizes a second"),
        ("/auth", {"kind": "path"}, "/base_url", "no {{credential}}"),
    ],
)
def test_what_is_wrong_has_its_place_and_what_to_do(path: str, value: Any, pointer: str, said: str) -> None:
    with pytest.raises(BadRequest) as caught:
        checked(changed(path, value))
    assert caught.value.code == "connector_invalid"
    found = [one for one in caught.value.extra["errors"] if one["pointer"] == pointer]
    assert found and said in found[0]["message"] and found[0]["hint"], caught.value.extra["errors"]


def test_a_field_that_two_operations_share_has_one_shape() -> None:
    document = changed("/operations/list/fields", {"kind": {"enum": ["green"]}})
    document["operations"]["list"]["query"] = {"kind": "{{kind}}"}
    with pytest.raises(BadRequest, match="another kind of field in operation 'order'"):
        checked(document)


def test_choices_are_written_once_and_may_have_a_field_of_their_own() -> None:
    document = changed(SHOP, {"operation": "list", "value": "/id", "with": {"town": "{{town}}"}})
    document["operations"]["list"] |= {"fields": {"town": {"type": "string"}}, "query": {"town": "{{town}}"}}
    document["operations"]["order"]["fields"]["town"] = {"type": "string"}  # no part of the request uses it
    document["operations"]["look"] = {"title": "Look", "path": "/{{shop}}", "required": ["shop"], "fields": {}}
    document["operations"]["look"]["fields"]["shop"] = {"type": "string"}
    form = ConnectorBlock(checked(document)).spec.params["properties"]
    assert form["shop"]["x-ui"]["choices"] == ["connection", "town"] and "choices" not in form["shop"]
    document["operations"]["look"]["fields"]["shop"]["choices"] = {"operation": "list"}
    with pytest.raises(BadRequest, match="has other choices in another operation"):
        checked(document)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"null", b'"x"', b"\xff", b"{}", b" " * 2_000_000])
def test_what_is_no_document_is_refused(data: bytes) -> None:
    with pytest.raises(BadRequest):
        read(data)


def test_the_request_of_an_operation() -> None:
    connector = checked(TEA)
    params = {"operation": "order", "credential": "k y", "shop": "a/b ü", "boxes": "3"}
    assert request_of(connector, connector.operations["order"], params) == {
        "method": "POST",
        "url": "https://tea.example/api/shops/a%2Fb%20%C3%BC/orders",
        "headers": {},
        "query": {"dry": False, "key": "k y"},
        "body": {"boxes": 3, "note": "3 of green"},
        "timeout_s": 30,
    }
    for missing in ("credential", "shop", "boxes"):
        with pytest.raises(BlockError, match="is required"):
            request_of(connector, connector.operations["order"], {**params, missing: ""})


@pytest.mark.parametrize("value", ["..", ".", "", None])
def test_a_value_cannot_change_the_path(value: Any) -> None:
    with pytest.raises(BlockError, match="cannot be part of an address"):
        filled_path("/a/{{x}}/b", {"x": value} if value is not None else {})
    with pytest.raises(BlockError):
        filled_path("/a/{{+x}}", {"x": "a/../b"})
    assert filled_path("/a/{{+x}}", {"x": "b/c?d#e"}) == "/a/b/c%3Fd%23e"


def test_fields_are_data() -> None:
    values = {"a": "{{b}}", "b": [1], "n": None}
    template = {"x": "{{a}}", "y": ["{{b}}", "{{n}}"], "z": "<{{a}}>", "gone": {"in": "{{n}}"}, "kept": {}}
    assert filled(template, values) == {"x": "{{b}}", "y": [[1]], "z": "<{{b}}>", "kept": {}}
    assert filled("{{n}}", values) is None
    optional = {
        "kind": 1,
        "policy": {"type": "policy", "id": "{{n}}"},
        "all": [{"type": "x", "id": "{{b}}"}],
        "const": [2],
    }
    assert filled(optional, values) == {"kind": 1, "all": [{"type": "x", "id": [1]}], "const": [2]}
    assert filled({"limit": 100, "words": "{{n}}"}, values) == {"limit": 100}
    assert dict(form_of_body({"a": 1, "b": {"c": [{"d": 2}, 3]}})) == {"a": 1, "b[c][0][d]": 2, "b[c][1]": 3}
    with pytest.raises(BlockError, match="mail cannot be written"):
        filled({"raw": {"$mime": {"to": "a@example.org\r\nBcc: b@example.org"}}}, {})


def test_pages_end() -> None:
    request: Json = {"method": "GET", "url": "https://tea.example/orders", "query": {"size": 2}}
    page = Pages("page", "/orders", size=2)
    full: Json = {"body": {"orders": [1, 2]}, "headers": {}}
    assert after(page, request, full, 1) == {**request, "query": {"size": 2, "page": 2}}
    assert after(page, request, {"body": {"orders": [1]}, "headers": {}}, 2) is None
    cursor = Pages("cursor", "", "/next", "after")
    again = {**request, "query": {"after": "x"}}
    assert after(cursor, request, {"body": {"next": "x"}, "headers": {}}, 1) == {
        **request,
        "query": {"size": 2, "after": "x"},
    }
    with pytest.raises(BlockError, match="same page again"):
        after(cursor, again, {"body": {"next": "x"}, "headers": {}}, 2)
    link = Pages("link", "", "/next")
    for other in ("https://evil.example/orders", "http://tea.example/orders", "//evil.example", "orders?page=2"):
        with pytest.raises(BlockError, match="another server"):
            after(link, request, {"body": {"next": other}, "headers": {}}, 1)
    relative = after(link, request, {"body": {"next": "/orders?page=2"}, "headers": {}}, 1)
    assert relative == {**request, "url": "https://tea.example/orders?page=2", "query": None}
    empty = '<https://tea.example/orders?cursor=2>; rel="next"; results="{}"; cursor="2"'
    linked = [after(Pages("link"), request, {"body": [], "headers": {"link": empty.format(one)}}, 1) for one in
              ("true", "false")]  # fmt: skip
    assert linked == [{**request, "url": "https://tea.example/orders?cursor=2", "query": None}, None]
    assert at("/a~1b/1/c", {"a/b": [0, {"c": 5}]}) == 5
    assert at("/a/9", {"a": [1]}) is None and at("/a/b", {"a": 3}) is None


def test_pages_by_what_was_read() -> None:
    request: Json = {
        "method": "POST",
        "url": "https://tea.example/orders",
        "query": {"size": 2},
        "body": {"v": {"a": 1}},
    }
    full: Json = {"body": {"orders": [{"id": "a"}, {"id": "b"}], "more": True, "next": "x"}, "headers": {}}
    offset = Pages("offset", "/orders", name="from", size=2)
    second = after(offset, request, full, 1)
    assert second is not None and second["query"] == {"size": 2, "from": 2}
    third = after(offset, second, full, 2)
    assert third is not None and third["query"] == {"size": 2, "from": 4}
    last = after(Pages("last", "/orders", "/id", "after", size=2), request, full, 1)
    assert last is not None and last["query"] == {"size": 2, "after": "b"}
    by_more = Pages("last", "/orders", "/id", "after", more="/more")
    assert after(by_more, request, {**full, "body": {**full["body"], "more": False}}, 1) is None
    assert after(by_more, request, full, 1) == last
    deep = after(Pages("cursor", "/orders", "/next", "/v/cursor", "body"), request, full, 1)
    assert deep == {**request, "body": {"v": {"a": 1, "cursor": "x"}}}
    elsewhere = Pages("cursor", "/orders", "/next", "cursor", "body", path="/continue")
    followed = after(elsewhere, request, full, 1)
    wanted = {"url": "https://tea.example/orders/continue", "query": {}, "body": {"cursor": "x"}}
    assert followed == {**request, **wanted}
    with pytest.raises(BlockError, match="same page again"):
        after(elsewhere, wanted, full, 2)


def test_an_account_in_the_address() -> None:
    document = {**TEA, "base_url": "https://{{account}}.tea.example/v1", "fields": {"account": {"type": "string"}}}
    connector = checked(document)
    params = {"operation": "list", "credential": "k", "account": "north"}
    assert request_of(connector, connector.operations["list"], params)["url"] == "https://north.tea.example/v1/orders"
    moved = {**params, "base_url": "http://127.0.0.1:9"}
    assert request_of(connector, connector.operations["list"], moved)["url"] == "http://127.0.0.1:9/orders"
    for other in ("evil.example/", "evil.example#", "a@b", "..", "a..b", "x:1", "", "evil.example\\"):
        with pytest.raises(BlockError, match=r"(?i)account"):
            request_of(connector, connector.operations["list"], {**params, "account": other})
    assert ConnectorBlock(connector).spec.params["properties"]["account"]["x-required"] == {
        "operation": ["order", "list"]
    }


def test_a_folder_adds_and_replaces_and_a_broken_file_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "tea.json").write_bytes(orjson.dumps(TEA))
    (tmp_path / "slack.json").write_bytes(orjson.dumps({**TEA, "service": "slack", "title": "Our Slack"}))
    (tmp_path / "broken.json").write_text("{")
    with caplog.at_level(logging.ERROR):
        registry = Registry.load(connectors(tmp_path))
    assert "broken.json is left out" in caplog.text
    tea, slack = registry.get("connector.tea"), registry.get("connector.slack")
    assert tea is not None and slack is not None and slack.title == "Our Slack"


def compiled(params: Json) -> list[tuple[str, str]]:
    document = {
        "format": "weft/1",
        "name": "t",
        "blocks": {"start": {"type": "start"}, "tea": {"type": "connector.tea", "params": params}},
        "edges": [{"source": "start", "target": "tea"}],
    }
    found = compile_document(document, Registry.load([ConnectorBlock(checked(TEA))]))
    return [(one.code, one.message) for one in found.diagnostics]


def test_the_compiler_knows_what_an_operation_needs() -> None:
    assert compiled({"operation": "order", "credential": "${KEY}", "shop": "<start.shop>", "boxes": 3}) == []
    (found,) = compiled({"operation": "order", "credential": "${KEY}", "boxes": 3})
    assert found[0] == "required" and '"Shop" is required for "Order tea"' in found[1]
    assert compiled({"operation": "lisst", "credential": "x"})[0][0] == "param_invalid"
    assert compiled({"operation": "list"}) != []
