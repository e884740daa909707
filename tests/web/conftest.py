"""The ways to the application: a socket of the daemon, this process, a browser."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial

import pytest
from lab.browser import FILES, Browser, Start, open_browser
from lab.data_sets import write_files
from lab.services import SAMPLE, Response, Service, call, daemon, fetch

import reviewsd
from reviewslib.process.settings import Settings

BASE_URL = "http://reviews.example"

Ask = Callable[..., Response]


@pytest.fixture(scope="module")
def running() -> Iterator[Service]:
    """The daemon, which serves the sample."""
    with daemon(base_url=BASE_URL) as address:
        yield address


@pytest.fixture(scope="module", params=["HTTP", "WSGI"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Make a request, with the arguments of `fetch`."""
    if request.param == "HTTP":
        return partial(fetch, request.getfixturevalue("running"))
    settings = Settings(data=SAMPLE, base_url=BASE_URL, no_hub=True)
    return partial(call, reviewsd.create_app(settings))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for the tests of a file."""
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def service_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """The base URL of the daemon with the data set of a name.

    It is started when it is first asked for.
    """
    with ExitStack() as running:

        @cache
        def start(name: str) -> str:
            data = write_files(tmp_path_factory.mktemp(name), *FILES[name]())
            return running.enter_context(daemon(data=data)).base_url

        yield start
