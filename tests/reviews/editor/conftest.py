"""The browser, the server and the pages of `tests/browser`, for what was found by using the editor."""

from tests.browser.conftest import browser as browser
from tests.browser.conftest import built as built
from tests.browser.conftest import contexts as contexts
from tests.browser.conftest import editor as editor
from tests.browser.conftest import page as page
from tests.browser.conftest import playwright as playwright
from tests.browser.conftest import pytest_collection_modifyitems as pytest_collection_modifyitems
from tests.browser.conftest import server as server
from tests.browser.conftest import servers as servers
from tests.browser.conftest import watched as watched
