"""Headers of a response block spoke for the server's origin, because those that may not were listed one by one."""

from __future__ import annotations

import pytest

from server.http.response import block_response

FOR_THE_SERVER = [
    "NEL",
    "Report-To",
    "Reporting-Endpoints",
    "Alt-Svc",
    "Link",
    "WWW-Authenticate",
    "Content-Encoding",
    "Cross-Origin-Opener-Policy",
    "Permissions-Policy",
    "Origin-Agent-Cluster",
    "SourceMap",
    "Refresh",
    "X-Frame-Options",
    "X-Accel-Redirect",
    "X-Sendfile",
    "X-Content-Security-Policy",
    "X-XSS-Protection",
    "A-Header-Of-Next-Year",
]


@pytest.mark.parametrize("name", FOR_THE_SERVER)
def test_headers_that_speak_for_the_server_are_dropped(name: str) -> None:
    assert name not in block_response({"headers": {name: "v"}, "body": ""}, {}).headers


@pytest.mark.parametrize(
    "name",
    [
        "Content-Disposition",
        "Content-Language",
        "ETag",
        "Last-Modified",
        "Retry-After",
        "Vary",
        "X-Kind",
        "X-Request-Id",
    ],
)
def test_headers_about_the_body_stay(name: str) -> None:
    assert block_response({"headers": {name: "v"}, "body": ""}, {}).headers[name] == "v"


@pytest.mark.parametrize(("status", "kept"), [(200, False), (201, False), (302, True), (307, True), (404, False)])
def test_a_location_belongs_to_a_redirect(status: int, kept: bool) -> None:
    answer = {"status": status, "headers": {"Location": "https://a.example/"}}
    assert ("location" in block_response(answer, {}).headers) is kept
