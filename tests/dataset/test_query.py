"""Parameters become a query, or one issue for each error in them.

Correct values - Wrong values - Several issues - Arguments - Unknown names - Any values
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.small_files import PARAMETERS, Object, any_json, any_text

from reviewslib.dataset import query as queries
from reviewslib.dataset.contract import Parameter
from reviewslib.dataset.query import BadQuery, Query, query_from_pairs, read_arguments

NAMES = list(PARAMETERS)


def query_of(arguments: Object) -> Query:
    """The query that a tool makes of its arguments."""
    return Query(**read_arguments(PARAMETERS, arguments))


def issues_of(
    reader: Callable[..., Any], *given: Any
) -> list[tuple[str | None, str, str]]:
    with pytest.raises(BadQuery) as refusal:
        reader(*given)
    return [
        (issue.parameter, issue.value, issue.message) for issue in refusal.value.issues
    ]


# ---- Correct values ----

CORRECT: list[tuple[dict[str, str], Query]] = [
    ({}, Query(limit=20)),
    (dict.fromkeys(NAMES, ""), Query()),
    ({"limit": "100", "offset": "1000000000"}, Query(limit=100, offset=10**9)),
    ({"limit": "0" * 400 + "1", "offset": "-0.0"}, Query(limit=1)),
    ({"rating": "5.0", "min_rating": "4.5"}, Query(rating=5, min_rating=4.5)),
    (
        {"since": "2024-02-29", "until": "9999-12-31"},
        Query(since="2024-02-29", until="9999-12-31"),
    ),
    (
        {"since": "0001-01-01", "query": " x\n\x00"},
        Query(since="0001-01-01", query=" x\n\x00"),
    ),
    (
        {"query": "é" * 3000, "mentions_service": "5"},
        Query(query="é" * 3000, mentions_service="5"),
    ),
    ({"sentiment": "negative"}, Query(sentiment="negative")),
    ({"replied": "true"}, Query(replied=True)),
    ({"replied": "False"}, Query(replied=False)),
    ({"mentions_technician": " Dr. X,"}, Query(mentions_technician=" Dr. X,")),
]


@pytest.mark.parametrize(("parameters", "query"), CORRECT)
def test_correct_values_become_a_query(
    parameters: dict[str, str], query: Query
) -> None:
    assert (
        query_from_pairs(PARAMETERS, list(parameters.items()))
        == query
        == query_of(parameters)
    )


# ---- Wrong values: names of parameters, values that they refuse (between "|"), and the message ----

NUMBER = "expected a number such as 4 or 4.5"
WHOLE = "expected a whole number such as 5"
NOT_A_DAY = "expected a date written YYYY-MM-DD"
NO_SUCH_DAY = "expected a day that exists"
UNKNOWN = f"unknown parameter; the known ones are {', '.join(NAMES)}"
BELOW = "{} is below the minimum of {}"
ABOVE = "{} is above the maximum of {}"
WRONG = [
    (
        "since until",
        "2025-02-29|2025-13-01|2025-00-10|2025-04-31|0000-01-01",
        NO_SUCH_DAY,
    ),
    (
        "since until",
        f"20250101|2025-W01-1|2025-1-1|12025-01-01|-2025-01-01|{'x' * 200}",
        NOT_A_DAY,
    ),
    (
        "since until",
        "2025-01-01\n|2025-01-01 |2025-01-01T00:00Z|２０２５-01-01|٢٠٢٥-01-01| ",
        NOT_A_DAY,
    ),
    (
        "min_rating",
        "five|1e0|+5| 5|5 |５|٣|5\n|4,5|4.|.5|NaN|nan|inf|0x5|1_0|--1|-|.",
        NUMBER,
    ),
    (
        "rating limit offset",
        "ten|1e3|+5| 5|５|٣|5\n|4.5|4.|²|1_0|\x00|true|-|20.00000000000001",
        WHOLE,
    ),
    ("rating min_rating max_rating", "0|-0|-4", BELOW.format("{}", 1)),
    ("min_rating", "5.01", ABOVE.format("{}", 5)),
    ("limit", "101|101.0", ABOVE.format(101, 100)),
    ("offset", "-1", BELOW.format("{}", 0)),
    ("offset", "1000000001", ABOVE.format("{}", 10**9)),
    ("limit", "9" * 400, ABOVE.format("inf", 100)),
    ("min_rating", f"-{'9' * 400}.5", BELOW.format("-inf", 1)),
    (
        "mentions_technician",
        ",| |.|. , .|\u2003|-|\u0301",
        "expected at least one word of a name",
    ),
    (
        "query mentions_service source",
        "\u0301|\u0316\u0301",
        "expected more than accents",
    ),
    ("limt Limit", "5", "unknown parameter; did you mean limit?"),
    ("min_ratin", "5", "unknown parameter; did you mean min_rating?"),
    ("sort technician stars min_date zzz", "5|", UNKNOWN),  # no known name is similar
]


@pytest.mark.parametrize(("names", "values", "message"), WRONG)
def test_a_wrong_value_is_one_issue_with_the_reason(
    names: str, values: str, message: str
) -> None:
    for name in names.split():
        for value in values.split("|"):
            issue = (
                name,
                value if len(value) <= 200 else value[:200] + "…",
                message.format(value),
            )
            assert (
                [issue]
                == issues_of(query_from_pairs, PARAMETERS, [(name, value)])
                == issues_of(query_of, {name: value})
            )


# ---- Several issues ----

TWICE = "given 2 times, expected once"
TOO_HIGH = "9 is above the maximum of 5"
SEVERAL = [  # pairs, and the issues as lines
    (
        "offset=x&limit=5&color=red&rating=9",
        [f"offset: {WHOLE}", f"color: {UNKNOWN}", f"rating: {TOO_HIGH}"],
    ),
    ("rating=9&offset=x", [f"rating: {TOO_HIGH}", f"offset: {WHOLE}"]),
    ("limit=5&rating=9&limit=5", [f"limit: {TWICE}", f"rating: {TOO_HIGH}"]),
    ("limit=&limit=&limit=", ["limit: given 3 times, expected once"]),
    ("x=1&x=2", [f"x: {UNKNOWN}"]),
    ("query=caf\udce9", ["query: is not valid UTF-8"]),
    ("&".join(f"{n}=x" for n in range(50)), [f"{n}: {UNKNOWN}" for n in range(50)]),
    ("&".join(f"{n}=x" for n in range(51)), ["more than 50 different parameters"]),
]


@pytest.mark.parametrize(("pairs", "lines"), SEVERAL)
def test_all_issues_come_at_once_in_the_order_given(
    pairs: str, lines: list[str]
) -> None:
    with pytest.raises(BadQuery) as refusal:
        query_from_pairs(PARAMETERS, parse_qsl(pairs, keep_blank_values=True))
    assert list(map(str, refusal.value.issues)) == lines


def test_an_issue_repeats_what_was_sent_last_and_can_be_written() -> None:
    pairs = [("x\udce9", "1"), ("x\udce9", "\udce9")]
    assert issues_of(query_from_pairs, PARAMETERS, pairs) == [
        ("x\ufffd", "\ufffd", UNKNOWN)
    ]


WRONG_CHOICES = [
    ("sentiment", "Negative", "expected positive or neutral or negative"),
    ("replied", "yes", "expected true or false"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG_CHOICES)
def test_a_value_that_is_no_choice_is_an_issue_that_names_the_choices(
    name: str, value: str, message: str
) -> None:
    issues = issues_of(query_from_pairs, PARAMETERS, [(name, value)])

    assert issues == [(name, value, message)]


# ---- Arguments: values that JSON has and a query string has not ----


def test_arguments_may_be_json_numbers_and_null_is_absent() -> None:
    numbers = {
        "rating": 4.0,
        "min_rating": 4.5,
        "limit": 7.0,
        "offset": 0,
        "query": None,
        "since": None,
    }
    query = query_of(numbers)
    assert query == Query(rating=4, min_rating=4.5, limit=7)
    assert isinstance(query.rating, int)


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_truth_value_of_json_is_taken(is_answered: bool) -> None:
    assert query_of({"replied": is_answered}) == Query(replied=is_answered)


NUMERIC = ("rating", "min_rating", "max_rating", "limit", "offset")
ENORMOUS = {"inf": float("inf"), "1e+308": 1e308, "the number": 10**400}
WRONG_ARGUMENTS: list[tuple[str, Any, str]] = [
    *[
        (name, value, "expected ")
        for name in NAMES
        if PARAMETERS[name].kind != "boolean"
        for value in (True, [], {"a": 1}, float("nan"))
    ],
    *[
        (name, value, f"{shown} is above the max")
        for name in NUMERIC
        for shown, value in ENORMOUS.items()
    ],
    ("rating", 4.5, WHOLE),
    ("query", 5, "expected text"),
    ("replied", 1, "expected true or false"),
    ("replied", [], "expected true or false"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG_ARGUMENTS)
def test_an_argument_of_another_kind_or_range_is_an_issue(
    name: str, value: Any, message: str
) -> None:
    ((parameter, echoed, said),) = issues_of(query_of, {name: value})
    assert (parameter, said[: len(message)]) == (name, message)
    assert echoed.removesuffix("…") == json.dumps(value)[:200]


def test_an_integer_of_thousands_of_digits_is_not_repeated() -> None:
    issue = (
        "limit",
        "a number of thousands of digits",
        "the number is below the minimum of 1",
    )
    assert issues_of(query_of, {"limit": -(10**5000)}) == [issue]


FEW = {
    "name": Parameter("name", "text", "", required=True),
    "limit": Parameter("limit", "integer", "", 3),
}


@pytest.mark.parametrize("arguments", [{}, {"name": None}, {"name": ""}])
def test_a_missing_required_argument_is_an_issue(arguments: Object) -> None:
    assert issues_of(read_arguments, FEW, arguments) == [("name", "", "is required")]
    assert read_arguments(FEW, {"name": "x", "limit": -7}) == {
        "name": "x",
        "limit": -7,
    }, "it has no bounds"


# ---- Unknown names ----


@pytest.mark.parametrize(("count", "rest"), [(20, ""), (21, " and 1 more")])
def test_known_names_are_listed_up_to_twenty_with_similar_ones_first(
    count: int, rest: str
) -> None:
    others = [f"Person {chr(65 + number)}" for number in range(count - 1)]
    known = queries.known_names("people", "hannah", [*others, "Hana Ishikawa"])
    assert known == f"Known people: {'; '.join(['Hana Ishikawa', *others][:20])}{rest}"


# ---- Any values ----

any_name = (
    st.sampled_from(NAMES) | st.sampled_from(["limt", "Rating", "q", ""]) | any_text
)
any_value = (
    any_text
    | st.sampled_from(["", "0", "5", "4.5", "2025-03-01", "x" * 201])
    | st.from_regex(r"-?[0-9]{1,4}(\.[0-9]{0,3})?", fullmatch=True)
    | st.from_regex(r"[0-9]{4}-[0-1][0-9]-[0-3][0-9]", fullmatch=True)
)


@pytest.mark.slow
@settings(max_examples=400)
@given(st.dictionaries(any_name, any_json | any_value | st.integers(0, 6), max_size=5))
def test_any_arguments_give_a_query_or_short_issues(arguments: Object) -> None:
    try:
        query = query_of(arguments)
    except BadQuery as refusal:
        assert 0 < len(refusal.issues) <= len(arguments)
        assert all(f"{it}{it.value}".encode() for it in refusal.issues)
        assert all(
            max(len(it.parameter or ""), len(it.value)) <= 201 for it in refusal.issues
        )
    else:
        assert query_of(asdict(query)) == query


def test_a_forgiving_reader_takes_the_default_for_a_wrong_value() -> None:
    pairs = [
        ("rating", "9"),
        ("limit", "5"),
        ("limit", "6"),
        ("utm_source", "x"),
        ("min_rating", "4"),
    ]
    assert queries.forgiving_values(PARAMETERS, pairs) == asdict(Query(min_rating=4))
