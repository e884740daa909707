"""The benchmark: compares the service on this machine with its budgets.

    python bench/run.py > bench/RESULTS.md                 every row, in half an hour
    python bench/run.py start reload                       these rows
    python bench/run.py --rounds 1 --against ../old        beside another checkout

Rows are in rows.py, with their budgets. Every round of a row starts its servers anew,
and two checkouts take turns. Needs Linux, wrk, nginx, PyPI on first use, and a Python
with the dependencies of the service and its tests; both checkouts run with it.

Sections: the command line - rounds - the report.
"""

import argparse
import http.client
import os
import platform
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from math import inf
from pathlib import Path
from statistics import median

from contenders import ROOT, Lab
from lab.watching import LabError
from rows import ROWS, Figure

# What a row raises if it cannot be measured here, or on an older checkout.
ROW_FAULTS = (LabError, OSError, http.client.HTTPException, subprocess.SubprocessError)

# ---- The command line ----

NAMED_ROWS = {row.__name__: row for row in ROWS}


def command_line() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        description="Measure reviewsd against the budgets of its design."
    )
    add = parser.add_argument
    names = ", ".join(NAMED_ROWS)
    add("rows", nargs="*", metavar="ROW", help=f"some of {names}; default all")
    add("--rounds", type=int, default=3, help="rounds of a row; default %(default)s")
    seconds = "seconds of a run of wrk; default %(default)s"
    add("--seconds", type=int, default=2, help=seconds)
    against = "another checkout, measured in turns"
    add("--against", type=Path, metavar="DIR", help=against)
    add("--cache", type=Path, default=Path.home() / ".cache" / "reviewsd-bench")
    return parser


def main() -> int:
    """Run the command line.

    The exit status is 1 if a budget is not met or a row cannot be measured.
    """
    options = command_line().parse_args()
    # It runs every `finally`, which stops the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # The servers keep what they compile, as an installation does.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # The servers inherit the limit.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    report = Report()
    for name in options.rows or NAMED_ROWS:
        for _ in range(options.rounds):
            measure(name, ROOT, options, report.ours, report.faults)
            if options.against:
                other = options.against.resolve()
                measure(name, other, options, report.theirs, report.other_faults)
    print("\n".join(report.lines()))
    return 0 if report.is_met() else 1


# ---- Rounds ----

# By what they measure: a figure a round.
Figures = defaultdict[str, list[Figure]]


def measure(
    name: str,
    checkout: Path,
    options: argparse.Namespace,
    figures: Figures,
    faults: list[str],
) -> None:
    """Measure a row once on a checkout."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="reviewsd-bench-") as scratch:
        cache = options.cache.resolve()
        lab = Lab(checkout, Path(scratch), cache, options.seconds)
        try:
            for figure in NAMED_ROWS[name](lab):
                figures[figure.what].append(figure)
        except ROW_FAULTS as fault:
            faults.append(f"{name}: {fault!r}")
    seconds = time.monotonic() - began
    print(f"{name} of {checkout}: {seconds:.0f} s", file=sys.stderr, flush=True)


# ---- The report ----

HEAD = ("what", "median", "least", "greatest", "unit", "budget", "", "against", "×")


def _no_figures() -> Figures:
    return defaultdict(list)


@dataclass
class Report:
    """The figures of this checkout and of another, and what could not be measured."""

    ours: Figures = field(default_factory=_no_figures)
    theirs: Figures = field(default_factory=_no_figures)
    faults: list[str] = field(default_factory=list)
    other_faults: list[str] = field(default_factory=list)

    def is_met(self) -> bool:
        """Whether every budget of this checkout is met, and every row was measured."""
        return not self.faults and all(map(is_met, self.ours.values()))

    def lines(self) -> Iterator[str]:
        """The report in Markdown."""
        command = shlex.join(["python", "bench/run.py", *sys.argv[1:]])
        yield "# Bench results\n"
        yield f"By `{command}` on {date.today()}, {platform.platform()}.\n"
        yield _row(HEAD)
        yield _row(["---"] * len(HEAD))
        for what, figures in self.ours.items():
            yield _row(_cells(figures, self.theirs.get(what, [])))
        yield ""
        for fault in self.faults:
            yield f"- NOT MET: {fault}"
        for fault in self.other_faults:
            yield f"- not measured of the other checkout: {fault}"


def is_met(figures: list[Figure]) -> bool:
    """Whether the median of the rounds is within the budget."""
    first = figures[0]
    value = median(figure.value for figure in figures)
    return first.at_least <= value <= first.at_most


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(ours: list[Figure], theirs: list[Figure]) -> list[str]:
    """The cells of a line.

    `×` is the median of the rounds' ratios of ours to theirs: rounds of a turn had the
    same weather.
    """
    values = [one.value for one in ours]
    others = [one.value for one in theirs]
    against = ratio = ""
    if others:
        pairs = zip(values, others, strict=False)
        against = f"{median(others):,.2f}"
        ratio = f"{median(mine / (other or inf) for mine, other in pairs):.2f}"
    budget = _budget(ours[0])
    verdict = ""
    if budget:
        verdict = "met" if is_met(ours) else "NOT MET"
    figures = [f"{pick(values):,.2f}" for pick in (median, min, max)]
    return [ours[0].what, *figures, ours[0].unit, budget, verdict, against, ratio]


def _budget(figure: Figure) -> str:
    if figure.at_most < inf:
        return f"≤ {figure.at_most:g}"
    if figure.at_least > 0:
        return f"≥ {figure.at_least:g}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
