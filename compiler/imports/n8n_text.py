"""The expressions of n8n -> references where they are plain paths, JavaScript elsewhere.

A text that begins with `=` is a template: what stands in `{{ }}` is JavaScript over `$json`, the json of the item, and
over the items of other nodes. `{{ $json.a.b }}` becomes `<node.a.b>`. Where a block takes no JavaScript, anything else
becomes a value of a `function` block before it (`hoisted`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import orjson

Steps = tuple[str | int, ...]

PARTS: Final = re.compile(r"^//# (.+)\n", re.MULTILINE)
_PLAIN: Final = re.compile(r"[A-Za-z_]\w*")
_KEY: Final = re.compile(r'[^"\\<>\n]+')
_IN_CODE: Final = re.compile(r"[\w -]+")  # other names are no references in JavaScript
_ODD: Final = re.compile(r'(.*)(\["[^"]*[^\w" -][^"]*"\])')
_STEP: Final = re.compile(
    r"""\s*\??\.(?!length\b)([A-Za-z_$][\w$]*)(?![\w$]*\s*\()|\s*(?:\?\.)?\[\s*(\d{1,9})\s*\]|\s*(?:\?\.)?\[\s*(["'])((?:(?!\3).)*)\3\s*\]"""
)
_ROOT: Final = re.compile(
    r"""(?<![\w$])(?<!(?<!\.)\.)(?:
      \$node\[\s*["'](?P<index>[^"']+)["']\s*\] | \$node\.(?P<field>\w+)
    | \$items\(\s*(?:["'](?P<items>[^"']*)["'][^)]*)?\)
    | \$\(\s*(?P<quote>["'`])(?P<call>(?:(?!(?P=quote)).)+)(?P=quote)\s*\)
    | (?P<word>\$(?:json|input|env|vars|itemIndex|runIndex|execution|workflow|binary|prevNode|getWorkflowStaticData
      |jmespath|secrets|parameter|data|item|response|pageCount|request)(?![\w$]))
    )""",
    re.VERBOSE,
)
_ITEM: Final = re.compile(r"\s*\??\.(?:(?:(item|pairedItem)|(first|last|itemMatching|all|pairedItem)\([^()]*\))\s*)?")
_ITEM_OF: Final = re.compile(r"\$item\([^()]*\)\.(?=\$)")
_JSON: Final = re.compile(r"\s*\??\.(?:json|data)(?![\w$])|\s*\[[\"']json[\"']\]")
_INDEX: Final = re.compile(r"\s*\[(\d+)\]")
_CONTEXT: Final = re.compile(r"""\s*\.context(?:\[["'](\w+)["']\]|\.(\w+))""")
_ENV: Final = re.compile(r"""\.(\w+)|\[["'](\w+)["']\]""")
_WHOLE: Final = re.compile(r"<[^<>]+>|\$\{\w+\}")
_OPEN: Final = {"{": "}", "(": ")", "[": "]"}
UNKNOWN: Final = {
    "$binary": "a file of the item",
    "$prevNode": "the node before",
    "$getWorkflowStaticData": "data that n8n keeps between runs",
    "$jmespath": "JMESPath",
    "$secrets": "an external secret store",
    "$parameter": "a setting of the node itself",
}


class Loss(NamedTuple):
    """A part of a node that the import left out or changed, and the next step."""

    message: str
    hint: str = ""


class Item(NamedTuple):
    """The place of the json of an item. `fields`: those that have another place here, by their path in n8n. `rest`: the
    place of all others, where that is another item."""

    ref: str
    fields: tuple[tuple[Steps, str], ...] = ()
    rest: str = ""

    def path(self, steps: Steps) -> str | None:
        """Return a reference without its brackets, None if it can only be read by JavaScript."""
        for theirs, ours in self.fields:
            if steps[: len(theirs)] == theirs:
                return _joined(f"{self.ref}.{ours}" if ours else self.ref, steps[len(theirs) :])
        if any(theirs[: len(steps)] == steps for theirs, _ in self.fields):
            return None
        return None if self.rest and not steps else _joined(self.rest or self.ref, steps)

    def js(self, steps: Steps = ()) -> str:
        odd = next((at for at, step in enumerate(steps) if not _IN_CODE.fullmatch(str(step))), len(steps))
        found = self.path(steps[:odd])
        if found is not None:
            return f"<{found}>" + "".join(f"?.[{orjson.dumps(step).decode()}]" for step in steps[odd:])
        return self._whole() + "".join(f"?.[{orjson.dumps(step).decode()}]" for step in steps)

    def _whole(self) -> str:
        made: dict[str, Any] = {}
        for theirs, ours in self.fields:
            at = made
            for step in theirs[:-1]:
                at = at.setdefault(str(step), {})
            at[str(theirs[-1])] = f"<{self.ref}.{ours}>" if ours else f"<{self.ref}>"
        return f"({{ ...<{self.rest}>, ...{_literal(made)} }})" if self.rest else f"({_literal(made)})"

    def value(self) -> Any:
        """Return the whole item as a param of a block."""
        found = self.path(())
        return f"<{found}>" if found is not None else {str(t[0]): f"<{self.ref}.{o}>" for t, o in self.fields}


def _literal(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{orjson.dumps(k).decode()}: {_literal(v)}" for k, v in value.items()) + "}"
    return str(value)


def _joined(ref: str, steps: Steps) -> str | None:
    for step in steps:
        if isinstance(step, int):
            ref += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            ref += f".{step}"
        elif _KEY.fullmatch(step):
            ref += f'["{step}"]'
        else:
            return None
    return ref


class Scope(Protocol):
    """The items that a node can read, from its place."""

    def own(self) -> Item | None: ...

    def own_items(self) -> str: ...

    def item_of(self, name: str, which: str) -> Item | str | None:
        """Return the item of another node, JavaScript that reads it, or None if there is no such node."""

    def items_of(self, name: str) -> str | None: ...

    def context_of(self, name: str, field: str) -> str | None: ...

    def file_of(self, name: str, node: str | None = None) -> str | None:
        """Return the place of a file of the item, or of that of another node: the last one of that name."""

    def index(self) -> str: ...

    def title(self) -> str: ...


class Texts:
    """Translates the texts of one node. `hoisted`: JavaScript by name, which `computed` makes readable. `arguments`:
    those of a tool, whose {{name}} stays as it is."""

    def __init__(self, scope: Scope, computed: str) -> None:
        self.scope = scope
        self.hoisted: dict[str, str] = {}
        self.losses: dict[Loss, None] = {}
        self.arguments: Collection[str] = ()
        self._computed = computed

    def lose(self, message: str, hint: str) -> None:
        self.losses[Loss(message, hint)] = None

    def value(self, value: Any, name: str = "value") -> Any:
        """All texts in a JSON value, as params of a block that takes references."""
        if isinstance(value, list):
            return [self.value(item, name) for item in value]
        if isinstance(value, Mapping):
            return {key: self.value(item, str(key)) for key, item in value.items()}
        if not isinstance(value, str) or not value.startswith("="):
            return value
        pieces = list(split(value[1:]))
        whole = len(pieces) == 1
        made = [self._piece(piece, name, whole) if is_code else piece for piece, is_code in pieces]
        return "".join(made)

    def _piece(self, code: str, name: str, whole: bool) -> str:
        return f"{{{{{code}}}}}" if code in self.arguments else self._short(code, name, whole)

    def _short(self, code: str, name: str, whole: bool) -> str:
        js = self.code(code).strip().rstrip(";")
        if _WHOLE.fullmatch(js):
            return js
        for key, known in self.hoisted.items():
            if known == js:
                return f"<{self._computed}.{key}>"
        plain = re.sub(r"\W+", "_", name).strip("_") or "value"
        plain = plain if plain[0].isalpha() else f"v_{plain}"
        key, n = plain, 1
        while key in self.hoisted:
            n += 1
            key = f"{plain}_{n}"
        self.hoisted[key] = js
        return f"<{self._computed}.{key}>"

    def script(self, value: Any) -> str:
        """The same as JavaScript."""
        if isinstance(value, list):
            return f"[{', '.join(map(self.script, value))}]"
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{quoted(str(k))}: {self.script(v)}" for k, v in value.items()) + "}"
        if not isinstance(value, str) or not value.startswith("="):
            return quoted(value)
        made = [f"({self.code(p).strip().rstrip(';')})" if is_code else quoted(p) for p, is_code in split(value[1:])]
        if len(made) == 1:
            bare = made[0][1:-1]
            return bare if _WHOLE.fullmatch(bare) else made[0]
        texts = [f"({one} ?? '')" if one.startswith("(") else one for one in made]
        return f"({' + '.join(texts)})" if texts else '""'

    def code(self, code: str) -> str:
        """JavaScript of n8n, with its roots as references."""
        code = _ITEM_OF.sub("", code)
        parts: list[str] = []
        at = 0
        for found in _ROOT.finditer(code):
            if found.start() < at:
                continue
            made, end = self._root(found, code)
            parts += (code[at : found.start()], made)
            at = end
        return "".join([*parts, code[at:]])

    def _root(self, found: re.Match[str], code: str) -> tuple[str, int]:
        at, word = found.end(), found["word"]
        if word == "$json":
            return self._item(self.scope.own(), code, at)
        if word in ("$input", "$data", "$item"):
            return self._view(None, code, at) if word == "$input" else self._item(self.scope.own(), code, at)
        if word in ("$env", "$vars") and (name := _ENV.match(code, at)):
            return f"${{{name[1] or name[2]}}}", name.end()
        if word in ("$itemIndex", "$runIndex"):
            return self.scope.index() if word == "$itemIndex" else "0", at
        if word in ("$workflow", "$execution"):
            member = _ENV.match(code, at)
            at = member.end() if member else at
            if word == "$workflow":
                return quoted(self.scope.title()), at
            self.lose("It reads the id of the execution, and gets a random one.", "Check what the id is used for.")
            return "crypto.randomUUID()", at
        if word == "$binary" and (file := self._file(None, code, at)) is not None:
            return file
        if word is not None:
            what = UNKNOWN.get(word, "a value of n8n")
            self.lose(f"It reads {word}, {what}, which does not exist here: it is null.", "Change the expression.")
            return "null" if word != "$getWorkflowStaticData" else "(() => ({}))", at
        called: str | None = found["index"] or found["field"] or found["call"]
        if called is None:  # $items("Name")
            return self._list(found["items"] or None), at
        return self._view(called, code, at)

    def _list(self, name: str | None) -> str:
        found = self.scope.own_items() if name is None else self.scope.items_of(name)
        if found is None:
            self._missing(name)
        return f"{found or '[]'}.map((json) => ({{ json }}))"

    def _missing(self, name: str | None) -> None:
        self.lose(f'It reads the node "{name}", which it cannot reach: that is null.', "Change the expression.")

    def _view(self, name: str | None, code: str, at: int) -> tuple[str, int]:
        """`.first().json.x`, `.item.json`, `.all()`, `.json.x` after a node."""
        if context := _CONTEXT.match(code, at):
            value = self.scope.context_of(name or "", context[1] or context[2])
            return value if value is not None else "null", context.end()
        which = "item"
        access = _ITEM.match(code, at)
        if access and (access[1] or access[2]):
            which, at = access[2] or "item", access.end()
        if which == "all":
            first = _INDEX.match(code, at)
            if first is None or first[1] != "0":
                return self._list(name), at
            which, at = "first", first.end()
        item = self.scope.own() if name is None else self.scope.item_of(name, which)
        if item is None:
            self._missing(name)
            item = "null"
        if (json := _JSON.match(code, at)) is None:
            tail = re.compile(r"\.(isExecuted|params|parameter|binary|context|runIndex)\b").match(code, at)
            if tail is None:
                return f"({{ json: {item if isinstance(item, str) else item.js()} }})", at
            if tail[1] == "isExecuted":
                return f"({item if isinstance(item, str) else item.js()} !== null)", tail.end()
            if tail[1] == "binary" and (file := self._file(name, code, tail.end())) is not None:
                return file
            self.lose(f"It reads {tail[1]} of a node, which does not exist here: it is null.", "Change the expression.")
            return "(null)", tail.end()
        return self._item(item, code, json.end())

    def _file(self, node: str | None, code: str, at: int) -> tuple[str, int] | None:
        """`.data.fileName` after $binary."""
        steps, end = path_at(code, at)
        found = self.scope.file_of(str(steps[0]), node) if steps else None
        if found is None or len(steps) > 2:
            return None
        if len(steps) == 1:
            odd = _ODD.fullmatch(found)
            return f"<{odd[1]}>?.{odd[2]}" if odd else f"<{found}>", end
        if steps[1] in ("fileExtension", "directory"):
            return f"<{found}.name>.split('.').pop()" if steps[1] == "fileExtension" else '""', end
        names = {"fileName": "name", "mimeType": "media_type", "fileSize": "size", "id": "id", "fileType": "media_type"}
        return (f"<{found}.{names[str(steps[1])]}>", end) if steps[1] in names else None

    def _item(self, item: Item | str | None, code: str, at: int) -> tuple[str, int]:
        steps, end = path_at(code, at)
        if isinstance(item, str):
            return item + "".join(f"?.[{quoted(step)}]" for step in steps), end
        return ("({})" if item is None else item.js(steps)), end


def path_at(code: str, at: int) -> tuple[Steps, int]:
    steps: list[str | int] = []
    while found := _STEP.match(code, at):
        name, index, key = found[1], found[2], found[4]
        steps.append(int(index) if index is not None else name if name is not None else key)
        at = found.end()
    return tuple(steps), at


def split(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a template: (text, is it JavaScript)."""
    at = 0
    while (start := text.find("{{", at)) >= 0:
        end = _end(text, start + 2)
        if end is None:
            break
        if start > at:
            yield text[at:start], False
        yield text[start + 2 : end].strip(), True
        at = end + 2
    if at < len(text) or not text:
        yield text[at:], False


def _end(text: str, at: int) -> int | None:
    """Return where the `}}` is that ends an expression; braces and quotes inside it are skipped."""
    start, depth, quote = at, 0, ""
    while at < len(text):
        char = text[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote else quote
        elif char in "\"'`":
            quote = char
        elif char == "{":
            depth += 1
        elif char == "}":
            if depth == 0:
                return at if text[at + 1 : at + 2] == "}" else None
            depth -= 1
        at += 1
    end = text.find("}}", start)  # a quote or a brace that has no end
    return end if end >= 0 else None


@cache
def _prelude() -> tuple[tuple[re.Pattern[str], str], ...]:
    pieces = PARTS.split(Path(__file__).with_name("n8n_prelude.js").read_text(encoding="utf-8"))
    return tuple((re.compile(pieces[i]), pieces[i + 1]) for i in range(1, len(pieces), 2))


def prelude(code: str) -> str:
    """Return the helpers of n8n that JavaScript uses."""
    return "".join(part for used, part in _prelude() if used.search(code))


def quoted(value: Any) -> str:
    """Return a value as JavaScript. Nothing in it is a reference."""
    return orjson.dumps(value).decode().replace("<", "\\u003c").replace("${", "\\u0024{")


def free(name: str, taken: Callable[[str], bool], mark: str) -> str:
    """Return the name, with a number if it is taken."""
    made, n = name, 1
    while taken(made):
        n += 1
        made = f"{name}{mark}{n}"
    return made


def slug(name: str) -> str:
    made = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower()[:80]
    return made if made[:1].isalpha() else f"node_{made}".rstrip("_")


def listed(value: Any, *path: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of a list at a path in the settings of n8n; an empty one if there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
