"""Which tests stand behind the threat model: each way to attack weft that is known, with the tests that try it.

`BROKEN` are attacks that once worked, `MODEL` the rows of the threat model: asset, actor and attack. Actors: W a web
page in the browser of a user, N a neighbour in the network, A an unknown caller of a public link, E an editor, V a
viewer, X a service that a workflow calls, L another user of the machine, S a supplier.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PRODUCT = ("compiler", "executor", "server", "weft")

WIRE = "e2e/test_security_wire.py"
CONNECTIONS = "unit/server/http/test_connections.py"
SECURITY = "unit/server/http/test_security.py"
SESSIONS = "unit/server/http/test_auth_sessions.py"
HOOKS = "unit/server/api/test_webhooks_limits.py"
CLIENT = "unit/executor/blocks/http/test_client.py"
SECRETS = "unit/executor/service/topics/test_secrets.py"
AGENT = "unit/executor/blocks/types/test_agent.py"
JAVASCRIPT = "unit/executor/blocks/sandbox/test_sandbox_hostile.py"
PYTHON = "unit/executor/blocks/sandbox/python/test_guest_hostile.py"
SQL_CHILD = "unit/executor/blocks/databases/test_sqlite_child.py"
CANARY = "e2e/canary/test_canary.py::test_no_secret_comes_out"

BROKEN: dict[str, tuple[str, ...]] = {
    "B1 heads and URLs without an end": (
        "e2e/test_connections.py::test_a_head_without_an_end_is_cut",
        f"{CONNECTIONS}::test_what_never_becomes_a_request_is_cut_by_its_bytes",
    ),
    "B2 slow heads and no cap on connections": (
        "e2e/test_connections.py::test_unfinished_requests_keep_no_other_client_out",
        f"{CONNECTIONS}::test_half_a_head_gets_an_answer_and_is_closed",
        f"{CONNECTIONS}::test_one_address_may_wait_so_often",
    ),
    "B3 wide JSON on public routes": (
        "unit/server/http/test_request_limits.py::test_public_routes_have_small_bodies",
        "unit/server/http/test_request_limits.py::test_wide_json_is_refused_by_its_bytes",
    ),
    "B4 checks of values that take too long": (
        "unit/executor/kernel/values/test_payload_limits.py::test_a_wide_value_is_checked_at_the_pace_of_its_encoding",
        "unit/executor/kernel/values/test_payload_limits.py::test_a_large_output_is_checked_beside_the_event_loop",
    ),
    "B5 runs that start runs without an end": (
        "unit/executor/kernel/run/test_children_families.py::test_a_workflow_that_starts_itself_ends_by_itself",
        "unit/executor/kernel/run/test_children_families.py::test_cancel_ends_a_family_at_once_also_after_a_restart",
    ),
    "B6 references that multiply in memory": (
        "unit/executor/kernel/values/test_payload_limits.py::test_references_stop_at_the_bound_before_the_value_is_built",
        "unit/executor/kernel/values/test_payload_limits.py::test_mail_and_request_bodies_have_the_same_bound",
    ),
    "B7 runs that fill the disk": (
        "unit/executor/kernel/run/test_children_families.py::test_a_run_that_puts_out_too_much_fails",
        "unit/executor/kernel/run/test_children_families.py::test_a_family_that_puts_out_too_much_ends",
    ),
    "B8 workflows that call the API of their server": (
        "e2e/test_own_api.py::test_the_api_is_closed_in_every_spelling_and_the_doors_are_open",
        "e2e/test_own_api.py::test_no_redirect_leads_to_the_server",
    ),
    "B9 no token, weak tokens, guesses": (
        "unit/server/test_tokens.py::test_the_api_asks_for_it_also_on_loopback",
        "unit/server/test_tokens.py::test_a_weak_token_is_refused_and_the_error_says_how_to_make_one",
        f"{SESSIONS}::test_guesses_are_slowed_down",
        f"{SESSIONS}::test_guesses_from_many_addresses_are_slowed_down",
    ),
    "B10 sessions that are all the same and never end": (
        f"{SESSIONS}::test_each_sign_in_is_a_new_session_of_this_port",
        f"{SESSIONS}::test_signing_out_ends_the_session_on_the_server",
        f"{SESSIONS}::test_a_session_ends_when_idle_and_in_all",
    ),
    "B11 unsigned requests use up the rate of signed ones": (
        f"{HOOKS}::test_refused_requests_do_not_use_up_the_rate_of_signed_ones",
        f"{HOOKS}::test_the_signature_is_checked_before_the_body_is_parsed",
    ),
    "B12 replayed deliveries": (f"{HOOKS}::test_a_captured_github_delivery_is_not_accepted_again_after_a_day",),
    "B13 code that keeps other runs waiting": (
        "unit/executor/blocks/sandbox/test_workers_fair_runs.py::test_another_runs_program_starts_while_eight_endless_ones_run",
    ),
    "B14 secrets in mixed spellings": (
        "unit/executor/kernel/values/test_redact_secrets.py::test_every_spelling_is_found",
        "unit/executor/kernel/values/test_redact_secrets.py::test_a_secret_in_a_url_is_not_recorded",
        CANARY,
    ),
    "B15 code that spells a secret": (
        f"{SECRETS}::test_a_secret_stands_in_no_other_param",
        f"{SECRETS}::test_a_secret_is_not_sent_to_another_host",
    ),
    "B16 tokens of links in the log": ("e2e/test_links_in_the_log.py::test_the_access_log_has_no_tokens",),
    "B17 approvals under any name": (
        "unit/server/api/test_resume_people.py::test_only_those_who_are_named_answer",
        "unit/server/api/test_resume_people.py::test_not_who_started_the_run",
    ),
    "B18 answers that hold nothing and never end": (
        "unit/executor/blocks/http/test_client_endless_answers.py::test_an_endless_answer_of_nothing_is_cut_off",
    ),
    "B19 more recipients than written": (
        "unit/executor/blocks/types/test_email_recipients.py::test_a_name_adds_no_recipient",
        "unit/executor/blocks/types/test_email_recipients.py::test_an_address_is_one_address",
    ),
    "B20 headers that speak for the server": (
        "unit/server/http/test_response_headers.py::test_headers_that_speak_for_the_server_are_dropped",
    ),
    "B21 packages without hashes": (
        "web/test_build_chain.py::test_every_install_of_make_checks_hashes_or_fetches_nothing",
        "web/test_build_chain.py::test_every_locked_package_has_a_hash",
    ),
    "B22 queries beyond their time": (
        "unit/executor/service/upkeep/test_sql_time.py::test_a_query_ends_at_its_time_limit",
    ),
    "B23 one signature for two purposes": (
        "unit/executor/service/notifications/test_outbox.py::test_a_callback_sends_its_address_and_takes_the_answer",
    ),
    "B24 an approval of one person for the data of another": (
        "promises/test_secrets_approvals.py::test_a_fork_with_other_data_asks_again",
        "promises/test_secrets_approvals.py::test_a_run_from_the_block_behind_it",
        "promises/test_secrets_approvals.py::test_a_run_moves_to_another_version_with_the_answers_that_count_there",
    ),
    "B25 wrong sign-ins that lock out others": (
        f"{SESSIONS}::test_no_guesses_keep_out_who_has_the_token_or_a_link",
        "unit/server/oidc/test_provider_sign_in.py::test_no_guesses_keep_out_who_comes_back_from_the_provider",
    ),
    "B26 arguments of a model that leave their place": (
        "promises/test_secrets_arguments.py::test_an_argument_stays_in_its_string_of_a_json_text",
        "promises/test_secrets_arguments.py::test_a_condition_that_compares_what_cannot_be_compared_asks",
    ),
    "B27 a chat that names the memory of another workflow": (
        "unit/server/api/test_chats.py::test_a_visitor_does_not_choose_what_runs_know_a_conversation_by",
    ),
    "B28 headers of a thousand parameters": (
        "unit/server/http/test_multipart.py::test_what_is_no_form_is_refused",
        "unit/server/http/test_multipart.py::test_boundaries",
        "unit/executor/blocks/types/test_http.py::test_bodies_are_read_by_their_type",
    ),
    "B29 SQL of editors inside the server, on an old SQLite": (
        "promises/test_sql_child.py::test_queries_without_an_end_and_large_answers_leave_the_server_alone",
        "promises/test_sql_child.py::test_a_crash_is_one_attempt_and_nothing_is_changed_twice",
        "promises/test_sql_child.py::test_the_processes_end_with_a_server_that_is_killed",
        f"{SQL_CHILD}::test_an_old_sqlite_is_refused",
        f"{SQL_CHILD}::test_memory_has_a_bound",
        f"{SQL_CHILD}::test_tables_that_other_tables_are_made_of_cannot_be_damaged",
        f"{SQL_CHILD}::test_the_process_has_no_secrets_of_the_environment",
        "unit/executor/blocks/databases/test_sqlite.py::test_nothing_leads_out_of_the_file",
    ),
}

MODEL: dict[str, tuple[str, ...]] = {
    "API, N: reach an open port": (
        f"{WIRE}::test_other_machines_are_served_with_a_token_only",
        "unit/server/test_settings.py::test_defaults_listen_on_loopback_only",
        "unit/server/test_settings.py::test_serving_openly_without_a_token_ends_with_2",
    ),
    "API, W: DNS rebinding to the loopback port": (f"{WIRE}::test_a_foreign_host_reaches_nothing",),
    "API, W: forged requests": (
        f"{WIRE}::test_other_sites_cannot_write",
        f"{WIRE}::test_json_as_plain_text_is_refused",
        f"{WIRE}::test_reading_changes_no_row",
        f"{SECURITY}::test_other_sites_cannot_read_or_hold_streams",
    ),
    "API, W: read by CORS": (
        f"{WIRE}::test_there_are_no_cors_headers_and_pages_have_a_policy",
        f"{SECURITY}::test_no_cors_headers_ever",
    ),
    "token, L and N: steal or guess": (
        "unit/server/test_tokens.py::test_the_first_start_makes_a_token_and_prints_a_link",
        "unit/server/test_tokens.py::test_links_sign_a_browser_in_once",
        f"{SESSIONS}::test_the_database_has_the_hash_alone",
        f"{SECURITY}::test_signing_in_sets_a_strict_cookie_that_is_not_the_token",
        "e2e/test_links_in_the_log.py::test_other_lines_have_none_either",
    ),
    "routes, A: gaps by tricks with paths": (
        f"{WIRE}::test_closed_routes_ask_for_the_token",
        f"{SECURITY}::test_path_tricks_reach_nothing",
        "unit/server/http/test_auth_principals.py::test_every_route_with_every_caller",
        "unit/server/http/test_auth_principals.py::test_the_least_role_of_every_route",
    ),
    "runs of others, V and E: guessed ids, no check of scope": (
        "unit/server/http/test_auth_principals.py::test_a_token_for_some_workflows_reaches_those_alone",
        "unit/server/api/test_people.py::test_a_token_for_one_workflow_gets_no_links_of_another",
    ),
    "paused run, A: guess, replay or alter a resume link": (
        "unit/server/api/test_resume.py::test_looking_changes_nothing",
        "unit/server/api/test_resume.py::test_unknown_links_are_404",
        "unit/server/api/test_resume.py::test_a_second_press_says_who_and_when",
        "e2e/crash/test_resume.py::test_a_second_press_learns_who_was_first_and_when",
    ),
    "trigger, A: forge or replay a webhook": (
        f"{WIRE}::test_a_webhook_cannot_be_forged",
        f"{WIRE}::test_a_webhook_takes_a_delivery_once_and_data_only",
        "unit/executor/service/triggers/test_requests.py::test_outside_the_window",
    ),
    "host, E: escape of code": (
        f"{JAVASCRIPT}::test_there_is_no_way_out",
        f"{JAVASCRIPT}::test_the_globals_are_the_language_and_what_is_documented",
        f"{JAVASCRIPT}::test_nothing_survives_from_one_program_to_the_next",
        f"{PYTHON}::test_there_is_no_way_out",
        f"{PYTHON}::test_nothing_survives_from_one_program_to_the_next",
    ),
    "host, E: loops, bombs, fan-out": (
        f"{JAVASCRIPT}::test_no_bomb_is_late_and_none_holds_up_the_loop",
        f"{PYTHON}::test_no_bomb_is_late_and_none_holds_up_the_loop",
        "load/test_hostile.py::test_other_clients_get_responses_during",
    ),
    "internal network, E and X: private addresses, redirects, rebinding, proxies": (
        f"{WIRE}::test_private_addresses_are_refused",
        f"{CLIENT}::test_a_name_that_changes_its_address_does_not_get_through",
        f"{CLIENT}::test_a_redirect_to_a_private_address_is_refused",
        f"{CLIENT}::test_proxies_of_the_environment_are_not_used",
        "unit/executor/blocks/http/test_addresses.py::test_what_is_wrapped_in_an_address_counts",
    ),
    "agent, X: an injected text calls tools": (
        f"{AGENT}::test_calls_that_are_not_made",
        f"{AGENT}::test_approving_really_runs_the_tool_with_edited_arguments",
        f"{AGENT}::test_calls_of_one_tool_are_bounded",
        "unit/executor/kernel/values/test_resolve.py::test_in_text_it_is_rendered_once_and_not_looked_at_again",
    ),
    "secrets, E, V and L: read from database, export, log, event, error": (
        CANARY,
        f"{WIRE}::test_a_secret_never_comes_out",
        f"{WIRE}::test_deltas_hide_a_secret_that_comes_in_pieces",
        "unit/server/api/test_secrets.py::test_secrets_are_set_listed_and_deleted_and_never_read",
        "unit/executor/blocks/vault/test_sealing.py::test_a_sealed_value_belongs_to_its_name_and_version",
    ),
    "secrets, E: put them where an allowed host returns or stores them": (
        "promises/test_secrets_in.py::test_a_request_is_sent_only_with_the_secret_in_its_place",
        "promises/test_secrets_in.py::test_every_block_that_sends_http",
        "promises/test_secrets_in.py::test_a_redirect_cannot_move_it",
        "promises/test_secrets_places.py::test_a_server_cannot_return_a_secret_in_other_letters",
        "promises/test_secrets_places.py::test_a_request_with_a_secret_asks_for_no_part",
    ),
    "secrets, E: send them elsewhere": (
        f"{SECRETS}::test_a_secret_is_not_sent_to_another_host",
        f"{SECRETS}::test_a_redirect_to_another_host_is_not_followed_with_a_secret",
        f"{SECRETS}::test_an_agent_sends_each_secret_to_its_own_host",
        "unit/executor/blocks/http/test_binding.py::test_without_hosts_it_goes_nowhere",
    ),
    "stored state, L and E: crafted rows revive objects or change SQL": (
        "test_threats.py::test_state_is_data",
        "unit/executor/blocks/databases/test_sqlite.py::test_values_are_bound_and_never_text_of_the_query",
    ),
    "event stream, V: memory, runs of others": (
        "unit/server/http/test_sse.py::test_a_reader_that_takes_nothing_is_closed",
        "unit/server/http/test_sse.py::test_places_are_counted_in_all_and_for_each_run",
        "unit/server/api/test_people.py::test_revoking_a_token_ends_its_streams",
        f"{SESSIONS}::test_a_stream_ends_with_the_session_that_opened_it",
    ),
    "editor, E and X: markup in outputs": (
        "unit/server/test_ui.py::test_the_policy_allows_nothing_from_elsewhere",
        "unit/server/pages/test_forms.py::test_values_are_text_never_markup",
        "unit/server/pages/test_forms.py::test_elements_escape",
        "browser/test_markup.py::test_markup_is_text_on_every_page",
    ),
    "resume page, W: clicks through a frame": (f"{SECURITY}::test_html_carries_the_whole_policy",),
    "files, E: paths, packed bombs, links": (
        f"{SECURITY}::test_path_tricks_reach_nothing",
        f"{CLIENT}::test_a_small_packed_body_cannot_become_a_large_one",
        "unit/executor/blocks/sandbox/test_engine_artifact.py::test_a_link_instead_of_the_folder_is_not_used",
        "unit/server/api/test_files.py::test_names_are_labels",
        "unit/server/api/test_files.py::test_a_page_that_was_uploaded_is_no_page_of_this_server",
        "unit/server/api/test_files.py::test_what_is_too_large_is_refused_by_its_length_and_while_it_arrives",
    ),
    "HTTP, N: headers, ranges, chunks, slow clients": (
        f"{SECURITY}::test_headers_are_bounded",
        f"{CONNECTIONS}::test_bodies_in_small_chunks_are_no_heads",
        "e2e/test_connections.py::test_a_trailer_without_an_end_is_cut",
        "e2e/test_stolen_copies.py::test_a_thousand_ranges_of_a_file_are_no_work",
    ),
    "availability, A: floods": (
        "unit/server/api/test_webhooks_hooks.py::test_a_flood",
        f"{CONNECTIONS}::test_too_many_requests_get_503",
        f"{SESSIONS}::test_guesses_are_slowed_down",
    ),
    "audit, E: deny an approval or a deletion": (
        "unit/server/api/test_people.py::test_each_route_that_changes_something_has_one_row",
        "unit/server/api/test_people.py::test_the_audit_shows_when_a_row_was_changed",
        "unit/server/api/test_people.py::test_the_audit_notices_that_its_head_is_gone_and_rows_behind_it",
    ),
    "dependencies, S: bad releases": (
        "web/test_build_chain.py::test_every_locked_package_has_a_hash",
        "unit/executor/blocks/sandbox/test_engine_artifact.py::test_a_file_that_is_not_as_we_left_it_is_not_run",
    ),
    "backup, L: stolen copy": ("e2e/test_stolen_copies.py::test_a_copy_without_the_key_shows_runs_and_no_secret",),
}


@pytest.mark.parametrize("row", [*BROKEN, *MODEL])
def test_each_row_is_tried(row: str) -> None:
    named = (BROKEN | MODEL)[row]
    assert named, "no test tries it"
    missing = [test for test in named if test.partition("::")[2] not in _tests_of(test.partition("::")[0])]
    assert missing == []


def test_no_row_is_left_out() -> None:
    assert [row.split(" ")[0] for row in BROKEN] == [f"B{n}" for n in range(1, 30)]
    assert len(MODEL) == 26


def test_state_is_data() -> None:
    """Nothing in the product revives objects or runs texts as Python: what is stored is JSON."""
    found = []
    for package in PRODUCT:
        for path in sorted((TESTS.parent / package).rglob("*.py")):
            if "sandbox/python/program" in path.as_posix():
                continue  # what runs inside the sandbox
            for node in ast.walk(ast.parse(path.read_bytes())):
                name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                if name in ("eval", "exec") or {"pickle", "marshal", "shelve", "yaml", "dill"} & set(modules):
                    found.append(f"{path.relative_to(TESTS.parent)}:{getattr(node, 'lineno', 0)}")
    assert found == []


@cache
def _tests_of(path: str) -> frozenset[str]:
    tree = ast.parse((TESTS / path).read_bytes())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
