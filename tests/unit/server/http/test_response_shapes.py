"""Structs of answers as JSON: stored bytes are spliced in, members that do not apply are left out."""

from __future__ import annotations

from typing import Any

import orjson
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import asdict, replace

from executor.service.views import AttemptView, CheckpointView, NodeDetail, WaitView, view_of
from server.api.history import node_shown
from server.api.waits import PublicWait, Wait
from server.http.response import fragment, to_json

DETAIL = NodeDetail(
    run="r",
    key="send@l#2",
    node="send",
    block="send",
    name="Send",
    type="http",
    path="l#2",
    seq=9,
    status="succeeded",
    attempt=2,
    attempts=(AttemptView(1, "retrying", error={"code": "x"}), AttemptView(2, "succeeded")),
    input=b'{"url":"http://a"}',
    input_error=None,
    output=b'"0123456789"',
    error=None,
    route="out",
    reason=None,
    because=None,
    reused=False,
    checkpoint=CheckpointView(1, 5, b'{"page":7}'),
)
WAIT = WaitView(
    run="r",
    workflow="w",
    id="ask!1",
    key="ask",
    block="ask",
    label="Ask",
    kind="approval",
    status="pending",
    request={"title": "Pay?"},
    schema=None,
    actions=("approve",),
    opened_at_ms=1,
    expires_at_ms=None,
    age_s=2.5,
    title="Pay?",
    run_status="waiting",
    link="http://127.0.0.1/resume/t",
)


class Inner(Struct, frozen=True, omit_defaults=True):
    a: int
    b: int = 0


class Outer(Struct, frozen=True):
    stored: Any
    inner: tuple[Inner, ...]
    start: str | None = field(default=None, name="from")
    maybe: int | UnsetType = UNSET


def test_a_struct_splices_stored_json_and_leaves_out_what_is_unset() -> None:
    assert orjson.loads(to_json(Outer(fragment(b"[1,2]"), (Inner(1), Inner(1, 2))))) == {
        "stored": [1, 2],
        "inner": [{"a": 1}, {"a": 1, "b": 2}],
        "from": None,
    }
    assert orjson.loads(to_json({"one": Outer(None, (), "x", 3)})) == {
        "one": {"stored": None, "inner": [], "from": "x", "maybe": 3}
    }


def test_a_node_with_its_values() -> None:
    shown = orjson.loads(to_json(node_shown(DETAIL, None)))
    assert shown["input"] == {"url": "http://a"} and shown["output"] == "0123456789"
    assert (shown["input_size"], shown["input_truncated"], shown["output_size"]) == (18, False, 12)
    assert shown["attempts"] == [
        {"attempt": 1, "status": "retrying", "error": {"code": "x"}},
        {"attempt": 2, "status": "succeeded"},
    ]
    assert shown["checkpoint"] == {
        "attempt": 1,
        "at_ms": 5,
        "value": {"page": 7},
        "value_size": 10,
        "value_truncated": False,
    }
    assert "input_preview" not in shown and "output_preview" not in shown


def test_values_over_the_preview_are_cut() -> None:
    shown = orjson.loads(to_json(node_shown(DETAIL, 10)))
    assert (shown["output"], shown["output_truncated"], shown["output_preview"]) == (None, True, '"012345678...')
    assert shown["checkpoint"]["value"] == {"page": 7}, "as many bytes as the bound"
    cut = orjson.loads(to_json(node_shown(DETAIL, 9)))["checkpoint"]
    assert (cut["value"], cut["value_truncated"], cut["value_preview"]) == (None, True, '{"page":7...')


def test_a_node_that_did_not_start_has_no_sizes() -> None:
    shown = orjson.loads(to_json(node_shown(replace(DETAIL, input=None, output=None, checkpoint=None), 0)))
    assert (shown["input"], shown["input_size"], shown["input_truncated"]) == (None, None, False)
    assert shown["checkpoint"] is None


def test_a_wait_has_every_member_and_its_link_is_not_for_holders_of_the_link() -> None:
    inbox, holder = (orjson.loads(to_json(view_of(shape, WAIT))) for shape in (Wait, PublicWait))
    assert set(inbox) == set(asdict(WAIT)) and inbox["answered_by"] is None
    assert set(inbox) - set(holder) == {"link", "notifications"}


def test_structs_and_stored_json_may_be_anywhere_in_plain_values() -> None:
    value = {"rows": [Inner(1), fragment(b'{"x": 1}')], "by": {True: None, 2: Outer(fragment(None), ())}}
    assert to_json(value) == (
        b'{"rows":[{"a":1},{"x": 1}],"by":{"true":null,"2":{"stored":null,"inner":[],"from":null}}}'
    )
