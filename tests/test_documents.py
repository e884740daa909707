"""README and docs are true: commands print what is documented, tables and links agree.

The set-up commands are run by `.ci/run`, in a new environment; here are the others.

Sections: the README - commands - programs - tables - examples of files - links.
"""

import json
import math
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from html import unescape
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from lab.data_sets import sample_dataset, write_files
from lab.documents import (
    DOCUMENTS,
    anchors_in,
    blocks,
    console_examples,
    links_in,
    table_rows,
)
from lab.services import HOST, ROOT, Service, daemon, fetch
from lab.small_files import a_file, review

import reviewsd
from reviewslib import links
from reviewslib.annotator import command as annotator
from reviewslib.dataset.contract import resolve
from reviewslib.importer import command as importer
from reviewslib.messages import LARGEST_BODY_BYTES
from reviewslib.process import serving
from reviewslib.process.settings import Settings, flag_name, setting_text, variable_name
from reviewslib.process.work_thread import MAX_WAITING_REQUESTS
from reviewslib.web import program_files, routes
from reviewslib.web.home_page import html_page
from reviewslib.web.site import site_of
from reviewslib.websub.forms import MAX_FORM_BYTES

# Where commands in documents expect the service, and where programs do.
PLACE = "http://127.0.0.1:8080"
PUBLIC_URL = "https://reviews.example.com"
PROGRAM_FILES = program_files.load_program_files()
CONTRACT = PROGRAM_FILES.contract

# ---- The README ----------------------------------------------------------------------

README = DOCUMENTS["README.md"]


def test_the_readme_has_at_most_10_kb() -> None:
    assert len(README.encode()) <= 10_000


def test_the_readme_has_at_most_200_lines() -> None:
    assert README.count("\n") <= 200


def test_a_line_of_the_readme_has_at_most_200_characters() -> None:
    assert max(map(len, README.splitlines())) <= 200


# ---- Commands ------------------------------------------------------------------------

WITH_EXAMPLES = [name for name in DOCUMENTS if console_examples(name)]


def test_the_documents_of_interfaces_have_examples() -> None:
    interfaces = {"README.md", "docs/api.md", "docs/mcp.md", "docs/websub.md"}

    assert interfaces <= set(WITH_EXAMPLES)


def agrees(documented: str, output: str) -> bool:
    """Whether a document says what was printed; `…` stands for any text.

    A document may break a long line.
    """
    pieces = []
    for piece in documented.strip("\n").split("…"):
        pieces.append(re.escape(piece).replace("\\\n", "\n?"))
    pattern = ".*?".join(pieces)
    return re.fullmatch(pattern, output.strip("\n"), re.DOTALL) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_every_console_command_prints_what_the_document_says(
    name: str, tmp_path: Path
) -> None:
    with daemon(base_url=PLACE) as service:
        here = f"http://{HOST}:{service.port}"
        for command, documented in console_examples(name):
            done = subprocess.run(
                ["bash", "-c", command.replace(PLACE, here)],
                capture_output=True,
                text=True,
                timeout=60,
                cwd=tmp_path,
            )
            assert agrees(documented, done.stdout), (command, done.stdout)


OUR_COMMAND = re.compile(
    r"(?m)(reviewsd\.py|bin/reviewsd(?:-import|-insights)?)( -.*| \S+\.(?:zip|csv) .*)"
)
SHELL_BLOCKS = list(chain.from_iterable(blocks(name, "sh") for name in DOCUMENTS))
OUR_COMMANDS = OUR_COMMAND.findall("".join(SHELL_BLOCKS))
PARSERS: dict[str, Callable[[list[str]], Any]] = {
    "reviewsd.py": reviewsd.command_line().parse_args,
    "bin/reviewsd": reviewsd.command_line().parse_args,
    "bin/reviewsd-import": importer.parse,
    "bin/reviewsd-insights": annotator.parse,
}


def test_the_documents_have_many_commands_of_ours() -> None:
    assert len(OUR_COMMANDS) > 10


