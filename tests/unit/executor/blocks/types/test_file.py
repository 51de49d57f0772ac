"""A file block reads files and texts."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.support.pdf import pdf_with
from weft import testing

PAGE = """<html><head><title>Shop</title><style>p {}</style></head><body><h1>Tea <b>shop</b></h1>
<p class="about">Open <i>daily</i><span>now</span></p><ul><li><a href="/green" class="tea new">Green</a></li>
<li><a href="/black" class="tea">Black</a></li></ul><script>alert(1)</script></body></html>"""


async def read(content: Any, read_as: str, **more: Any) -> testing.Ran:
    return await testing.run_block("file", {"operation": "read", "content": content, "read_as": read_as, **more})


@pytest.mark.parametrize(
    ("content", "read_as", "result"),
    [
        ("plain", "text", "plain"),
        ("a;b\n1;x,y\n2;\n", "table", [{"a": "1", "b": "x,y"}, {"a": "2", "b": ""}]),
        ('{"a": [1]}', "json", {"a": [1]}),
        ({"a": 1}, "json", {"a": 1}),
        ("<a><b>1</b><b>2</b></a>", "xml", {"b": ["1", "2"]}),
        ("tea", "base64", "dGVh"),
        (PAGE, "markdown", "# Tea **shop**\n\nOpen *daily*now\n\n- [Green](/green)\n- [Black](/black)"),
        ("# Tea\n\n- *green*", "html", "<h1>Tea</h1>\n<ul>\n<li><em>green</em></li>\n</ul>\n"),
    ],
)
async def test_a_text_is_read(content: Any, read_as: str, result: Any) -> None:
    ran = await read(content, read_as)
    assert (ran.status, ran.output) == ("succeeded", {"result": result}), ran.error


async def test_parts_of_a_page_are_found_by_selectors() -> None:
    select = {
        "title": "h1",
        "links": {"css": "a.tea", "get": "href", "all": True},
        "new": {"css": "ul > li:first-child a", "get": "class"},
        "about": {"css": ".about", "without": "span"},
        "inside": {"css": "li:last-child", "get": "html"},
        "none": "table",
        "no": {"css": "table", "all": True},
    }
    ran = await read(PAGE, "fields", select=select)
    assert ran.output["result"] == {
        "title": "Tea shop",
        "links": ["/green", "/black"],
        "new": "tea new",
        "about": "Open daily",
        "inside": '<a class="tea" href="/black">Black</a>',
        "none": None,
        "no": [],
    }


async def test_the_content_of_a_file_is_read() -> None:
    data = base64.b64encode(pdf_with("Invoice 7")).decode()
    document = {
        "format": "weft/1",
        "name": "read",
        "blocks": {
            "start": {"type": "start"},
            "made": {"type": "file", "params": {"name": "a.pdf", "content": data, "format": "base64"}},
            "read": {"type": "file", "params": {"operation": "read", "content": "<made>"}},
        },
        "edges": [{"source": "start", "target": "made"}, {"source": "made", "target": "read"}],
    }
    async with testing.engine() as engine:
        run = (await engine.submit(document)).run
        view = await testing.finish(engine, run)
    assert view.output["result"].strip() == "Invoice 7", view.error


@pytest.mark.parametrize(
    ("content", "read_as", "more", "code"),
    [
        ("{", "json", {}, "file_unreadable"),
        ("<a>", "xml", {}, "xml_invalid"),
        (7, "text", {}, "params_invalid"),
        (PAGE, "fields", {"select": {"a": "li["}}, "params_invalid"),
        (PAGE, "fields", {"select": {"a": {"css": "li", "without": "["}}}, "params_invalid"),
        (PAGE, "fields", {"select": {"a": "li::before"}}, "params_invalid"),
        (PAGE, "fields", {"select": {"a": {"get": "href"}}}, "params_invalid"),
        ("<b>" * 3_000, "markdown", {}, "file_unreadable"),
        ("a" * 90_001, "markdown", {}, "file_too_large"),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_what_cannot_be_read_is_an_error(
    content: Any, read_as: str, more: dict[str, Any], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executor.blocks.types.file_reading.PAGE_BYTES_MAX", 90_000)
    ran = await read(content, read_as, **more)
    assert ran.error is not None and ran.error["code"] == code


async def test_what_is_needed_is_a_finding() -> None:
    fields, make = await read(PAGE, "fields"), await testing.run_block("file", {"content": "x"})
    assert [[(one.code, one.pointer.split("/")[-1]) for one in ran.findings] for ran in (fields, make)] == [
        [("required", "select")],
        [("required", "name")],
    ]
