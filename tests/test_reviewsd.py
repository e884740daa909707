"""The command line makes parts of settings and runs commands.

An operator's mistake is one line.

Sections: data - parts - the hub's settings - check - bad data - get - the start -
systems - files of settings - mistakes - standard streams.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from lab.services import (
    ROOT,
    SAMPLE,
    daemon_command,
    fetch,
    run_daemon,
    running_daemon,
    started,
)
from lab.small_files import a_file, review

import reviewsd
from reviewslib.process.settings import BadSetting, Settings, read_settings

# ---- Data ----


def write_reviews(directory: Path, *reviews: Any, **members: Any) -> list[str]:
    """The flags for a directory with this reviews file."""
    (directory / "reviews.json").write_text(json.dumps(a_file(*reviews, **members)))
    return ["--data", str(directory)]


# ---- Parts ----


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        pytest.param(Settings(), "http://127.0.0.1:8080", id="address"),
        pytest.param(Settings(host="::1"), "http://[::1]:8080", id="IPv6"),
        pytest.param(
            Settings(host="::", base_url="https://r.example"),
            "https://r.example",
            id="chosen",
        ),
    ],
)
def test_the_base_url_is_by_default_the_address(settings: Settings, url: str) -> None:
    assert reviewsd.public_url(settings) == url


NO_URL = "feeds, topics and links would have no usable URL; add for example"


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        pytest.param(Settings(host="0.0.0.0"), "--host 0.0.0.0", id="every address"),
        pytest.param(Settings(host="::"), "--host ::", id="every address of IPv6"),
        pytest.param(Settings(uds=Path("s")), "--uds s", id="Unix socket"),
    ],
)
def test_an_address_that_is_no_url_needs_a_base_url(
    settings: Settings, flag: str
) -> None:
    with pytest.raises(BadSetting) as caught:
        reviewsd.create_app(settings)

    assert str(caught.value).startswith(f"{flag}: {NO_URL} --base-url ")


def test_an_embedded_application_runs_no_hub_and_names_none() -> None:
    application = reviewsd.create_app(Settings(data=SAMPLE))

    assert application.urls.hub == ""


def test_an_embedded_application_may_name_the_hub_of_another_instance() -> None:
    application = reviewsd.create_app(Settings(data=SAMPLE, no_hub=True))

    assert application.urls.hub == "http://127.0.0.1:8080/api/websub/hub"


# ---- The hub's settings ----


def run_hub(settings: Settings) -> None:
    """Start the hub of an application, and stop it."""
    application = reviewsd.application_of(settings)
    reviewsd.started_hub(settings, application).stop(2)


@pytest.fixture
def usual(tmp_path: Path) -> Settings:
    return Settings(data=SAMPLE, state_dir=tmp_path / "state")


def test_settings_for_tests_are_logged_when_the_hub_starts(
    tmp_path: Path, usual: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    ca_file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(ca_file)

    run_hub(replace(usual, hub_allow_private=True, hub_ca_file=ca_file))

    assert caplog.messages == [
        "--hub-allow-private is for tests only",
        "--hub-ca-file is for tests only",
    ]


def test_usual_settings_are_not_logged(
    usual: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    run_hub(usual)

    assert caplog.messages == []


# ---- Check ----


Check = Callable[..., str]


@pytest.fixture
def check(capfd: pytest.CaptureFixture[str]) -> Check:
    """What `--check` prints about data and settings that are right."""

    def printed(*flags: str) -> str:
        options = vars(reviewsd.command_line().parse_args(flags))
        settings, sources = read_settings(options, os.environ)
        assert reviewsd.check(settings, sources) == 0
        return capfd.readouterr().out

    return printed


def test_check_prints_a_summary_of_the_data(check: Check) -> None:
    summary, _, _ = check(f"--data={SAMPLE}").partition("\n\n")

    assert summary.splitlines() == [
        "160 reviews of Larkspur Hollow Chiropractic, 4 unverified left out",
        "  from 2022-11-09 to 2026-11-15",
        "  4.42 stars of 5 over 160 reviews: 112 x 5, 24 x 4, 10 x 3, 6 x 2, 8 x 1",
        "Insights of 2026-11-16T09:30:00-08:00 from 160 reviews",
        "  9 aspects, 9 topics, 10 questions, 5 technicians, 8 services, 14 problems,"
        " 6 service areas",
    ]


def test_check_prints_every_setting_and_where_it_is_set(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVIEWSD_DATA", str(SAMPLE))

    lines = check("--port=81").splitlines()

    assert "Settings:" in lines
    assert "  --host 127.0.0.1 (default)" in lines
    assert "  --port 81 (--port)" in lines
    assert f"  --data {SAMPLE} (REVIEWSD_DATA)" in lines


def test_check_warns_of_variables_that_belong_to_no_setting(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVIEWSD_PROT", "80")

    lines = check(f"--data={SAMPLE}").splitlines()

    assert lines[-1].startswith("warning: REVIEWSD_PROT ")


def test_check_warns_of_odd_data(check: Check, tmp_path: Path) -> None:
    rating = {"rating_value": 4.9, "review_count": 700}

    printed = check(*write_reviews(tmp_path, aggregate_rating=rating))

    assert "\ninsights.json is absent" in printed
    assert "\nwarning: reviews.json gives an aggregate_rating" in printed


def test_check_says_how_much_was_read(check: Check, tmp_path: Path) -> None:
    flags = write_reviews(tmp_path)
    counts = {"worded_count": 1204, "read_count": 60}
    (tmp_path / "insights.json").write_text(json.dumps(counts))

    printed = check(*flags)

    assert "\n  60 of 1,204 reviews with words were read\n" in printed


def test_check_says_where_nothing_was_said(check: Check, tmp_path: Path) -> None:
    printed = check(*write_reviews(tmp_path))

    assert "\nInsights of no date from 0 reviews\n" in printed


def test_check_creates_nothing(check: Check, tmp_path: Path) -> None:
    state = tmp_path / "new" / "state"

    check(f"--data={SAMPLE}", f"--state-dir={state}")

    assert list(tmp_path.iterdir()) == []


HOSTILE_NAME = "X\nWATCHDOG=trigger\x1b[2J ☃"
ESCAPED_NAME = "X\\u000aWATCHDOG=trigger\\u001b[2J \\u2603"


@pytest.mark.parametrize(
    "environ",
    [
        pytest.param({"PYTHONIOENCODING": "ascii:strict"}, id="ASCII"),
        pytest.param({"LC_ALL": "C", "PYTHONUTF8": "0"}, id="locale C"),
    ],
)
def test_check_escapes_what_a_terminal_cannot_show(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    data = write_reviews(tmp_path, business={"name": HOSTILE_NAME})

    done = run_daemon("--check", *data, "--state-dir", "Zoë \udcff", **environ)

    assert done.returncode == 0
    assert done.stdout.startswith(f"0 reviews of {ESCAPED_NAME}\n")
    assert "\\udcff" in done.stdout


# ---- Bad data ----


@pytest.mark.parametrize(
    "arguments",
    [pytest.param(["--check"], id="check"), pytest.param(["--port=0"], id="start")],
)
def test_bad_data_are_named_line_by_line_with_status_78(
    tmp_path: Path, arguments: list[str]
) -> None:
    data = write_reviews(tmp_path, review(rating=7), business={})

    done = run_daemon(*arguments, *data)

    assert done.returncode == 78
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "reviews.json /business: 'name' is a required property",
        "reviews.json /reviews/0/rating: 7 is greater than the maximum of 5",
    ]


# ---- Get ----


@pytest.mark.parametrize(
    ("target", "begins"),
    [
        pytest.param(
            "/api/reviews/search?query=b%61ck&limit=1", b'{"matched":', id="search"
        ),
        pytest.param("/r%65views.json", b'{"business":', id="escaped path"),
    ],
)
def test_get_prints_a_response(capfdbinary: Any, target: str, begins: bytes) -> None:
    status = reviewsd.get(Settings(data=SAMPLE), target)

    assert status == 0
    assert capfdbinary.readouterr().out.startswith(begins)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("/nothing", id="unknown path"),
        pytest.param("/\udcff", id="path of no UTF-8"),
        pytest.param("/api/reviews/search?query=\udcff\xe9", id="query of no UTF-8"),
    ],
)
def test_get_prints_an_error_with_status_1(capfdbinary: Any, target: str) -> None:
    status = reviewsd.get(Settings(data=SAMPLE), target)

    assert status == 1
    assert capfdbinary.readouterr().out.startswith(b'{"type":')


# ---- The start ----


@pytest.fixture
def logged(tmp_path: Path) -> list[str]:
    """The log of a start, without times and levels."""
    with running_daemon(*write_reviews(tmp_path)) as service:
        lines = service.log().splitlines()
    return [re.sub("^[0-9-]+ [0-9:,]+ [A-Z]+ ", "", line) for line in lines]


def test_the_log_of_a_start_says_what_is_absent_what_is_loaded_and_where(
    logged: list[str],
) -> None:
    absent, *_, loaded, listening = logged

    assert absent.startswith("insights.json is absent")
    assert loaded == "0 reviews of Larkspur"
    assert listening.startswith(f"reviewsd {reviewsd.VERSION} listens on http://")


def test_the_log_of_a_start_names_a_misspelt_variable(tmp_path: Path) -> None:
    misspelt = {"REVIEWSD_BASEURL": "https://a.example"}

    with running_daemon(*write_reviews(tmp_path), **misspelt) as service:
        log = service.log()

    assert "REVIEWSD_BASEURL is not the variable of a setting; did you mean" in log


@pytest.mark.slow
def test_a_hundred_thousand_reviews_load_in_2_gb(tmp_path: Path) -> None:
    words = "Kind people and no waiting, back without pain since March. " * 6
    reviews = [review(f"{number:08}", text=words) for number in range(100_000)]
    command = daemon_command("--check", *write_reviews(tmp_path, *reviews))

    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        summary = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)

    assert status == 0
    assert summary.startswith(b"100,000 reviews of Larkspur")
    # Linux counts kibibytes (getrusage(2)).
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
    flags = ["--port=0", f"--data={SAMPLE}", f"--state-dir={tmp_path}"]
    command = [sys.executable, "-c", ELSEWHERE, *flags]

    with started(command, PYTHONPATH=str(ROOT)) as service:
        answer = fetch(service, "/reviews.json")

    assert answer.status == 200


@pytest.mark.parametrize("module", ["reviewsd", "reviewslib.importer.command"])
def test_on_windows_one_line_says_what_is_needed(module: str) -> None:
    pretend = f"import sys; sys.platform = 'win32'; import {module}"

    done = run_daemon(line=[sys.executable, "-c", pretend], cwd=ROOT)

    assert done.returncode == 1
    assert "WSL" in done.stderr
    assert len(done.stderr.splitlines()) == 1


# ---- Files of settings ----

NOT_WRITABLE = "is not a directory that this user can write"


@pytest.fixture
def odd_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, in which nothing is what a setting wants."""
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("nowhere").symlink_to("absent")
    os.mkfifo("fifo")
    return tmp_path


