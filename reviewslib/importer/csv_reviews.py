"""Reviews in a table: the record of each row.

`csv_text.py` makes rows of a file, and `headers.py` tells the meaning of columns. This
module is pure. It knows no export of Google's and no stored review.

Sections: the table - doubled rows - answers in rows of their own - rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from reviewslib.dataset.contract import Contract, quoted
from reviewslib.dataset.text import fold
from reviewslib.faults import Fault
from reviewslib.importer import dates, stars, texts
from reviewslib.importer.csv_text import (
    TableRow,
    check_last_row,
    decoded_text,
    read_rows,
)
from reviewslib.importer.dates import DateFormat
from reviewslib.importer.exports import Export, Record, ReviewInFile
from reviewslib.importer.headers import (
    DATES,
    REQUIRED,
    SHOWN_WORD,
    TEXTS,
    Header,
    is_shown,
)
from reviewslib.importer.names import checked_name, is_shared, nameless_author
from reviewslib.importer.options import Options
from reviewslib.importer.questions import listed, no_export
from reviewslib.importer.texts import BadRecord, clean_line

# ---- The table ----

Fields = dict[str, str]  # cells by field; empty for a row with too few or many cells


@dataclass
class Table:
    """A table while its rows become records."""

    export: Export
    header: Header
    time: str  # T of the export, in UTC
    rows: list[TableRow]
    fields: list[Fields]  # of the rows
    formats: Mapping[str, DateFormat] = field(default_factory=dict)  # of columns
    statuses: dict[bool, Counter[str]] = field(  # words, by whether they mean shown
        default_factory=lambda: {True: Counter(), False: Counter()}
    )
    nameless: int = 0


def read_csv(
    data: bytes, file: str, time: str, options: Options, contract: Contract
) -> Export:
    """The reviews in a CSV file; `time` is that of the export.

    Raises BadData and NeedsDecision.
    """
    export = Export(file, options, contract)
    text, remark = decoded_text(data, file)
    if remark:
        export.notes.append(f"{file}: {remark}")
    rows = read_rows(text, file)
    table = _table(export, rows, time)
    check_last_row(text, rows, file)
    answers = _answers(table)
    _leave_out_doubled_rows(table)
    _add_records(table, answers)
    sources = _sources(table)
    _check_scale(table)
    _finish_settings(table, sources)
    _remark(table)
    return export.finish()


def _table(export: Export, rows: Sequence[TableRow], time: str) -> Table:
    """Raises BadData and NeedsDecision."""
    names = [clean_line(name) for name in rows[0].cells]
    if sum(map(bool, names)) < len(REQUIRED):
        begin = quoted(rows[0].cells[0])
        reason = f"not a known export, and not a table; it begins with {begin}"
        raise no_export(export.file, reason)
    below = [*rows[1:]]
    cells = [row.cells for row in below]
    header = Header(names, cells, export.file, export.options)
    fields = [header.fields(row) for row in cells]
    formats = header.date_formats(fields)
    return Table(export, header, time, rows=below, fields=fields, formats=formats)


def _add_records(table: Table, answers: Mapping[str, Fields]) -> None:
    """Add the record of each row. Raises NeedsDecision."""
    for row, fields in zip(table.rows, table.fields, strict=True):
        position = Fault(f"{table.export.file} line {row.line}", (), "")
        source = _source_of(fields, table)
        record = Record(position, table.time, format="table", source=source)
        record.native_id = fields.get("id", "")
        answer = answers.get(record.native_id, {})
        read = partial(_read_row, record, row, fields | answer, table)
        table.export.add(record, read)


def _source_of(fields: Fields, table: Table) -> str:
    """The folded source of a row, empty if nobody has named it."""
    return fold(fields.get("source") or table.header.settings.source)


def _sources(table: Table) -> set[str]:
    """The sources of all rows. Raises NeedsDecision for a row without one."""
    sources = {_source_of(fields, table) for fields in table.fields if fields}
    if not table.rows:
        sources.add(table.header.settings.source)
    if "" in sources:
        raise table.header.question(
            "--source YOUR",
            "it does not say where its reviews were published.",
            "Name the source, such as facebook.",
        )
    return sources


# The best ratings of tools that people have shown us.
LIKELY_SCALES = (5, 10, 50, 100)


def _check_scale(table: Table) -> None:
    """A scale that the owner gave, of which no rating is above the half, is doubted."""
    scale = int(table.header.settings.scale or 0)
    if scale in {0, 5}:
        return
    ratings = [fields["rating"] for fields in table.fields if fields]
    highest = stars.highest_value(ratings)
    if 0 < highest * 2 <= scale:
        others = [f"{best}" for best in LIKELY_SCALES if highest <= best < scale]
        table.export.urgent_notes.append(
            f"{table.export.file}: no rating is above {highest:g} of {scale}; "
            f"if the best rating is another, say --scale {' or '.join(others or ['N'])}"
        )


def _finish_settings(table: Table, sources: set[str]) -> None:
    export = table.export
    export.header = table.header.key
    export.settings = table.header.to_remember(sources)
    export.sources = sources
    complete = sources & set(export.settings.complete)
    export.covers = dict.fromkeys(complete, table.time)


def _remark(table: Table) -> None:
    """Name what was decided for the owner."""
    export = table.export
    unused = table.header.unused()
    if unused:
        export.notes.append(
            f"{export.file}: columns that are not used: {', '.join(unused)}"
        )
    if table.nameless:
        export.counts["without a name, published as Anonymous"] += table.nameless
    words = _status_words(table)
    if words:
        export.urgent_notes.append(f"{export.file}: {'; '.join(words)}")
    if words and not table.statuses[True]:
        export.urgent_notes.append(
            "  If one of these words means that a review is shown, write "
            f"“{SHOWN_WORD}” instead in the file, and import it again."
        )
    if not table.header.settings.html and texts.is_like_html(_texts_of(table)):
        export.urgent_notes.append(
            f"{export.file}: texts look like HTML; say --html, or --no-html if "
            "customers wrote it so"
        )


def _status_words(table: Table) -> list[str]:
    """How the words of a column of statuses were taken."""
    words = list[str]()
    for means_shown, meaning in ((True, "shown"), (False, "not shown")):
        counts = table.statuses[means_shown]
        if counts:
            words.append(f"{meaning}: {_counted(counts)}")
    return words


# More different words than this are no status.
MAX_STATUS_WORDS = 10


def _counted(words: Counter[str]) -> str:
    commonest = words.most_common(MAX_STATUS_WORDS)
    return ", ".join(f"{word or 'nothing'} ({number})" for word, number in commonest)


def _texts_of(table: Table) -> list[str]:
    contents = list[str]()
    for fields in table.fields:
        contents += [fields.get(name, "") for name in TEXTS]
    return contents


# ---- Doubled rows ----


def _leave_out_doubled_rows(table: Table) -> None:
    """Rows that agree in every cell are one, if they have no id, but name and words.

    Rows without a name or words stay: two customers may give five stars on one day.
    """
    first = set[tuple[str, ...]]()
    rows = list[TableRow]()
    kept = list[Fields]()
    for row, fields in zip(table.rows, table.fields, strict=True):
        cells = tuple(row.cells)
        is_repeated = bool(fields) and not fields.get("id") and cells in first
        first.add(cells)
        if is_repeated and _has_name_and_words(fields):
            table.export.counts["doubled rows, left out"] += 1
            continue
        if is_repeated:
            kind = "rows that agree in every cell, without name or words, all kept"
            table.export.counts[kind] += 1
        rows.append(row)
        kept.append(fields)
    table.rows = rows
    table.fields = kept


def _has_name_and_words(fields: Fields) -> bool:
    author = fields.get("author", "")
    has_words = bool(fields.get("text") or fields.get("title"))
    return has_words and bool(author) and not is_shared(author)


# ---- Answers in rows of their own ----

# WordPress writes 0 for a comment that answers nobody.
NO_PARENT = ("", "0")


def _answers(table: Table) -> dict[str, Fields]:
    """By id of the review: the reply that a row of its own has, which is taken out.

    Anybody can answer; only the answers of those whom the owner names are the shop's.
    Raises NeedsDecision.
    """
    answers = _take_out_answers(table)
    if not answers:
        return {}
    names = _names_of_shop(table, answers)
    ids = {fields["id"] for fields in table.fields if fields.get("id")}
    replies = dict[str, Fields]()
    dates_of_answers = table.formats["date"]
    table.formats = {**table.formats, "reply_date": dates_of_answers}
    answers.sort(key=lambda answer: _date_of(answer, dates_of_answers))
    for answer in answers:
        reason = _why_left_out(answer, names, ids)
        if reason:
            table.export.counts[reason] += 1
        else:
            # The newest answer counts, as with Google, where there is only one.
            replies[answer["parent"]] = _reply_of(answer)
    return replies


def _take_out_answers(table: Table) -> list[Fields]:
    """The fields of rows that answer others; the table keeps the reviews."""
    rows = list[TableRow]()
    reviews = list[Fields]()
    answers = list[Fields]()
    for row, fields in zip(table.rows, table.fields, strict=True):
        if fields.get("parent", "") in NO_PARENT:
            rows.append(row)
            reviews.append(fields)
        else:
            answers.append(fields)
    table.rows = rows
    table.fields = reviews
    return answers


def _date_of(answer: Fields, format: DateFormat) -> str:
    """When an answer was written, empty if nobody can tell."""
    with suppress(BadRecord):
        return dates.read_date(answer["date"], format)
    return ""


def _reply_of(answer: Fields) -> Fields:
    """The fields of the review that an answer fills in."""
    return {"reply": answer.get("text", ""), "reply_date": answer["date"]}


def _names_of_shop(table: Table, answers: Iterable[Fields]) -> set[str]:
    """The folded names under which the shop answers. Raises NeedsDecision."""
    header = table.header
    if "author" not in header.columns:
        # Nobody can tell the shop's answers from those of others.
        return set()
    authors = Counter(answer["author"] for answer in answers)
    known = {fold(author) for author in authors}
    given = [fold(name) for name in header.options.table.replies_by]
    unknown = [name for name in given if name not in known]
    names = {fold(name) for name in header.settings.replies_by}
    if names and not unknown:
        return names
    counts = [f"{author}: {number}" for author, number in authors.most_common()]
    fault = "some rows answer others. Which names answer for the shop?"
    if unknown:
        fault = f"nobody who answers is called {unknown[0]}."
    raise header.question(
        "--replies-by 'YOUR NAME'",
        fault,
        *listed(counts),
        "Answers of all others are left out. The flag may be repeated.",
    )


def _why_left_out(answer: Fields, names: set[str], ids: set[str]) -> str:
    """Why an answer is not a reply of the shop, else empty."""
    if fold(answer.get("author", "")) not in names:
        return "answers of others, left out"
    if answer["parent"] not in ids:
        return "answers to answers or to rows that are not there, left out"
    if "status" in answer and not is_shown(answer["status"]):
        return "answers that are not approved, left out"
    return ""


# ---- Rows ----


def _read_row(record: Record, row: TableRow, fields: Fields, table: Table) -> str:
    """Fill in dates and content, none without stars; the author.

    Raises BadRecord and NeedsDecision.
    """
    if not fields:
        number = len(table.header.names)
        raise BadRecord(f"the row has {len(row.cells)} cells and the header {number}")
    _check_id(record)
    _read_dates(record, fields, table.formats)
    rating = _rating(fields["rating"], table)
    author = checked_name(fields.get("author", ""))
    if not author:
        author = nameless_author(record.source)
        table.nameless += bool(rating)
    review: ReviewInFile = {"author": author, "rating": rating}
    _take_words(review, fields, is_google=record.source == "google")
    if "source_url" in fields:
        review["source_url"] = fields["source_url"] or None
    if "status" in fields:
        review["verified"] = _is_shown(fields["status"], table)
    if rating:
        record.review = review
    return author


def _is_shown(word: str, table: Table) -> bool:
    """Whether a status means that the review is shown; the word is counted."""
    is_inverted = table.header.is_status_inverted
    meaning = is_shown(word, is_inverted=is_inverted)
    table.statuses[meaning][word] += 1
    return meaning


# Ids that a spreadsheet has rounded, or cells too narrow for them.
DAMAGED_ID_ADVICE = "a spreadsheet has damaged the id {}; export it anew"


def _check_id(record: Record) -> None:
    """Raises BadRecord for a damaged id, which may be that of any review."""
    id = record.native_id
    if _is_damaged_id(id):
        record.native_id = ""
        raise BadRecord(DAMAGED_ID_ADVICE.format(quoted(id)))


def _is_damaged_id(id: str) -> bool:
    """Whether an id is like 1.17E+17 or ######."""
    if len(id) >= 3 and not id.strip("#"):
        return True
    digits, exponent, rest = id.upper().partition("E+")
    number = digits.replace(",", ".", 1).replace(".", "", 1)
    return bool(exponent) and number.isdecimal() and rest.isdecimal()


