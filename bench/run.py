"""The bench: does the service keep the budgets of its design on this machine?

    python bench/run.py                   every row, in half an hour; writes bench/RESULTS.md
    python bench/run.py start reload      these rows; writes nothing
    python bench/run.py start --against ../old --against-python ../old/.venv/bin/python

Rows and budgets stand in rows.py. A round of a row starts its servers anew; two checkouts take turns. Needs
Linux, wrk, nginx, openssl and, once, PyPI, and a Python with the service's dependencies.
"""

import argparse
import http.client
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from datetime import date
from importlib import metadata
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from load import Rate
from rows import MOST_ROUNDS, ROWS, Figure
from servers import BENCH, PEERS_REQUIREMENTS, PROJECT, BenchError, Lab

RESULTS = BENCH / "RESULTS.md"
SOAK = "\n## Soak\n"  # from here on RESULTS.md is soak.py's
Found = defaultdict[str, tuple[list[Any], list[Any]]]  # by name: figures or rates of both checkouts, by round


def main() -> int:
    """Run the command line; the exit status is 1 when something is not met or cannot be measured."""
    parser = command_line()
    options = parser.parse_args()
    if unknown := set(options.rows) - {row.__name__ for row in ROWS}:
        parser.error(f"unknown: {', '.join(unknown)}")
    rows = [row for row in ROWS if not options.rows or row.__name__ in options.rows]
    options.cache = options.cache.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # through every `finally`: no server stays
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the servers inherit it
    options.cache.mkdir(parents=True, exist_ok=True)
    checkouts = [(PROJECT, sys.executable)]
    if options.against:
        checkouts.append((options.against.resolve(), options.against_python))
    found: Found = defaultdict(lambda: ([], []))
    failures = []
    for row in rows:
        for number in range(min(options.rounds, MOST_ROUNDS.get(row, options.rounds))):
            for position, checkout in enumerate(checkouts):
                label = f"{row.__name__}, round {number + 1}{', against' if position else ''}"
                print(label, file=sys.stderr)
                with tempfile.TemporaryDirectory(prefix="reviewsd-bench-") as scratch:
                    lab = Lab(*checkout, Path(scratch), options.cache, options.seconds)
                    try:
                        for finding in row(lab):
                            found[finding.what][position].append(finding)
                    except (BenchError, OSError, http.client.HTTPException) as error:
                        failures.append(f"- NOT MET: {label}: {error!r}")
    text = report(found, failures)
    print(text)
    if not options.rows:
        soak = RESULTS.read_text(encoding="utf-8").partition(SOAK)[2]
        RESULTS.write_text(text + SOAK + soak, encoding="utf-8")
    return 1 if "NOT MET" in text else 0


def command_line() -> argparse.ArgumentParser:
    """The parser."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "reviewsd-bench")
    names = ", ".join(row.__name__ for row in ROWS)
    parser = argparse.ArgumentParser(description="Measure reviewsd against the budgets of its design.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"some of {names}; default all")
    parser.add_argument("--rounds", type=int, default=5, help="of each row, at most; default %(default)s")
    parser.add_argument("--seconds", type=int, default=2, help="of a run of wrk; default %(default)s")
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout, measured in turns")
    parser.add_argument("--against-python", default=sys.executable, metavar="PYTHON", help="runs it")
    parser.add_argument("--cache", type=Path, default=cache, help="data and peers; default %(default)s")
    return parser


def report(found: Found, failures: list[str]) -> str:
    """What RESULTS.md says before the soak."""
    figures = ["| what | measured | budget | | against | × |", "| --- | ---: | ---: | --- | ---: | ---: |"]
    rates = ["| request | a second | p50 ms | p99 ms | against | × |", "| --- " + "| ---: " * 5 + "|"]
    for what, (ours, theirs) in found.items():
        if ours and isinstance(ours[0], Rate):
            numbers = [f"{median(column):,.2f}" for column in list(zip(*ours, strict=True))[2:]]
            versus = compared([one.per_second for one in ours], [one.per_second for one in theirs])
            rates.append(f"| {what} | {' | '.join(numbers)} | {versus} |")
        elif ours:
            values = [one.value for one in ours]
            versus = compared(values, [one.value for one in theirs])
            figures.append(f"| {what} | {verdict(values, ours[0])} | {versus} |")
    head = f"# Bench results\n\nBy `python bench/run.py` on {date.today()}; do not edit. {system()}"
    note = "Medians of the rounds, least and greatest in parentheses; ratios are made within a round.\n"
    tables = ["## Budgets\n", *figures, "", *failures, "\n## Rates, 16 connections\n", *rates, ""]
    return "\n".join([head, note, *tables])


def verdict(values: list[float], figure: Figure) -> str:
    """The columns of a figure and its budget, which the median decides."""
    unit, at_most, at_least, middle = *figure[2:], median(values)
    measured = f"{middle:,.2f} {unit} ({min(values):,.2f}..{max(values):,.2f})"
    if at_most == inf and at_least == -inf:
        return f"{measured} | – | "
    budget = f"≤ {at_most:g}" if at_most < inf else f"≥ {at_least:g}"
    return f"{measured} | {budget} {unit} | {'met' if at_least <= middle <= at_most else 'NOT MET'}"


def compared(ours: list[float], theirs: list[float]) -> str:
    """The columns of the other checkout: its median, and the median of our multiples of it by round."""
    if not theirs:
        return " | "
    ratio = median(mine / (other or inf) for mine, other in zip(ours, theirs, strict=False))
    return f"{median(theirs):,.2f} | {ratio:,.2f}"


def system() -> str:
    """The machine, and the versions of what was measured."""
    model = Path("/proc/cpuinfo").read_text().partition("model name\t: ")[2].partition("\n")[0]
    describe = ["git", "-C", str(PROJECT), "describe", "--always"]
    commit = subprocess.run(describe, capture_output=True, text=True).stdout.strip()
    machine = (
        f"{os.cpu_count()} cores of {model}, Linux {platform.release()}, Python {platform.python_version()}"
    )
    ours = f"commit {commit} with granian {metadata.version('granian')}"
    return f"{machine}; {ours}; {', '.join(PEERS_REQUIREMENTS)}."


if __name__ == "__main__":
    sys.exit(main())
