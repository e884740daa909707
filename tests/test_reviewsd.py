"""The command line makes parts from settings, runs commands, and reports an operator's mistake in one line.

Sections: Parts - Commands - Systems - Mistakes
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from lab.services import ROOT, SAMPLE, daemon_command, fetch, run_daemon, started
from lab.small_files import a_file, review

import reviewsd
from reviewslib.process.settings import BadSetting, Settings, read_settings

NO_URL = "feeds, topics and links would have no usable URL; add for example"
NOT_WRITABLE = "is not a directory that this user can write"
HOSTILE_NAME = "X\nWATCHDOG=trigger\x1b[2J ☃"
ESCAPED_NAME = "X\\u000aWATCHDOG=trigger\\u001b[2J \\u2603"


def write_reviews(directory: Path, *reviews: Any, **members: Any) -> list[str]:
    """The flags for a directory with this reviews file."""
    (directory / "reviews.json").write_text(json.dumps(a_file(*reviews, **members)))
    return ["--data", str(directory)]


# ---- Parts ----


@pytest.mark.parametrize(
    ("chosen", "url"),
    [
        ({}, "http://127.0.0.1:8080"),
        ({"host": "::1"}, "http://[::1]:8080"),
        ({"host": "::", "base_url": "https://r.example"}, "https://r.example"),
    ],
)
def test_the_base_url_is_by_default_the_address(
    chosen: dict[str, Any], url: str
) -> None:
    assert reviewsd.public_url(Settings(**chosen)) == url


@pytest.mark.parametrize(
    "chosen", [{"host": "0.0.0.0"}, {"host": "::"}, {"uds": Path("s")}]
)
def test_an_address_that_is_no_url_needs_a_base_url(chosen: dict[str, Any]) -> None:
    with pytest.raises(BadSetting, match=f"^--{next(iter(chosen))} .*: {NO_URL}"):
        reviewsd.create_app(Settings(**chosen))


@pytest.mark.parametrize("no_hub", [False, True])
def test_an_embedded_application_names_only_a_hub_of_another_instance(
    no_hub: bool,
) -> None:
    assert (
        bool(reviewsd.create_app(Settings(data=SAMPLE, no_hub=no_hub)).urls.hub)
        is no_hub
    )


def test_settings_for_tests_are_logged_when_the_hub_starts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trustme.CA().cert_pem.write_to_path(ca_file := tmp_path / "ca.pem")
    usual = Settings(data=SAMPLE, state_dir=tmp_path / "state")
    application = reviewsd.application_of(usual)
    for settings in (
        usual,
        replace(usual, hub_allow_private=True, hub_ca_file=ca_file),
    ):
        reviewsd.started_hub(settings, application).stop(2)
    assert caplog.messages == [
        "--hub-allow-private is for tests only",
        "--hub-ca-file is for tests only",
    ]


# ---- Commands ----


def test_check_prints_a_summary_and_the_source_of_every_setting() -> None:
    done = run_daemon(
        "--check", "--port", "81", REVIEWSD_DATA=str(SAMPLE), REVIEWSD_PROT="80"
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:7] == [
        "160 reviews of Larkspur Hollow Chiropractic, 4 unverified left out",
        "  from 2022-11-09 to 2026-11-15",
        "  4.42 stars of 5 over 160 reviews: 112 x 5, 24 x 4, 10 x 3, 6 x 2, 8 x 1",
        "Insights of 2026-11-16T09:30:00-08:00 from 160 reviews",
        "  9 aspects, 9 topics, 10 faq, 5 technicians, 8 services, 14 problems, 6 service areas",
        "",
        "Settings:",
    ]
    assert {"  --host 127.0.0.1 (default)", "  --port 81 (--port)"} <= set(lines)
    assert lines[-1] == "warning: REVIEWSD_PROT is not the variable of a setting"


@pytest.mark.parametrize(
    "environ",
    [{"PYTHONIOENCODING": "ascii:strict"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}],
)
def test_check_warns_of_odd_data_and_escapes_them(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    rating = {"rating_value": 4.9, "review_count": 700}
    data = write_reviews(
        tmp_path, business={"name": HOSTILE_NAME}, aggregate_rating=rating
    )
    done = run_daemon(
        *data, "--state-dir", str(tmp_path / "new" / "Zoë \udcff"), "--check", **environ
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"0 reviews of {ESCAPED_NAME}\n")
    assert "\nInsights of no date from 0 reviews\n" in done.stdout
    assert (
        "\ninsights.json is absent: only stars and dates of the reviews are counted"
        in done.stdout
    )
    assert "\nwarning: reviews.json gives an aggregate_rating of its own" in done.stdout
    assert "\\udcff" in done.stdout
    assert not (tmp_path / "new").exists()


def test_check_warns_of_a_language_that_pages_do_not_have(tmp_path: Path) -> None:
    data = write_reviews(tmp_path, business={"name": "Bageri", "language": "sv"})

    done = run_daemon(*data, "--check")

    warning = 'warning: pages are English, since there is no catalogue for "sv": '
    (line,) = [line for line in done.stdout.splitlines() if warning in line]
    assert "de, en" in line


@pytest.mark.parametrize("arguments", [["--check"], ["--port", "0"]])
def test_bad_data_are_named_line_by_line_with_status_78(
    tmp_path: Path, arguments: list[str]
) -> None:
    done = run_daemon(
        *arguments, *write_reviews(tmp_path, review(rating=7), business={})
    )
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.splitlines() == [
        "reviews.json /business: 'name' is a required property",
        "reviews.json /reviews/0/rating: 7 is greater than the maximum of 5",
    ]


@pytest.mark.parametrize(
    ("target", "status", "begins"),
    [
        ("/api/reviews/search?query=b%61ck&limit=1", 0, b'{"matched":'),
        ("/r%65views.json", 0, b'{"business":'),
        ("/nothing", 1, b'{"type":'),
        ("/\udcff", 1, b'{"type":'),
        ("/api/reviews/search?query=\udcff\xe9", 1, b'{"type":'),
    ],
)
def test_get_prints_one_response(
    capfdbinary: Any, target: str, status: int, begins: bytes
) -> None:
    assert reviewsd.get(Settings(data=SAMPLE), target) == status
    assert capfdbinary.readouterr().out.startswith(begins)


def test_the_log_of_a_start_has_absent_insights_and_what_is_served(
    tmp_path: Path,
) -> None:
    where = [
        "--port",
        "0",
        *write_reviews(tmp_path, business={"name": "Larkspur", "language": "en"}),
        "--state-dir",
        str(tmp_path / "state"),
    ]
    with subprocess.Popen(
        daemon_command(*where), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        absent, loaded, listening = (
            process.stderr.readline().partition(" INFO ")[2] for _ in range(3)
        )
        process.terminate()
    assert absent.startswith("insights.json is absent: ")
    assert loaded == "0 reviews of Larkspur\n"
    assert listening.startswith(
        f"reviewsd {reviewsd.VERSION} listens on http://127.0.0.1:"
    )


@pytest.mark.slow
def test_a_hundred_thousand_reviews_load_in_2_gb(tmp_path: Path) -> None:
    # given
    words = "Kind people and no waiting, back without pain since March. " * 6
    reviews = [review(f"{number:08}", text=words) for number in range(100_000)]
    flags = write_reviews(tmp_path, *reviews)

    # when
    with subprocess.Popen(
        daemon_command("--check", *flags), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        summary = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)

    # then
    assert status == 0
    assert summary.startswith(b"100,000 reviews of Larkspur")
    assert usage.ru_maxrss * 1024 < 2_000_000_000


# ---- Systems ----

ELSEWHERE = """
import os, socket, sys
sys.platform = "darwin"
for module, name in ((os, "pipe2"), (socket, "TCP_USER_TIMEOUT")):
    delattr(module, name)
