"""Commands print one line a fact, and end with a status that says what went wrong."""

import errno
import io
import sys
from collections.abc import Callable
from typing import NoReturn

import pytest

from reviewslib.faults import BadData, Fault
from reviewslib.terminal import CommandFailed, exit_status, say


def raising(error: BaseException) -> Callable[[], NoReturn]:
    """A command that ends with an error."""

    def command() -> NoReturn:
        raise error

    return command


def do_nothing() -> None:
    pass


def test_a_command_that_succeeds_has_status_0_and_prints_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_status(do_nothing) == 0
    assert capsys.readouterr() == ("", "")


FULL = OSError(errno.ENOSPC, "No space left on device", "/srv/a.json")
CLOSED = OSError(errno.EPIPE, "Broken pipe")


@pytest.mark.parametrize(
    ("error", "status", "lines"),
    [
        pytest.param(CommandFailed("a", "b"), 1, "a\nb\n", id="its own reason"),
        pytest.param(CommandFailed("a", status=3), 3, "a\n", id="its own status"),
        pytest.param(
            BadData([Fault("a.json", ("x",), "is bad")]),
            78,
            "a.json /x: is bad\n",
            id="bad data, EX_CONFIG of sysexits.h",
        ),
        pytest.param(
            KeyboardInterrupt(),
            130,
            "stopped; run the same command again\n",
            id="Ctrl-C, as shells have it",
        ),
        pytest.param(
            FULL, 1, "/srv/a.json: No space left on device\n", id="a file that fails"
        ),
        pytest.param(CLOSED, 1, "the output: Broken pipe\n", id="the output fails"),
    ],
)
def test_an_error_is_a_status_and_its_reason(
    capsys: pytest.CaptureFixture[str], error: BaseException, status: int, lines: str
) -> None:
    assert exit_status(raising(error)) == status
    assert capsys.readouterr() == ("", lines)


def test_a_fault_of_the_program_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        exit_status(raising(ZeroDivisionError()))


def test_what_is_printed_cannot_control_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say("a\x1b[2J\nb", "é")

    assert capsys.readouterr().out == "a\\u001b[2J\\u000ab\né\n"


def test_a_terminal_that_knows_only_ascii_shows_the_rest_escaped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding="ascii"))

    status = exit_status(lambda: say("Bó's"))

    assert status == 0
    assert output.getvalue() == b"B\\xf3's\n"