@pytest.mark.parametrize(("program", "arguments"), OUR_COMMANDS)
def test_every_command_of_ours_is_one_that_the_program_takes(
    program: str, arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given the files that the command names
    words = shlex.split(arguments.replace("YOUR/ZONE", "Europe/Berlin"))
    monkeypatch.chdir(tmp_path)
    for word in words:
        if word.endswith((".zip", ".csv")):
            Path(word).touch()

    # when it is read, then the program does not end with a usage
    PARSERS[program](words)


# ---- Programs ------------------------------------------------------------------------


def run(name: str, service: Service, directory: Path) -> str:
    """The output of the only Python program in a document, run against a service."""
    (program,) = blocks(name, "python")
    here = f"http://{HOST}:{service.port}"
    program = program.replace(PUBLIC_URL, here).replace(PLACE, here)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=directory,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


@contextmanager
def service_of(directory: Path, *reviews: Any) -> Iterator[Service]:
    """A service of these reviews, which keeps its state from one start to the next."""
    data = directory / "data"
    data.mkdir(exist_ok=True)
    write_files(data, a_file(*reviews))
    state = directory / "state"
    with daemon(data=data, base_url="https://r.example", state=state) as service:
        yield service


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """The directory in which the mirror of docs/api.md runs."""
    directory = tmp_path / "mirror"
    directory.mkdir()
    return directory


@pytest.mark.slow
def test_the_mirror_has_every_edit_and_deletion(tmp_path: Path, mirror: Path) -> None:
    # given a mirror of two reviews
    with service_of(tmp_path, review("a", text="old"), review("b")) as service:
        run("docs/api.md", service, mirror)

    # when one of them is edited and the other one is gone
    with service_of(tmp_path, review("a", text="new")) as service:
        run("docs/api.md", service, mirror)
        current = fetch(service, "/reviews.json").body

    # then the mirror has what the service has
    assert (mirror / "reviews.json").read_bytes() == current


@pytest.mark.slow
def test_the_mirror_downloads_a_version_once(tmp_path: Path, mirror: Path) -> None:
    copy = mirror / "reviews.json"
    with service_of(tmp_path, review("a")) as service:
        run("docs/api.md", service, mirror)
        written_at = copy.stat().st_mtime_ns

        run("docs/api.md", service, mirror)

    assert copy.stat().st_mtime_ns == written_at


@pytest.fixture
def website(tmp_path: Path) -> ElementTree.Element:
    """What the program for websites prints, of four reviews of which one says nothing."""
    reviews = [
        review("3", text=HOSTILE_TEXT, author="<b>0"),
        review("2", text="{rating}", author="<b>1"),
        review("1", text=None, author="<b>2"),
        review("0"),
    ]
    data = write_files(tmp_path, a_file(*reviews))
    with daemon(data=data) as service:
        printed = run("docs/your-website.md", service, tmp_path)
    return ElementTree.fromstring(f"<page>{printed}</page>")


HOSTILE_TEXT = '<script>1</script> & "x" \''


@pytest.mark.slow
def test_the_program_for_websites_prints_three_reviews(
    website: ElementTree.Element,
) -> None:
    one = ["blockquote", "p", "footer", "a"]

    assert [element.tag for element in website.iter()] == ["page", *one, *one, *one]


@pytest.mark.slow
def test_the_program_for_websites_shows_texts_as_text(
    website: ElementTree.Element,
) -> None:
    shown = "".join(website.itertext())

    assert HOSTILE_TEXT in shown
    assert "{rating}" in shown


@pytest.mark.slow
def test_the_program_for_websites_says_who_when_and_how_many_stars(
    website: ElementTree.Element,
) -> None:
    shown = "".join(website.itertext())

    assert shown.count("5 of 5 stars, <b>") == 3
    assert shown.count("2025-06-01") == 3


@pytest.mark.slow
def test_the_document_and_the_home_page_have_the_same_html_for_websites() -> None:
    urls = links.service_urls(PUBLIC_URL)
    site = site_of(PROGRAM_FILES.templates, sample_dataset(), urls)

    page = html_page(site).decode()

    code = re.compile("<pre><code>(&lt;(?:a|iframe) .*?)</code></pre>", re.DOTALL)
    on_the_page = [unescape(shown) for shown in code.findall(page)]
    in_the_document = blocks("docs/your-website.md", "html")
    assert [text.strip() for text in in_the_document] == on_the_page


# ---- Tables --------------------------------------------------------------------------


def parameter_row(declared: dict[str, Any]) -> list[str]:
    """The row of a parameter as the contract declares it."""
    schema = declared["schema"]
    kind = [schema.get("format") or schema["type"]]
    if "minimum" in schema:
        kind.append(f"{schema['minimum']} to {schema['maximum']}")
    if "default" in schema:
        kind.append(f"default {schema['default']}")
    return [f"`{declared['name']}`", ", ".join(kind), declared["description"]]


def test_the_table_of_parameters_is_the_contract() -> None:
    declared = CONTRACT.document["paths"]["/api/reviews/search"]["get"]["parameters"]
    parameters = [resolve(CONTRACT.document, each) for each in declared]
    rows = [parameter_row(each) for each in parameters if each["in"] == "query"]

    assert table_rows("docs/api.md", "Search parameters") == rows


def kib(number: int) -> str:
    return f"{number / 1024:g} KiB"


DEADLINES = serving.Deadlines()
QUEUE = f"1 at a time, {MAX_WAITING_REQUESTS} including those that wait"
STOP_SECONDS = math.ceil(serving.BEFORE_STOP_SECONDS + serving.STOP_SECONDS)
# What each row begins with.
LIMITS = {
    "head of a request": f"{kib(serving.MAX_HEAD_BYTES)} within {DEADLINES.head} seconds",
    "body of a request": f"{kib(LARGEST_BODY_BYTES)} within {DEADLINES.body} seconds",
    "response": (
        f"{DEADLINES.response} seconds; "
        f"a client that reads nothing for {DEADLINES.silence} seconds"
    ),
    "connections": f"`--max-connections`, {Settings().max_connections:,} by default",
    "searches, pages and calls of `/mcp` that are computed": QUEUE,
    "requests to the hub": QUEUE,
    "form for the hub": kib(MAX_FORM_BYTES),
    "the data files": "as [their checks](files.md#check-them) say",
    "`systemctl stop`": f"{STOP_SECONDS} seconds",
}
ROWS_OF_LIMITS = dict(table_rows("docs/server.md", "Limits"))


def test_the_table_of_limits_has_all_of_them() -> None:
    assert ROWS_OF_LIMITS.keys() == LIMITS.keys()


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_is_that_of_the_program(limit: str) -> None:
    assert ROWS_OF_LIMITS[limit].startswith(LIMITS[limit])


def test_the_table_of_settings_is_the_program() -> None:
    rows = []
    for setting in fields(Settings):
        default = f"`{setting_text(setting.default)}`" if setting.default else ""
        names = [f"`{flag_name(setting.name)}`", f"`{variable_name(setting.name)}`"]
        rows.append([*names, default, setting.metadata["description"]])

    assert table_rows("docs/settings.md", "Settings") == rows


# Routes that a reader of the README has no use for: a picture that browsers ask for by
# themselves, other spellings of an address, the server as a whole, and what is nowhere.
UNNAMED_ROUTES = {
    links.ICON_PATH,
    links.MCP_PATH + "/",
    links.REVIEW_PATH,
    links.EMBED_PATH + "/{rest}",
    "*",
    "{path}",
}


def test_the_table_of_paths_has_every_route() -> None:
    first_cells = "".join(row[0] for row in table_rows("README.md", "Endpoints"))

    named = set(re.findall("`(/.*?)`", first_cells))

    assert named == set(routes.ROUTES) - UNNAMED_ROUTES


def bench_medians() -> dict[str, tuple[float, str]]:
    """The median and the unit of each row of the bench."""
    results = (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8")
    row = re.compile(r"(?m)^\| (.*?) \| ([0-9,.]+) \| .*? \| .*? \| (.*?) \|")
    return {
        name: (float(median.replace(",", "")), unit)
        for name, median, unit in row.findall(results)
    }


@pytest.mark.parametrize(("name", "text"), table_rows("docs/server.md", "How it grows"))
def test_a_figure_of_the_documents_is_that_of_the_bench(name: str, text: str) -> None:
    median, unit = bench_medians()[name]

    # The document may round it.
    digits = len(text.split()[0].partition(".")[2])
    assert text == f"{median:,.{digits}f} {unit}"


# ---- Examples of files ---------------------------------------------------------------


def json_examples(name: str) -> list[Any]:
    return [json.loads(block) for block in blocks(name, "json")]


def test_the_smallest_file_of_the_readme_loads(tmp_path: Path) -> None:
    (smallest,) = json_examples("README.md")
    write_files(tmp_path, smallest)

    application = reviewsd.application_of(Settings(data=tmp_path))

    assert len(application.snapshot.dataset.reviews) == 1


@pytest.mark.parametrize("name", ["docs/files.md", "docs/insights.md"])
def test_the_example_of_editorial_json_fits_its_schema(name: str) -> None:
    (editorial,) = [each for each in json_examples(name) if "entities" in each]

    assert list(CONTRACT.editorial_file.violations(editorial)) == []


def test_the_example_of_hours_loads_without_a_warning(tmp_path: Path) -> None:
    lists = [each for each in json_examples("docs/files.md") if isinstance(each, list)]
    (hours,) = lists
    business = {"name": "Ann's Bakery", "hours": hours}
    write_files(tmp_path, a_file(business=business))

    dataset = reviewsd.application_of(Settings(data=tmp_path)).snapshot.dataset

    assert dataset.warnings == ()
    assert dataset.business["hours"] == hours


# ---- Links ---------------------------------------------------------------------------

INNER_LINKS: list[tuple[str, str]] = []
for document in DOCUMENTS:
    INNER_LINKS += [(document, link) for link in links_in(document)]
INNER_LINKS = [pair for pair in INNER_LINKS if not pair[1].startswith("https://")]


@pytest.mark.parametrize(("name", "link"), INNER_LINKS)
def test_links_into_the_repository_lead_somewhere(name: str, link: str) -> None:
    path = link.partition("#")[0]

    assert path == "" or ((ROOT / name).parent / path).exists()


@pytest.mark.parametrize(
    ("name", "link"), [pair for pair in INNER_LINKS if "#" in pair[1]]
)
def test_links_to_a_heading_lead_to_one(name: str, link: str) -> None:
    path, _, anchor = link.partition("#")
    document = ROOT / name
    target = document.parent / path if path else document

    assert anchor in anchors_in(target.read_text(encoding="utf-8"))
