"""The documents of the repository as data: blocks, commands, tables, links."""

import re
from typing import NamedTuple

from lab.services import ROOT

FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FILES += sorted((ROOT / "docs").glob("*.md"))
# By path in the repository.
DOCUMENTS = {
    str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in FILES
}


def blocks(name: str, kind: str) -> list[str]:
    """The blocks of one kind of text in a document."""
    return re.findall(rf"```{kind}\n(.*?)```", DOCUMENTS[name], re.DOTALL)


class Example(NamedTuple):
    """A command, and what the document says that it prints."""

    command: str
    printed: str


def console_examples(name: str) -> list[Example]:
    """The commands in the console blocks of a document."""
    examples = []
    for block in blocks(name, "console"):
        for text in re.split(r"(?m)^\$ ", block)[1:]:
            command, _, printed = text.partition("\n")
            examples.append(Example(command, printed))
    return examples


def table_rows(name: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its two head lines."""
    section = re.split(rf"(?m)^#+ {heading}\n", DOCUMENTS[name])[1]
    table = re.findall(r"(?m)(?:^\|.*\n)+", section)[0]
    rows = []
    for line in table.splitlines()[2:]:
        rows.append([cell.strip() for cell in line.strip("| ").split(" | ")])
    return rows


def links_in(name: str) -> list[str]:
    """The targets of the links in a document."""
    return re.findall(r"\]\(([^)]+)\)", DOCUMENTS[name])


def anchors_in(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a document."""
    anchors = set()
    for heading in re.findall(r"(?m)^#+ (.*)$", text):
        words = re.sub(r"[^\w\- ]", "", heading.lower())
        anchors.add(words.replace(" ", "-"))
    return anchors
