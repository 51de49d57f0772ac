from executor.blocks.types.note import block
from executor.kernel.handler.base import Done
from tests.unit.executor.blocks.types.flow import context


async def test_a_note_does_nothing() -> None:
    assert await block.run(context({"text": "<a.b>"})) == Done()
    assert (block.spec.category, block.spec.handles) == ("annotation", ())
