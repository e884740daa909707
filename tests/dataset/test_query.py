"""Parameters become a query, or one issue for each error in them.

Sections: correct values - wrong values - several issues - arguments of tools - numbers
that are enormous - required arguments - unknown names - forgiving readers - any values.
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
from reviewslib.dataset.query import (
    BadQuery,
    Issue,
    Query,
    query_from_pairs,
    read_arguments,
)

NAMES = list(PARAMETERS)


def query_of(arguments: Object) -> Query:
    """The query that a tool makes of its arguments."""
    return Query(**read_arguments(PARAMETERS, arguments))


def query_of_url(parameters: dict[str, str]) -> Query:
    """The query that a URL with these parameters asks."""
    return query_from_pairs(PARAMETERS, list(parameters.items()))


def issues_of(reader: Callable[..., Any], *given: Any) -> list[Issue]:
    with pytest.raises(BadQuery) as refusal:
        reader(*given)
    return list(refusal.value.issues)


# ---- Correct values ------------------------------------------------------------------

LONG_TEXT = "é" * 3000


@pytest.mark.parametrize(
    ("parameters", "query"),
    [
        pytest.param({}, Query(limit=20), id="nothing"),
        pytest.param(dict.fromkeys(NAMES, ""), Query(), id="empty values"),
        pytest.param(
            {"limit": "100", "offset": "1000000000"},
            Query(limit=100, offset=1_000_000_000),
            id="the greatest numbers",
        ),
        pytest.param({"limit": "0" * 400 + "1"}, Query(limit=1), id="leading zeros"),
        pytest.param({"offset": "-0.0"}, Query(offset=0), id="a negative zero"),
        pytest.param({"rating": "5.0"}, Query(rating=5), id="a whole number as 5.0"),
        pytest.param({"min_rating": "4.5"}, Query(min_rating=4.5), id="half a star"),
        pytest.param(
            {"since": "2024-02-29"}, Query(since="2024-02-29"), id="a leap day"
        ),
        pytest.param(
            {"since": "0001-01-01", "until": "9999-12-31"},
            Query(since="0001-01-01", until="9999-12-31"),
            id="the first and the last day",
        ),
        pytest.param({"query": " x\n\x00"}, Query(query=" x\n\x00"), id="odd text"),
        pytest.param({"query": LONG_TEXT}, Query(query=LONG_TEXT), id="long text"),
        pytest.param(
            {"mentions_service": "5"}, Query(mentions_service="5"), id="digits as text"
        ),
        pytest.param(
            {"mentions_technician": " Dr. X,"},
            Query(mentions_technician=" Dr. X,"),
            id="a name as written",
        ),
        pytest.param(
            {"sentiment": "negative"}, Query(sentiment="negative"), id="a choice"
        ),
        pytest.param({"replied": "true"}, Query(replied=True), id="true"),
        pytest.param({"replied": "False"}, Query(replied=False), id="False"),
    ],
)
def test_correct_values_become_a_query(
    parameters: dict[str, str], query: Query
) -> None:
    assert query_of_url(parameters) == query
    assert query_of(parameters) == query


# ---- Wrong values --------------------------------------------------------------------

NUMBER = "expected a number such as 4 or 4.5"
WHOLE = "expected a whole number such as 5"
NOT_A_DAY = "expected a date written YYYY-MM-DD"
NO_SUCH_DAY = "expected a day that exists"
NO_WORD = "expected at least one word of a name"
NO_LETTER = "expected more than accents"
CHOICES = "expected positive or neutral or negative"
TRUTH = "expected true or false"
UNKNOWN = f"unknown parameter; the known ones are {', '.join(NAMES)}"

# Of every kind of value, what is not accepted.
NO_SUCH_DAYS = ["2025-02-29", "2025-13-01", "2025-00-10", "2025-04-31", "0000-01-01"]
NO_DAYS = ["20250101", "2025-W01-1", "2025-1-1", "12025-01-01", "-2025-01-01"]
NO_DAYS += ["2025-01-01\n", "2025-01-01 ", "2025-01-01T00:00Z", " ", "x" * 200]
NO_DAYS += ["２０２５-01-01", "٢٠٢٥-01-01"]
NO_NUMBERS = ["five", "1e0", "+5", " 5", "5 ", "5\n", "４", "٣", "4,5", "4.", ".5"]
NO_NUMBERS += ["NaN", "nan", "inf", "0x5", "1_0", "--1", "-", "."]
NOT_WHOLE = ["ten", "1e3", "+5", " 5", "5\n", "５", "٣", "²", "4.5", "4.", "1_0"]
NOT_WHOLE += ["\x00", "true", "-", "20.00000000000001"]
NO_WORDS = [",", " ", ".", " , .", "\u2003", "-", "\u0301"]
ACCENTS = ["\u0301", "\u0316\u0301"]
# No known name is similar to them.
UNKNOWN_NAMES = ["sort", "technician", "stars", "min_date", "zzz"]


def refused(names: str, values: list[str], message: str) -> list[Any]:
    """Cases: a parameter, a value that it does not accept, and the issue's message."""
    cases = []
    for name in names.split():
        for value in values:
            id = f"{name}={value[:20]!a}"
            cases.append(pytest.param(name, value, message, id=id))
    return cases


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *refused("since until", NO_SUCH_DAYS, NO_SUCH_DAY),
        *refused("since until", NO_DAYS, NOT_A_DAY),
        *refused("min_rating", NO_NUMBERS, NUMBER),
        *refused("rating limit offset", NOT_WHOLE, WHOLE),
        *refused("mentions_technician", NO_WORDS, NO_WORD),
        *refused("query mentions_service source", ACCENTS, NO_LETTER),
        *refused("sentiment", ["Negative"], CHOICES),
        *refused("replied", ["yes"], TRUTH),
        *refused("limt Limit", ["5"], "unknown parameter; did you mean limit?"),
        *refused("min_ratin", ["5"], "unknown parameter; did you mean min_rating?"),
        *refused(" ".join(UNKNOWN_NAMES), ["5", ""], UNKNOWN),
    ],
)
def test_a_wrong_value_is_one_issue_with_the_reason(
    name: str, value: str, message: str
) -> None:
    expected = [Issue(name, value, message)]

    assert issues_of(query_of_url, {name: value}) == expected
    assert issues_of(query_of, {name: value}) == expected


