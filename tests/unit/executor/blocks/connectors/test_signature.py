"""Signatures as the documentation of AWS works them out ("Signature calculations for the authorization header")."""

from __future__ import annotations

import pytest

from executor.blocks.connectors.signature import query_text, signed
from executor.errors import BlockError

HOST = "https://examplebucket.s3.amazonaws.com"
CREDENTIAL = "AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
NOW_MS = 1_369_353_600_000  # 2013-05-24T00:00:00Z


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "signature"),
    [
        (
            "GET",
            "/test.txt",
            {"range": "bytes=0-9"},
            b"",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            "PUT",
            "/test%24file.text",
            {"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
            b"Welcome to Amazon S3.",
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        ("GET", "/?lifecycle=", {}, b"", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("GET", "/?max-keys=2&prefix=J", {}, b"", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)  # fmt: skip
def test_the_examples_of_the_documentation(
    method: str, path: str, headers: dict[str, str], body: bytes, signature: str
) -> None:
    sent = signed(
        method, HOST + path, headers, body, credential=CREDENTIAL, region="us-east-1", service="s3", now_ms=NOW_MS
    )
    assert sent["Authorization"].endswith(f"Signature={signature}")


def test_the_query_is_sorted_and_has_no_plus_signs() -> None:
    assert query_text({"b": "x y+z", "a": "ü/~"}) == "a=%C3%BC%2F~&b=x%20y%2Bz"


@pytest.mark.parametrize("credential", ["", "key", ":secret", "key:"])
def test_a_credential_has_two_parts(credential: str) -> None:
    with pytest.raises(BlockError, match="id of the key"):
        signed("GET", HOST, {}, b"", credential=credential, region="r", service="s3", now_ms=0)
