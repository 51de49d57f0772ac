"""Sim's blocks of services -> blocks of our connectors, where an operation of ours does the same. Others have no
counterpart (`sim_foreign`).

A field that the connector requires and the block does not have stays open: it is the finding `required` until it is
filled in. Exports of Sim have no channels, no databases and no accounts; for the account the block gets the connection
that is named like the service, which is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from compiler.catalog import Catalog
from compiler.imports.sim_foreign import service_of, title_of
from compiler.imports.sim_text import Loss, Texts, parse_json

# Of the account, and switches of Sim's form: nothing is lost with them.
_FORM: Final = frozenset(
    {"operation", "authMethod", "credential", "manualCredential", "destinationType", "messageFormat", "triggerMode"}
    | {"advancedMode", "botToken", "apiKey", "accessKeyId", "secretAccessKey", "serverId", "selectedTriggerId"}
)
_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {}, False)
_SAME: Final = {"contentType": "text", "insertDataOption": "INSERT_ROWS"}  # what ours does in any case
_SHOWN_MAX: Final = 10
Kind = Literal["text", "number", "list", "json", "rows"]


class Field(NamedTuple):
    """A field. `names` are Sim's settings, of which the first with a value counts. `list`: text with commas."""

    names: tuple[str, ...]
    kind: Kind = "text"


class Operation(NamedTuple):
    """An operation. `fixed` is what Sim's operation always does, as a param of ours."""

    name: str
    fields: dict[str, Field]
    fixed: Mapping[str, Any] = {}


def _of(name: str, fixed: Mapping[str, Any] | None = None, **fields: str | tuple[Kind, str]) -> Operation:
    """Fields as `names` with blanks between them, or (kind, names)."""
    found = {
        ours: Field(tuple(theirs.split())) if isinstance(theirs, str) else Field(tuple(theirs[1].split()), theirs[0])
        for ours, theirs in fields.items()
    }
    return Operation(name, found, fixed or {})