NINES = "9" * 400


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        pytest.param("rating", "0", "0 is below the minimum of 1", id="no star"),
        pytest.param("min_rating", "-0", "-0 is below the minimum of 1", id="-0"),
        pytest.param("max_rating", "-4", "-4 is below the minimum of 1", id="-4"),
        pytest.param(
            "min_rating", "5.01", "5.01 is above the maximum of 5", id="5.01 stars"
        ),
        pytest.param("limit", "101", "101 is above the maximum of 100", id="limit"),
        pytest.param(
            "limit", "101.0", "101 is above the maximum of 100", id="shown as whole"
        ),
        pytest.param("offset", "-1", "-1 is below the minimum of 0", id="offset"),
        pytest.param(
            "offset",
            "1000000001",
            "1000000001 is above the maximum of 1000000000",
            id="a great offset",
        ),
        pytest.param(
            "limit", NINES, "inf is above the maximum of 100", id="400 digits"
        ),
        pytest.param(
            "min_rating",
            f"-{NINES}.5",
            "-inf is below the minimum of 1",
            id="400 digits below zero",
        ),
    ],
)
def test_a_number_out_of_its_range_is_one_issue_that_names_the_bound(
    name: str, value: str, message: str
) -> None:
    expected = [(name, message)]

    of_url = issues_of(query_of_url, {name: value})
    of_arguments = issues_of(query_of, {name: value})

    assert [(issue.parameter, issue.message) for issue in of_url] == expected
    assert [(issue.parameter, issue.message) for issue in of_arguments] == expected


def test_an_issue_repeats_at_most_200_characters() -> None:
    (issue,) = issues_of(query_of_url, {"limit": NINES})

    assert issue.value == "9" * 200 + "…"


# ---- Several issues ------------------------------------------------------------------

TWICE = "given 2 times, expected once"
THRICE = "given 3 times, expected once"
TOO_HIGH = "9 is above the maximum of 5"
FIFTY_UNKNOWN = "&".join(f"{number}=x" for number in range(50))


