"""The daemon's decisions without a server: settings, files, representations, answers, commands.

Settings - Session key - Files - Last-Modified - Remembered - Answers: properties - Faults of our own -
Commands
"""

import gzip
import io
import json
import logging
import os
import string
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from services import SAMPLE, daemon_command

import reviewsd
from contract import BadData
from reviewsd import BadSetting, Files, Remembered, Service, Settings, Snapshot

NOW = 1_800_000_000.0
MINIMAL = {"business": {"name": "X"}, "reviews": []}
ONE = MINIMAL | {"reviews": [{"id": "a", "author": "Ann", "rating": 5, "date": "2026-01-01"}]}
CONTRACT, CONTRACT_MODIFIED = reviewsd.load_contract()


# ---- Settings ----


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_default() -> None:
    environ = {"REVIEWSD_PORT": "81", "REVIEWSD_HOST": "::1", "REVIEWSD_DATA": ""}
    settings, sources = reviewsd.read_settings({"port": "82", "host": None}, environ)
    assert (settings.port, settings.host, settings.data) == (82, "::1", Path("data"))
    assert (sources["port"], sources["host"], sources["data"]) == ("--port", "REVIEWSD_HOST", "default")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("port", "http", "'http' is not a port: expected 0 to 65535"),
        ("port", "65536", "'65536' is not a port: expected 0 to 65535"),
        ("port", "٣", "'٣' is not a port: expected 0 to 65535"),
        (
            "base_url",
            "reviews.example",
            "is not a base URL: expected for example https://reviews.example.com",
        ),
        ("base_url", "https://", "is not a base URL"),
        ("base_url", "https://a.example/?x", "is not a base URL"),
        ("base_url", "https://a.example:port", "is not a base URL"),
        ("base_url", 'https://a.example/"><b', "is not a base URL"),
        ("base_url", "https://bücher.example", "is not a base URL"),
        ("allowed_origin", "https://a.example/", "is not an origin: expected for example https://app"),
        ("mcp_require_session", "perhaps", "'perhaps' is neither on nor off: expected one of on, yes,"),
        ("log_level", "loud", "'loud' is not a log level: expected one of debug, info, warning, error"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_what_would_be_right(
    name: str, text: str, message: str
) -> None:
    for flags, environ, source in (
        ({name: text}, {}, reviewsd.flag_name(name)),
        ({}, {reviewsd.variable_name(name): text}, reviewsd.variable_name(name)),
    ):
        with pytest.raises(BadSetting) as caught:
            reviewsd.read_settings(flags, environ)
        assert str(caught.value).startswith(f"{source}: ")
        assert message in str(caught.value)


def test_the_base_url_loses_its_last_slash() -> None:
    settings, _ = reviewsd.read_settings({"base_url": "https://reviews.example/shop/"}, {})
    assert settings.base_url == "https://reviews.example/shop"


@pytest.mark.parametrize(
    ("host", "url"), [("127.0.0.1", "http://127.0.0.1:8080"), ("::1", "http://[::1]:8080")]
)
def test_without_a_base_url_the_service_is_where_it_listens(host: str, url: str) -> None:
    assert reviewsd.default_base_url(Settings(host=host)) == url


def test_a_list_is_repeated_flags_or_a_variable_with_commas() -> None:
    expected = {"https://a.example", "http://localhost:3000"}
    for flags, environ in (
        ({"allowed_origin": ["https://a.example", "http://localhost:3000"]}, {}),
        ({}, {"REVIEWSD_ALLOWED_ORIGIN": "https://a.example, http://localhost:3000,"}),
    ):
        assert reviewsd.read_settings(flags, environ)[0].allowed_origin == expected


@pytest.mark.parametrize(("text", "value"), [("on", True), ("TRUE", True), ("0", False), ("", False)])
def test_a_switch_has_a_variable_too(text: str, value: bool) -> None:
    environ = {"REVIEWSD_MCP_REQUIRE_SESSION": text}
    assert reviewsd.read_settings({}, environ)[0].mcp_require_session is value


def test_the_state_directory_is_systemd_s_unless_somebody_says_otherwise() -> None:
    systemd = {"STATE_DIRECTORY": "/var/lib/reviewsd"}
    settings, sources = reviewsd.read_settings({}, systemd)
    assert (settings.state_dir, sources["state_dir"]) == (Path("/var/lib/reviewsd"), "STATE_DIRECTORY")
    chosen = systemd | {"REVIEWSD_STATE_DIR": "/srv"}
    assert reviewsd.read_settings({}, chosen)[0].state_dir == Path("/srv")


# ---- Session key ----


def test_the_key_is_made_once_for_our_eyes_only(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path / "new" / "state")
    key = reviewsd.read_session_key(settings)
    assert len(key) == 32
    assert reviewsd.read_session_key(settings) == key
    (file,) = settings.state_dir.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_instances_may_share_a_key(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(bytes(range(32)))
    settings = Settings(session_key_file=file, state_dir=tmp_path / "unused")
    assert reviewsd.read_session_key(settings) == bytes(range(32))
    assert not settings.state_dir.exists()


@pytest.mark.parametrize("content", [None, b"", b"x" * 31, b"x" * 33])
def test_a_key_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BadSetting, match=f"--session-key-file {file}: "):
        reviewsd.read_session_key(Settings(session_key_file=file))


def test_without_a_place_for_the_key_the_service_still_serves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    settings = Settings(state_dir=tmp_path / "file" / "state")
    assert len(reviewsd.read_session_key(settings)) == 32
    assert "MCP sessions will end with this process" in caplog.text


# ---- Files ----


def write(directory: Path, reviews: Any = ONE, insights: Any = None) -> Path:
    (directory / "reviews.json").write_text(json.dumps(reviews))
    if insights is not None:
        (directory / "insights.json").write_text(json.dumps(insights))
    return directory


def faults(directory: Path) -> list[str]:
    with pytest.raises(BadData) as caught:
        reviewsd.read_files(directory)
    return caught.value.lines()


def test_a_missing_file_of_reviews_is_a_fault_and_missing_insights_are_not(tmp_path: Path) -> None:
    assert faults(tmp_path) == [f"reviews.json: there is no such file in {tmp_path}; --data names it"]
    assert reviewsd.read_files(write(tmp_path)).insights is None


def test_a_directory_in_the_place_of_a_file_is_a_fault(tmp_path: Path) -> None:
    (write(tmp_path) / "insights.json").mkdir()
    assert faults(tmp_path) == ["insights.json: cannot be read: Is a directory"]


def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "reviews.json"
    path.write_bytes(b"old")
    stamp = reviewsd.stamp
    pauses: list[float] = []

    def stamp_while_somebody_writes(status: os.stat_result) -> tuple[int, int, int]:
        if not pauses:
            path.write_bytes(b"newer")
        return stamp(status)

    monkeypatch.setattr(reviewsd, "stamp", stamp_while_somebody_writes)
    monkeypatch.setattr(reviewsd.time, "sleep", pauses.append)
    assert reviewsd.read_unchanging(path)[0] == b"newer"
    assert pauses == [reviewsd.SETTLE_SECONDS]


def test_a_file_that_never_rests_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = iter(range(100))
    monkeypatch.setattr(reviewsd, "stamp", lambda status: next(stamps))
    monkeypatch.setattr(reviewsd.time, "sleep", lambda seconds: None)
    assert faults(write(tmp_path)) == ["reviews.json: cannot be read: it changes while it is read"]


# ---- Last-Modified ----


def snapshot(document: Any, modified: float, previous: Snapshot | None = None, now: float = NOW) -> Snapshot:
    files = Files(json.dumps(document).encode(), None, modified)
    return reviewsd.build_snapshot(
        CONTRACT, CONTRACT_MODIFIED, files, "http://reviews.example", previous, now
    )


def test_content_is_as_old_as_its_file_and_never_from_the_future() -> None:
    assert snapshot(ONE, 1000.9).fixed["/reviews.json"].last_modified == 1000
    assert snapshot(ONE, NOW + 5000).fixed["/reviews.json"].last_modified == NOW


def test_a_reload_that_leaves_the_bytes_alone_leaves_tag_and_date_alone() -> None:
    before = snapshot(ONE, 1000)
    after = snapshot(ONE, 2000, before)
    assert after.fixed == before.fixed
    assert after.last_modified == before.last_modified


def test_content_that_was_put_back_is_later_than_the_content_between() -> None:
    first = snapshot(ONE, 1000)
    second = snapshot(MINIMAL, 2000, first)
    third = snapshot(ONE, 1000, second)
    dates = [state.fixed["/reviews.json"].last_modified for state in (first, second, third)]
    assert dates == [1000, 2000, 2001]
    assert [state.last_modified for state in (first, second, third)] == dates
    assert third.fixed["/reviews.json"].digest == first.fixed["/reviews.json"].digest


def test_what_did_not_change_keeps_its_date_when_another_file_did() -> None:
    first = snapshot(ONE, 1000)
    second = snapshot(MINIMAL, 2000, first)
    assert second.fixed["/insights.json"] == first.fixed["/insights.json"]
    assert second.fixed["/.well-known/openapi.json"] == first.fixed["/.well-known/openapi.json"]


def test_an_empty_feed_was_updated_when_the_data_were() -> None:
    feed = snapshot(MINIMAL, 1000).fixed["/feed.xml"].identity.body
    assert f"<updated>{datetime.fromtimestamp(1000, UTC):%Y-%m-%dT%H:%M:%SZ}</updated>".encode() in feed


def test_entity_tags_depend_on_the_bytes_alone() -> None:
    assert reviewsd.represent(b"x" * 2000, "a/b", 1).identity.etag == (
        reviewsd.represent(b"x" * 2000, "c/d", 2).identity.etag
    )


# ---- Remembered ----


@pytest.mark.parametrize("level", [reviewsd.QUICK_GZIP_LEVEL, reviewsd.GZIP_LEVEL])
@pytest.mark.parametrize(
    "size", [0, 1, reviewsd.GZIP_PART_BYTES - 1, reviewsd.GZIP_PART_BYTES, 3 * reviewsd.GZIP_PART_BYTES + 1]
)
def test_a_body_of_any_size_is_packed_whole_and_without_a_time(size: int, level: int) -> None:
    body = (b"Reviews, " * (size // 9 + 1))[:size]
    packed = reviewsd.gzipped(body, level)
    assert gzip.decompress(packed) == body
    assert packed[4:8] == bytes(4), "MTIME (RFC 1952, section 2.3.1) is not known"


def test_memory_is_given_back_where_the_c_library_can_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[int] = []
    for library in (SimpleNamespace(malloc_trim=kept.append), SimpleNamespace()):
        monkeypatch.setattr("ctypes.CDLL", lambda name, library=library: library)
        reviewsd.return_free_memory()
    assert kept == [0]


def test_the_oldest_answers_are_forgotten_first_and_the_bound_holds() -> None:
    remembered = Remembered(most_bytes=30_000)
    for number in range(20):
        key = ("/api/reviews/search", f"limit={number}", False)
        remembered.keep(key, reviewsd.represent(b"x" * 3000, "a/b", 1, gzip_level=None))
    kept = [
        number for number in range(20) if remembered.get(("/api/reviews/search", f"limit={number}", False))
    ]
    assert kept == list(range(20 - len(kept), 20))
    assert 1 <= len(kept) * 3000 <= 30_000


def test_a_large_answer_is_not_remembered() -> None:
    remembered = Remembered()
    large = reviewsd.represent(b"x" * (reviewsd.LARGEST_REMEMBERED + 1), "a/b", 1, gzip_level=None)
    remembered.keep(("/", "", False), large)
    assert remembered.get(("/", "", False)) is None


# ---- Answers: whatever comes, the answer is defined ----

APP = reviewsd.passing_app(Settings(data=SAMPLE))


def call(
    app: Service, method: str, path: str, query: str = "", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """One request as a WSGI server would pass it on; texts of one character a byte."""
    environ: dict[str, Any] = {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query}
    environ |= {"SERVER_PROTOCOL": "HTTP/1.1", "HTTP_HOST": "a", "wsgi.input": io.BytesIO()}
    environ |= {"HTTP_" + name: value for name, value in headers.items()}
    started: list[Any] = []
    body = b"".join(app(environ, lambda status, fields: started.extend((status, fields))))
    return int(started[0][:3]), dict(started[1]), body


def assert_defined(status: int, headers: dict[str, str], body: bytes, allowed: set[int]) -> None:
    assert status in allowed
    for name, value in headers.items():
        assert (name + value).isprintable(), "a header could be split"
    if status == 400:
        assert json.loads(body)["issues"]


latin = st.text(st.characters(max_codepoint=255), max_size=60)
names = st.sampled_from(list(CONTRACT.search_parameters))
queries = latin | st.lists(st.tuples(names, st.text(string.printable, max_size=12)), max_size=6).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)
)


@given(query=queries)
def test_any_query_string_gives_200_or_issues(query: str) -> None:
    assert_defined(*call(APP, "GET", "/api/reviews/search", query), {200, 400})


@given(day=latin)
def test_any_date_segment_gives_200_or_issues(day: str) -> None:
    assert_defined(*call(APP, "GET", "/api/reviews/since/" + day), {200, 400})


@given(path=latin, method=st.sampled_from(["GET", "HEAD", "OPTIONS", "POST", "X"]))
def test_any_path_and_method_give_a_defined_answer(path: str, method: str) -> None:
    assert_defined(*call(APP, method, path), {200, 204, 404, 405} | ({400} if "since" in path else set()))


tags = latin | st.sampled_from([APP.snapshot.fixed["/reviews.json"].identity.etag, "*", 'W/"x"', '"a", "b"'])
dates = latin | st.datetimes().map(lambda moment: moment.strftime("%a, %d %b %Y %H:%M:%S GMT"))


@given(tag=tags, date=dates, coding=latin | st.sampled_from(["gzip", "gzip;q=0.1, identity;q=0.2"]))
def test_any_conditional_headers_give_200_or_304(tag: str, date: str, coding: str) -> None:
    headers = {"IF_NONE_MATCH": tag, "IF_MODIFIED_SINCE": date, "ACCEPT_ENCODING": coding}
    assert_defined(*call(APP, "GET", "/reviews.json", **headers), {200, 304})


def test_a_remembered_answer_is_the_answer_computed_anew() -> None:
    fresh = reviewsd.passing_app(Settings(data=SAMPLE))
    for query in ("", "query=back", "rating=5&limit=100", "mentions_service=massage-therapy"):
        for coding in ("", "gzip"):
            answers = [
                call(app, "GET", "/api/reviews/search", query, ACCEPT_ENCODING=coding)
                for app in (fresh, fresh, APP)
            ]
            assert answers[0] == answers[1] == answers[2]


# ---- Faults of our own ----


def test_an_unexpected_exception_is_logged_once_and_answered_with_its_id(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reviewsd.reviews, "search", lambda dataset, query: 1 / 0)
    status, headers, body = call(APP, "GET", "/api/reviews/search", "query=never+asked+before")
    document = json.loads(body)
    assert (status, headers["Cache-Control"]) == (500, "no-store")
    assert b"ZeroDivisionError" not in body
    logged = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(logged) == 1
    assert document["request_id"] in logged[0].getMessage()


# ---- Commands ----


def command(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    clean = {name: text for name, text in os.environ.items() if not name.startswith("REVIEWSD_")}
    return subprocess.run(
        daemon_command(*arguments), capture_output=True, text=True, timeout=60, env=clean | environ
    )


def test_check_prints_what_would_be_served_and_where_each_setting_came_from() -> None:
    done = command("--check", "--port", "81", REVIEWSD_DATA=str(SAMPLE))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:5] == [
        "160 reviews of Larkspur Hollow Chiropractic, 4 unverified left out",
        "  from 2022-11-09 to 2026-11-15",
        "  4.42 stars of 5 over 160 reviews: 112 x 5, 24 x 4, 10 x 3, 6 x 2, 8 x 1",
        "Insights of 2026-11-16T09:30:00-08:00 from 160 reviews",
        "  9 aspects, 9 topics, 10 faq, 5 technicians, 8 services, 14 problems, 6 service areas",
    ]
    assert "--port 81 (--port)" in done.stdout
    assert f"--data {SAMPLE} (REVIEWSD_DATA)" in done.stdout
    assert "--host 127.0.0.1 (default)" in done.stdout


def test_check_says_what_is_odd_and_does_not_mind_that_there_is_little(tmp_path: Path) -> None:
    rating = {"rating_value": 4.9, "review_count": 700}
    (tmp_path / "reviews.json").write_text(json.dumps(MINIMAL | {"aggregate_rating": rating}))
    done = command("--check", "--data", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "warning: insights.json is absent: the insights say nothing" in done.stdout
    assert "warning: reviews.json gives an aggregate_rating of its own" in done.stdout
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("arguments", [["--check"], ["--get", "/reviews.json"], ["--port", "0"]])
def test_bad_data_are_named_line_by_line_with_status_78(tmp_path: Path, arguments: list[str]) -> None:
    bad = {"business": {}, "reviews": [{"id": "a", "author": "A", "rating": 7, "date": "2026-02-30"}]}
    done = command(*arguments, "--data", str(write(tmp_path, bad)))
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.splitlines() == [
        "reviews.json /business: 'name' is a required property",
        'reviews.json /reviews/0/date: "2026-02-30": expected a day that the calendar has'
        " or an RFC 3339 date-time",
        "reviews.json /reviews/0/rating: 7 is greater than the maximum of 5",
    ]


def test_a_bad_variable_is_status_78_and_a_bad_flag_is_usage() -> None:
    done = command("--check", REVIEWSD_PORT="x")
    assert (done.returncode, done.stderr) == (78, "REVIEWSD_PORT: 'x' is not a port: expected 0 to 65535\n")
    assert command("--no-such-flag").returncode == 2


def test_get_prints_one_answer_without_a_server() -> None:
    found = command("--get", "/api/reviews/search?query=back&limit=1", "--data", str(SAMPLE))
    assert (found.returncode, found.stderr) == (0, "")
    assert json.loads(found.stdout)["returned"] == 1
    assert command("--get", "/nothing", "--data", str(SAMPLE)).returncode == 1


def test_version_is_printed() -> None:
    assert command("--version").stdout == f"reviewsd {reviewsd.VERSION}\n"


def test_help_names_every_setting_with_its_variable() -> None:
    printed = command("--help").stdout
    for name in reviewsd.read_settings({}, {})[1]:
        assert reviewsd.flag_name(name) in printed
        assert reviewsd.variable_name(name) in printed


def test_importing_the_daemon_has_no_side_effect() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import reviewsd"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=SAMPLE.parent,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
