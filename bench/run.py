"""The bench: measure reviewsd beside what else could do its work, on this machine, in one run.

    python bench/run.py            everything, in some half an hour; writes bench/RESULTS.md and its plots
    python bench/run.py --quick    the essentials, in less than three; writes nothing

What is measured stands in measure.py and the modules that it names, what the figures must be in budgets.py,
how servers are started in peers.py, how load is made in load.py, what the text says in report.py, and what is
plotted in charts.py. Needs Linux with Debian's packages and a network for PyPI, once. Standard library only.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import NoReturn

from charts import charts
from environment import prepare, versions
from load import BenchError
from measure import GROWTH, HUB, RELOAD, START, WORST, measure
from plan import Plan
from report import Occasion, report
from sections import FOREIGN, RESULTS, section_of, with_section
from throughput import MEASUREMENTS

SUBJECTS = (*(measurement.key for measurement in MEASUREMENTS), WORST, START, RELOAD, GROWTH, HUB)
STARTED = time.monotonic()


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured unless an option says otherwise."""

    rounds: int
    seconds: int
    sizes: tuple[int, ...]
    growth_sizes: tuple[int, ...]
    subscribers: tuple[int, ...]
    connections: tuple[int, ...]


FULL = Extent(
    rounds=5,
    seconds=1,
    sizes=(500, 10_000, 100_000),
    growth_sizes=(100, 1_000, 10_000, 100_000),
    subscribers=(10, 100, 500, 2_000),
    connections=(1, 16, 128),
)
QUICK = Extent(
    rounds=2,
    seconds=1,
    sizes=(500,),
    growth_sizes=(100, 1_000),
    subscribers=(10, 100),
    connections=(16,),
)


def main() -> int:
    """Run the command line; the exit status."""
    signal.signal(signal.SIGTERM, _stop)
    options = command_line().parse_args()
    chosen = (options.only, options.rounds, options.seconds, options.sizes, options.connections)
    output = options.output or (None if options.quick or any(chosen) else RESULTS)
    try:
        text, drawn = run(options)
    except BenchError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        return 130
    print(text)
    if output:
        for name, content in ({output.name: with_foreign(text, output)} | drawn).items():
            output.with_name(name).write_text(content, encoding="utf-8")
            say(f"written: {output.with_name(name)}")
    return 0


def with_foreign(text: str, output: Path) -> str:
    """`text` with the sections that other programs have put into the former results."""
    former = output.read_text(encoding="utf-8") if output.exists() else ""
    for section in filter(None, (section_of(former, heading) for heading in FOREIGN)):
        text = with_section(text, section)
    return text


def _stop(number: int, frame: object) -> NoReturn:
    """Leave through every `finally`, so that the servers end."""
    sys.exit(128 + number)


def command_line() -> argparse.ArgumentParser:
    """The parser."""
    parser = argparse.ArgumentParser(description="Measure reviewsd beside what else could do its work.")
    parser.add_argument("--quick", action="store_true", help="few and short rounds: a first look")
    parser.add_argument("--only", type=_subjects, help=f"some of {','.join(SUBJECTS)}")
    parser.add_argument("--rounds", type=_positive, help=f"of each measurement; default {FULL.rounds}")
    parser.add_argument("--seconds", type=_positive, help=f"of a round, at least; default {FULL.seconds}")
    parser.add_argument("--sizes", type=_numbers, help=f"numbers of reviews; default {_listed(FULL.sizes)}")
    parser.add_argument(
        "--connections", type=_numbers, help=f"numbers of connections; default {_listed(FULL.connections)}"
    )
    parser.add_argument(
        "--cache", type=Path, default=_cache(), help="for environments and data; default %(default)s"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="for the results, with the plots beside; default bench/RESULTS.md for a full run, else none",
    )
    return parser


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 1 or more")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted({_positive(part.replace("_", "")) for part in text.split(",")}))


def _subjects(text: str) -> frozenset[str]:
    if unknown := set(text.split(",")) - set(SUBJECTS):
        raise argparse.ArgumentTypeError(
            f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(SUBJECTS)}"
        )
    return frozenset(text.split(","))


def _listed(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reviewsd-bench"


def run(options: argparse.Namespace) -> tuple[str, dict[str, str]]:
    """Measure what the options ask for; the report, and the plots by name. Raises BenchError."""
    defaults = QUICK if options.quick else FULL
    load_before = os.getloadavg()[0]
    cache = options.cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    say(f"preparing {cache}")
    environment = prepare(cache)
    with tempfile.TemporaryDirectory(prefix="reviewsd-bench-") as scratch:
        plan = Plan(
            environment=environment,
            cache=cache,
            scratch=Path(scratch),
            sizes=options.sizes or defaults.sizes,
            growth_sizes=options.sizes or defaults.growth_sizes,
            subscribers=defaults.subscribers,
            connections=options.connections or defaults.connections,
            rounds=options.rounds or defaults.rounds,
            seconds=options.seconds or defaults.seconds,
            only=options.only or frozenset(SUBJECTS),
            say=say,
        )
        results = measure(plan)
    occasion = Occasion(
        date=date.today().isoformat(),
        command=shlex.join(["python", "bench/run.py", *sys.argv[1:]]),
        rounds=plan.rounds,
        seconds=plan.seconds,
        load_before=load_before,
        versions=versions(environment),
    )
    drawn = charts(results)
    return report(results, occasion, drawn), drawn


def say(text: str) -> None:
    """Tell the person who waits, with the time since the start."""
    minutes, seconds = divmod(int(time.monotonic() - STARTED), 60)
    print(f"{minutes:3}:{seconds:02} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
