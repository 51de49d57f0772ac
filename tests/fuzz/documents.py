"""Documents that compile, made at random: chains of blocks in nested loops and parallels, with references backwards."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]
Draw = Any

LEAVES = ("set", "variables", "function", "condition", "http", "approval", "wait", "signal", "email", "router")
DEPTH_MAX = 3
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<>${}"), max_size=12)


@st.composite
def documents(draw: Draw) -> Document:
    builder = _Builder(draw)
    builder.blocks["start"] = {"type": "start", "name": draw(st.sampled_from(["Start", "begin", "Los geht's"]))}
    builder.chain(None, ["start"], 0, [("start", None)])
    for n in range(draw(st.integers(0, 1))):
        builder.blocks[f"note{n}"] = {"type": "note", "params": {"text": draw(texts)}}
    document: Document = {
        "format": "weft/1",
        "name": draw(texts) or "fuzz",
        "variables": {"seen": 0, "list": []},
        "blocks": builder.blocks,
        "edges": builder.edges,
    }
    if draw(st.booleans()):
        document["settings"] = {"max_concurrency": draw(st.integers(1, 50)), "groups": {"g": 2}}
    if draw(st.booleans()):
        document["input"] = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}
    return document


class _Builder:
    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.blocks: dict[str, Any] = {}
        self.edges: list[dict[str, Any]] = []

    def chain(self, parent: str | None, before: list[str], depth: int, ends: list[tuple[str, str | None]]) -> None:
        """One block after another; `ends`: the handles the next one hangs on; `before`: what it may refer to."""
        for _ in range(self.draw(st.integers(1, 3))):
            containers = ("loop", "parallel") if depth < DEPTH_MAX and len(self.blocks) < 25 else ()
            kind = self.draw(st.sampled_from((*LEAVES, *containers)))
            block_id = f"{kind}{len(self.blocks)}"
            block = self.blocks[block_id] = {"type": kind, "params": {}}
            if parent is not None:
                block["parent"] = parent
            for source, handle in ends:
                self.edges.append({"source": source, "target": block_id} | ({"handle": handle} if handle else {}))
            handles = getattr(self, f"_{kind}")(block, before)
            if kind in containers:
                self.chain(block_id, list(before), depth + 1, [(block_id, "body")])
                if kind == "loop":
                    before.append(block_id)
            else:
                before.append(block_id)
            ends = [(block_id, handle) for handle in handles]

    def _value(self, before: list[str]) -> Any:
        reference = f"<{self.draw(st.sampled_from(before))}>"
        return self.draw(
            st.sampled_from(
                [
                    1,
                    None,
                    True,
                    "plain",
                    reference,
                    f"a {reference} b",
                    {"x": [reference]},
                    "<workflow.seen>",
                    "1 < 2 > 0",
                ]
            )
        )

    def _expression(self, before: list[str]) -> str:
        block = self.draw(st.sampled_from(before))
        forms = [
            "true",
            f"<{block}> !== null",
            f"'<{block}>' === 'x'",
            f"`${{<{block}>}}`.length > 2",
            "<workflow.seen> < 3",
        ]
        return str(self.draw(st.sampled_from(forms)))

    def _set(self, block: Document, before: list[str]) -> list[str | None]:
        block["params"] = {"value": self._value(before)}
        if self.draw(st.booleans()):
            block["name"] = f"Name of {len(self.blocks)}"
        if self.draw(st.integers(0, 5)) == 0:
            block["policy"] = {"skip_if": self._expression(before)}
        return [None]

    def _variables(self, block: Document, before: list[str]) -> list[str | None]:
        block["params"] = {"assign": [{"name": "list", "op": "append", "value": self._value(before)}]}
        return [None]

    def _function(self, block: Document, before: list[str]) -> list[str | None]:
        block["params"] = {"code": f"const x = {self._expression(before)};\nreturn {{x}}"}
        return [None]

    def _condition(self, block: Document, before: list[str]) -> list[str | None]:
        block["params"] = {"cases": [{"id": "yes", "when": self._expression(before)}, {"id": "no"}]}
        return ["yes", "no"]

    def _router(self, block: Document, before: list[str]) -> list[str | None]:
        block["params"] = {
            "value": self._value(before),
            "routes": [{"id": "one", "equals": 1}, {"id": "rest"}],
            "default": "rest",
        }
        return ["one", "rest"]

    def _http(self, block: Document, before: list[str]) -> list[str | None]:
        block["params"] = {"url": f"http://127.0.0.1:9/<{self.draw(st.sampled_from(before))}>", "method": "GET"}
        block["policy"] = {"retry": {"max_attempts": 1}, "on_error": "continue", "timeout_s": 5}
        return [None]

    def _approval(self, block: Document, before: list[str]) -> list[str | None]:
        block["params"] = {"title": "Go on?", "show": self._value(before), "actions": ["yes", "no"]}
        return [None] if self.draw(st.booleans()) else ["yes"]

    def _wait(self, block: Document, before: list[str]) -> list[str | None]:
        block["params"] = {"seconds": self.draw(st.sampled_from([0, 0.01, 3600]))}
        return [None]

    def _signal(self, block: Document, before: list[str]) -> list[str | None]:
        block["params"] = {"name": "go", "correlation": "k"}
        return [None]

    def _email(self, block: Document, before: list[str]) -> list[str | None]:
        block["params"] = {"to": "a@example.org", "subject": "s", "body": self._value(before)}
        return [None, "error"] if self.draw(st.booleans()) else [None]

    def _loop(self, block: Document, before: list[str]) -> list[str | None]:
        block["params"] = self.draw(
            st.sampled_from(
                [
                    {"mode": "for", "count": 2},
                    {"mode": "each", "items": [1, "two"]},
                    {"mode": "while", "condition": "<loop.index> < 2", "max": 3, "on_max": "exit"},
                    {"mode": "until", "condition": "true"},
                ]
            )
        )
        return ["out"]

    def _parallel(self, block: Document, before: list[str]) -> list[str | None]:
        block["params"] = self.draw(
            st.sampled_from(
                [{"count": 2}, {"mode": "each", "items": {"a": 1}}, {"count": 0}, {"count": "<input.n ?? 1>"}]
            )
        )
        return ["out"]
