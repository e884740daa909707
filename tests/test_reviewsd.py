"""The command line: base URL, settings of the hub, commands.

Parts - Commands - Operators' mistakes
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import trustme
from services import ROOT, SAMPLE, daemon_command, fetch, run_daemon, started
from small_files import a_file, review

import reviewsd
from reviewslib.process.settings import Settings, flag_name, read_settings, variable_name
from reviewslib.web.reload import loaded_text

NO_URL = "feeds, topics and links would have no usable URL; add for example"


def write_reviews(directory: Path, *reviews: Any, **members: Any) -> list[str]:
    """The flags for a directory with this reviews file."""
    (directory / "reviews.json").write_text(json.dumps(a_file(*reviews, **members)))
    return ["--data", str(directory)]


# ---- Parts ----


@pytest.mark.parametrize(
    ("host", "url"), [("127.0.0.1", "http://127.0.0.1:8080"), ("::1", "http://[::1]:8080")]
)
def test_without_a_base_url_the_service_is_where_it_listens(host: str, url: str) -> None:
    assert reviewsd.public_url(Settings(host=host)) == url


def test_the_hub_gets_its_settings() -> None:
    chosen = Settings(hub_lease_min=7, hub_retry_delays=(1.0, 2.0), hub_workers=3, state_dir=Path("/s"))
    hub = reviewsd.hub_settings(chosen, "https://r.example")
    assert (hub.lease_min, hub.retry_delays, hub.workers) == (7, (1.0, 2.0), 3)
    assert (hub.base_url, hub.state_dir) == ("https://r.example", Path("/s"))


# ---- Commands ----


def test_check_prints_a_summary_and_the_source_of_every_setting() -> None:
    done = run_daemon("--check", "--port", "81", REVIEWSD_DATA=str(SAMPLE), REVIEWSD_PROT="80", REVIEWSD_="")
    assert (done.returncode, done.stderr) == (0, "")
    lines, warned = done.stdout.splitlines(), ("REVIEWSD_", "REVIEWSD_PROT")
    assert lines[-2:] == [f"warning: {name} is not the variable of a setting" for name in warned]
    assert lines[:5] == [
        "160 reviews of Larkspur Hollow Chiropractic, 4 unverified left out",
        "  from 2022-11-09 to 2026-11-15",
        "  4.42 stars of 5 over 160 reviews: 112 x 5, 24 x 4, 10 x 3, 6 x 2, 8 x 1",
        "Insights of 2026-11-16T09:30:00-08:00 from 160 reviews",
        "  9 aspects, 9 topics, 10 faq, 5 technicians, 8 services, 14 problems, 6 service areas",
    ]
    assert "--port 81 (--port)" in done.stdout
    assert f"--data {SAMPLE} (REVIEWSD_DATA)" in done.stdout
    assert "--host 127.0.0.1 (default)" in done.stdout


def test_check_warns_of_odd_data_and_accepts_an_empty_file(tmp_path: Path) -> None:
    flags = write_reviews(tmp_path, aggregate_rating={"rating_value": 4.9, "review_count": 700})
    done = run_daemon("--check", *flags)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\ninsights.json is absent: only stars and dates of the reviews are counted" in done.stdout
    assert "warning: reviews.json gives an aggregate_rating of its own" in done.stdout
    assert done.stdout.startswith("0 reviews of Larkspur\n")
    assert "\nInsights of no date from 0 reviews\n" in done.stdout
    assert not (tmp_path / "state").exists()


def test_absent_insights_are_information_and_told_once(tmp_path: Path) -> None:
    where = ["--port", "0", *write_reviews(tmp_path), "--state-dir", str(tmp_path / "state")]
    with subprocess.Popen(daemon_command(*where), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        lines = list(takewhile(lambda line: "listens on" not in line, process.stderr))
        process.terminate()
    (told,) = (line for line in lines if "insights.json is absent" in line)
    assert "INFO" in told


@pytest.mark.parametrize("arguments", [["--check"], ["--get", "/reviews.json"], ["--port", "0"]])
def test_bad_data_are_named_line_by_line_with_status_78(tmp_path: Path, arguments: list[str]) -> None:
    flags = write_reviews(tmp_path, review(rating=7, date="2026-02-30"), business={})
    done = run_daemon(*arguments, *flags)
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.splitlines() == [
        "reviews.json /business: 'name' is a required property",
        'reviews.json /reviews/0/date: "2026-02-30" is not a day that exists, written YYYY-MM-DD, '
        "or an RFC 3339 date-time on such a day",
        "reviews.json /reviews/0/rating: 7 is greater than the maximum of 5",
    ]


def test_a_bad_variable_is_status_78_and_a_bad_flag_is_usage() -> None:
    done = run_daemon("--check", REVIEWSD_PORT="x")
    assert (done.returncode, done.stderr) == (78, "REVIEWSD_PORT: 'x' is not a port: expected 0 to 65535\n")
    assert run_daemon("--no-such-flag").returncode == 2


def test_get_prints_one_answer_without_a_server() -> None:
    found = run_daemon("--get", "/api/reviews/search?query=back&limit=1", "--data", str(SAMPLE))
    assert (found.returncode, found.stderr) == (0, "")
    assert json.loads(found.stdout)["returned"] == 1
    assert run_daemon("--get", "/nothing", "--data", str(SAMPLE)).returncode == 1


def test_version_is_printed_and_help_names_every_setting_with_its_variable() -> None:
    assert run_daemon("--version").stdout == f"reviewsd {reviewsd.VERSION}\n"
    printed = run_daemon("--help").stdout
    for name in read_settings({}, {})[1]:
        assert flag_name(name) in printed
        assert variable_name(name) in printed


ELSEWHERE = """
import os, socket, sys
sys.platform = "darwin"
for module, name in ((os, "pipe2"), (socket, "TCP_USER_TIMEOUT")):
    delattr(module, name)
