"""Both ways to the application: over a socket to the daemon, and in this process."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
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
