"""Diagnostics: all faults of a document at once, each with its place, a message and a fix. One code each; see
`CODES`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable
from heapq import nlargest
from itertools import islice
from typing import Final, Literal

from msgspec import Struct

Severity = Literal["error", "warning"]

# A broken document of 20,000 blocks must not become an answer of 20,000 findings.
FINDINGS_MAX: Final = 500
# "Did you mean" is for people; documents with more mistakes than this are generated.
SUGGESTIONS_MAX: Final = 100
SUGGESTED_FROM_MAX: Final = 1_000
NAME_COMPARED_MAX: Final = 40
MESSAGE_LENGTH_MAX: Final = 500

Hint = str | Callable[[], str]


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
    """The document has errors. `diagnostics` holds all findings, warnings included; `message` names the first error,
    and the text has its hint as well."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        errors = [d for d in diagnostics if d.severity == "error"]
        first = errors[0] if errors else diagnostics[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        self.message = f"{first.pointer or '/'}: {first.message}{more}"
        super().__init__(f"{self.message} {first.hint}".rstrip())


# code -> severity, when it is given
CODES: Final[dict[str, tuple[Severity, str]]] = {
    # the JSON
    "json_malformed": ("error", "the document is not JSON"),
    "json_too_deep": ("error", "the JSON is nested too deeply"),
    "document_too_large": ("error", "the document has too many bytes"),
    "text_too_long": ("error", "a text in the document is too long"),
    "format_unknown": ("error", "the document is not a weft workflow and cannot be imported"),
    "format_missing": ("warning", "`format` is missing; weft/1 is assumed"),
    "field_invalid": ("error", "a field has the wrong type or value"),
    "field_unknown": ("warning", "an unknown field"),
    "id_invalid": ("error", "an id has characters that are not allowed"),
    "too_many_blocks": ("error", "more blocks than the limit"),
    "too_many_edges": ("error", "more edges than the limit"),
    "too_many_triggers": ("error", "more triggers than allowed for the size of the document"),
    "too_many_findings": ("warning", "more findings than the limit; the rest is not shown"),
    "input_schema_invalid": ("error", "`input` is not a JSON Schema"),
    "not_available": ("error", "something this version does not support"),
    "import_lossy": ("warning", "something was omitted or changed by the import"),
    "not_imported": ("warning", "a block or a tool stands in for one that was not imported, and fails"),
    "triggers_off": ("warning", "triggers are off because blocks were not imported"),
    # containers
    "parent_missing": ("error", "`parent` is not the id of a block"),
    "parent_not_container": ("error", "`parent` is not a loop or parallel"),
    "parent_cycle": ("error", "containers that are inside each other"),
    "nesting_too_deep": ("error", "containers nested too deeply"),
    "container_empty": ("error", "a loop or parallel without blocks"),
    "container_unwired": ("error", "a loop or parallel whose `body` handle is not connected"),
    "limit_branches": ("error", "more branches than the limit"),
    "limit_iterations": ("error", "more iterations than the limit"),
    "limit_references": ("error", "more references than the limit"),
    "limit_expressions": ("error", "more expressions and programs than the limit"),
    # edges and reach
    "edge_source_missing": ("error", "an edge from a block that does not exist"),
    "edge_target_missing": ("error", "an edge to a block that does not exist"),
    "edge_handle_unknown": ("error", "an edge from a handle its block does not have"),
    "edge_crosses_border": ("error", "an edge into or out of a container"),
    "edge_to_note": ("error", "an edge at a block that never runs"),
    "edge_duplicate": ("warning", "two equal edges"),
    "cycle": ("error", "blocks that wait for each other"),
    "trigger_missing": ("error", "no block can start a run"),
    "trigger_unknown": ("error", "the requested trigger does not exist or is not a trigger"),
    "trigger_has_input": ("error", "an edge to a trigger"),
    "trigger_in_container": ("error", "a trigger inside a loop or parallel"),
    "trigger_several": ("warning", "several blocks could start the run; one was chosen"),
    "block_unreachable": ("warning", "a block that is not connected to a trigger"),
    "block_dropped": ("warning", "open runs of older versions use a block that was removed"),
    # blocks
    "block_type_unknown": ("error", "no such block type"),
    "param_unknown": ("error", "a param the block type does not have"),
    "param_unread": ("warning", "a param the block type does not list"),
    "required": ("error", "a required param is missing or empty"),
    "param_invalid": ("error", "a param has the wrong type or value"),
    "cron_invalid": ("error", "not a cron expression"),
    "timezone_unknown": ("error", "no such time zone"),
    "webhook_open": ("warning", "a webhook without authentication"),
    "group_unknown": ("error", "a policy has a group that is not in settings.groups"),
    "sandbox_missing": ("error", "JavaScript or Python where the libraries of the extra `js` are not installed"),
    "python_missing": ("warning", "code in Python on a machine where that is not built"),
    "policy_unread": ("warning", "a policy that has no effect on blocks of this type"),
    "runner_unfit": ("error", "a policy.runner that blocks of this type cannot use"),
    "cache_unfit": ("error", "policy.cache on a block whose output cannot be reused"),
    "output_schema_invalid": ("error", "`output_schema` of a block is not a JSON Schema"),
    "case_duplicate": ("error", "two cases with one id"),
    "case_unwired": ("warning", "a case that is not connected"),
    "cleanup_shared": ("error", "a block of a cleanup that also runs before it"),
    "pin_not_possible": ("error", "a pinned output of a block that cannot have one"),
    "cleanup_response": ("error", "a block that ends the run, inside a cleanup"),
    "cleanup_waits": ("warning", "a cleanup that waits for a person"),
    "undo_invalid": ("error", "a block that undoes another one, in the wrong place"),
    "break_outside_loop": ("error", "a break that is not inside a loop"),
    "else_missing": ("warning", "no case matches everything else"),
    "else_not_last": ("error", "cases after the one that matches everything else"),
    "expression_invalid": ("error", "an expression or a program does not parse"),
    "path_invalid": ("error", "not a path of a variable"),
    # references and names
    "name_reserved": ("warning", "a block name that references cannot use"),
    "name_ambiguous": ("warning", "a reference to a name that several blocks have"),
    "reference_unknown": ("warning", "looks like a reference to a block or field of another name"),
    "reference_misspelt": ("error", "an expression reads a block that does not exist"),
    "reference_computes": ("warning", "an operator inside a reference, which only reads"),
    "reference_unknown_field": ("warning", "the block declares no such field; reading it fails"),
    "reference_absent": ("warning", "reads a block that is disabled or that this trigger does not reach"),
    "reference_default_invalid": ("error", "the default after ?? is not JSON"),
    "reference_outside_container": ("warning", "`<loop...>` or `<parallel...>` outside of one"),
    "reference_not_upstream": ("error", "reads a block that does not run before the reader"),
    "reference_may_be_skipped": ("warning", "reads a block that may have been skipped"),
    "reference_into_parallel": ("error", "reads a block inside a parallel from outside"),
    "reference_quoted": ("warning", "quotes around a reference compare its text"),
    "setting_reference": ("error", "a setting reads something else than the input"),
    "limit_of_block": ("error", "a limit of blocks in the settings"),
    "variable_undeclared": ("warning", "a variable that is not declared in `variables`"),
    "variable_concurrent_writers": ("warning", "several blocks may set one variable at the same time"),
    "env_unknown": ("warning", "an environment name that is not set on this server"),
    "connection_unknown": ("warning", "a connection that this server does not have; the block fails"),
    "connection_needs_sign_in": ("warning", "a connection that is not signed in; the block fails"),
    "secret_in_address": ("error", "a stored secret in the scheme, the host or the port of a URL"),
    "secret_misplaced": ("warning", "a stored secret in a param that is not for secrets; the block fails"),
}


# Hints: the fix of each kind of finding, when there is no better hint for the case at hand.
HINTS: Final[dict[str, str]] = {
    "json_malformed": "Send one JSON object in UTF-8.",
    "secret_in_address": "Write out the URL up to its path. Secrets can be in the path, query, headers and body.",
    "secret_misplaced": "Move it to the URL, query, headers or body of a request, or to a credential of a block.",
    "json_too_deep": "Check that the document is not nested in itself.",
    "document_too_large": "Pass large data as input, or let a block fetch it.",
    "text_too_long": "Pass long text as input, or let a block fetch it.",
    "format_unknown": 'Start the document with {"format": "weft/1", "blocks": {...}}.',
    "field_invalid": "docs/reference/document.md lists the fields.",
    "id_invalid": "Use `name` for the text that people read.",
    "too_many_blocks": "Split the workflow, or repeat blocks in a loop or a parallel.",
    "too_many_edges": "Split the workflow, or repeat blocks in a loop or a parallel.",
    "too_many_triggers": "Move the triggers to small workflows that run this one.",
    "input_schema_invalid": "See https://json-schema.org/draft/2020-12. Remove `input` to accept any input.",
    "not_available": "Remove it.",
    "parent_missing": "Set `parent` to a loop or a parallel, or remove it.",
    "parent_not_container": "Set `parent` to a loop or a parallel, or remove it.",
    "parent_cycle": "Move one of them out of the other.",
    "nesting_too_deep": "Flatten the inner containers, for example by running one loop over prepared items.",
    "container_empty": "Drag a block into it.",
    "container_unwired": "Connect its body handle to the first block inside it.",
    "limit_branches": "Run fewer branches, each with several items.",
    "limit_iterations": "Run fewer iterations, each with several items.",
    "limit_references": "Split the workflow, or reference whole objects instead of single fields.",
    "limit_expressions": "Move the code they share to one function block.",
    "edge_source_missing": "Delete the connection, or connect it to an existing block.",
    "edge_target_missing": "Delete the connection, or connect it to an existing block.",
    "edge_handle_unknown": "Connect from a handle that the block has.",
    "edge_crosses_border": "Connect blocks in the same container. To enter a container, connect from its body handle; "
    "to leave it, from its out handle.",
    "edge_to_note": "Delete the connection.",
    "cycle": "To repeat blocks, put them in a loop and read the result of the previous iteration by reference.",
    "trigger_missing": "Add a Start block.",
    "trigger_unknown": "Choose a trigger block, or leave the trigger out.",
    "trigger_has_input": "Delete the connection, or repeat the blocks in a loop.",
    "trigger_in_container": "Move it out of the container.",
    "block_unreachable": "Connect it, or delete it.",
    "block_type_unknown": "docs/reference/document.md lists the types; python is one where functions are registered "
    "(weft dev flow.py, WEFT_FUNCTIONS=flow.py, or in a program weft.open(workflows=[...])).",
    "required": "docs/reference/document.md describes the parameters of each block type.",
    "param_unknown": "docs/reference/document.md describes the parameters of each block type.",
    "param_invalid": "docs/reference/document.md describes the parameters of each block type.",
    "cleanup_shared": "Connect it from the finally handle, or from the blocks before, but not from both.",
    "cleanup_response": "Move it out of the cleanup.",
    "cleanup_waits": "The cleanup is stopped after settings.cleanup_timeout_s.",
    "undo_invalid": "Deploy the workflow again from its Python code.",
    "break_outside_loop": "Drag it into a loop, or delete it.",
    "cron_invalid": "Use minute, hour, day of the month, month, day of the week, such as 0 9 * * MON-FRI; or @daily.",
    "timezone_unknown": "Use a name such as Europe/Berlin, or UTC.",
    "webhook_open": "Choose an authentication, unless anyone may start this workflow.",
    "group_unknown": "Add the group to settings.groups, or remove it here.",
    "cache_unfit": "Remove `cache`. HTTP requests can be cached when the method is GET or HEAD.",
    "output_schema_invalid": "See https://json-schema.org/draft/2020-12. Remove it to accept any output.",
    "case_duplicate": "Give each case its own id.",
    "case_unwired": "Connect it, or delete the case.",
    "else_not_last": "Add a condition, or move the case to the end.",
    "expression_invalid": "Use JavaScript. References such as <block.field> stand for values.",
    "path_invalid": "Use $.name, $.name.field or $.list[0].",
    "reference_misspelt": "Use the name of a block that runs before this one.",
    "reference_default_invalid": 'Put text in quotes: ?? "none".',
    "setting_reference": "Read the input of the run: <input.customer>.",
    "limit_of_block": 'Put it into the blocks that share it: "policy": {"limit": {"key": "crm", "at_most": 5}}.',
    "reference_not_upstream": "Connect that block to this one, or put both in a loop.",
    "reference_into_parallel": "Read the results of the parallel: <its name.results>.",
}


class Report:
    """Collects findings. Blocks in `outside` are not part of the plan: their errors only warn.

    The bound is on errors and on warnings each: no number of warnings crowds out an error.
    """

    def __init__(self) -> None:
        self.findings: list[Diagnostic] = []
        self.outside: Collection[str] = frozenset()
        self.failed = False
        self._room = {"error": FINDINGS_MAX, "warning": FINDINGS_MAX}
        self._suggestions = SUGGESTIONS_MAX

    def add(
        self,
        code: str,
        pointer: str,
        message: str,
        *,
        hint: Hint = "",
        block: str | None = None,
        field: str | None = None,
    ) -> None:
        """`hint` is a text, or a function that makes one; it is called for the first findings only."""
        severity = "warning" if block is not None and block in self.outside else CODES[code][0]
        self.failed = self.failed or severity == "error"
        self._room[severity] -= 1
        if self._room[severity] >= 0:
            shown = self._text_of(hint) or HINTS.get(code, "")
            if len(message) > MESSAGE_LENGTH_MAX:  # it quotes the document, which may hold a reference of a megabyte
                message = f"{message[:MESSAGE_LENGTH_MAX]}..."
            self.findings.append(Diagnostic(code, severity, pointer, message, shown, block, field))

    def _text_of(self, hint: Hint) -> str:
        if isinstance(hint, str):
            return hint
        self._suggestions -= 1
        return hint() if self._suggestions >= 0 else ""

    def sorted(self) -> list[Diagnostic]:
        """Errors first, each kind in the order of its discovery; at most FINDINGS_MAX, and a word on the rest."""
        found = sorted(self.findings, key=lambda finding: finding.severity)
        if len(found) <= FINDINGS_MAX and min(self._room.values()) >= 0:
            return found
        message = f"There are more than {FINDINGS_MAX} findings. The rest is not shown."
        return [*found[:FINDINGS_MAX], Diagnostic("too_many_findings", "warning", "", message)]


def suggest(name: str, known: Iterable[str]) -> str:
    """Return `Did you mean "condition-a"?`, or "" if no known name is close."""
    found = closest(name, known)
    return f'Did you mean "{found}"?' if found is not None else ""


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant, or None.

    A proper comparison costs up to the square of the lengths. It is spared for the few names that share most pairs of
    neighbouring letters with the one given, so that a document full of odd names does not cost seconds.
    """
    wanted = name.lower()[:NAME_COMPARED_MAX]
    letters = set(wanted)
    options = {option.lower()[:NAME_COMPARED_MAX]: option for option in islice(known, SUGGESTED_FROM_MAX)}
    likely = nlargest(8, options, key=lambda option: 2 * len(letters & set(option)) - abs(len(option) - len(wanted)))
    close = difflib.get_close_matches(wanted, likely, n=1, cutoff=0.6)
    return options[close[0]] if close else None
