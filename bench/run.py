"""The benchmark: compares the service on this machine with its budgets.

    python bench/run.py > bench/RESULTS.md       every row, in half an hour
    python bench/run.py start reload             these rows
    python bench/run.py start --against ../old   these rows, of two checkouts in turns

Rows and budgets are in rows.py. Every round of a row starts its servers anew. Needs Linux, wrk, nginx, PyPI
on first use, and a Python with the dependencies of the service and its tests.
"""

import argparse
import http.client
import platform
import resource
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from datetime import date
from math import inf
from pathlib import Path
from statistics import median

from contenders import ROOT, Lab
from lab.watching import LabError
from rows import ROWS, Figure


def main() -> int:
    """Run the command line. The exit status is 1 if a budget is not met or a row cannot be measured."""
    rows = {row.__name__: row for row in ROWS}
    parser = argparse.ArgumentParser(
        description="Measure reviewsd against the budgets of its design."
    )
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"some of {', '.join(rows)}; default all"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="rounds of a row; default %(default)s"
    )
    parser.add_argument(
        "--seconds",
        type=int,
        default=2,
        help="seconds of a run of wrk; default %(default)s",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="DIR",
        help="another checkout, measured in turns",
    )
    parser.add_argument(
        "--cache", type=Path, default=Path.home() / ".cache" / "reviewsd-bench"
    )
    options = parser.parse_args()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # runs every `finally`, which stops the servers
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (most, most)
    )  # the servers inherit the limit
    checkouts = [ROOT, options.against.resolve()] if options.against else [ROOT]
    figures: defaultdict[str, list[list[Figure]]] = defaultdict(
        lambda: [[], []]
    )  # by name and checkout
    failures = []
    for name in options.rows or rows:
        for turn in range(options.rounds * len(checkouts)):
            position = turn % len(checkouts)
            print(f"{name} of {checkouts[position]}", file=sys.stderr)
            with tempfile.TemporaryDirectory(prefix="reviewsd-bench-") as scratch:
                lab = Lab(
                    checkouts[position],
                    Path(scratch),
                    options.cache.resolve(),
                    options.seconds,
                )
                try:
                    for figure in rows[name](lab):
                        figures[figure.what][position].append(figure)
                except (
                    LabError,
                    OSError,
                    http.client.HTTPException,
                    subprocess.SubprocessError,
                ) as error:
                    failures.append(
                        f"- NOT MET: {name} of {checkouts[position].name}: {error!r}"
                    )
    print(
        f"# Bench results\n\nBy `python bench/run.py` on {date.today()}, {platform.platform()}.\n"
    )
    print(
        f"| what | median | least | greatest | unit | budget | | against | × |\n{'| --- ' * 9}|"
    )
    lines = [line(ours, theirs) for ours, theirs in figures.values() if ours]
    print("\n".join([*lines, "", *failures]))
    return 1 if "NOT MET" in "".join(lines + failures) else 0


def line(ours: list[Figure], theirs: list[Figure]) -> str:
    """A line of the table. The median decides; `×` is the median of the rounds' ratios of ours to theirs."""
    what, _, unit, at_most, at_least = ours[0]
    values = [one.value for one in ours]
    others = [one.value for one in theirs]
    columns = [
        what,
        *(f"{pick(values):,.2f}" for pick in (median, min, max)),
        unit,
        "",
        "",
        "",
        "",
    ]
    if at_most < inf or at_least > 0:
        columns[5] = f"≤ {at_most:g}" if at_most < inf else f"≥ {at_least:g}"
        columns[6] = "met" if at_least <= median(values) <= at_most else "NOT MET"
    if others:
        ratios = [
            mine / (other or inf) for mine, other in zip(values, others, strict=False)
        ]
        columns[7:] = f"{median(others):,.2f}", f"{median(ratios):.2f}"
    return f"| {' | '.join(columns)} |"


if __name__ == "__main__":
    sys.exit(main())
