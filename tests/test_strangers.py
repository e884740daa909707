"""Whatever 64 KiB a stranger sends, and whatever customers wrote, few steps answer it.

No work grows faster than the length of a request. Steps inside of C are not counted:
the row `hostile` of `bench/run.py` measures how long others wait.
"""

from collections.abc import Iterator
from functools import partial

import pytest
from lab.data_sets import write_files
from lab.hostile_requests import (
    DOCUMENTS,
    FIELDS,
    HostileRequest,
    hostile_file,
    mcp_post,
    paths,
    shapes,
)
from lab.hub_lab import Bench
from lab.services import Response, call
from lab.steps import steps_of

import reviewsd
from reviewslib.process.settings import Settings
from reviewslib.web.app import Application

pytestmark = pytest.mark.slow

# The dearest request, 15 KiB of letters in a list of reviews, takes 310,000. Whatever
# compares all pairs of so many characters takes 200 million.
MOST_STEPS = 500_000


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """The application of hostile reviews, with a hub whose callbacks are in memory."""
    directory = tmp_path_factory.mktemp("hostile")
    data = write_files(directory, hostile_file())
    made = reviewsd.application_of(Settings(data=data))
    bench = Bench(directory / "state")
    made.hub = bench.hub
    # A template is compiled when it is used for the first time.
    for path in paths():
        call(made, path)
    yield made
    bench.hub.stop(1)


def answer_in_few_steps(application: Application, sent: HostileRequest) -> Response:
    asked = partial(call, application, **sent.arguments())
    _, answer = steps_of(asked, at_most=MOST_STEPS)
    return answer


@pytest.mark.parametrize("field", FIELDS)
def test_any_shape_of_a_field_is_answered_in_few_steps(
    application: Application, field: str
) -> None:
    for text in shapes():
        sent = FIELDS[field](text)

        answer = answer_in_few_steps(application, sent)

        assert answer.status < 500, text[:20]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_any_json_is_answered_in_few_steps(
    application: Application, document: str
) -> None:
    sent = mcp_post(DOCUMENTS[document])

    answer = answer_in_few_steps(application, sent)

    assert answer.status < 500
