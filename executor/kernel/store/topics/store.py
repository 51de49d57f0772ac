"""The store: the methods of all topics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from executor.kernel.store.topics import (
    alerts,
    audit,
    cache,
    claims,
    connectors,
    contents,
    drafts,
    families,
    hooks,
    inbox,
    journal,
    knowledge,
    leases,
    limits,
    load,
    memory,
    outbox,
    people,
    places,
    run_lists,
    runs,
    schedules,
    secrets,
    snapshots,
    upkeep,
    usage,
    waits,
    webhooks,
    workflows,
)
from executor.kernel.store.topics.alerts import AlertMessage
from executor.kernel.store.topics.methods import Backed, audited, read, write
from executor.kernel.store.topics.outbox import NotificationRow
from executor.kernel.store.topics.upkeep import Orphans, Retired
from executor.kernel.store.writer import GroupWriter, Stats


class Store(Backed, ABC):
    """The store of every database; docs/reference/store.md has its rules. Every method raises DatabaseWriteFailed or
    DatabaseUnavailable (executor.errors) when the database cannot do it. How one is opened, closed and looked at is its
    own."""

    stats: Stats  # of what this process has committed

    @abstractmethod
    async def open(self) -> None:
        """Create or migrate the schema. Refuses a database newer than this code (SchemaTooNew)."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    def stop_retrying(self) -> None:
        """Try no write again that finds the database busy: a process that is to end has only seconds."""

    @abstractmethod
    def check_identity(self) -> None:
        """Raises DatabaseReplaced, without waiting, if what is open is no longer the database that was opened."""

    def note_opened(self) -> None:
        """The readers are open, and no writer: `check_identity` is of the database that they read."""
        return

    @abstractmethod
    async def time_us(self) -> int | None:
        """Return the time of the database server, in microseconds, or None if it has the clock of this machine."""

    @abstractmethod
    async def ping_read(self) -> None:
        """Prove by a read that the database can be read; raises otherwise."""

    @abstractmethod
    async def ping(self) -> None:
        """Prove by a read and a small write that the database works; raises otherwise."""

    def deleting(self) -> AbstractAsyncContextManager[bool]:
        """Enter a sweep of old runs. Yields False if another process on the database is at it."""
        return nullcontext(True)

    async def retire_days(self, ended_before_ms: int | None, every_days: int) -> Retired | None:
        """Begin a new part of the journals, and drop those whose runs ended before this time; a run that may not go
        moves to another. For the holder of `deleting`, where journals are in parts, each of the runs of `every_days`
        days. Returns None if there are no parts."""
        return None

    get_plan = read(contents.get_plan)
    put_plan = write(contents.put_plan)
    get_document = read(contents.get_document)
    get_blob = read(contents.get_blob)
    put_parts = audited(contents.put_parts)
    hold_files = write(contents.hold_files)
    files_of_run = read(contents.files_of_run)
    holds_file = read(contents.holds_file)
    put_workflow = audited(workflows.put_workflow)
    activate_workflow = audited(workflows.activate_workflow)
    get_workflow = read(workflows.get_workflow)
    list_workflows = read(workflows.list_workflows)
    get_head = read(workflows.get_head)
    list_heads = read(workflows.list_heads)
    list_versions = read(workflows.list_versions)
    put_in_folder = audited(workflows.put_in_folder)
    put_title = audited(workflows.put_title)
    named = read(workflows.named)
    delete_workflow = audited(workflows.delete_workflow)
    list_cards = read(workflows.list_cards)
    count_folders = read(workflows.count_folders)
    card_facts = read(workflows.card_facts)
    short_runs = read(workflows.short_runs)
    count_open = read(workflows.count_open)
    put_draft = audited(drafts.put_draft)
    get_draft = read(drafts.get_draft)
    list_drafts = read(drafts.list_drafts)
    last_runs = read(drafts.last_runs)
    rebase_draft = audited(drafts.rebase_draft)
    put_draft_in_folder = audited(drafts.put_draft_in_folder)
    delete_draft = audited(drafts.delete_draft)
    create_run = audited(runs.create_run)
    begin_run = audited(leases.begin_run)
    get_run = read(runs.get_run)
    runs_by_key = read(runs.runs_by_key)
    version = read(lambda readers: readers.version())
    last_seqs = read(runs.last_seqs)
    list_runs = read(run_lists.list_runs)
    starters = read(run_lists.starters)
    list_outlines = read(run_lists.list_outlines)
    count_runs = read(run_lists.count_runs)
    count_by_time = read(run_lists.count_by_time)
    list_inputs = read(run_lists.list_inputs)
    output_bytes = read(runs.output_bytes)
    claim = write(claims.claim)
    renew = write(leases.renew)
    release = write(leases.release)
    next_due = read(claims.next_due)
    waits_for = read(limits.waits_for)
    count_queued = read(claims.count_queued)
    ask_places = write(places.ask_places)
    assign_places = write(places.assign_places)
    places_to_assign = read(places.places_to_assign)
    places_of = read(places.places_of)
    repair_clock_skew = write(claims.repair_clock_skew)
    append = write(journal.append)
    read_events = read(journal.read_events)
    find_events = read(journal.find_events)
    read_inbox = read(inbox.read_inbox)
    post_message = audited(inbox.post_message)
    cancel_run = audited(inbox.cancel_run)
    post_signal = audited(inbox.post_signal)
    unconsumed_signals = read(inbox.unconsumed_signals)
    list_signals = read(inbox.list_signals)
    find_wait = read(waits.find_wait)
    get_wait = read(waits.get_wait)
    list_waits = read(waits.list_waits)
    count_waits = read(waits.count_waits)
    list_waits_below = read(waits.list_waits_below)
    answer_wait = audited(waits.answer_wait)
    answer_and_continue = audited(claims.answer_and_continue)
    cancel_wait = audited(waits.cancel_wait)
    expire_wait = write(waits.expire_wait)
    get_family = read(families.get_family)
    list_children = read(families.list_children)
    list_ancestors = read(families.list_ancestors)
    count_active_below = read(families.count_active_below)
    keep_notification = write(outbox.keep_notification)
    record_notification = write(outbox.record_notification)
    next_notification_ms = read(outbox.next_notification_ms)
    list_notifications = read(outbox.list_notifications)
    add_alerts = write(alerts.add_alerts)
    next_alert_ms = read(alerts.next_alert_ms)
    keep_alert_message = write(alerts.keep_alert_message)
    record_alert_message = write(alerts.record_alert_message)
    alerts_of = read(alerts.alerts_of)
    count_alerts_of = read(alerts.count_alerts_of)
    queued_since = read(alerts.queued_since)
    delete_old_alerts = write(alerts.delete_old_alerts)
    find_cached = read(cache.find_cached)
    clear_cache = audited(cache.clear_cache)
    delete_expired_cache = write(cache.delete_expired_cache)
    put_checkpoint = write(snapshots.put_checkpoint)
    get_checkpoint = read(snapshots.get_checkpoint)
    get_snapshot = read(snapshots.get_snapshot)
    delete_snapshots = write(snapshots.delete_snapshots)
    put_schedule = audited(schedules.put_schedule)
    get_schedule = read(schedules.get_schedule)
    list_schedules = read(schedules.list_schedules)
    switch_schedule = audited(schedules.switch_schedule)
    delete_schedule = audited(schedules.delete_schedule)
    due_schedules = read(schedules.due_schedules)
    next_schedule_ms = read(schedules.next_schedule_ms)
    fire = audited(schedules.fire)
    claim_poll = write(schedules.claim_poll)
    record_poll = audited(schedules.record_poll)
    list_fires = read(schedules.list_fires)
    get_hook = read(hooks.get_hook)
    list_hooks = read(hooks.list_hooks)
    due_hooks = read(hooks.due_hooks)
    missing_hooks = read(hooks.missing_hooks)
    add_hook = write(hooks.add_hook)
    claim_hook = write(hooks.claim_hook)
    record_hook = write(hooks.record_hook)
    keep_hook_secret = write(hooks.keep_hook_secret)
    push_hook = write(hooks.push_hook)
    poll_pushed = write(hooks.poll_pushed)
    put_webhook = audited(webhooks.put_webhook)
    get_webhook = read(webhooks.get_webhook)
    list_webhooks = read(webhooks.list_webhooks)
    switch_webhook = audited(webhooks.switch_webhook)
    rotate_webhook = audited(webhooks.rotate_webhook)
    delete_webhook = audited(webhooks.delete_webhook)
    deliver = write(webhooks.deliver)
    list_deliveries = read(webhooks.list_deliveries)
    add_refusals = write(webhooks.add_refusals)
    list_refusals = read(webhooks.list_refusals)
    find_removable = read(upkeep.find_removable)
    delete_runs = audited(upkeep.delete_runs)
    count_orphans = read(upkeep.count_orphans)
    upkeep_note = read(upkeep.upkeep_note)
    put_upkeep_note = write(upkeep.put_upkeep_note)
    keep_run = audited(upkeep.keep_run)
    drop_kept_run = audited(upkeep.drop_kept_run)
    kept_runs = read(upkeep.kept_runs)
    put_connector = audited(connectors.put_connector)
    connector_hashes = read(connectors.connector_hashes)
    get_connectors = read(connectors.get_connectors)
    delete_connector = audited(connectors.delete_connector)
    put_secret = audited(secrets.put_secret)
    get_secrets = read(secrets.get_secrets)
    list_secrets = read(secrets.list_secrets)
    use_secrets = write(secrets.use_secrets)
    reseal_secrets = audited(secrets.reseal_secrets)
    delete_secret = audited(secrets.delete_secret)
    list_keys = read(secrets.list_keys)
    claim_key = write(secrets.claim_key)
    change_key = audited(secrets.change_key)
    relink = write(secrets.relink)
    find_old_wait = read(secrets.find_old_wait)
    remember = write(memory.remember)
    recall = read(memory.recall)
    list_memories = read(memory.list_memories)
    forget = audited(memory.forget)
    delete_old_memory = write(memory.delete_old_memory)
    put_collection = audited(knowledge.put_collection)
    delete_collection = audited(knowledge.delete_collection)
    add_knowledge = audited(knowledge.add_knowledge)
    delete_knowledge = audited(knowledge.delete_knowledge)
    put_vectors = write(knowledge.put_vectors)
    publish_knowledge = write(knowledge.publish_knowledge)
    sweep_chunks = write(knowledge.sweep_chunks)
    gone_chunks = read(knowledge.gone_chunks)
    get_collection = read(knowledge.get_collection)
    list_collections = read(knowledge.list_collections)
    list_knowledge = read(knowledge.list_knowledge)
    get_knowledge = read(knowledge.get_knowledge)
    model_of_knowledge = read(knowledge.model_of_knowledge)
    chunks_without_vector = read(knowledge.chunks_without_vector)
    knowledge_signs = read(knowledge.knowledge_signs)
    knowledge_vectors = read(knowledge.knowledge_vectors)
    chunks_with_word = read(knowledge.chunks_with_word)
    found_chunks = read(knowledge.found_chunks)
    put_session = audited(people.put_session)
    get_session = read(people.get_session)
    see_session = write(people.see_session)
    delete_session = audited(people.delete_session)
    delete_sessions = audited(people.delete_sessions)
    list_sessions = read(people.list_sessions)
    put_user = audited(people.put_user)
    get_user = read(people.get_user)
    get_user_of = read(people.get_user_of)
    identify = audited(people.identify)
    list_users = read(people.list_users)
    set_role = audited(people.set_role)
    delete_user = audited(people.delete_user)
    put_code = audited(people.put_code)
    redeem_code = write(people.redeem_code)
    put_token = audited(people.put_token)
    get_token = read(people.get_token)
    list_tokens = read(people.list_tokens)
    use_token = write(people.use_token)
    delete_token = audited(people.delete_token)
    add_usage = write(usage.add_usage)
    usage_of = read(usage.usage_of)
    usage_between = read(usage.usage_between)
    load = read(load.load)
    read_audit = read(audit.read_audit)
    list_audit = read(audit.list_audit)
    audit_head = read(audit.audit_head)
    record_act = audited(audit.record_act)

    async def claim_notifications(self, now_ms: int, lease_ms: int, limit: int) -> list[NotificationRow]:
        """Most of the time nothing is due: a reader finds that out without the writer."""
        if await self._readers.one(outbox.NOTIFICATIONS.is_due, {"now": now_ms}) is None:
            return []
        return await self._writer.submit(outbox.claim_notifications, now_ms, lease_ms, limit)

    async def group_alerts(self, now_ms: int, every_ms: int) -> int:
        if await self._readers.one(alerts.IS_ANY_DUE, {"now": now_ms}) is None:
            return 0
        return await self._writer.submit(alerts.group_alerts, now_ms, every_ms)

    async def claim_alert_messages(self, now_ms: int, lease_ms: int, limit: int) -> list[AlertMessage]:
        if await self._readers.one(alerts.MESSAGES.is_due, {"now": now_ms}) is None:
            return []
        return await self._writer.submit(alerts.claim_alert_messages, now_ms, lease_ms, limit)

    async def delete_orphans(self, unused_since_ms: int, limit: int = 1000) -> Orphans:
        """Delete at most `limit` of each kind, versions of at most `limit` workflows, and no more blobs after 32 MiB of
        them. If all counts are 0 there are none left. A reader finds them, so that the writer only looks at what may
        go."""
        found = await upkeep.find_orphans(self._readers, unused_since_ms, limit)
        return await self._writer.submit(upkeep.delete_orphans, found, unused_since_ms)


class WritingStore(Store):
    """A store with a writer and readers of its own. `_reads` and `_writes` are how it is pinged."""

    _writer: GroupWriter
    _reads: str
    _writes: Callable[[Any], None]

    async def open(self) -> None:
        await self._writer.open()
        try:
            await self._readers.open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """The writer first: on SQLite the connection that closes last deletes the WAL if it may write, and a new one is
        slow."""
        try:
            await self._writer.close()
        finally:
            await self._readers.close()

    def stop_retrying(self) -> None:
        self._writer.stop_retrying()

    async def ping_read(self) -> None:
        await self._readers.all(self._reads)

    async def ping(self) -> None:
        await self.ping_read()
        await self._writer.submit(self._writes)
