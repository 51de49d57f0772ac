from executor.blocks.base import Done
from executor.blocks.note import block
from tests.unit.executor.blocks.flow import context


async def test_a_note_does_nothing() -> None:
    assert await block.run(context({"text": "<a.b>"})) == Done()
    assert (block.spec.category, block.spec.handles) == ("annotation", ())
