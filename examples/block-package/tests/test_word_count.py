"""The block alone, in a workflow, and in a process that is killed at each commit."""

import asyncio

from word_count.block import word_count

from weft import testing

WORKFLOW = {
    "format": "weft/1",
    "name": "try",
    "blocks": {
        "start": {"type": "start"},
        "block": {"type": "word_count", "params": {"text": "<start.text>", "shortest": 3}},
    },
    "edges": [{"source": "start", "target": "block"}],
}


def test_the_block() -> None:
    ran = asyncio.run(testing.run_block(word_count, {"text": "to be or not to be"}))
    assert ran.output == {"words": 6, "longest": "not"}
    assert ran.log == ("6 words",)


def test_it_survives_crashes() -> None:
    report = asyncio.run(testing.crash_everywhere(WORKFLOW, {"text": "to be or not"}, blocks=[word_count]))
    assert report.output == {"words": 1, "longest": "not"}
