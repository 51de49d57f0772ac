"""What is wrong with a document, all at once: where, what, and how to mend it. One code each; see `CODES`."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Final, Literal

from msgspec import Struct

Severity = Literal["error", "warning"]

# A broken document of 20,000 blocks must not become an answer of 20,000 findings.
FINDINGS_MAX: Final = 500


class Diagnostic(Struct, frozen=True, omit_defaults=True):
    """One finding. `pointer` is an RFC 6901 JSON pointer into the submitted document."""

    code: str
    severity: Severity
    pointer: str
    message: str
    hint: str = ""
    block: str | None = None
    field: str | None = None


class CompileError(Exception):
    """The document has errors. `diagnostics` holds all findings, warnings included."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        errors = [d for d in diagnostics if d.severity == "error"]
        first = errors[0] if errors else diagnostics[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(f"{first.pointer or '/'}: {first.message}{more}")


# code -> severity, when it is given
CODES: Final[dict[str, tuple[Severity, str]]] = {
    # the JSON
    "json_malformed": ("error", "the document is not JSON"),
    "json_too_deep": ("error", "the JSON is nested too deeply"),
    "document_too_large": ("error", "the document has too many bytes"),
    "text_too_long": ("error", "a text in the document is too long"),
    "format_unknown": ("error", "the document is neither ours nor one that can be imported"),
    "format_missing": ("warning", "`format` is not there; weft/1 is assumed"),
    "field_invalid": ("error", "a field has the wrong type or value"),
    "field_unknown": ("warning", "a field nobody reads"),
    "id_invalid": ("error", "an id has characters it may not have"),
    "too_many_blocks": ("error", "more blocks than the limit"),
    "too_many_edges": ("error", "more edges than the limit"),
    "too_many_findings": ("warning", "the rest of the findings is left out"),
    "input_schema_invalid": ("error", "`input` is not a JSON Schema"),
    "not_available": ("error", "something this version does not offer yet"),
    "import_lossy": ("warning", "something was left out or changed by the import"),
    # containers
    "parent_missing": ("error", "`parent` names no block"),
    "parent_not_container": ("error", "`parent` names a block that is no loop or parallel"),
    "parent_cycle": ("error", "containers that hold each other"),
    "nesting_too_deep": ("error", "containers nested too deeply"),
    "container_empty": ("error", "a loop or parallel without blocks"),
    "container_unwired": ("error", "a loop or parallel whose `body` handle leads nowhere"),
    "limit_branches": ("error", "more branches than the limit"),
    "limit_iterations": ("error", "more iterations than the limit"),
    # edges and reach
    "edge_source_missing": ("error", "an edge from a block that is not there"),
    "edge_target_missing": ("error", "an edge to a block that is not there"),
    "edge_handle_unknown": ("error", "an edge from a handle its block does not have"),
    "edge_crosses_border": ("error", "an edge into or out of a container"),
    "edge_to_note": ("error", "an edge at a block that never runs"),
    "edge_duplicate": ("warning", "two equal edges; they count as two"),
    "cycle": ("error", "blocks that wait for each other"),
    "trigger_missing": ("error", "no block can start a run"),
    "trigger_unknown": ("error", "the trigger asked for is not there, or starts no runs"),
    "trigger_has_input": ("error", "an edge to a trigger"),
    "trigger_in_container": ("error", "a trigger inside a loop or parallel"),
    "trigger_several": ("warning", "several blocks could start the run; one was chosen"),
    "block_unreachable": ("warning", "no trigger leads to this block"),
    # blocks
    "block_type_unknown": ("error", "no such block type"),
    "param_unknown": ("error", "a param the block type does not have"),
    "param_unread": ("warning", "a param the block type does not list"),
    "param_missing": ("error", "a required param is not there"),
    "param_invalid": ("error", "a param has the wrong type or value"),
    "group_unknown": ("error", "a policy names a group that settings.groups does not have"),
    "case_duplicate": ("error", "two cases with one id"),
    "case_unwired": ("warning", "a case without an edge: a dead end"),
    "else_missing": ("warning", "no case matches everything else"),
    "else_not_last": ("error", "cases after the one that matches everything"),
    "expression_invalid": ("error", "an expression or a program does not parse"),
    "path_invalid": ("error", "a variable path that can not be read"),
    # references and names
    "name_reserved": ("warning", "a block name that references can not reach"),
    "name_ambiguous": ("warning", "a reference to a name that several blocks have"),
    "reference_unknown": ("warning", "looks like a reference to a block or field of another name"),
    "reference_unknown_field": ("warning", "the block declares no such field; reading it fails"),
    "reference_absent": ("warning", "reads a block that is disabled or that this trigger does not reach"),
    "reference_default_invalid": ("error", "the default after ?? is not JSON"),
    "reference_outside_container": ("warning", "`<loop...>` or `<parallel...>` outside of one"),
    "reference_not_upstream": ("error", "reads a block that does not run before the reader"),
    "reference_may_be_skipped": ("warning", "reads a block that may have been skipped"),
    "reference_into_parallel": ("error", "reads a block inside a parallel from outside"),
    "reference_quoted": ("warning", "quotes around a reference compare its text"),
    "variable_undeclared": ("warning", "a variable that `variables` does not list"),
    "variable_concurrent_writers": ("warning", "several blocks may set one variable at the same time"),
    "env_unknown": ("warning", "an environment name this server does not have"),
}


class Report:
    """Collects findings. Blocks in `outside` are not part of the plan: their errors only warn."""

    def __init__(self) -> None:
        self.findings: list[Diagnostic] = []
        self.outside: Collection[str] = frozenset()
        self.failed = False

    def add(
        self,
        code: str,
        pointer: str,
        message: str,
        *,
        hint: str = "",
        block: str | None = None,
        field: str | None = None,
    ) -> None:
        severity = "warning" if block is not None and block in self.outside else CODES[code][0]
        self.failed = self.failed or severity == "error"
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(Diagnostic(code, severity, pointer, message, hint, block, field))
        elif len(self.findings) == FINDINGS_MAX:
            message = f"there are more than {FINDINGS_MAX} findings; the rest is left out"
            self.findings.append(Diagnostic("too_many_findings", "warning", "", message))

    def sorted(self) -> list[Diagnostic]:
        """Errors first, each kind in the order of its discovery."""
        return sorted(self.findings, key=lambda finding: finding.severity)


def suggest(name: str, known: Iterable[str]) -> str:
    """`did you mean 'condition-a'?`, or nothing when no known name is close."""
    options = {option.lower(): option for option in known}
    close = difflib.get_close_matches(name.lower()[:200], options, n=1, cutoff=0.6)
    return f"did you mean {options[close[0]]!r}?" if close else ""
