"""The Python of the documentation is typed. `make lint` checks the pages; a mistake in one is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.typing.docs import PAGES, ROOT, check, files_of, write

WRONG = """
```python
# steps.py
import weft


@weft.step
async def fetch(key: int) -> float:
    return key / 2
```

```python
# flow.py
from steps import fetch

import weft


@weft.workflow
async def flow(key: int) -> str:
    await weft.each([key], lambda one: fetch(one))
    return await fetch("key")
```
"""


def test_the_files_of_a_page_are_found_and_code_without_a_name_continues_one() -> None:
    assert list(files_of(WRONG)) == ["steps.py", "flow.py"]
    page = (ROOT / "docs/howto/test-your-workflows.md").read_text()
    assert "test_crashes" in files_of(page)["flow.py"]
    pages = {str(page.relative_to(ROOT)) for page in PAGES if files_of(page.read_text())}
    assert {"README.md", "docs/tutorial/in-python.md", "docs/howto/steps-as-functions.md"} < pages


@pytest.mark.proof
@pytest.mark.timeout(400)  # without a cache mypy reads all of weft
def test_the_pages_are_typed_and_a_mistake_in_one_is_found(tmp_path: Path) -> None:
    page = tmp_path / "wrong.md"
    page.write_text(WRONG)
    written = write([*PAGES, page], tmp_path / "typing")
    assert len(written) > 25
    found = [line for line in check(tmp_path / "typing").stdout.splitlines() if ": error: " in line]
    assert [line.partition(": error: ")[2] for line in found] == [
        'Incompatible return value type (got "float", expected "str")  [return-value]',
        'Argument 1 to "__call__" of "Step" has incompatible type "str"; expected "int"  [arg-type]',
    ]
