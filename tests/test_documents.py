"""README and docs are true: commands print the documented output, and tables and figures agree.

The set-up commands are run by `.ci/run`, in a new environment; here are the others.

Sections: Commands and programs - Tables and figures - Examples of files, and links
"""

import json
import math
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from lab.data_sets import sample_dataset, write_files
from lab.services import ROOT, Service, daemon, fetch
from lab.small_files import a_file, review

import reviewsd
from reviewslib import links
from reviewslib.annotator import command as annotator
from reviewslib.dataset.contract import resolve
from reviewslib.importer import command as importer
from reviewslib.messages import LARGEST_BODY_BYTES
from reviewslib.process import serving
from reviewslib.process.settings import Settings, flag_name, setting_text, variable_name
from reviewslib.process.work_thread import MAX_WAITING
from reviewslib.web import program_files, routes
from reviewslib.web.home_page import html_page
from reviewslib.web.site import site_of
from reviewslib.websub.forms import MAX_FORM_BYTES

FILES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
DOCUMENTS = {
    str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in FILES
}
PLACE = "http://127.0.0.1:8080"  # where the documents expect the service
PUBLIC_URL = (
    "https://reviews.example.com"  # where programs in documents expect a service
)
PROGRAM_FILES = program_files.load_program_files()
CONTRACT = PROGRAM_FILES.contract


def test_the_readme_has_at_most_10_kb_in_200_lines_of_200_characters() -> None:
    readme = DOCUMENTS["README.md"]
    assert len(readme.encode()) <= 10_000
    assert max(readme.count("\n"), *map(len, readme.splitlines())) <= 200


def blocks(name: str, kind: str) -> list[str]:
    """The blocks of one kind of text in a document."""
    return re.findall(rf"```{kind}\n(.*?)```", DOCUMENTS[name], re.DOTALL)


# ---- Commands and programs ----


def console_examples(name: str) -> list[tuple[str, str]]:
    """Each command in the console blocks of a document with what the document says it prints."""
    examples = [
        part
        for block in blocks(name, "console")
        for part in re.split(r"(?m)^\$ ", block)[1:]
    ]
    return [
        (command, printed)
        for command, _, printed in (one.partition("\n") for one in examples)
    ]


EXAMPLES = {
    name: examples for name in DOCUMENTS if (examples := console_examples(name))
}
assert EXAMPLES.keys() >= {"README.md", "docs/api.md", "docs/mcp.md", "docs/websub.md"}


def prints(printed: str, output: str) -> bool:
    """Whether a command that printed `output` agrees with a document, where `…` stands for any text.

    A document may break a long line.
    """
    pieces = [
        re.escape(piece).replace("\\\n", "\n?")
        for piece in printed.strip("\n").split("…")
    ]
    return re.fullmatch(".*?".join(pieces), output.strip("\n"), re.DOTALL) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_console_command_prints_what_the_document_says(
    name: str, tmp_path: Path
) -> None:
    with daemon(base_url=PLACE) as service:
        for command, printed in EXAMPLES[name]:
            bash = [
                "bash",
                "-c",
                command.replace(PLACE, f"http://127.0.0.1:{service.port}"),
            ]
            done = subprocess.run(
                bash, capture_output=True, text=True, timeout=60, cwd=tmp_path
            )
            assert prints(printed, done.stdout), (command, done.stdout)


SHELL_BLOCKS = [block for name in DOCUMENTS for block in blocks(name, "sh")]
OUR_COMMAND = (
    r"(?m)(reviewsd\.py|bin/reviewsd(?:-import|-insights)?)( -.*| \S+\.(?:zip|csv) .*)"
)
OUR_COMMANDS = re.findall(OUR_COMMAND, "".join(SHELL_BLOCKS))
assert len(OUR_COMMANDS) > 10