@pytest.mark.parametrize(
    ("pairs", "lines"),
    [
        pytest.param(
            "offset=x&limit=5&color=red&rating=9",
            [f"offset: {WHOLE}", f"color: {UNKNOWN}", f"rating: {TOO_HIGH}"],
            id="of three kinds",
        ),
        pytest.param(
            "rating=9&offset=x",
            [f"rating: {TOO_HIGH}", f"offset: {WHOLE}"],
            id="in the order given",
        ),
        pytest.param(
            "limit=5&rating=9&limit=5",
            [f"limit: {TWICE}", f"rating: {TOO_HIGH}"],
            id="a parameter given twice",
        ),
        pytest.param("limit=&limit=&limit=", [f"limit: {THRICE}"], id="empty, thrice"),
        pytest.param("x=1&x=2", [f"x: {UNKNOWN}"], id="an unknown one twice"),
        pytest.param("query=caf\udce9", ["query: is not valid UTF-8"], id="no UTF-8"),
        pytest.param(
            FIFTY_UNKNOWN,
            [f"{number}: {UNKNOWN}" for number in range(50)],
            id="fifty unknown ones",
        ),
        pytest.param(
            f"{FIFTY_UNKNOWN}&50=x",
            ["more than 50 different parameters"],
            id="fifty-one",
        ),
    ],
)
def test_all_issues_come_at_once_in_the_order_given(
    pairs: str, lines: list[str]
) -> None:
    given = parse_qsl(pairs, keep_blank_values=True)

    issues = issues_of(query_from_pairs, PARAMETERS, given)

    assert [str(issue) for issue in issues] == lines


def test_an_issue_repeats_what_was_sent_last_and_can_be_written() -> None:
    pairs = [("x\udce9", "1"), ("x\udce9", "\udce9")]

    issues = issues_of(query_from_pairs, PARAMETERS, pairs)

    assert issues == [Issue("x\ufffd", "\ufffd", UNKNOWN)]


# ---- Arguments of tools: what JSON has and a query string has not --------------------


def test_arguments_may_be_json_numbers() -> None:
    query = query_of({"min_rating": 4.5, "limit": 7.0, "offset": 0})

    assert query == Query(min_rating=4.5, limit=7)


def test_a_whole_number_that_json_writes_as_a_fraction_becomes_whole() -> None:
    query = query_of({"rating": 4.0})

    assert isinstance(query.rating, int)


def test_a_null_argument_is_absent() -> None:
    assert query_of({"query": None, "since": None}) == Query()


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_truth_value_of_json_is_taken(is_answered: bool) -> None:
    assert query_of({"replied": is_answered}) == Query(replied=is_answered)


OTHER_KINDS = [True, [], {"a": 1}]


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"replied"}))
@pytest.mark.parametrize("value", OTHER_KINDS, ids=json.dumps)
def test_an_argument_of_another_kind_is_an_issue(name: str, value: Any) -> None:
    (issue,) = issues_of(query_of, {name: value})

    assert issue.parameter == name
    assert issue.value == json.dumps(value)
    assert issue.message.startswith("expected ")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        pytest.param("rating", 4.5, WHOLE, id="half a star"),
        pytest.param("query", 5, "expected text", id="a number as text"),
        pytest.param("replied", 1, TRUTH, id="a number as truth"),
        pytest.param("replied", [], TRUTH, id="a list as truth"),
    ],
)
def test_the_issue_of_an_argument_says_what_was_expected(
    name: str, value: Any, message: str
) -> None:
    issues = issues_of(query_of, {name: value})

    assert issues == [Issue(name, json.dumps(value), message)]


# ---- Numbers that are enormous -------------------------------------------------------

NUMERIC = ("rating", "min_rating", "max_rating", "limit", "offset")
# Too many digits to be shown.
A_DIGIT_TOO_MANY = 10**400


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(float("inf"), "inf", id="infinity"),
        pytest.param(1e308, "1e+308", id="the greatest power of ten"),
        pytest.param(A_DIGIT_TOO_MANY, "the number", id="an integer of 401 digits"),
    ],
)
def test_an_enormous_number_is_an_issue(name: str, value: Any, shown: str) -> None:
    (issue,) = issues_of(query_of, {name: value})

    assert issue.parameter == name
    assert issue.message.startswith(f"{shown} is above the maximum")
    assert issue.value.removesuffix("…") == json.dumps(value)[:200]