def _read_dates(
    record: Record, fields: Fields, formats: Mapping[str, DateFormat]
) -> None:
    """Raises BadRecord."""
    created, replied = DATES
    record.created = dates.read_date(fields[created], formats[created])
    record.replied = dates.read_date(fields.get(replied, ""), formats[replied])
    if not record.created:
        raise BadRecord("no date")


def _rating(text: str, table: Table) -> float | None:
    """Raises BadRecord and NeedsDecision."""
    header = table.header
    try:
        return stars.read_stars(text, int(header.settings.scale or 0))
    except stars.UnknownScale as value:
        ratings = [fields["rating"] for fields in table.fields if fields]
        highest = stars.highest_value(ratings)
        raise header.question(
            "--scale YOUR",
            f"the scale of the rating {quoted(str(value))} is not known.",
            f"The highest rating is {highest:g}. Give the best that the tool knows: "
            "5 (higher ratings are then faulty), 10, 50, 100, or another number.",
        ) from None


def _take_words(review: ReviewInFile, fields: Fields, *, is_google: bool) -> None:
    """Take text, title and reply, those of Google without its translation."""
    cut = texts.original if is_google else str
    if "text" in fields:
        review["text"] = cut(fields["text"]) or None
    text = review.get("text") or ""
    title = fields.get("title", "")
    if title and not text.startswith(title):
        review["text"] = f"{title}\n\n{text}" if text else title
    if "reply" not in fields:
        return
    is_published = is_shown(fields.get("reply_status", "yes"))
    reply = cut(fields["reply"]) if is_published else ""
    review["owner_reply"] = {"text": reply} if reply else None
    # Some tools repeat the reply as the text.
    if review.get("text") == reply:
        review["text"] = None
