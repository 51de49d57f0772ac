"""Where texts for users stand: documentation, examples, string literals of the product, JSX of the editor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
WORDS = Path(__file__).with_name("words.txt")
PACKAGES = ("compiler", "executor", "server", "weft")

# Beginnings of a docstring that is no sentence, and "None:" for a return value.
_NO_SENTENCE = re.compile(r"\A(?:Of|What|Who|Until|Whose|Whether|That|Those|Where|Which|Why|How)\b|\bNone:")
_SENTENCE = "write a sentence: an imperative or a noun phrase, and 'or None if ...'"

# Comments are for developers; quoted strings, template literals and what stands between tags is shown.
_TYPESCRIPT = re.compile(
    r"""(?P<comment>/\*.*?\*/|(?<![:\\"'`])//[^\n]*)"""
    r"""|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)"""
    r"""|>(?P<jsx>[^<>{}=;()]*[A-Za-z][^<>{}=;()]*)(?=[<{])""",
    re.DOTALL,
)

_IDENTIFIER = re.compile(r"""["'`][a-z0-9@./_-]*["'`]""")  # a module, a class of CSS, a test id, a key


class Text(NamedTuple):
    path: Path
    line: int
    text: str


class Found(NamedTuple):
    place: str
    word: str
    advice: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.word!r} in {self.text!r} ({self.advice})"


def words() -> list[tuple[re.Pattern[str], str]]:
    """Each with the advice what to write instead."""
    lines = [line for line in WORDS.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    pairs = [line.split(" = ", 1) for line in lines]
    return [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in pairs]


def all_texts() -> Iterator[Text]:
    for path in [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CHANGELOG.md"]:
        yield from _lines(path)
    shown = (".json", ".md", ".py", ".toml", ".csv")
    for path in sorted(path for path in (ROOT / "examples").rglob("*") if path.suffix in shown):
        yield from _lines(path)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield from python_texts(path)
    for path in sorted((ROOT / "web" / "src").rglob("*.ts*")):
        yield from typescript_texts(path)


def _lines(path: Path) -> Iterator[Text]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        yield Text(path, number, line)


def python_texts(path: Path) -> Iterator[Text]:
    """String literals. Docstrings only where users see them: of commands and routes (checked by their catalogues)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield Text(path, node.lineno, " ".join(node.value.split()))


def docstrings(path: Path) -> Iterator[Text]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield Text(path, node.body[0].lineno, " ".join(text.split()))


def comments(path: Path) -> Iterator[Text]:
    """Comments on lines of their own, each block as one text."""
    block: list[str] = []
    first = 0
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], 1):
        text = line.strip()
        if text.startswith("# "):
            first = first if block else number
            block.append(text[2:])
        elif block:
            yield Text(path, first, " ".join(block))
            block = []


def no_sentences(texts: Iterable[Text] | None = None) -> list[Found]:
    """Docstrings and comments of the product that are no sentences, or use "None:" for a return value."""
    if texts is None:
        paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
        texts = (text for path in paths for text in (*docstrings(path), *comments(path)))
    return [
        Found(f"{text.path.relative_to(ROOT)}:{text.line}", match[0], _SENTENCE, text.text[:160])
        for text in texts
        if (match := _NO_SENTENCE.search(text.text))
    ]


def typescript_texts(path: Path) -> Iterator[Text]:
    source = path.read_text(encoding="utf-8")
    for match in _TYPESCRIPT.finditer(source):
        text = match["text"] or match["jsx"]
        if text and not _IDENTIFIER.fullmatch(text):
            yield Text(path, source.count("\n", 0, match.start()) + 1, " ".join(text.split()))


def find(texts: Iterable[Text]) -> list[Found]:
    forbidden = words()
    return [
        Found(f"{text.path.relative_to(ROOT)}:{text.line}", match[0], advice, text.text[:160])
        for text in texts
        for pattern, advice in forbidden
        if (match := pattern.search(text.text))
    ]
