"""The nodes of n8n that look at all items at once, and code -> `function` blocks. What they have in common is in
`n8n_prelude.js`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from compiler.imports.n8n_step import Made, Step
from compiler.imports.n8n_text import listed, quoted

_NODES: Final = re.compile(
    r"""\$\(\s*["'`]([^"'`]+)["'`]\s*\)|\$node\[\s*["'`]([^"'`]+)["'`]\s*\]|\$items\(\s*["'`]([^"'`]+)["'`]|\$node\.(\w+)"""
)
_ONE: Final = re.compile(r"return\s*\[?\s*\{(?:(?!\breturn\b)[\s\S])*\}\s*\]?\s*;?\s*\Z")
_SEVERAL: Final = re.compile(r"return\s+(?:items|\$input|\w+\s*;|\w+\.map|\[\s*\.\.\.|\[\s*\])")
_ENV: Final = re.compile(r"\$env(?:\.(\w+)|\[[\"'](\w+)[\"']\])")
_ABSENT: Final = ("$getWorkflowStaticData", "$binary", "$jmespath", "require(", "this.helpers", "$http")


def _fields(step: Step, *path: str) -> list[str]:
    return [name.strip() for name in step.text(*path).removeprefix("=").split(",") if name.strip()]


def _paths(names: list[str]) -> str:
    return quoted([name.split(".") for name in names])


def _read(name: str) -> str:
    return "one" + "".join(f"?.[{quoted(part)}]" for part in name.split("."))


def split_out(step: Step) -> Made:
    fields = _fields(step, "fieldToSplitOut") or ["data"]
    first = fields[0].removeprefix("$json.")
    into = quoted(step.text("options", "destinationFieldName") or first)
    rest = step.text("include") in ("allOtherFields", "selectedOtherFields")
    if len(fields) > 1:
        step.lose("It splits out several fields; only the first one is imported.", "Write the others in the code.")
    values = f"(Array.isArray({_read(first)}) ? {_read(first)} : Object.values({_read(first)} ?? {{}}))"
    if rest:
        made = f"({{ ...one, {quoted(first)}: undefined, {into}: each }})"
    else:
        made = f"(each !== null && typeof each === 'object' ? each : {{ {into}: each }})"
    return step.program(f"return items.flatMap((one) => {values}.map((each) => {made}));")


def aggregate(step: Step) -> Made:
    if "aggregateAllItemData" in (step.text("aggregate"), step.text("aggregateAllItemData")):
        chosen, dropped = _fields(step, "fieldsToInclude"), _fields(step, "fieldsToExclude")
        one = f"{{ {', '.join(f'{quoted(name)}: {_read(name)}' for name in chosen)} }}" if chosen else "one"
        one = f"{{ ...one, {', '.join(f'{quoted(name)}: undefined' for name in dropped)} }}" if dropped else one
        into = step.text("destinationFieldName") or "data"
        return step.program(f"return {{ {quoted(into)}: items.map((one) => ({one})) }};", many=False)
    made: list[str] = []
    for row in listed(step.get("fieldsToAggregate"), "fieldToAggregate"):
        name = str(row.get("fieldToAggregate") or "").removeprefix("=")
        into = str(row.get("outputFieldName") or name.rsplit(".", 1)[-1])
        flat = "flatMap" if step.get("options", "mergeLists") is True else "map"
        made.append(f"{quoted(into)}: items.{flat}((one) => {_read(name)}).filter((one) => one != null)")
    return step.program(f"return {{ {', '.join(made)} }};", many=False)


def limit(step: Step) -> Made:
    most = step.js("maxItems", otherwise=1)
    return step.program(f"return items.slice({f'-{most}' if step.text('keep') == 'lastItems' else f'0, {most}'});")


def sort(step: Step) -> Made:
    if step.text("type") == "random":
        return step.program(
            "return sortedBy(items.map((one) => ({ one, n: Math.random() })), [[['n'], 1]]).map((p) => p.one);"
        )
    if step.text("type") == "code":
        code = f"(a, b) => {{\n{step.text('code')}\n}}"
        return step.program(f"return items.map((json) => ({{ json }})).sort({code}).map((one) => one.json);")
    rows = listed(step.get("sortFieldsUi"), "sortField")
    by = [[str(row.get("fieldName", "")).split("."), -1 if row.get("order") == "descending" else 1] for row in rows]
    return step.program(f"return sortedBy(items, {quoted(by)});")


def unique(step: Step) -> Made:
    if step.text("operation").startswith("removeItemsSeen"):
        hint = "Keep what was seen in a table, or use a trigger that remembers its events."
        step.lose("It only removes duplicates within a run; n8n also removes those of earlier runs.", hint)
    return step.program(f"return firstsBy(items, {_paths(_fields(step, 'fieldsToCompare'))});")


def summarize(step: Step) -> Made:
    by = _fields(step, "fieldsToSplitBy")
    begins = {"countUnique": "unique_count", "append": "appended", "concatenate": "concatenated"}
    made = [f"{quoted(name)}: at(group[0], {quoted(name.split('.'))})" for name in by]
    for row in listed(step.get("fieldsToSummarize"), "values"):
        way, name = str(row.get("aggregation") or "count"), str(row.get("field") or "")
        into = f"{begins.get(way, way)}_{name.replace('.', '_')}"
        made.append(f"{quoted(into)}: summed[{quoted(way)}](group.map((one) => {_read(name)}))")
    groups = f"groupedBy(items, {_paths(by)}).map((group) => ({{ {', '.join(made)} }}))"
    return step.program(f"/* summed() */ return {groups}{'' if by else '[0]'};", many=bool(by))


def item_lists(step: Step) -> Made:
    ways: dict[str, Callable[[Step], Made]] = {
        "concatenateItems": aggregate, "aggregateItems": aggregate, "limit": limit, "sort": sort,
        "removeDuplicates": unique, "summarize": summarize,
    }  # fmt: skip
    return ways.get(step.text("operation"), split_out)(step)


def merge(step: Step) -> Made:
    """Version 1 has one setting for mode and way. Where every input has one item, what is combined is one item."""
    mode, way = step.text("mode") or "append", step.text("combineBy") or step.text("combinationMode")
    if mode not in ("append", "combine", "chooseBranch"):
        way, mode = mode, "chooseBranch" if mode in ("passThrough", "wait") else "combine"
    if mode == "append":
        made = "lists.flat()"
    elif mode == "chooseBranch":
        chosen = f"{step.text('output')}{step.text('useDataOfInput')}"
        made = f"lists[{1 if '2' in chosen else 0}] ?? []"
    elif way in ("mergeByPosition", "mergeByIndex", "combineByPosition"):
        made = f"merged.position(lists, {quoted(step.get('options', 'includeUnpaired') is True)})"
    elif way in ("multiplex", "combineAll"):
        made = "merged.all(lists)"
    else:
        rows = listed(step.get("mergeByFields"), "values") or listed(step.get("fieldsToMatch"), "values")
        pairs = [(str(row.get("field1")), str(row.get("field2"))) for row in rows]
        pairs = pairs or [(name, name) for name in _fields(step, "fieldsToMatchString")]
        pairs = pairs or [(step.text("propertyName1"), step.text("propertyName2"))]
        of, to = (f"(one) => JSON.stringify([{', '.join(_read(pair[i]) for pair in pairs)}])" for i in (0, 1))
        join = step.text("joinMode") or ("enrichInput1" if way == "mergeByKey" else "keepMatches")
        made = f"merged.fields(lists, {of}, {to}, {quoted(join)})"
    code = f"/* merged() */ const lists = [{', '.join(step.lists)}];\nreturn "
    if step.single and mode != "append":
        return Made("function", {"code": f"{code}({made})[0] ?? {{}};"}, ".result")
    return Made("function", {"code": f"{code}{made};"}, None, "<@.result>")


def is_one(code: str) -> bool:
    """Return whether code certainly returns one item: it ends with a literal of one, and returns nothing else."""
    tail = code.strip()
    if _SEVERAL.search(tail) or not _ONE.search(tail):
        return False
    last = tail[tail.rindex("return") + len("return") :].strip()
    depth, inside = 0, 1 if last.startswith("[") else 0
    for at, char in enumerate(last):
        depth += (char in "{[(") - (char in "}])")
        if char == "," and depth == inside:
            return last[at + 1 :].strip().startswith("]")
    return True


def code(step: Step) -> Made:
    each = step.text("mode") == "runOnceForEachItem" or step.node.kind == "functionItem"
    if step.text("language").startswith("python"):
        return _python(step, each)
    source = step.text("jsCode") or step.text("functionCode") or "return items;"
    if step.node.kind == "functionItem":
        source = f"const item = $json;\n{source}"
    for word in _ABSENT:
        if word in source:
            step.lose(f"Its code uses {word.rstrip('(.')}, which does not exist here.", "Change the code.")
    listing = f"[{step.item.js() if step.item else '{}'}]" if each else step.items()
    if undeclared := _undeclared(source):
        source = f"let {', '.join(undeclared)};\n{source}"
    lines = [
        f"const items = wrapped({listing}), $input = view(items), $json = items[0]?.json ?? {{}};",
        *_others(step, source),
        f"const made = await (async () => {{\n{_spaced(source)}\n}})();",
    ]
    one = each or is_one(source)
    lines.append(f"return unwrapped(made){'[0] ?? null' if one else ''};")
    return Made(
        "function",
        {"code": "\n".join(lines), "timeout_s": 60},
        ".result" if one else None,
        None if one else "<@.result>",
    )


def _spaced(source: str) -> str:
    """`${x}` would be read as a value of the environment; `$env.X` is one."""
    return _ENV.sub(r"${\1\2}", re.sub(r"\$\{(\w+)\}", r"${ \1 }", source))


def _undeclared(source: str) -> list[str]:
    """Return the variables to which code assigns without a declaration, which n8n permits."""
    declared = set(re.findall(r"\b(?:let|const|var|function|class)\s+(\w+)", source))
    assigned = re.findall(r"(?:^|[;{}])\s*(\w+)\s*=(?![=>])|\bfor\s*\(\s*(\w+)\s+(?:of|in)\b", source, re.MULTILINE)
    names = dict.fromkeys(one or other for one, other in assigned)
    declared |= {name for name in names if re.search(rf"\b(?:let|const|var)\b[^;]*?,\s*{name}\s*=", source)}
    return [name for name in names if name not in declared and name != "items"]


def _others(step: Step, source: str) -> list[str]:
    """Return the declarations of other nodes and of n8n that the code reads."""
    lists: dict[str, str] = {}
    for groups in _NODES.findall(source):
        name = next(filter(None, groups))
        found = step.texts.scope.items_of(name)
        if found is None:
            step.lose(f'Its code reads the node "{name}", which it cannot reach: it has no items.', "Change the code.")
        lists[name] = found or "[]"
    lines: list[str] = []
    if lists:
        lines.append(f"const $lists = {{ {', '.join(f'{quoted(name)}: {js}' for name, js in lists.items())} }};")
    if "$execution" in source or "$workflow" in source:
        title = quoted(step.texts.scope.title())
        lines.append(f"const $workflow = {{ name: {title}, id: {title} }}, $execution = {{ id: crypto.randomUUID() }};")
    if "$getWorkflowStaticData" in source:
        lines.append("const $getWorkflowStaticData = () => ({});")
    return lines


def _python(step: Step, each: bool) -> Made:
    listing = f"[{step.item.js()}]" if each and step.item is not None else step.items()
    if re.fullmatch(r"\[?<[^<>]+>\]?", listing) is None:  # Python takes references, and no JavaScript
        listing = f"<{step.first('function', {'code': f'return {listing};'}, 'input')}.result>"
    source = step.text("pythonCode") or step.text("code") or "return _input.all()"
    body = "\n".join(f"    {line}" for line in source.splitlines())
    made = Path(__file__).with_name("n8n_prelude.python.txt").read_text(encoding="utf-8")
    made += f"_input = _View({listing})\nitems = _items = _input.all()\n_json = items[0].json if items else _Item()\n"
    made += f"def _run():\n{body}\n_made = _run()\n"
    made += (
        '_all = [one.get("json", one) for one in (_made if isinstance(_made, list) else [_made] if _made else [])]\n'
    )
    made += f"return {'_all[0] if _all else None' if each else '_all'}"
    params = {"code": made, "language": "python", "timeout_s": 60}
    return Made("function", params, ".result" if each else None, None if each else "<@.result>")
