"""Rows about the shipped nginx: what one client's attack costs the others.

Needs root, for a network with addresses of IPv6.
"""

from collections.abc import Iterator
from functools import partial
from statistics import median

from contenders import Lab
from lab import attack_lab
from lab.proxy_lab import running_proxy
from lab.tools import own_network
from measures import Figure, p99

UNSEEN_PAGE = "/reviews?query=#"
ONE = [attack_lab.ATTACKER]
WIDE = attack_lab.WIDE_ATTACKER
# More than the 100 connections that one address may have.
MANY = 256
ATTACKS = {
    "256 slow readers": partial(attack_lab.slow_readers, sources=MANY * ONE),
    "256 slow bodies": partial(attack_lab.slow_bodies, sources=MANY * ONE),
    "new query strings": partial(
        attack_lab.requests, path="/reviews.json?#", sources=4 * ONE, pause_seconds=0
    ),
    "unseen pages": partial(attack_lab.requests, path=UNSEEN_PAGE),
    "tool calls": partial(attack_lab.requests, path="/mcp", body=attack_lab.SMALL_CALL),
    "a /48": partial(attack_lab.requests, path=UNSEEN_PAGE, sources=WIDE),
}
# The rates of nginx count in seconds: an attack needs some to come to its end.
RUNS_OF_WRK = 2


def attacks(lab: Lab) -> Iterator[Figure]:
    """Latency and refusals of 25 other clients, without and beside an attack."""
    data = lab.data(2000)
    seconds = RUNS_OF_WRK * lab.seconds
    for number, (name, attack) in enumerate(ATTACKS.items()):
        directory = lab.scratch / str(number)
        directory.mkdir()
        proxy_of = partial(running_proxy, directory, "nginx", checkout=lab.checkout)
        with (
            own_network(*WIDE),
            lab.daemon(data) as ours,
            proxy_of([ours.port]) as proxy,
        ):
            alone = attack_lab.others(proxy, seconds)
            with attack_lab.in_another_process(attack(proxy)):
                beside = attack_lab.others(proxy, seconds)
        answers = f"answers to other clients of nginx beside {name}"
        refused = sum(status != 200 for status, _ in beside)
        yield Figure(f"refusals among {answers}", refused, "", 0)
        for measure, of in (("median", median), ("p99", p99)):
            value = of([milliseconds for _, milliseconds in beside])
            usual = of([milliseconds for _, milliseconds in alone])
            yield Figure(f"{measure} of {answers}", value, "ms")
            yield Figure(f"{measure} of {answers}, to without", value / usual, "×", 4)