import reviewsd
sys.exit(reviewsd.main())
"""


def test_the_service_runs_without_what_only_linux_has(tmp_path: Path) -> None:
    flags = ("--port", "0", "--data", str(SAMPLE), "--state-dir", str(tmp_path))
    with started(
        [sys.executable, "-c", ELSEWHERE, *flags], PYTHONPATH=str(ROOT)
    ) as service:
        assert fetch(service, "/reviews.json").status == 200


@pytest.mark.parametrize("module", ["reviewsd", "reviewslib.importer.command"])
def test_on_windows_one_line_says_what_is_needed(module: str) -> None:
    pretend = f"import sys; sys.platform = 'win32'; import {module}"
    done = run_daemon(line=[sys.executable, "-c", pretend], cwd=ROOT)
    assert (done.returncode, done.stderr.count("\n"), "WSL" in done.stderr) == (
        1,
        1,
        True,
    )


# ---- Mistakes: one line, and no traceback ----


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("--state-dir file", f"file {NOT_WRITABLE}"),
        ("--state-dir file/below", f"file {NOT_WRITABLE}"),
        ("--state-dir nowhere", f"nowhere {NOT_WRITABLE}"),
        *[
            (f"--hub-ca-file {name}", "there is no such regular file")
            for name in ("none", "fifo")
        ],
        ("--hub-ca-file file", "no certificate or crl found"),
    ],
)
def test_an_unusable_file_of_a_setting_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("nowhere").symlink_to("absent")
    os.mkfifo("fifo")
    before = sorted(tmp_path.rglob("*"))
    flags = vars(reviewsd.command_line().parse_args(setting.split()))
    with pytest.raises(BadSetting, match=reason):
        reviewsd.check_hub(read_settings(flags, {})[0])
    reviewsd.check_hub(read_settings(flags | {"no_hub": "on"}, {})[0])
    assert sorted(tmp_path.rglob("*")) == before


# Root may read and write everything, so root becomes another user after all modules are imported.
ANOTHER_USER = """
import encodings.idna, os, sys, reviewsd
if not os.getuid():
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
sys.exit(reviewsd.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("arguments", "status", "line"),
    [
        *[
            (command, 78, f"--state-dir theirs: theirs {NOT_WRITABLE}")
            for command in ("", "--check")
        ],
        (
            "--subscriptions",
            1,
            "theirs/websub.sqlite3: Permission denied",
        ),
        (
            "--no-hub --uds theirs/s --base-url http://x",
            1,
            "cannot listen on theirs/s: Permission denied",
        ),
        ("--host 0", 78, f"--host 0: {NO_URL} --base-url https://reviews.example.com"),
        ("--port x", 78, "--port: 'x' is not a port: expected 0 to 65535"),
    ],
)
def test_a_mistake_is_reported_in_one_line(
    tmp_path: Path, arguments: str, status: int, line: str
) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "theirs").mkdir(mode=0)
    command = [sys.executable, "-c", ANOTHER_USER, "--state-dir", "theirs"]
    done = run_daemon(
        *arguments.split(),
        line=command,
        cwd=tmp_path,
        PYTHONPATH=str(ROOT),
        REVIEWSD_PORT="0",
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, "", f"{line}\n")