_CHANNEL: Final = "channel manualChannel"
_SHEET: Final = "spreadsheetId manualSpreadsheetId"
_DATABASE: Final = "databaseId databaseSelector"
_PAGE: Final = "pageId pageSelector"
_MESSAGE: Final = "actionMessageId"
_LABELS: Final = "labelActionMessageId"
# By service and operation; the first operation is that of a block that names none.
_OPERATIONS: Final[dict[str, dict[str, Operation]]] = {
    "slack": {
        "send": _of("send_message", channel=_CHANNEL, text="text", thread_ts="threadTs", blocks=("json", "blocks")),
        "update": _of("update_message", channel=_CHANNEL, ts="updateTimestamp", text="updateText"),
        "react": _of("add_reaction", channel=_CHANNEL, ts="reactionTimestamp", emoji="emojiName"),
        "read": _of("read_messages", channel=_CHANNEL),
        "list_channels": _of("list_channels"),
    },
    "gmail": {
        "send_gmail": _of("send", to="to", cc="cc", subject="subject", text="body", thread="threadId"),
        "search_gmail": _of("search", search="query"),
        "read_gmail": _of("read", message="messageId"),
        "add_label_gmail": _of("change_labels", message=_LABELS, add=("list", "manualLabelId labelSelector")),
        "remove_label_gmail": _of("change_labels", message=_LABELS, remove=("list", "manualLabelId labelSelector")),
        "move_gmail": _of(
            "change_labels",
            message="moveMessageId",
            add=("list", "manualDestinationLabel destinationLabel"),
            remove=("list", "manualSourceLabel sourceLabel"),
        ),
        "mark_read_gmail": _of("change_labels", {"remove": ["UNREAD"]}, message=_MESSAGE),
        "mark_unread_gmail": _of("change_labels", {"add": ["UNREAD"]}, message=_MESSAGE),
        "archive_gmail": _of("change_labels", {"remove": ["INBOX"]}, message=_MESSAGE),
        "unarchive_gmail": _of("change_labels", {"add": ["INBOX"]}, message=_MESSAGE),
    },
    "google_sheets": {
        "read": _of("read_rows", spreadsheet=_SHEET, range="range"),
        "append": _of(
            "append_rows", spreadsheet=_SHEET, range="range", rows=("rows", "values"), cells="valueInputOption"
        ),
        "write": _of(
            "update_rows", spreadsheet=_SHEET, range="range", rows=("rows", "values"), cells="valueInputOption"
        ),
        "update": _of(
            "update_rows", spreadsheet=_SHEET, range="range", rows=("rows", "values"), cells="valueInputOption"
        ),
        "clear": _of("clear_rows", spreadsheet=_SHEET, range="range"),
    },
    "notion": {
        "notion_query_database": _of(
            "query_database", database=_DATABASE, filter=("json", "filter"), sorts=("json", "sorts")
        ),
        "notion_add_database_row": _of("create_page", database=_DATABASE, properties=("json", "properties")),
        "notion_update_page": _of("update_page", page=_PAGE, properties=("json", "properties")),
        "notion_search": _of("search", words="query"),
    },
    "linear": {
        "linear_create_issue": _of(
            "create_issue",
            team="teamId manualTeamId",
            title="title",
            description="description",
            priority=("number", "priority"),
            assignee="assigneeId",
            labels=("list", "labelIds"),
        ),
        "linear_update_issue": _of(
            "update_issue",
            issue="issueId",
            title="title",
            description="description",
            status="stateId",
            assignee="assigneeId",
        ),
        "linear_create_comment": _of("comment", issue="issueId", body="body"),
        "linear_get_issue": _of("read_issue", issue="issueId"),
    },
    "discord": {
        "discord_send_message": _of("send_message", channel="channelId", text="content"),
        "discord_edit_message": _of("edit_message", channel="channelId", message="messageId", text="content"),
        "discord_get_messages": _of("read_messages", channel="channelId", count=("number", "limit")),
        "discord_add_reaction": _of("add_reaction", channel="channelId", message="messageId", emoji="emoji"),
    },
    "telegram": {
        "telegram_message": _of("send_message", chat="chatId", text="text"),
        "telegram_send_photo": _of("send_photo", chat="chatId", photo="photo", caption="caption"),
    },
    "s3": {
        "put_object": _of(
            "put_object",
            bucket="bucketName",
            key="objectKey",
            content="content",
            content_type="contentType",
            region="region",
        ),
        "list_objects": _of(
            "list_objects",
            bucket="bucketName",
            begins_with="prefix",
            after="continuationToken",
            count=("number", "maxKeys"),
            region="region",
        ),
        "delete_object": _of("delete_object", bucket="bucketName", key="objectKey", region="region"),
    },
    "github": {
        "github_create_issue": _of(
            "create_issue",
            owner="owner",
            repo="repo",
            title="title",
            body="body",
            labels=("list", "labels"),
            assignees=("list", "assignees"),
        ),
        "github_update_issue": _of(
            "update_issue",
            owner="owner",
            repo="repo",
            number=("number", "issue_number"),
            title="title",
            body="body",
            issue_state="state",
        ),
        "github_issue_comment": _of(
            "comment", owner="owner", repo="repo", number=("number", "issue_number"), body="body"
        ),
        "github_list_issues": _of("list_issues", owner="owner", repo="repo", which="state", label="labels"),
        "github_get_issue": _of("read_issue", owner="owner", repo="repo", number=("number", "issue_number")),
        "github_get_file_content": _of("read_file", owner="owner", repo="repo", file="path", ref="ref"),
        "github_trigger_workflow": _of(
            "start_workflow",
            owner="owner",
            repo="repo",
            workflow_file="workflow_id",
            branch="ref",
            inputs=("json", "inputs"),
        ),
    },
}
# Services whose first operation is the one of a Sim block that names none.
_DEFAULTED: Final = frozenset({"slack", "gmail", "google_sheets", "discord", "telegram"})


