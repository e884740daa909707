"""Headers of tables: the meaning of columns.

It comes from the template, from a known tool, or from the owner. A header that the
owner has explained once is remembered, with all answers about tables that have it. This
module is pure; it knows no stored review.

Sections: names of columns - known headers - the header of a table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reviewslib.dataset.contract import quoted
from reviewslib.dataset.text import fold, loosen
from reviewslib.importer import dates, texts
from reviewslib.importer.dates import DateFormat
from reviewslib.importer.formats import format_data
from reviewslib.importer.options import (
    FIELDS,
    TABLE_TEMPLATE,
    Options,
    TableSettings,
    nonempty,
)
from reviewslib.importer.questions import NeedsDecision, listed
from reviewslib.importer.texts import clean, clean_line, whole_number

TABLE_WORDS = format_data("tables")
HEADER_SETS = format_data("header_sets")

REQUIRED = ("author", "rating", "date")
# Fields that a --map must mention.
TO_ANSWER = (*REQUIRED, "text", "source", "reply", "status")
# What few tables have. An id tells reviews of one author and day apart.
FURTHER = tuple(field for field in FIELDS if field not in TO_ANSWER)
NO_COLUMN = "-"
# Before the column of a status whose true words mean that a review is not shown.
NOT = "!"
DATES = ("date", "reply_date")
TEXTS = ("text", "reply", "title")  # their line breaks are kept
NUMBERS = ("id", "parent", *DATES)  # what a spreadsheet writes as 37.0

# Of a column, in a question: a person sees after some of them which number is the day.
FEW_DATES = 5

# ---- Names of columns ----


def normalized(name: str) -> str:
    """The name of a column in lower case, with single spaces in place of signs.

    A name that has only signs stays.
    """
    return " ".join(re.findall(r"[^\W_]+", fold(name))) or name


NUMBERED = re.compile(r"(?P<name>.*)\[(?P<number>[1-9][0-9]{0,2})\]", re.DOTALL)


def column_index(columns: Sequence[str], name: str) -> int | None:
    """The index of the one column of this name, `Date[2]` for the second `Date`.

    None if there is none, or if there are several.
    """
    plain = normalized(name)
    if columns.count(plain) == 1:
        return columns.index(plain)
    match = NUMBERED.fullmatch(name)
    if not match:
        return None
    same = [
        n for n, column in enumerate(columns) if column == normalized(match["name"])
    ]
    number = int(match["number"])
    return same[number - 1] if number <= len(same) else None


# ---- Known headers ----

COLUMNS_OF_TEMPLATE = {normalized(name): name for name in TABLE_TEMPLATE}


def default_settings(columns: Collection[str]) -> dict[str, Any]:
    """The settings of the template or of the first known tool with these columns."""
    fields = {COLUMNS_OF_TEMPLATE.get(name, ""): name for name in columns if name}
    if set(REQUIRED) <= fields.keys() and "" not in fields:
        return {"map": fields}
    for tool in HEADER_SETS.values():
        found = _columns_of_tool(tool["map"], columns)
        # Without its status column, a tool's hidden reviews would be shown.
        needed = {*REQUIRED, "title", "text", "status"} & tool["map"].keys()
        if found.keys() >= needed:
            settings = {**tool, "map": found}
            del settings["evidence"]
            return settings
    return {}


def _columns_of_tool(
    names_by_field: Mapping[str, Sequence[str]], columns: Collection[str]
) -> dict[str, str]:
    """By field: the first of its names that a table has."""
    found = dict[str, str]()
    for field, names in names_by_field.items():
        present = [name for name in names if name in columns]
        if present:
            found[field] = present[0]
    return found


# ---- The header of a table ----


class Header:
    """A header, and the settings of tables with this header.

    A setting comes from a flag, else from an earlier command, else from the template or
    a known tool.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[str]],
        file: str,
        options: Options,
    ):
        """Raises NeedsDecision unless the meaning of the columns is clear."""
        self.names = names
        self.normalized = [normalized(name) for name in names]
        self.rows = rows
        self.file = file
        self.options = options
        self.key = ",".join(self.normalized)
        self.answers = self._answers()
        default: dict[str, Any] = {}
        if "map" not in self.answers:
            default = default_settings(self.normalized)
        self.settings = TableSettings(**(default | self.answers))
        self.order = self.settings.date_order
        self.is_status_inverted = self.settings.map.get("status", "").startswith(NOT)
        self.columns = self._columns()
        if not default:
            self._check_that_all_is_answered()
            self._check_hiding_columns()

    def _answers(self) -> dict[str, Any]:
        """What the owner has said of this header, now or in an earlier command."""
        remembered = self.options.headers.get(self.key, TableSettings())
        return nonempty(remembered) | nonempty(self.options.table)

    def question(self, flag: str, *lines: str) -> NeedsDecision:
        """A question about tables with this header, which the flag answers."""
        first, *others = lines
        remembered = (
            "The answer is remembered for tables with this header. "
            "Give this table alone."
        )
        return NeedsDecision([f"{self.file}: {first}", *others, remembered], flag)

    def unused(self) -> list[str]:
        """The names of columns that no field is read from, quoted."""
        used = set(self.columns.values())
        unused = [name for n, name in enumerate(self.names) if n not in used]
        return [quoted(name) for name in unused if name]

    def _columns(self) -> dict[str, int]:
        """The index of each field's column. Raises NeedsDecision."""
        columns = dict[str, int]()
        unclear = list[str]()
        for field, name in self.settings.map.items():
            if name == NO_COLUMN:
                continue
            if field == "status":
                name = name.removeprefix(NOT)
            index = column_index(self.normalized, name)
            if index is None:
                unclear.append(name)
            else:
                columns[field] = index
        if unclear:
            raise self._question_of_columns(self._unclear(unclear))
        return columns

    def _check_that_all_is_answered(self) -> None:
        """Raises NeedsDecision unless the owner has answered for every field."""
        missing = self._missing()
        if not missing:
            return
        fault = f"--map does not name a column for {', '.join(missing)}."
        if not self.settings.map:
            fault = "the header is unknown."
        raise self._question_of_columns([fault])

    def _missing(self) -> list[str]:
        """The fields that the owner has to answer for."""
        columns = self.settings.map
        answered = set(columns)
        if self.settings.source:
            answered.add("source")
        missing = [field for field in TO_ANSWER if field not in answered]
        # A review without a date or stars is none; one without a name is.
        needed = [
            field for field in ("rating", "date") if columns.get(field) == NO_COLUMN
        ]
        return missing + needed

    def _unclear(self, names: Sequence[str]) -> list[str]:
        """What is wrong with names of which there is not exactly one column."""
        shown = ", ".join(quoted(name) for name in names)
        lines = [
            f"not exactly one column is called {shown}; --map applies to all tables."
        ]
        counts = Counter(self.normalized)
        for name in names:
            number = counts[normalized(name)]
            if number > 1:
                lines.append(
                    f"{number} columns are called {quoted(name)}: "
                    f"say {name}[1] for the first, {name}[2] for the second."
                )
        return lines

    def _question_of_columns(self, faults: Sequence[str]) -> NeedsDecision:
        examples = list[str]()
        for index, name in enumerate(self.names):
            examples.append(f"{quoted(name)}, such as {quoted(self._example(index))}")
        answers = dict.fromkeys(TO_ANSWER, "YOUR")
        hiding = self._hiding_columns()
        if hiding:
            answers["status"] = f"{NOT}{hiding[0]}"
        flag = ",".join(f"{field}={column}" for field, column in answers.items())
        advice = (
            f"Name the column for each field with --map, or {NO_COLUMN} if there is "
            "none (a review needs a rating and a date)."
        )
        return self.question(
            f"--map {flag}",
            *faults,
            "Its columns are:",
            *listed(examples),
            advice,
            f"Further fields may have one: {', '.join(FURTHER)}.",
            *self._status_advice(),
        )

    def _status_advice(self) -> list[str]:
        shown = ", ".join(TABLE_WORDS["published"][:NUMBER_OF_ENGLISH_WORDS])
        return [
            f"As status, these words mean that a review is shown: {shown}.",
            f"For a column that says what is hidden, write status={NOT}COLUMN.",
        ]

    def _example(self, index: int) -> str:
        """The first value of a column that is not empty."""
        for row in self.rows:
            value = clean_line(row[index]) if index < len(row) else ""
            if value:
                return value
        return ""

    # Cells

    def fields(self, row: Sequence[str]) -> dict[str, str]:
        """The cells of a row by field; none if it has too few or too many cells.

        “NaN” and the like become empty, and a ' before a formula is removed.
        """
        if len(row) != len(self.names):
            return {}
        return {field: self._cell(field, row[n]) for field, n in self.columns.items()}

    def _cell(self, field: str, cell: str) -> str:
        if self.settings.html == "yes":
            cell = texts.without_html(cell)
        cell = clean(cell) if field in TEXTS else clean_line(cell)
        if field == "author":
            is_empty = cell in TABLE_WORDS["nameless_cells"]
        else:
            is_empty = cell.lower() in TABLE_WORDS["empty_cells"]
        if is_empty:
            return ""
        if field in NUMBERS:
            return whole_number(cell)
        # Programs write it so that a spreadsheet does not compute (OWASP ASVS 1.2.10).
        return re.sub(r"^'(?=[=+@-])", "", cell)

    def date_formats(
        self, fields_of_rows: Sequence[Mapping[str, str]]
    ) -> dict[str, DateFormat]:
        """The formats of the columns with dates, which have one order of day and month.

        Raises NeedsDecision if the dates leave the order open, or contradict an earlier
        answer.
        """
        values = list[str]()
        for field in DATES:
            values += [fields[field] for fields in fields_of_rows if field in fields]
        allowed, ambiguous = dates.allowed_orders(values)
        if not self.order and len(allowed) == 1:
            (self.order,) = allowed
        was_told = bool(self.options.table.date_order)
        if ambiguous and self.order not in allowed and not was_told:
            raise self.question(
                "--date-order YOUR",
                "is the day or the month first in these dates?",
                *listed(ambiguous[:FEW_DATES]),
                "Answer dmy or mdy.",
            )
        order = self.order or "dmy"
        latest = self.options.latest
        return {
            field: DateFormat(latest, order, is_utc=self._is_utc(field))
            for field in DATES
        }

    def _is_utc(self, field: str) -> bool:
        """Whether the name of a column says that its times are in UTC."""
        index = self.columns.get(field)
        if index is None:
            return False
        return not {"utc", "gmt"}.isdisjoint(self.normalized[index].split())

    def to_remember(self, sources: set[str]) -> TableSettings:
        """The settings for later tables with this header.

        `sources` are those of this table.
        """
        answers = TableSettings(**self.answers)
        complete = set(answers.complete)
        if self.options.complete:
            complete |= sources
        # Tables of everything have the template's header.
        is_template = set(self.normalized) <= {"", *COLUMNS_OF_TEMPLATE}
        source = "" if is_template else answers.source
        return replace(
            answers, source=source, date_order=self.order, complete=sorted(complete)
        )

    # ---- Columns that say what is hidden ----

    def _hiding_columns(self) -> list[str]:
        """The names of columns whose true words mean that a review is not shown."""
        found = list[str]()
        for name, plain in zip(self.names, self.normalized, strict=True):
            if not HIDING_WORDS.isdisjoint(loosen(plain).split()):
                found.append(name)
        return found

    def _check_hiding_columns(self) -> None:
        """Refuse answers that would publish what the shop has hidden.

        Raises NeedsDecision.
        """
        if "status" not in self.settings.map:
            return
        hiding = self._hiding_columns()
        answer = self.settings.map["status"]
        if answer == NO_COLUMN:
            self._check_that_nothing_differs(hiding)
        elif normalized(answer) in map(normalized, hiding):
            if not answer.startswith(NOT):
                raise self._question_of_hiding(answer)

    def _check_that_nothing_differs(self, hiding: Iterable[str]) -> None:
        for name in hiding:
            index = self.names.index(name)
            words = {clean_line(row[index]) for row in self.rows if index < len(row)}
            if len(words) > 1:
                raise self._question_of_hiding(name)

    def _question_of_hiding(self, name: str) -> NeedsDecision:
        columns = {**self.settings.map, "status": f"{NOT}{name}"}
        flag = ",".join(f"{field}={column}" for field, column in columns.items())
        return self.question(
            f"--map '{flag}'",
            f"the column {quoted(name)} says what is hidden; "
            "your answer would publish what the shop has hidden.",
            f"Answer status={NOT}{name}: its true words then mean that a review is "
            "not shown.",
        )


# The words of `published` begin with the English ones.
NUMBER_OF_ENGLISH_WORDS = 9
SHOWN_WORD = TABLE_WORDS["published"][0]

HIDING_WORDS = frozenset(loosen(word) for word in TABLE_WORDS["hiding_columns"])
PUBLISHED = frozenset(TABLE_WORDS["published"])
FALSE = frozenset(TABLE_WORDS["false"])


def is_shown(word: str, *, is_inverted: bool = False) -> bool:
    """Whether a status means that its tool shows the review.

    Never by guess: an unknown word means that it does not.
    """
    return word.lower() in (FALSE if is_inverted else PUBLISHED)
