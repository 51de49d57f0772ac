"""Call a service, sleep for 30 seconds, send an email. Kill the server in between, start it again: the run continues.

    weft deploy examples/python/demo.py --name demo
    weft run demo --follow

Without mail settings the server writes the email to its log. If the server dies while the email is sent, it is sent
again (`on_lost`); without that, a person is asked.
"""

from weft.draw import Http, SendEmail, Sequence, Sleep, ref


def workflow() -> Sequence:
    return Sequence(
        Http(id="hit", url="${WEFT_BASE_URL}/demo/echo", assign_to="$.hit"),
        Sleep(id="sleep", seconds=30),
        SendEmail(id="email", to="me@example.com", subject="Demo", body=ref("$.hit.body"), on_lost="retry"),
        id="root",
    )