def settings_of(*flags: str) -> Settings:
    """The settings of a command line."""
    options = vars(reviewsd.command_line().parse_args(flags))
    settings, _ = read_settings(options, {})
    return settings


NO_SUCH_FILE = "there is no such regular file"
UNUSABLE = [
    pytest.param("--state-dir=file", f"file {NOT_WRITABLE}", id="a file"),
    pytest.param("--state-dir=file/below", f"file {NOT_WRITABLE}", id="below a file"),
    pytest.param("--state-dir=nowhere", f"nowhere {NOT_WRITABLE}", id="a broken link"),
    pytest.param("--hub-ca-file=none", NO_SUCH_FILE, id="no certificates"),
    # Reading it would block.
    pytest.param("--hub-ca-file=fifo", NO_SUCH_FILE, id="certificates in a FIFO"),
    pytest.param(
        "--hub-ca-file=file", "no certificate or crl found", id="an empty file"
    ),
]


@pytest.mark.usefixtures("odd_files")
@pytest.mark.parametrize(("flag", "reason"), UNUSABLE)
def test_an_unusable_file_of_the_hub_is_refused(flag: str, reason: str) -> None:
    with pytest.raises(BadSetting, match=reason):
        reviewsd.check_hub(settings_of(flag))


@pytest.mark.usefixtures("odd_files")
@pytest.mark.parametrize(("flag", "reason"), UNUSABLE)
def test_without_a_hub_its_files_do_not_matter(flag: str, reason: str) -> None:
    reviewsd.check_hub(settings_of(flag, "--no-hub"))


