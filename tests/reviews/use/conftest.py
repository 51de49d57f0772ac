"""A whole server in this process, as tests/unit/server has it."""

from tests.unit.server.conftest import app as app
from tests.unit.server.conftest import asking as asking
from tests.unit.server.conftest import client as client
from tests.unit.server.conftest import engine as engine
from tests.unit.server.conftest import hello as hello
from tests.unit.server.conftest import settings as settings
from tests.unit.server.conftest import started as started
from tests.unit.server.test_cli_inbox import weft as weft
