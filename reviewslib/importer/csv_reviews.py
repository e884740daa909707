"""Reviews in a table: the record of each row.

`csv_text.py` makes rows of a file, and `headers.py` tells the meaning of columns. This
module is pure. It knows no export of Google's and no stored review. Its sections: the
table, doubled rows, answers in rows of their own, rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from reviewslib.dataset.contract import Contract, Fault, quoted
from reviewslib.dataset.text import fold
from reviewslib.importer import dates, stars, texts
from reviewslib.importer.csv_text import Row, check_last_row, decoded_text, read_rows
from reviewslib.importer.dates import DateFormat
from reviewslib.importer.exports import Export, Record, ReviewInFile
from reviewslib.importer.headers import (
    DATES,
    REQUIRED,
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
    rows: list[Row]
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
    sources = _add_records(table, answers)
    _check_scale(table)
    _finish_settings(table, sources)
    _remark(table)
    return export.finish()


def _table(export: Export, rows: Sequence[Row], time: str) -> Table:
    """Raises BadData and NeedsDecision."""
    names = [clean_line(name) for name in rows[0].cells]
    if sum(map(bool, names)) < len(REQUIRED):
        begin = quoted(rows[0].cells[0])
        reason = f"not a known export, and not a table; it begins with {begin}"
        raise no_export(export.file, reason)
    cells = [row.cells for row in rows[1:]]
    header = Header(names, cells, export.file, export.options)
    fields = list[Fields]()
    for row in cells:
        is_whole = len(row) == len(names)
        fields.append(header.fields(row) if is_whole else {})
    table = Table(export, header, time, [*rows[1:]], fields)
    table.formats = header.date_formats(fields)
    return table


def _add_records(table: Table, answers: Mapping[str, Fields]) -> set[str]:
    """Add the record of each row; the sources of the table. Raises NeedsDecision."""
    header = table.header
    sources = set[str]()
    for row, fields in zip(table.rows, table.fields, strict=True):
        source = fold(fields.get("source") or header.settings.source)
        if fields:
            sources.add(source)
        position = Fault(f"{table.export.file} line {row.line}", (), "")
        record = Record(position, table.time, format="table", source=source)
        record.native_id = fields.get("id", "")
        answer = answers.get(record.native_id, {})
        read = partial(_read_row, record, row, fields | answer, table)
        table.export.add(record, read)
    if not table.rows:
        sources.add(header.settings.source)
    if "" in sources:
        raise header.question(
            "--source YOUR",
            "it does not say where its reviews were published.",
            "Name the source, such as facebook.",
        )
    return sources


def _check_scale(table: Table) -> None:
    """A scale that the owner gave, of which no rating is above the half, is doubted."""
    scale = int(table.header.settings.scale or 0)
    if scale in {0, 5}:
        return
    ratings = [fields["rating"] for fields in table.fields if fields]
    highest = stars.highest_value(ratings)
    if 0 < highest * 2 <= scale:
        table.export.urgent_notes.append(
            f"{table.export.file}: no rating is above {highest:g} of {scale}; "
            f"if the best rating is another, say --scale {_likely_scale(highest)}"
        )


def _likely_scale(highest: float) -> str:
    """The scales that a question offers for a table with this highest rating."""
    return " or ".join(str(best) for best in (5, 10, 50, 100) if best >= highest)


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
    words = [
        f"{meaning}: {_counted(table.statuses[is_shown])}"
        for is_shown, meaning in ((True, "shown"), (False, "not shown"))
        if table.statuses[is_shown]
    ]
    if words:
        export.urgent_notes.append(f"{export.file}: {'; '.join(words)}")
    contents = list[str]()
    for fields in table.fields:
        contents += [fields.get(name, "") for name in TEXTS]
    if not table.header.settings.html and texts.is_like_html(contents):
        export.urgent_notes.append(
            f"{export.file}: texts look like HTML; say --html, or --no-html if customers "
            "wrote it so"
        )


def _counted(words: Counter[str]) -> str:
    # More different words than this are no status.
    shown = [f"{word or 'nothing'} ({n})" for word, n in words.most_common(10)]
    return ", ".join(shown)


# ---- Doubled rows ----


def _leave_out_doubled_rows(table: Table) -> None:
    """Rows that agree in every cell are one, if they have no id, but name and words.

    Rows without a name or words stay: two customers may give five stars on one day.
    """
    first = set[tuple[str, ...]]()
    rows = list[Row]()
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

NO_PARENT = ("", "0")


def _answers(table: Table) -> dict[str, Fields]:
    """By id of the review: the reply that a row of its own has, which is taken out.

    Anybody can answer; only the answers of those whom the owner names are the shop's.
    Raises NeedsDecision.
    """
    if "parent" not in table.header.columns:
        return {}
    reviews = list[tuple[Row, Fields]]()
    answers = list[Fields]()
    for row, fields in zip(table.rows, table.fields, strict=True):
        if fields.get("parent", "") in NO_PARENT:
            reviews.append((row, fields))
        else:
            answers.append(fields)
    table.rows = [row for row, _ in reviews]
    table.fields = [fields for _, fields in reviews]
    if not answers:
        return {}
    names = _names_of_shop(table, answers)
    ids = {fields["id"] for fields in table.fields if fields.get("id")}
    replies = dict[str, Fields]()
    for answer in answers:
        reason = _why_left_out(answer, names, ids)
        if reason:
            table.export.counts[reason] += 1
            continue
        # The newest answer counts, as with Google, where there is only one.
        before = replies.get(answer["parent"], {})
        if answer["date"] >= before.get("reply_date", ""):
            reply = {"reply": answer.get("text", ""), "reply_date": answer["date"]}
            replies[answer["parent"]] = reply
    table.formats = {**table.formats, "reply_date": table.formats["date"]}
    return replies


def _names_of_shop(table: Table, answers: Iterable[Fields]) -> set[str]:
    """The folded names under which the shop answers. Raises NeedsDecision."""
    header = table.header
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
    if fold(answer["author"]) not in names:
        return "answers of others, left out"
    if answer["parent"] not in ids:
        return "answers to answers or to rows that are not there, left out"
    if "status" in answer and not is_shown(answer["status"]):
        return "answers that are not approved, left out"
    return ""


# ---- Rows ----

# Ids that a spreadsheet has rounded, or cells too narrow for them.
DAMAGED_ID_ADVICE = "a spreadsheet has damaged the id {}; export it anew"


def _read_row(record: Record, row: Row, fields: Fields, table: Table) -> str:
    """Fill in dates and content, none without stars; the author.

    Raises BadRecord and NeedsDecision.
    """
    if not fields:
        number = len(table.header.names)
        raise BadRecord(f"the row has {len(row.cells)} cells and the header {number}")
    if _is_damaged_id(record.native_id):
        id = record.native_id
        record.native_id = ""  # it may be any review
        raise BadRecord(DAMAGED_ID_ADVICE.format(quoted(id)))
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
        word = fields["status"]
        review["verified"] = is_shown(word, is_inverted=table.header.is_status_inverted)
        table.statuses[review["verified"]][word] += 1
    if rating:
        record.review = review
    return author


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