@pytest.mark.parametrize(("flag", "reason"), UNUSABLE)
def test_looking_at_files_changes_none(odd_files: Path, flag: str, reason: str) -> None:
    before = sorted(odd_files.rglob("*"))

    with suppress(BadSetting):
        reviewsd.check_hub(settings_of(flag))

    assert sorted(odd_files.rglob("*")) == before


# ---- Mistakes: one line, and no traceback ----

# Root may read and write everything, so root becomes another user after all modules are
# imported.
ANOTHER_USER = """
import encodings.idna, os, sys, reviewsd
if not os.getuid():
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
sys.exit(reviewsd.main(sys.argv[1:]))
"""
STORE = "theirs/websub.sqlite3"


@pytest.mark.parametrize(
    ("arguments", "status", "line"),
    [
        pytest.param(
            "", 78, f"--state-dir theirs: theirs {NOT_WRITABLE}", id="state directory"
        ),
        pytest.param(
            "--check",
            78,
            f"--state-dir theirs: theirs {NOT_WRITABLE}",
            id="checked state directory",
        ),
        pytest.param(
            "--subscriptions",
            1,
            f"{STORE}: Permission denied",
            id="store",
        ),
        pytest.param(
            "--no-hub --uds theirs/s --base-url http://x",
            1,
            "cannot listen on theirs/s: Permission denied",
            id="Unix socket",
        ),
        pytest.param(
            "--host 0",
            78,
            f"--host 0: {NO_URL} --base-url https://reviews.example.com",
            id="wildcard",
        ),
        pytest.param(
            "--port x", 78, "--port: 'x' is not a port: expected 0 to 65535", id="port"
        ),
    ],
)
def test_a_mistake_is_reported_in_one_line(
    tmp_path: Path, arguments: str, status: int, line: str
) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "theirs").mkdir(mode=0)
    command = [sys.executable, "-c", ANOTHER_USER, "--state-dir", "theirs"]
    variables = {"PYTHONPATH": str(ROOT), "REVIEWSD_PORT": "0"}

    done = run_daemon(*arguments.split(), line=command, cwd=tmp_path, **variables)

    assert done.returncode == status
    assert done.stdout == ""
    assert done.stderr == f"{line}\n"


