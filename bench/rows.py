"""The rows of the bench, in the order of the report.

A row is a function that measures one round on one checkout, and yields a figure with
its budget as soon as it has the figure.
"""

from collections.abc import Callable, Iterator

import hub_rows
import process_rows
import proxy_rows
import read_rows
from contenders import Lab
from measures import Figure

ROWS: tuple[Callable[[Lab], Iterator[Figure]], ...] = (
    read_rows.fixed,
    read_rows.large,
    read_rows.search,
    read_rows.mcp,
    read_rows.mentions,
    read_rows.worst,
    read_rows.searches,
    read_rows.lists,
    read_rows.hostile,
    process_rows.start,
    process_rows.reload,
    process_rows.memory,
    process_rows.unread,
    process_rows.slow,
    process_rows.stop,
    hub_rows.hub,
    hub_rows.hub_hanging,
    hub_rows.hub_strangers,
    proxy_rows.attacks,
)
