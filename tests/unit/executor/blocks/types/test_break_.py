from executor.blocks.types.break_ import block
from executor.kernel.handler.base import Done
from tests.unit.executor.blocks.types.flow import context


async def test_it_runs_to_the_end_of_the_iteration() -> None:
    assert await block.run(context({}, "break")) == Done({"break": True}, route="out")
    assert (block.spec.type, block.spec.inline) == ("break", True)  # the type is what values.scope looks for