import reviewsd
sys.exit(reviewsd.main())
"""


def test_without_what_only_linux_has_the_service_serves_and_stops(tmp_path: Path) -> None:
    flags = ("--port", "0", "--data", str(SAMPLE), "--state-dir", str(tmp_path))
    with started([sys.executable, "-c", ELSEWHERE, *flags], PYTHONPATH=str(ROOT)) as service:
        assert fetch(service, "/reviews.json").status == 200


@pytest.mark.parametrize("module", ["reviewsd", "reviewslib.importer.command"])
def test_on_windows_one_line_says_what_is_needed(module: str) -> None:
    pretend = f"import sys; sys.platform = 'win32'; import {module}"
    done = run_daemon(line=[sys.executable, "-c", pretend], cwd=ROOT)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "WSL" in done.stderr


def test_control_characters_of_the_data_are_escaped_for_the_terminal(tmp_path: Path) -> None:
    flags = write_reviews(tmp_path, review(), business={"name": "X\nWATCHDOG=trigger\x1b[2J"})
    done = run_daemon("--check", *flags)
    assert "1 review of X\\u000aWATCHDOG=trigger\\u001b[2J\n" in done.stdout
    dataset = reviewsd.application_of(Settings(data=tmp_path)).snapshot.dataset
    assert loaded_text(dataset) == "1 review of X\\u000aWATCHDOG=trigger\\u001b[2J", "as systemd is told it"


# ---- Operators' mistakes: one sentence each, and no traceback ----


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--check"], ["--port", "0"]])
@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("--state-dir file", "file is not a directory that this user can write"),
        ("--state-dir file/below", "file is not a directory that this user can write"),
        ("--state-dir nowhere", "nowhere is not a directory that this user can write"),
        ("--hub-ca-file none", "No such file or directory"),
        ("--hub-ca-file fifo", "not a regular file"),
        ("--hub-ca-file file", "no certificate or crl found"),
        ("--host 0.0.0.0", NO_URL),
        ("--uds s", NO_URL),
    ],
)
def test_an_unusable_file_of_a_setting_is_status_78_at_check_and_start(
    tmp_path: Path, arguments: list[str], setting: str, reason: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "nowhere").symlink_to("absent")
    os.mkfifo(tmp_path / "fifo")
    before = sorted(tmp_path.rglob("*"))
    done = run_daemon(*arguments, "--data", str(SAMPLE), *setting.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (78, "")
    (line,) = done.stderr.splitlines()
    assert reason in line
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.slow
def test_a_check_leaves_no_trace_and_without_a_hub_ignores_the_state(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for arguments in ("--state-dir new/state", "--state-dir file --no-hub --hub-ca-file none"):
        done = run_daemon("--check", "--data", str(SAMPLE), *arguments.split(), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# Root may do anything, so it becomes somebody else when all modules are there.
ANOTHER_USER = """
import encodings.idna, os, sys, reviewsd
if not os.getuid():
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
sys.exit(reviewsd.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        ([], 78, "--state-dir theirs: theirs is not a directory that this user can write"),
        (["--check"], 78, "--state-dir theirs: theirs is not a directory that this user can write"),
        (["--subscriptions"], 1, "theirs/websub.sqlite3: [Errno 13] Permission denied"),
        (["--no-hub", "--uds", "theirs/s", "--base-url", "http://x"], 1,
         "cannot listen on theirs/s: Permission denied"),
    ],
)  # fmt: skip
def test_directories_of_another_user_are_told_in_one_line(
    tmp_path: Path, arguments: list[str], status: int, reason: str
) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "theirs").mkdir(mode=0)
    line = [sys.executable, "-c", ANOTHER_USER, "--state-dir", "theirs"]
    done = run_daemon("--port", "0", *arguments, line=line, cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert reason in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["--check"], ["--subscriptions"], ["--port", "x"], ["--uds", "a" * 200]]
)
def test_a_terminal_that_cannot_show_a_name_gets_escapes(tmp_path: Path, arguments: list[str]) -> None:
    data = write_reviews(tmp_path, business={"name": "Zoë ☃"})
    more = [*data, "--state-dir", str(tmp_path / "Zoë \udcff"), "--base-url", "http://x.example"]
    for environ in ({"PYTHONIOENCODING": "ascii:strict"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}):
        done = run_daemon(*more, *arguments, **environ)
        assert "Traceback" not in done.stderr
        if arguments == ["--check"]:
            assert done.returncode == 0
            assert "\\udcff" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--check"], ["--get", "/reviews.json"]])
