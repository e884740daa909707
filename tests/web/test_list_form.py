"""The form of the list has a field for each filter: the next search keeps it."""

import re

import pytest
from lab.services import SAMPLE, call
from lab.small_files import DOCUMENT

import reviewsd
from reviewslib import links
from reviewslib.dataset.contract import resolve
from reviewslib.process.settings import Settings
from reviewslib.web.app import Application

LIST = DOCUMENT["paths"][links.REVIEW_LIST_PATH]["get"]
DECLARED = [resolve(DOCUMENT, parameter) for parameter in LIST["parameters"]]
# By name, with the value of the contract's example.
EXAMPLES = {parameter["name"]: parameter["example"] for parameter in DECLARED}
# A new search begins on the first page.
NO_FIELD = {"page"}


@pytest.fixture(scope="module")
def application() -> Application:
    return reviewsd.application_of(Settings(data=SAMPLE))


def names_in_the_form(application: Application, address: str) -> list[str]:
    page = call(application, address).body.decode()
    form = re.findall('<form role="search".*?</form>', page, re.DOTALL)[0]
    return re.findall(r' name="(\w+)"', form)


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - NO_FIELD))
def test_a_filter_that_is_asked_for_is_a_field(
    application: Application, name: str
) -> None:
    address = f"{links.REVIEW_LIST_PATH}?{name}={EXAMPLES[name]}"

    assert names_in_the_form(application, address).count(name) == 1


def test_a_new_search_begins_on_the_first_page(application: Application) -> None:
    names = names_in_the_form(application, f"{links.REVIEW_LIST_PATH}?page=2")

    assert "page" not in names