# ---- Standard streams ----


def shell_line(redirections: str) -> list[str]:
    """The command line of the daemon with redirections of a shell."""
    return ["sh", "-c", f'exec "$@" {redirections}', "sh", *daemon_command()]


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        pytest.param("/dev/full", "No space left on device", id="full"),
        pytest.param("&-", "Bad file descriptor", id="closed"),
    ],
)
def test_an_unusable_standard_output_is_one_line_and_status_1(
    output: str, reason: str
) -> None:
    command = shell_line(f">{output}")

    done = run_daemon("--get=/robots.txt", f"--data={SAMPLE}", line=command)

    assert done.returncode == 1
    assert done.stderr == f"cannot write to standard output: {reason}\n"


def test_errors_at_exit_have_no_level_in_the_journal(tmp_path: Path) -> None:
    # The unit gives them one: SyslogLevel.
    journal = tmp_path / "journal"
    journal.touch()
    status = journal.stat()
    named = f"{status.st_dev}:{status.st_ino}"

    done = run_daemon(
        "--data", "none", line=shell_line(f"2>>{journal}"), JOURNAL_STREAM=named
    )

    fault = "reviews.json: there is no such file in none; see --data\n"
    assert done.returncode == 78
    assert journal.read_text() == fault


def test_a_service_without_standard_streams_says_nothing() -> None:
    done = run_daemon("--port", "x", line=shell_line(">&- 2>&-"))

    assert done.returncode == 78
