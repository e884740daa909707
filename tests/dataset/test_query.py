"""Parameters become a query, or one issue for each error in them.

Correct queries - Wrong values - Several issues - Arguments - Unknown names - Any arguments
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_files import CONTRACT, PARAMETERS, Object, any_json, any_text

from reviewslib.dataset import query as queries
from reviewslib.dataset.contract import Parameter
from reviewslib.dataset.query import BadQuery, Query, query_from_pairs, read_arguments

NAMES = list(PARAMETERS)


def query_of(arguments: Object) -> Query:
    """The query that a tool makes of its arguments."""
    return Query(**read_arguments(PARAMETERS, arguments))


Issues = list[tuple[str | None, str, str]]


def issues_of(question: Callable[..., Any], *given: Any) -> Issues:
    with pytest.raises(BadQuery) as refusal:
        question(*given)
    return [(issue.parameter, issue.value, issue.message) for issue in refusal.value.issues]


def issues_of_pairs(*pairs: tuple[str, str]) -> Issues:
    return issues_of(query_from_pairs, PARAMETERS, pairs)


def issues_of_arguments(arguments: Object) -> Issues:
    return issues_of(query_of, arguments)


# ---- Correct queries ----

CORRECT: list[tuple[dict[str, str], Query]] = [
    ({}, Query(limit=20)),
    (dict.fromkeys(NAMES, ""), Query()),
    ({"limit": "100", "offset": "1000000000"}, Query(limit=100, offset=10**9)),
    ({"limit": "5.0", "offset": "-0"}, Query(limit=5)),
    ({"limit": "0" * 400 + "1", "offset": "-0.0"}, Query(limit=1)),
    ({"rating": "5.0", "min_rating": "4.5"}, Query(rating=5, min_rating=4.5)),
    ({"since": "2024-02-29", "until": "9999-12-31"}, Query(since="2024-02-29", until="9999-12-31")),
    ({"since": "0001-01-01", "query": " x\n\x00"}, Query(since="0001-01-01", query=" x\n\x00")),
    ({"query": "é" * 3000, "mentions_service": "5"}, Query(query="é" * 3000, mentions_service="5")),
    ({"mentions_technician": " Dr. X,"}, Query(mentions_technician=" Dr. X,")),
]


@pytest.mark.parametrize(("parameters", "query"), CORRECT)
def test_a_valid_query_is_parsed(parameters: dict[str, str], query: Query) -> None:
    assert query_from_pairs(PARAMETERS, list(parameters.items())) == query
    assert query_of(parameters) == query


def test_a_page_is_a_limit_and_an_offset() -> None:
    for page, offset in [("", 0), ("1", 0), ("3", 14), ("1000000", 6_999_993)]:
        pairs = [("page", page), ("query", "x")]
        assert queries.query_of_page(CONTRACT.list_parameters, pairs, 7) == Query("x", limit=7, offset=offset)


@pytest.mark.parametrize("page", ["0", "-1", "1.5", "x", "1000001"])
def test_a_wrong_page_number_is_an_issue(page: str) -> None:
    (issue,) = issues_of(queries.query_of_page, CONTRACT.list_parameters, [("page", page)], 20)
    assert issue[:2] == ("page", page)


# ---- Wrong values: names of parameters, values that they refuse (between "|"), and the message ----

NUMBER = "expected a number such as 4 or 4.5"
WHOLE = "expected a whole number such as 5"
NOT_A_DAY = "expected a date written YYYY-MM-DD"
NO_SUCH_DAY = "expected a day that exists"
UNKNOWN = f"unknown parameter; the known ones are {', '.join(NAMES)}"
WRONG = [
    ("since until", "2025-02-29|2100-02-29|2025-13-01|2025-00-10|2025-04-31|0000-01-01", NO_SUCH_DAY),
    ("since until", "20250101|2025-W01-1|2025-001|2025-1-1|25-01-01|12025-01-01|-2025-01-01", NOT_A_DAY),
    ("since until", "2025-01-01\n|2025-01-01 |2025-01-01T00:00Z|２０２５-01-01|٢٠٢٥-01-01| ", NOT_A_DAY),
    ("since until", "x" * 200, NOT_A_DAY),
    ("min_rating", "five|1e0|+5| 5|5 |５|٣|5\n|4,5|4.|.5|NaN|nan|inf|0x5|1_0|--1|-|.", NUMBER),
    ("rating limit offset", "ten|1e3|+5| 5|５|٣|5\n|4.5|4.|²|1_0|\x00|true|-|20.00000000000001", WHOLE),
    ("rating min_rating max_rating", "0|-0|-4", "{} is below the minimum of 1"),
    ("rating min_rating", "6|123456", "{} is above the maximum of 5"),
    ("min_rating", "0.99|-4.5", "{} is below the minimum of 1"),
    ("min_rating", "5.01", "{} is above the maximum of 5"),
    ("limit", "0|-0|-7", "{} is below the minimum of 1"),
    ("limit", "101|101.0", "101 is above the maximum of 100"),
    ("offset", "-1", "-1 is below the minimum of 0"),
    ("offset", "1000000001", "1000000001 is above the maximum of 1000000000"),
    ("limit", "9" * 400, "inf is above the maximum of 100"),
    ("min_rating", f"-{'9' * 400}.5", "-inf is below the minimum of 1"),
    ("mentions_technician", ",| |.|. , .|\u2003|-|\u0301", "expected at least one word of a name"),
    ("limt Limit", "5", "unknown parameter; did you mean limit?"),
    ("min_ratin", "5", "unknown parameter; did you mean min_rating?"),
    ("sort technician stars min_date", "5", UNKNOWN),  # no known name is similar, or it means something else
    ("zzz", "|x", UNKNOWN),
    ("query mentions_service source", "\u0301|\u0316\u0301", "expected more than accents"),
]


@pytest.mark.parametrize(("names", "values", "message"), WRONG)
def test_a_wrong_value_is_one_issue_with_the_reason(names: str, values: str, message: str) -> None:
    for name in names.split():
        for value in values.split("|"):
            echoed = value if len(value) <= 200 else value[:200] + "…"
            assert issues_of_pairs((name, value)) == [(name, echoed, message.format(value))]
            assert issues_of_arguments({name: value}) == [(name, echoed, message.format(value))]


@pytest.mark.parametrize("name", NAMES)
def test_bytes_that_are_not_utf_8_are_an_issue_that_can_be_written(name: str) -> None:
    not_text = b"caf\xe9".decode(errors="surrogateescape")
    ((parameter, value, _),) = issues_of_pairs((name, not_text))
    assert (parameter, value) == (name, "caf\ufffd")
    assert issues_of_pairs((not_text, name)) == [("caf\ufffd", name, UNKNOWN)]
    assert issues_of_pairs(("query", not_text)) == [("query", "caf\ufffd", "is not valid UTF-8")]


# ---- Several issues ----


def test_all_issues_come_at_once_in_the_order_given() -> None:
    pairs = [("offset", "x"), ("limit", "5"), ("color", "red"), ("rating", "9"), ("since", "2025-02-30")]
    wrong = ["offset", "color", "rating", "since"]
    assert [name for name, _, _ in issues_of_pairs(*pairs)] == wrong
    assert [name for name, _, _ in issues_of_pairs(*pairs[::-1])] == wrong[::-1]
    assert [name for name, _, _ in issues_of_arguments(dict(pairs))] == wrong


def test_a_parameter_given_twice_is_one_issue_even_if_both_agree() -> None:
    assert issues_of_pairs(("limit", "5"), ("rating", "9"), ("limit", "5")) == [
        ("limit", "5", "given 2 times, expected once"),
        ("rating", "9", "9 is above the maximum of 5"),
    ]
    assert issues_of_pairs(*[("limit", "")] * 3) == [("limit", "", "given 3 times, expected once")]
    assert issues_of_pairs(("x", "1"), ("x", "2")) == [("x", "2", UNKNOWN)]


@pytest.mark.parametrize("extra", [0, 1, 5000])
def test_more_than_fifty_different_parameters_are_one_issue(extra: int) -> None:
    issues = issues_of_pairs(*((f"p{number}", "x") for number in range(50 + extra)))
    too_many = [(None, str(50 + extra), "more than 50 different parameters")]
    assert issues == too_many if extra else len(issues) == 50


# ---- Arguments: values that JSON has and a query string has not ----


def test_arguments_may_be_json_numbers_and_null_is_absent() -> None:
    numbers = {"rating": 4.0, "min_rating": 4.5, "limit": 7.0, "offset": 0, "query": None, "since": None}
    query = query_of(numbers)
    assert query == Query(rating=4, min_rating=4.5, limit=7)
    assert isinstance(query.rating, int)
    assert issues_of_arguments({"rating": 4.5}) == [("rating", "4.5", WHOLE)]
    assert issues_of_arguments({"limit": 5, "query": 5}) == [("query", "5", "expected text")]


@pytest.mark.parametrize("name", NAMES)
def test_an_argument_of_the_wrong_kind_is_an_issue(name: str) -> None:
    for value in (True, False, [], {}, [5], {"a": 1}, float("nan")):
        ((parameter, echoed, message),) = issues_of_arguments({name: value})
        assert (parameter, echoed) == (name, json.dumps(value))
        assert message.startswith("expected ")


@pytest.mark.parametrize("name", ["rating", "min_rating", "max_rating", "limit", "offset"])
def test_an_infinite_or_huge_argument_is_out_of_range(name: str) -> None:
    infinity, many, most = float("inf"), 10**400, 10**5000
    above = {"inf": infinity, "1e+308": 1e308, "the number": many}
    below = {"-inf": -infinity, "-1e+308": -1e308, "the number": -most}
    for values, violation in ((above, "is above the maximum of"), (below, "is below the minimum of")):
        for shown, value in values.items():
            ((parameter, echoed, message),) = issues_of_arguments({name: value})
            assert (parameter, len(echoed) <= 201) == (name, True)
            assert message.startswith(f"{shown} {violation} ")
    assert echoed == "a number of thousands of digits"


def test_a_missing_required_argument_is_an_issue() -> None:
    name = Parameter("name", "text", "Whom.", required=True)
    known = {"name": name, "limit": Parameter("limit", "integer", "How many.", default=3)}
    assert read_arguments(known, {"name": "Ann"}) == {"name": "Ann", "limit": 3}
    assert read_arguments(known, {"name": "Ann", "limit": -7}) == {"name": "Ann", "limit": -7}
    for missing in ({}, {"name": None}, {"name": ""}):
        assert issues_of(read_arguments, known, missing) == [("name", "", "is required")]
    assert [name for name, _, _ in issues_of(read_arguments, known, {"x": 1})] == ["x", "name"]
    none_is_known = [("x", "1", "unknown parameter; none is accepted")]
    assert issues_of(read_arguments, {}, {"x": 1}) == none_is_known


# ---- Unknown names ----


@pytest.mark.parametrize(("count", "rest"), [(20, ""), (21, " and 1 more"), (26, " and 6 more")])
def test_known_names_are_listed_up_to_twenty_with_similar_ones_first(count: int, rest: str) -> None:
    others = [f"Person {chr(65 + number)}" for number in range(count - 1)]
    listed = "; ".join(["Hana Ishikawa", *others][:20])
    assert (
        queries.known_names("people", "hannah", [*others, "Hana Ishikawa"]) == f"Known people: {listed}{rest}"
    )


# ---- Any arguments ----

any_name = st.sampled_from(NAMES) | st.sampled_from(["limt", "Rating", "q", ""]) | any_text
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
        for issue in refusal.issues:
            assert f"{issue}{issue.value}".encode()
            assert max(len(issue.parameter or ""), len(issue.value)) <= 201
    else:
        assert query_of(asdict(query)) == query
