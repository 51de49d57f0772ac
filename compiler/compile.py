"""The pipeline from document to plan. Read this first.

    bytes -> accept -> decode -> wire -> choose_trigger -> check -> flows, lay_out -> bind -> regions -> Plan

Where a document comes from outside, `compiler.imports.accept` reads it and asks the importers of other formats. Each
later step reports errors and continues with the valid parts, so that all findings come at once. The plan is made only
when there is no error. Pure: the same document, catalog and trigger give the same plan, and the same hash.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from compiler.bind import Binder
from compiler.catalog import Catalog
from compiler.check import check, check_cycles, check_queue
from compiler.diagnostics import Diagnostic, Report
from compiler.document import AlertsDoc, Document, Limits, decode
from compiler.flow import Flow
from compiler.imports import Imported, Source, accept, not_imported
from compiler.keys import CLEANUP_SUFFIX
from compiler.needs import Gatherer, check_secrets
from compiler.plan import Alerts, Group, Limit, Plan, Rate, Settings
from compiler.regions import lay_out, make_regions
from compiler.variables import Variables
from compiler.wiring import ROOT, Wiring, choose_trigger, too_many_triggers, wire

DEFAULT_LIMITS: Final = Limits()


class Compiled(Struct, frozen=True):
    """The result of a compile. `plan` is None if a diagnostic is an error. Errors come first in `diagnostics`."""

    plan: Plan | None
    diagnostics: list[Diagnostic]


def compile_document(
    document: Source | Imported,
    catalog: Catalog,
    *,
    trigger: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    env_names: Collection[str] | None = None,
    stored_secrets: Collection[str] = (),
) -> Compiled:
    """Compile a document of ours, or one that `accept` returned. Never raises, whatever the document is.

    trigger    id of the block that starts the run; without it the only, or first, block of type `start`
    env_names  names that `${NAME}` may read, for warnings; None if unknown
    stored_secrets  those of the names that may stand only where the schema of a block permits secrets
    """
    ours = document if isinstance(document, Imported) else accept(document, dict, limits=limits)
    if any(finding.severity == "error" for finding in ours.diagnostics):
        return Compiled(None, list(ours.diagnostics))
    report, value = Report(), ours.document
    report.findings += ours.diagnostics if ours.format is not None else not_imported(value)
    if not isinstance(value.get("format"), str) and not isinstance(value.get("blocks"), Mapping):
        message = "This is not a workflow: it has neither the blocks of weft/1 nor those of Sim."
        report.add("format_unknown", "", message)
        return Compiled(None, report.sorted())
    plan = _compile(decode(value, limits, report), catalog, trigger, limits, env_names, stored_secrets, report)
    findings = report.sorted()
    if ours.pointers:
        findings = [replace(finding, pointer=_source_pointer(finding.pointer, ours.pointers)) for finding in findings]
    return Compiled(plan, findings)


def _compile(
    document: Document,
    catalog: Catalog,
    trigger: str | None,
    limits: Limits,
    env_names: Collection[str] | None,
    stored_secrets: Collection[str],
    report: Report,
) -> Plan | None:
    wiring = wire(document, catalog, limits, report)
    if too_many_triggers(wiring, limits, report):
        return None
    choose_trigger(wiring, trigger, report)
    report.outside = document.blocks.keys() - wiring.reached
    check(wiring, catalog, limits, report)
    check_queue(document.settings, report)
    flows = _flows(wiring)
    sound = check_cycles(wiring, flows, report) and wiring.trigger is not None
    layout = lay_out(wiring, flows)
    variables = Variables(wiring, report)
    if sound:
        variables.check_writes(wiring, flows)
    binder = Binder(wiring, flows, layout.places, variables, report, env_names, sound)
    gatherer = Gatherer(wiring, binder, variables, catalog, report, limits)
    needs = {block: gatherer.needs_of(wiring.blocks[block]) for blocks in layout.blocks for block in blocks}
    check_secrets(wiring, catalog, stored_secrets, report)
    if report.failed or wiring.trigger is None:
        return None
    settings = document.settings
    return Plan(
        name=document.name,
        trigger=wiring.trigger,
        regions=make_regions(wiring, flows, layout, needs),
        groups=(Group("", 0), *(Group(name, limit) for name, limit in settings.groups.items())),
        settings=Settings(
            max_concurrency=settings.max_concurrency,
            timeout_ms=max(1, round(settings.timeout_s * 1000)),
            on_failure=settings.on_failure,
            durability=settings.durability,
            max_executions=settings.max_executions,
            cleanup_timeout_ms=_cleanup_timeout_ms(settings.cleanup_timeout_s),
            pool=settings.pool,
            priority=settings.priority,
            fair=settings.fair,
            limits=tuple(Limit(limit.key, limit.at_most) for limit in settings.limits),
            rates=tuple(Rate(rate.key, rate.per_s) for rate in settings.rates),
            alerts=_alerts(settings.alerts),
            error_workflow=settings.error_workflow,
        ),
        variables=document.variables,
        input_schema=document.input,
    )


def _alerts(alerts: AlertsDoc | None) -> Alerts | None:
    if alerts is None:
        return None
    late_ms = None if alerts.waiting_s is None else max(1, round(alerts.waiting_s * 1000))
    return Alerts(tuple(alerts.email), alerts.webhook, late_ms)


def _cleanup_timeout_ms(seconds: float) -> int:
    """Return the constant itself if it is the default: msgspec leaves out the default by identity, not by equality, so
    older plans stay the same."""
    default = Settings().cleanup_timeout_ms
    wanted = max(1, round(seconds * 1000))
    return default if wanted == default else wanted


def _flows(wiring: Wiring) -> dict[str, Flow]:
    containers = [
        container
        for container in wiring.children
        if (around := container.removesuffix(CLEANUP_SUFFIX)) == ROOT or around in wiring.reached
    ]
    return {container: Flow(wiring, container) for container in containers}


def _source_pointer(pointer: str, pointers: Mapping[str, str]) -> str:
    parts = pointer.split("/", 3)
    moved = pointers.get("/".join(parts[:3]))
    return pointer if moved is None else moved