def test_an_integer_of_thousands_of_digits_is_not_repeated() -> None:
    issues = issues_of(query_of, {"limit": -(10**5000)})

    value = "a number of thousands of digits"
    assert issues == [Issue("limit", value, "the number is below the minimum of 1")]


# ---- Required arguments --------------------------------------------------------------

FEW = {
    "name": Parameter("name", "text", "", required=True),
    "limit": Parameter("limit", "integer", "", 3),
}


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({}, id="absent"),
        pytest.param({"name": None}, id="null"),
        pytest.param({"name": ""}, id="empty"),
    ],
)
def test_a_missing_required_argument_is_an_issue(arguments: Object) -> None:
    issues = issues_of(read_arguments, FEW, arguments)

    assert issues == [Issue("name", "", "is required")]


def test_a_number_without_bounds_may_be_any() -> None:
    arguments = {"name": "x", "limit": -7}

    assert read_arguments(FEW, arguments) == arguments


def test_who_takes_no_argument_says_so() -> None:
    issues = issues_of(read_arguments, {}, {"limit": 5})

    assert issues == [Issue("limit", "5", "unknown parameter; none is accepted")]


# ---- Unknown names -------------------------------------------------------------------

NINETEEN_OTHERS = [f"Person {letter}" for letter in "ABCDEFGHIJKLMNOPQRS"]


def test_known_names_are_listed_with_similar_ones_first() -> None:
    names = [*NINETEEN_OTHERS, "Hana Ishikawa"]

    known = queries.known_names("people", "hannah", names)

    expected = "; ".join(["Hana Ishikawa", *NINETEEN_OTHERS])
    assert known == f"Known people: {expected}"


def test_of_more_than_twenty_known_names_the_rest_is_counted() -> None:
    names = [*NINETEEN_OTHERS, "Person T", "Hana Ishikawa"]

    known = queries.known_names("people", "hannah", names)

    twenty = "; ".join(["Hana Ishikawa", *NINETEEN_OTHERS])
    assert known == f"Known people: {twenty} and 1 more"


# ---- Forgiving readers ---------------------------------------------------------------


@pytest.mark.parametrize(
    "pairs",
    [
        pytest.param([("rating", "9")], id="out of range"),
        pytest.param([("limit", "5"), ("limit", "6")], id="given twice"),
        pytest.param([("utm_source", "x")], id="unknown"),
    ],
)
def test_a_forgiving_reader_takes_the_default_for_a_wrong_value(
    pairs: list[tuple[str, str]],
) -> None:
    values = queries.forgiving_values(PARAMETERS, [*pairs, ("min_rating", "4")])

    assert values == asdict(Query(min_rating=4))


# ---- Any values ----------------------------------------------------------------------

SIMILAR_NAMES = ["limt", "Rating", "q", ""]
any_name = st.sampled_from(NAMES) | st.sampled_from(SIMILAR_NAMES) | any_text
any_number = st.from_regex(r"-?[0-9]{1,4}(\.[0-9]{0,3})?", fullmatch=True)
any_day = st.from_regex(r"[0-9]{4}-[0-1][0-9]-[0-3][0-9]", fullmatch=True)
usual_values = st.sampled_from(["", "0", "5", "4.5", "2025-03-01", "x" * 201])
any_value = any_text | usual_values | any_number | any_day


@pytest.mark.slow
@settings(max_examples=400)
@given(st.dictionaries(any_name, any_json | any_value | st.integers(0, 6), max_size=5))
def test_any_arguments_give_a_query_or_short_issues(arguments: Object) -> None:
    try:
        query = query_of(arguments)
    except BadQuery as refusal:
        assert 0 < len(refusal.issues) <= len(arguments)
        for issue in refusal.issues:
            # Both can be written.
            f"{issue}{issue.value}".encode()
            assert len(issue.parameter or "") <= 201
            assert len(issue.value) <= 201
    else:
        assert query_of(asdict(query)) == query