def connector(
    kind: str, settings: Mapping[str, Any], texts: Texts, catalog: Catalog | None
) -> tuple[str, dict[str, Any], list[Loss]] | None:
    """Return our type, our params, and the losses, or None if no operation of a connector in the catalog does
    the same.
    """
    service = service_of(kind)
    spec = None if catalog is None else catalog.get(f"connector.{service}")
    operation = _operation(service, settings)
    if spec is None or operation is None:
        return None
    params: dict[str, Any] = {"operation": operation.name, **operation.fixed}
    for ours, field in operation.fields.items():
        value = _value(field, settings, texts)
        if value not in _NOTHING:
            params[ours] = value
    if service == "google_sheets" and "range" not in params and (cells := _range(settings, texts)):
        params["range"] = cells
    if isinstance(params.get("rows"), list) and not all(isinstance(row, list | str) for row in params["rows"]):
        return None  # objects: Sim makes rows of them by the first row of the sheet
    account, losses = _account(service, settings, texts, spec.params["properties"])
    params |= account
    if spec.check is not None and any(found.code != "required" for found in spec.check(params)):
        return None
    lost = _unread(operation, service, settings)
    if lost:
        hint = "Check whether the block needs them."
        losses.append(Loss(f"These settings are not imported: {', '.join(lost)}.", hint))
    return spec.type, params, losses


def _operation(service: str, settings: Mapping[str, Any]) -> Operation | None:
    known = _OPERATIONS.get(service, {})
    named = settings.get("operation")
    if service == "slack" and (settings.get("destinationType") == "dm" or settings.get("files") not in _NOTHING):
        return None
    if named in (None, ""):
        return next(iter(known.values()), None) if service in _DEFAULTED else None
    return known.get(named) if isinstance(named, str) else None


def _value(field: Field, settings: Mapping[str, Any], texts: Texts) -> Any:
    found = next((settings[name] for name in field.names if settings.get(name) not in _NOTHING), None)
    match field.kind:
        case "number" | "json" | "rows":
            return texts.value(parse_json(found))
        case "list" if isinstance(found, str) and "<" not in found:
            return [texts.text(item.strip()) for item in found.split(",") if item.strip()]
        case _:
            return texts.value(found)


def _range(settings: Mapping[str, Any], texts: Texts) -> str:
    """Newer blocks of Google Sheets have the sheet and the cells each for itself."""
    sheet = next((settings[name] for name in ("sheetName", "manualSheetName") if settings.get(name)), "")
    cells = settings.get("cellRange")
    parts = [texts.text(part) for part in (sheet, cells) if isinstance(part, str) and part]
    return "!".join(parts) if sheet else ""


def _account(
    service: str, settings: Mapping[str, Any], texts: Texts, properties: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Loss]]:
    """Return the params for the account. A token that was an environment name stays one. A connection replaces
    accounts, and tokens in the document; a secret does if the service can have no connection."""
    names = ("accessKeyId", "secretAccessKey") if service == "s3" else ("botToken",)
    names = ("apiKey",) if service == "github" else names
    title = title_of(service)
    losses: list[Loss] = []
    given = [texts.secret(settings.get(name), losses, f"Its {title} credential") for name in names]
    if all(given):
        return {"credential": ":".join(filter(None, given))}, losses
    if "connection" in properties:
        hint = f'Create a connection with the name "{service}", or choose another one in the block.'
        return {"connection": service}, [Loss(f"Its {title} account is not imported.", hint)]
    name = f"{service.upper()}_CREDENTIAL"
    hint = f"Store the secret {name}, or choose another one in the block."
    return {"credential": f"${{{name}}}"}, [Loss(f"Its {title} credential is not imported.", hint)]


def _unread(operation: Operation, service: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the settings with a value that are not used here. Sim keeps those of other operations, too."""
    read = {name for field in operation.fields.values() for name in field.names} | _FORM
    if service == "google_sheets":
        read |= {"sheetName", "manualSheetName", "cellRange"}
    left = (name for name, value in settings.items() if name not in read and value not in _NOTHING)
    return sorted(name for name in left if _SAME.get(name) != settings[name])[:_SHOWN_MAX]