@pytest.mark.parametrize(("program", "arguments"), OUR_COMMANDS)
def test_every_command_of_ours_is_one_that_the_program_takes(
    program: str, arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = shlex.split(arguments.replace("YOUR/ZONE", "Europe/Berlin"))
    monkeypatch.chdir(tmp_path)
    for export in [word for word in words if word.endswith((".zip", ".csv"))]:
        Path(export).touch()
    ours = {
        "bin/reviewsd-import": importer.parse,
        "bin/reviewsd-insights": annotator.parse,
    }
    ours.get(program, reviewsd.command_line().parse_args)(words)


def run(name: str, service: Service, directory: Path) -> str:
    """The output of the only Python program in a document, run against a service."""
    (program,) = blocks(name, "python")
    here = re.sub(f"{PUBLIC_URL}|{PLACE}", f"http://127.0.0.1:{service.port}", program)
    command = [sys.executable, "-c", here]
    return subprocess.run(
        command,
        cwd=directory,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    ).stdout


@pytest.mark.slow
def test_the_mirror_has_every_edit_and_deletion_and_downloads_it_once(
    tmp_path: Path,
) -> None:
    mirror = tmp_path / "mirror"
    data = tmp_path / "data"
    mirror.mkdir()
    data.mkdir()
    for version in ([review("a", text="old"), review("b")], [review("a", text="new")]):
        write_files(data, a_file(*version))
        with daemon(
            data=data, base_url="https://r.example", state=tmp_path / "state"
        ) as service:
            run("docs/api.md", service, mirror)
            assert (mirror / "reviews.json").read_bytes() == fetch(
                service, "/reviews.json"
            ).body
            changed = (mirror / "reviews.json").stat().st_mtime_ns
            run("docs/api.md", service, mirror)
            assert (mirror / "reviews.json").stat().st_mtime_ns == changed


@pytest.mark.slow
def test_the_program_for_websites_prints_three_reviews_as_html(tmp_path: Path) -> None:
    texts = ['<script>1</script> & "x" \'', "{rating}", None]
    reviews = [
        review(f"{9 - at}", text=text, author=f"<b>{at}")
        for at, text in enumerate(texts)
    ]
    data = write_files(tmp_path, a_file(*reviews, review("0")))
    with daemon(data=data) as service:
        page = ElementTree.fromstring(
            f"<page>{run('docs/your-website.md', service, tmp_path)}</page>"
        )
    assert [element.tag for element in page.iter()] == [
        "page",
        *["blockquote", "p", "footer", "a"] * 3,
    ]
    shown = "".join(page.itertext())
    assert all(text in shown for text in texts if text)
    assert shown.count("5 of 5 stars, <b>") == shown.count("2025-06-01") == 3


@pytest.mark.slow
def test_the_document_and_the_home_page_have_the_same_html_for_websites() -> None:
    urls = links.service_urls(PUBLIC_URL)
    site = site_of(PROGRAM_FILES.templates, sample_dataset(), urls)
    page = html_page(site).decode()
    shown = re.findall(
        "<pre><code>(&lt;(?:a|iframe) .*?)</code></pre>", page, re.DOTALL
    )
    assert [line.strip() for line in blocks("docs/your-website.md", "html")] == list(
        map(unescape, shown)
    )


# ---- Tables and figures ----


def table_rows(name: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its two head lines."""
    section = re.split(rf"(?m)^#+ {heading}\n", DOCUMENTS[name])[1]
    table = re.findall(r"(?m)(?:^\|.*\n)+", section)[0]
    return [
        [cell.strip() for cell in row.strip("| ").split(" | ")]
        for row in table.splitlines()[2:]
    ]


def parameter_row(declared: dict[str, Any]) -> list[str]:
    schema = declared["schema"]
    wanted = schema.get("format") or schema["type"]
    bounds = (
        f"{schema['minimum']} to {schema['maximum']}" if "minimum" in schema else ""
    )
    default = f"default {schema['default']}" if "default" in schema else ""
    kind = ", ".join(part for part in (wanted, bounds, default) if part)
    return [f"`{declared['name']}`", kind, declared["description"]]


def test_the_table_of_parameters_is_the_contract() -> None:
    declared = CONTRACT.document["paths"]["/api/reviews/search"]["get"]["parameters"]
    parameters = [resolve(CONTRACT.document, each) for each in declared]
    rows = [parameter_row(each) for each in parameters if each["in"] == "query"]
    assert table_rows("docs/api.md", "Search parameters") == rows


def test_the_table_of_limits_is_the_program() -> None:
    deadlines = serving.Deadlines()
    jobs = f"at a time, {MAX_WAITING} including those that wait"
    silence = f"a client that reads nothing for {deadlines.silence} seconds"
    limits = {
        "head of a request": f"{serving.MAX_HEAD_BYTES / 1024:g} KiB within {deadlines.head} seconds",
        "body of a request": f"{LARGEST_BODY_BYTES / 1024:g} KiB within {deadlines.body} seconds",
        "response": f"{deadlines.response} seconds; {silence}",
        "connections": f"`--max-connections`, {Settings().max_connections:,} by default",
        "searches, pages and calls of `/mcp` that are computed": f"1 {jobs}",
        "requests to the hub": f"1 {jobs}",
        "form for the hub": f"{MAX_FORM_BYTES / 1024:g} KiB",
        "the data files": "as [their checks](files.md#check-them) say",
        "`systemctl stop`": f"{math.ceil(serving.BEFORE_STOP_SECONDS + serving.STOP_SECONDS)} seconds",
    }
    rows = dict(table_rows("docs/server.md", "Limits"))
    assert {what: text[: len(limits[what])] for what, text in rows.items()} == limits


def test_the_table_of_settings_is_the_program() -> None:
    for declared, row in zip(
        fields(Settings), table_rows("docs/settings.md", "Settings"), strict=True
    ):
        default = f"`{setting_text(declared.default)}`" if declared.default else ""
        names = [f"`{flag_name(declared.name)}`", f"`{variable_name(declared.name)}`"]
        assert row == [*names, default, declared.metadata["description"]]


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


def test_the_figures_of_the_documents_are_those_of_the_bench() -> None:
    results = (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8")
    figure = r"(?m)^\| (.*?) \| ([0-9,.]+) \| .*? \| .*? \| (.*?) \|"
    medians = {
        name: (value.replace(",", ""), unit)
        for name, value, unit in re.findall(figure, results)
    }
    for name, text in table_rows("docs/server.md", "How it grows"):
        median, unit = medians[name]
        digits = len(text.split()[0].partition(".")[2])
        assert text == f"{float(median):,.{digits}f} {unit}"


# ---- Examples of files, and links ----


def test_the_smallest_file_of_the_readme_loads(tmp_path: Path) -> None:
    (smallest,) = map(json.loads, blocks("README.md", "json"))
    (tmp_path / "reviews.json").write_text(json.dumps(smallest))
    application = reviewsd.application_of(Settings(data=tmp_path))
    assert len(application.snapshot.dataset.reviews) == 1


@pytest.mark.parametrize("name", ["docs/files.md", "docs/insights.md"])
def test_the_example_of_editorial_json_fits_its_schema(name: str) -> None:
    documents = map(json.loads, blocks(name, "json"))
    (editorial,) = [each for each in documents if "entities" in each]
    assert list(CONTRACT.editorial_file.violations(editorial)) == []


def test_the_example_of_hours_loads_without_a_warning(tmp_path: Path) -> None:
    documents = map(json.loads, blocks("docs/files.md", "json"))
    (hours,) = [each for each in documents if isinstance(each, list)]
    business = {"name": "Ann's Bakery", "hours": hours}
    write_files(tmp_path, a_file(business=business))

    dataset = reviewsd.application_of(Settings(data=tmp_path)).snapshot.dataset

    assert dataset.warnings == ()
    assert dataset.business["hours"] == hours


LINKS = [
    (name, link)
    for name, text in DOCUMENTS.items()
    for link in re.findall(r"\]\(([^)]+)\)", text)
]


@pytest.mark.parametrize(
    ("name", "link"), [pair for pair in LINKS if not pair[1].startswith("https://")]
)
def test_links_into_the_repository_lead_somewhere(name: str, link: str) -> None:
    path, _, anchor = link.partition("#")
    target = (ROOT / name).parent / path if path else ROOT / name
    assert target.exists()
    headings = re.findall(
        r"(?m)^#+ (.*)$", target.read_text(encoding="utf-8") if anchor else ""
    )
    as_on_github = [
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    ]
    assert not anchor or anchor in as_on_github