@pytest.mark.parametrize(
    ("output", "reason"),
    [("gone", "Broken pipe"), ("full", "No space left on device"), ("closed", "Bad file descriptor")],
)
def test_a_closed_or_full_standard_output_is_one_line_and_status_1(
    tmp_path: Path, arguments: list[str], output: str, reason: str
) -> None:
    reader, gone = os.pipe()
    os.close(reader)
    with open(gone, "wb") as pipe, open("/dev/full", "wb") as full:
        line = ["sh", "-c", 'exec "$@" >&-', "sh", *daemon_command()] if output == "closed" else None
        stdout = {"gone": pipe, "full": full}.get(output, subprocess.PIPE)
        done = run_daemon("--data", str(SAMPLE), *arguments, line=line, stdout=stdout, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, f"cannot write to standard output: {reason}\n")


@pytest.mark.parametrize("path", ["http://[", "\udcff"])
def test_an_invalid_path_is_told_in_one_line(path: str) -> None:
    done = run_daemon("--get", path, "--data", str(SAMPLE))
    assert (done.returncode, len(done.stderr.splitlines())) == (78, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status"),
    [("--check --data none", 78), ("--check --host 0", 78), ("--port 0 --host 1.2.3.4 --no-hub", 1)],
)
def test_errors_at_exit_have_the_level_of_errors_in_the_journal(
    tmp_path: Path, arguments: str, status: int
) -> None:
    with (tmp_path / "journal").open("w") as journal:
        place = os.fstat(journal.fileno())
        environ = os.environ | {"JOURNAL_STREAM": f"{place.st_dev}:{place.st_ino}"}
        done = subprocess.run(daemon_command(*arguments.split()), stderr=journal, env=environ, timeout=60)
    lines = (tmp_path / "journal").read_text().splitlines()
    assert done.returncode == status
    assert lines
    assert not any(line.startswith("<") for line in lines), "SyslogLevel of the unit is that of an error"


def test_a_service_without_standard_streams_starts_and_says_nothing(tmp_path: Path) -> None:
    line = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *daemon_command()]
    assert run_daemon("--port", "x", line=line, cwd=tmp_path).returncode == 78


def test_settings_for_tests_are_logged_as_warnings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    usual = reviewsd.hub_settings(Settings(), "https://r.example")
    reviewsd.callback_client(usual)
    assert caplog.messages == []
    ca_file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(ca_file)
    reviewsd.callback_client(replace(usual, allow_private=True, ca_file=ca_file))
    assert caplog.messages == [
        "hub: PRIVATE ADDRESSES AND ALL PORTS ARE ALLOWED FOR CALLBACKS; for tests only",
        f"hub: certificates in {ca_file} are trusted for callbacks; for tests only",
    ]
