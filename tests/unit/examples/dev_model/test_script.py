"""What the scripted model answers."""

from typing import Any

import pytest

from examples.dev_model.example import example
from examples.dev_model.script import Answer, Asked, Failure, Player, read_script


def asked(**more: Any) -> Asked:
    given: dict[str, Any] = {"model": "m", "system": "", "last": "Hello", "results": (), "round": 0, "tools": {}}
    return Asked(**(given | more))


def text_of(player: Player, **more: Any) -> str:
    answer = player.answer(asked(**more))
    assert isinstance(answer, Answer)
    return answer.text


def test_the_first_rule_that_fits() -> None:
    player = Player(
        read_script(
            b"""{"rules": [
                {"when": {"last": "bye"}, "text": "1"},
                {"when": {"system": "pirate", "round": 1}, "text": "2"},
                {"when": {"tool": "find"}, "text": "3 {{tool}}"},
                {"when": {"offers": "find", "tool": ""}, "text": "4"},
                {"when": {"model": "n"}, "text": "5 {{last}}"}]}"""
        )
    )
    assert text_of(player, last="Good BYE.") == "1"
    assert text_of(player, system="You are a Pirate", round=1) == "2"
    assert text_of(player, results=(("other", "x"), ("find", "y")), tools={"find": {}}) == "3 y"
    assert text_of(player, tools={"find": {}}) == "4"
    assert text_of(player, model="n") == "5 Hello"
    assert text_of(player) == "You said: Hello"


def test_rules_that_are_used_up() -> None:
    player = Player(read_script(b'{"rules": [{"times": 2, "error": {"status": 429}}, {"text": "well"}]}'))
    assert [type(player.answer(asked())) for _ in range(3)] == [Failure, Failure, Answer]


def test_without_a_rule_a_tool_that_is_required_is_called() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer", "minimum": 3}}}
    answer = Player(read_script(b"{}")).answer(asked(tools={"find": schema}, required=True))
    assert isinstance(answer, Answer) and answer.calls == (("find", "call_0_0", '{"id":3}'),)


ID = {"type": "object", "properties": {"id": {"type": "string"}, "order_no": {"type": "integer"}}}


def test_without_a_rule_the_tools_that_the_message_names_are_called_one_after_the_other() -> None:
    player, tools = Player(read_script(b"{}")), {"pay": {"type": "object"}, "look_up": ID, "other": ID}

    def calls(last: str, *results: tuple[str, str]) -> tuple[tuple[str, str, str], ...]:
        answer = player.answer(asked(last=last, tools=tools, results=results))
        assert isinstance(answer, Answer)
        return answer.calls

    last = "Look up order no 17 and pay it."
    assert calls(last) == (("look_up", "call_0_0", '{"id":"17","order_no":17}'),)
    assert calls(last, ("look_up", "{}")) == (("pay", "call_0_0", "{}"),)
    assert calls(last, ("pay", "{}")) == () == calls(last, ("other", "{}"))
    assert calls("Look up id A-1")[0][2] == '{"id":"A-1","order_no":0}'
    assert text_of(player, last=last, tools=tools, results=(("pay", "done"),)) == "The tool answered: done"
    assert "Write the name of a tool" in text_of(player, tools=tools) and not calls("payment")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"a": {"enum": [2, 1]}, "b": {"type": ["boolean"]}}}, {"a": 2, "b": False}),
        ({"type": "array", "minItems": 2, "items": {"const": "x"}}, ["x", "x"]),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
        ({"type": "string", "default": "d"}, "d"),
        ({}, "example"),
        (True, "example"),
    ],
)  # fmt: skip
def test_examples(schema: Any, value: Any) -> None:
    assert example(schema) == value


@pytest.mark.parametrize("data", [b"", b"[]", b'{"rules": [{"txt": "x"}]}', b'{"rules": [{"when": {"round": "x"}}]}'])
def test_scripts_that_cannot_be_read(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_script(data)