def shell_line(redirections: str) -> list[str]:
    """The command line of the daemon with redirections of a shell."""
    return ["sh", "-c", f'exec "$@" {redirections}', "sh", *daemon_command()]


@pytest.mark.parametrize(
    ("output", "reason"),
    [("/dev/full", "No space left on device"), ("&-", "Bad file descriptor")],
)
def test_a_closed_or_full_standard_output_is_one_line_and_status_1(
    output: str, reason: str
) -> None:
    done = run_daemon(
        "--get", "/robots.txt", "--data", str(SAMPLE), line=shell_line(f">{output}")
    )
    assert (done.returncode, done.stderr) == (
        1,
        f"cannot write to standard output: {reason}\n",
    )


def test_errors_at_exit_have_the_level_of_errors_in_the_journal(tmp_path: Path) -> None:
    (journal := tmp_path / "journal").touch()
    status = journal.stat()
    named = f"{status.st_dev}:{status.st_ino}"
    done = run_daemon(
        "--data", "none", line=shell_line(f"2>>{journal}"), JOURNAL_STREAM=named
    )
    fault = "reviews.json: there is no such file in none; see --data\n"
    assert (done.returncode, journal.read_text()) == (78, fault), (
        "SyslogLevel of the unit"
    )


def test_a_service_without_standard_streams_says_nothing() -> None:
    assert run_daemon("--port", "x", line=shell_line(">&- 2>&-")).returncode == 78
