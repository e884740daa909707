"""The units do their work in a booted system: this machine's own, with everything written to memory.

`systemd-nspawn` boots it with a network of its own, and with the program and the Python that the tests run.
"""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from export_lab import item, takeout
from services import ROOT
from tools import booted_command, needs, program

pytestmark = pytest.mark.slow

MODULES = {"reviewsd": "reviewsd", "reviewsd-import": "reviewslib.importer.command"}
LAUNCHER = """#!/bin/sh
LD_LIBRARY_PATH=/python/lib PYTHONPATH=/clone:/site exec /python/bin/python3 -m %s "$@"
"""
SCRIPT = """#!/bin/sh
exec > /out/log 2>&1; set -x; umask 022
install -D -m 644 -t /etc/systemd/system /clone/reviewsd.service /clone/deploy/reviewsd-import.*
mkdir -p /opt/reviewsd /srv/reviews /srv/reviews-drop && cp -r /out/bin /opt/reviewsd
systemctl daemon-reload
/opt/reviewsd/bin/reviewsd-import /out/takeout-20261101T101112Z-001.zip --data /srv/reviews --zone UTC
rm /srv/reviews/reviews.json  # the import makes it anew, with a mode of its own
systemctl start reviewsd-import.path
install -m 600 -o nobody /out/takeout-20261101T101112Z-001.zip /srv/reviews-drop
for _ in $(seq 300); do test -e /srv/reviews/reviews.json && break; sleep 0.1; done
systemctl start reviewsd-import  # returns when it is done
systemctl start reviewsd
curl -sS http://127.0.0.1:8080/reviews.json > /out/served
stat -c '%U %a' /srv/reviews/*.json > /out/modes
cat /proc/$(systemctl show -P MainPID reviewsd)/status > /out/process
journalctl -u reviewsd -u reviewsd-import --no-pager
stat -Lc %a /var/lib/reviewsd > /out/state
"""


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of what the script wrote in the booted system."""
    for name in ("systemd-nspawn", "curl"):
        program(name)
    needs("a booted system")
    out = tmp_path_factory.mktemp("booted")
    takeout(out / "takeout-20261101T101112Z-001.zip", [item(number) for number in range(4)])
    (out / "script").write_text(SCRIPT)
    (out / "script").chmod(0o755)
    (out / "bin").mkdir()
    for name, module in MODULES.items():
        (out / "bin" / name).write_text(LAUNCHER % module)
        (out / "bin" / name).chmod(0o755)
    site = sysconfig.get_paths()["purelib"]
    places = {sys.base_prefix: "/python", site: "/site", str(ROOT): "/clone"}
    binds = [f"--bind-ro={here}:{there}" for here, there in places.items()] + [f"--bind={out}:/out"]
    directory = tmp_path_factory.mktemp("root")
    command = booted_command(directory, *binds, "--boot", "systemd.run=/out/script")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert (out / "state").exists(), done
    return out


def test_what_an_import_under_its_unit_wrote_is_served_by_the_daemon(booted: Path) -> None:
    """The export belongs to another user, and nobody else may read it."""
    served = (booted / "served").read_text()
    assert served and len(json.loads(served)["reviews"]) == 4, (booted / "log").read_text()
    assert set((booted / "modes").read_text().splitlines()) == {"root 644"}


def test_the_daemon_runs_without_privileges(booted: Path) -> None:
    lines = (booted / "process").read_text().splitlines()
    process = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    assert process["Uid"][0] != "0"
    limits = {"Umask": "0077", "CapBnd": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}
    assert {name: process[name][0] for name in limits} == limits
    assert (booted / "state").read_text() == "700\n"
