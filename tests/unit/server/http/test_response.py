from __future__ import annotations

from typing import Any

import pytest

from server.http.response import block_response


def test_status_headers_and_body_are_the_workflows() -> None:
    response = block_response(
        {"status": 201, "headers": {"X-Kind": "a", "Content-Type": "text/csv"}, "body": "a,b"}, {"Weft-Run": "r"}
    )
    assert (response.status_code, response.body) == (201, b"a,b")
    assert response.headers["x-kind"] == "a"
    assert response.headers["content-type"].startswith("text/csv")
    assert response.headers["weft-run"] == "r"


def test_json_is_the_default() -> None:
    response = block_response({"body": {"a": 1}}, {})
    assert (response.status_code, response.headers["content-type"], response.body) == (
        200,
        "application/json",
        b'{"a":1}',
    )


@pytest.mark.parametrize(
    "name",
    [
        "Set-Cookie",
        "Content-Length",
        "Transfer-Encoding",
        "Content-Security-Policy",
        "Access-Control-Allow-Origin",
        "Bad Name",
        "x\r\ny",
    ],
)
def test_headers_that_speak_for_the_server_are_dropped(name: str) -> None:
    response = block_response({"headers": {name: "v"}, "body": ""}, {})
    assert name.lower() not in response.headers or response.headers[name] != "v"


def test_a_header_can_not_be_split() -> None:
    assert "x-a" not in block_response({"headers": {"x-a": "1\r\nSet-Cookie: b=c"}, "body": ""}, {}).headers


def test_html_of_a_workflow_is_a_page_of_nowhere() -> None:
    response = block_response({"headers": {"content-type": "text/html"}, "body": "<script>"}, {})
    assert response.headers["content-security-policy"].startswith("sandbox")


@pytest.mark.parametrize(
    "answer", [{"status": 99}, {"status": "x"}, {"headers": []}, {"status": 204, "body": "gone"}, {}]
)
def test_odd_answers_still_answer(answer: dict[str, Any]) -> None:
    response = block_response(answer, {})
    assert 200 <= response.status_code < 600
    assert response.status_code != 204 or response.body == b""
