"""Units and proxy files agree with the program, permit what is needed, and import what arrives.

What they do in a running system is in `test_boot`, `test_deploy` and `test_attacks`.

Sections: Units - Proxy files - Names - The import
"""

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import fields
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from lab.proxy_lab import RATE_LIMITS
from lab.services import ROOT
from lab.tools import needs, program

import reviewsd
from reviewslib import links
from reviewslib.annotator import command as annotator
from reviewslib.messages import LARGEST_BODY_BYTES
from reviewslib.process import serving
from reviewslib.process.settings import Settings, variable_name
from reviewslib.web.routes import ROUTES

UNIT = "reviewsd.service"
IMPORT = "deploy/reviewsd-import.service"
INSIGHTS = "deploy/reviewsd-insights.service"
GOOGLE = "deploy/reviewsd-google.service"
NGINX = "deploy/nginx.conf"
CADDY = "deploy/Caddyfile"
DROP_INS = [
    "deploy/settings.conf",
    "deploy/read-instance.conf",
    "deploy/unix-socket.conf",
]
SHIPPED = [ROOT / UNIT, *sorted((ROOT / "deploy").iterdir())]
UNITS = [path for path in SHIPPED if path.suffix in (".service", ".timer", ".path")]
TIMERS = [path for path in UNITS if path.suffix == ".timer"]
# argparse's exit status
WRONG_USAGE = 2

ASSIGNMENT = r"(?m)^#?[A-Z][A-Za-z]+=.*$"


def name_of(path: Path) -> str:
    return path.name


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def lines_of(name: str) -> list[str]:
    """The assignments in a file, in order, commented examples included."""
    return re.findall(ASSIGNMENT, text_of(name))


def value_of(name: str, directive: str) -> str:
    """The value of a directive that a unit has once."""
    pairs = [line.partition("=") for line in lines_of(name)]
    (value,) = [text for key, _, text in pairs if key == directive]
    return value


# ---- Units ----


@pytest.mark.parametrize("unit", UNITS, ids=name_of)
def test_systemd_understands_every_line_of_a_unit(unit: Path, tmp_path: Path) -> None:
    needs("a directory of systemd")
    # The programs are not installed here, and systemd looks for them.
    installed = re.sub(r"=/opt/reviewsd/bin/\S+", "=/bin/true", text_of(str(unit)))
    (tmp_path / unit.name).write_text(installed)
    started = re.sub(r"\.(timer|path)$", ".service", unit.name)
    (tmp_path / started).write_text(
        installed if started == unit.name else "[Service]\nExecStart=/bin/true\n"
    )
    command = [program("systemd-analyze"), "verify", str(tmp_path / unit.name)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert done.stderr == ""


# What a unit leaves open, by the names of systemd-analyze(1).
EVERY_UNIT = {
    "RootDirectory=/RootImage=",
    # The pseudo devices, /dev/null among them.
    "DeviceAllow=",
    # A callback, a server of a model and a proxy may have any address.
    "IPAddressDeny=",
}
NETWORK = {
    "PrivateNetwork=",
    "RestrictAddressFamilies=~AF_(INET|INET6)",
    "RestrictAddressFamilies=~AF_UNIX",
}
ROOT_USER = {
    "User=/DynamicUser=",
    "PrivateUsers=",
    "PrivateMounts=",
    "SystemCallFilter=~@privileged",
    "SystemCallFilter=~@resources",
    # The daemon reads what it writes.
    "UMask=",
}
FILES_OF_OTHERS = {"CapabilityBoundingSet=~CAP_(DAC_*|FOWNER|IPC_OWNER)"}


@pytest.mark.parametrize(
    ("unit", "open_to_it"),
    [
        pytest.param(UNIT, EVERY_UNIT | NETWORK, id="the daemon"),
        pytest.param(IMPORT, EVERY_UNIT | ROOT_USER | FILES_OF_OTHERS, id="the import"),
        pytest.param(INSIGHTS, EVERY_UNIT | ROOT_USER | NETWORK, id="the insights"),
        pytest.param(
            GOOGLE,
            EVERY_UNIT | ROOT_USER | FILES_OF_OTHERS | NETWORK,
            id="the API of Google",
        ),
    ],
)
def test_a_unit_may_do_nothing_but_what_it_needs(
    unit: str, open_to_it: set[str]
) -> None:
    command = [program("systemd-analyze"), "security", "--json=short"]

    done = subprocess.run(
        [*command, "--no-pager", "--offline=true", str(ROOT / unit)],
        capture_output=True,
        text=True,
        timeout=60,
    )

    found = {row["name"] for row in json.loads(done.stdout) if row["set"] is False}
    assert found - open_to_it == set()


def test_what_a_restart_cannot_mend_is_not_restarted() -> None:
    statuses = value_of(UNIT, "RestartPreventExitStatus").split()

    assert set(map(int, statuses)) == {WRONG_USAGE, reviewsd.EXIT_BAD_DATA}


def test_the_daemon_has_time_to_stop_by_itself() -> None:
    needed = serving.BEFORE_STOP_SECONDS + serving.STOP_SECONDS

    assert int(value_of(UNIT, "TimeoutStopSec")) > needed


def test_the_daemon_may_bind_its_default_port_alone() -> None:
    assert value_of(UNIT, "SocketBindDeny") == "any"
    assert value_of(UNIT, "SocketBindAllow") == f"tcp:{Settings().port}"


@pytest.mark.parametrize("name", ["deploy/settings.conf", "deploy/read-instance.conf"])
def test_a_drop_in_with_another_port_permits_it(name: str) -> None:
    (port,) = re.findall(r"REVIEWSD_PORT=(\d+)", text_of(name))

    permitted = [line for line in lines_of(name) if "SocketBindAllow=" in line]

    # The empty one revokes the permission of the unit.
    assert [line.partition("=")[2] for line in permitted] == ["", f"tcp:{port}"]


def test_an_import_refuses_a_file_before_it_would_be_killed() -> None:
    # The importer answers a refused allocation; at MemoryMax= the kernel kills it.
    assert value_of(IMPORT, "LimitAS") == value_of(IMPORT, "MemoryMax")


@pytest.mark.parametrize(
    ("timer", "calendar", "document", "words"),
    [
        pytest.param(
            "deploy/reviewsd-google.timer",
            "00/6:00",
            "docs/google.md",
            "It runs every six hours.",
            id="the API of Google",
        ),
        pytest.param(
            "deploy/reviewsd-insights.timer",
            "daily",
            "docs/insights.md",
            "reads new reviews every night",
            id="the insights",
        ),
        pytest.param(
            "deploy/reviewsd-import.timer",
            "weekly",
            "docs/your-reviews.md",
            "## Once a week, automatically",
            id="the import",
        ),
    ],
)
def test_a_timer_elapses_as_often_as_its_document_says(
    timer: str, calendar: str, document: str, words: str
) -> None:
    assert value_of(timer, "OnCalendar") == calendar
    assert words in text_of(document)


@pytest.mark.parametrize("timer", TIMERS, ids=name_of)
def test_a_timer_makes_up_for_the_time_that_the_machine_was_off(timer: Path) -> None:
    assert value_of(str(timer), "Persistent") == "yes"


@pytest.mark.parametrize("timer", TIMERS, ids=name_of)
def test_not_all_services_ask_at_the_full_hour(timer: Path) -> None:
    assert value_of(str(timer), "RandomizedDelaySec") == "1h"


def test_the_folder_that_is_watched_is_the_one_that_is_imported() -> None:
    watched = value_of("deploy/reviewsd-import.path", "PathChanged")

    assert f"--drop {watched} " in value_of(IMPORT, "ExecStart")


@pytest.mark.parametrize("unit", [IMPORT, INSIGHTS, GOOGLE])
def test_the_daemon_may_read_what_a_unit_writes(unit: str) -> None:
    assert value_of(unit, "UMask") == "0022"


@pytest.mark.parametrize("file", SHIPPED, ids=name_of)
def test_a_state_is_for_its_service_alone(file: Path) -> None:
    lines = lines_of(str(file))

    if any(re.fullmatch("StateDirectory=.+", line) for line in lines):
        assert "StateDirectoryMode=0700" in lines


@pytest.mark.parametrize("unit", [UNIT, INSIGHTS, GOOGLE])
def test_a_unit_with_a_network_has_both_versions_of_ip(unit: str) -> None:
    families = value_of(unit, "RestrictAddressFamilies").split()

    assert set(families) == {"AF_INET", "AF_INET6", "AF_UNIX"}


@pytest.mark.parametrize("unit", [UNIT, IMPORT])
def test_starts_have_no_limit_that_would_end_a_unit_for_good(unit: str) -> None:
    assert value_of(unit, "StartLimitIntervalSec") == "0"


def test_a_daemon_that_hangs_is_restarted() -> None:
    assert int(value_of(UNIT, "WatchdogSec")) == 60
    assert value_of(UNIT, "Restart") == "on-failure"


@pytest.mark.parametrize("unit", UNITS, ids=name_of)
def test_a_unit_that_starts_by_itself_does_so_on_a_machine_without_a_screen(
    unit: Path,
) -> None:
    wanted_by = re.findall("(?m)^WantedBy=(.*)$", text_of(str(unit)))

    # No service starts twice: a timer or a path starts it.
    assert wanted_by in ([], ["multi-user.target"], ["timers.target"])


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("10.1.2.3", id="a company"),
        pytest.param("172.16.1.2", id="a container"),
        pytest.param("192.168.1.1", id="a home"),
        pytest.param("169.254.169.254", id="the metadata of a cloud"),
        pytest.param("100.64.0.1", id="behind a carrier"),
        pytest.param("fc00::1", id="a local network of IPv6"),
        pytest.param("fe80::1", id="a link of IPv6"),
    ],
)
def test_the_kernel_can_refuse_private_addresses_to_the_hub(address: str) -> None:
    networks = value_of("deploy/settings.conf", "#IPAddressDeny").split()

    assert any(ip_address(address) in ip_network(network) for network in networks)


@pytest.mark.parametrize("name", [UNIT, *DROP_INS])
def test_every_variable_is_a_setting(name: str) -> None:
    settings = {variable_name(declared.name) for declared in fields(Settings)}
    assignments = [line.lstrip("#") for line in lines_of(name)]

    variables = {
        line.split("=")[1] for line in assignments if line.startswith("Environment=")
    }

    assert variables <= settings


def test_the_unit_of_insights_has_a_command_line_that_the_program_takes() -> None:
    command = value_of(INSIGHTS, "ExecStart")
    for assignment in (" KEY=--key-file /run/key", " URL=u", " MODEL=m"):
        name, _, text = assignment.strip().partition("=")
        command = re.sub(rf"\$({name}|\{{{name}\}})(?!\w)", text, command)

    options = annotator.parse(shlex.split(command)[1:])

    assert options.data == Path("/srv/reviews")
    assert options.key_file == Path("/run/key")


# ---- Proxy files ----

ZONES = ("documents", "pages", "mcp", "hub")


@pytest.mark.parametrize(
    ("zone", "limits"), list(zip(ZONES, RATE_LIMITS, strict=True)), ids=ZONES
)
@pytest.mark.parametrize(
    ("suffix", "times"),
    [
        pytest.param("", 1, id="one address"),
        pytest.param("_site", 2, id="a site of IPv6"),
    ],
)
def test_the_documented_rates_are_those_of_nginx(
    zone: str, limits: tuple[int, int, int], suffix: str, times: int
) -> None:
    nginx = text_of(NGINX)
    burst, rate, delayed = limits
    name = f"zone=reviewsd_{zone}{suffix}"

    assert f"{name}:10m rate={times * rate}r/s;" in nginx
    assert (
        f"limit_req {name} burst={times * burst} delay={times * (burst - delayed)};"
        in nginx
    )


def test_the_documented_connections_are_those_of_nginx() -> None:
    limits = re.findall(r"limit_conn \w+ (\d+);", text_of(NGINX))
    (most,) = re.findall(r"worker_connections (\d+);", text_of("README.md"))

    document = " ".join(text_of("docs/server.md").split())
    of_a_client, of_a_site = limits
    assert f"each client to {of_a_client} concurrent requests" in document
    assert f"wider limits, {of_a_site} concurrent requests" in document
    assert f"`/etc/nginx/nginx.conf` to {int(most):,} for each" in document


DEADLINES = serving.Deadlines()


def limit_of(file: str, directive: str) -> str:
    """The last word of the one line of a proxy's file that begins with this word."""
    (line,) = re.findall(rf"(?m)^\s+{directive} (.*?);?$", text_of(file))
    return line.rpartition(" ")[2]


@pytest.mark.parametrize(
    ("file", "directive", "seconds"),
    [
        (NGINX, "client_header_timeout", DEADLINES.head),
        (NGINX, "client_body_timeout", DEADLINES.body),
        (NGINX, "send_timeout", DEADLINES.silence),
        (CADDY, "read_header", DEADLINES.head),
        (CADDY, "read_body", DEADLINES.body),
        (CADDY, "write", DEADLINES.response),
    ],
)
def test_a_proxy_is_no_more_patient_than_the_service(
    file: str, directive: str, seconds: float
) -> None:
    assert int(limit_of(file, directive).removesuffix("s")) <= seconds


@pytest.mark.parametrize(
    ("file", "directive", "limit_bytes"),
    [
        (NGINX, "large_client_header_buffers", serving.MAX_HEAD_BYTES),
        (NGINX, "client_max_body_size", LARGEST_BODY_BYTES),
        (CADDY, "max_header_size", serving.MAX_HEAD_BYTES),
        (CADDY, "max_size", LARGEST_BODY_BYTES),
    ],
)
def test_a_proxy_takes_what_the_service_takes(
    file: str, directive: str, limit_bytes: int
) -> None:
    kibibytes = re.sub("k$|KiB$", "", limit_of(file, directive))

    assert int(kibibytes) * 1024 == limit_bytes


def taken_by_nginx(location: int) -> set[str]:
    """The paths of the service in the location of this number that has a pattern."""
    pattern = re.findall(r"location ~ (\S+) \{", text_of(NGINX))[location]
    # The end of a text has another sign in Python.
    end = pattern.replace(r"\z", r"\Z")
    return {path for path in ROUTES if re.search(end, path)}


def test_nginx_caches_what_is_made_at_load_as_documents() -> None:
    assert taken_by_nginx(0) == {*links.FIXED_PATHS, *links.CARD_PATHS}


def test_nginx_knows_assistants_by_both_spellings_of_their_path() -> None:
    assert taken_by_nginx(1) == {links.MCP_PATH, f"{links.MCP_PATH}/"}


def test_the_documented_times_of_the_unit_are_its_own() -> None:
    seconds = value_of(UNIT, "RestartSec")

    assert seconds == "2"
    assert "tries again every two seconds" in text_of("docs/server.md")


# ---- Names ----


@pytest.mark.parametrize("file", [*(ROOT / "docs").glob("*.md"), *SHIPPED], ids=name_of)
def test_files_that_a_document_or_a_unit_names_exist(file: Path) -> None:
    named = re.findall(r"\b(?:deploy|docs)/[\w.@-]*\w", file.read_text("utf-8"))

    missing = [path for path in named if not (ROOT / path).is_file()]

    assert missing == []


# ---- The import ----

Importer = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    """A drop folder with one file."""
    folder = tmp_path / "drop"
    folder.mkdir()
    (folder / "a").touch()
    return folder


@pytest.fixture
def started(drop: Path) -> Importer:
    """Runs the command of the import's unit with a script in place of the importer."""
    importer = drop.parent / "importer"
    quoted = value_of(IMPORT, "ExecStart").replace("$$", "$")
    shell = quoted.removeprefix("/bin/sh -c ").strip("'")
    shell = shell.replace("/opt/reviewsd/bin/reviewsd-import", str(importer))
    shell = shell.replace("/srv/reviews-drop", str(drop))

    def start(script: str) -> "subprocess.CompletedProcess[str]":
        importer.write_text(f'#!/bin/sh\necho run "$@"\n{script}\n')
        importer.chmod(0o755)
        return subprocess.run(
            ["/bin/sh", "-c", shell], capture_output=True, text=True, timeout=60
        )

    return start


def test_an_export_that_arrives_during_an_import_is_imported_next(
    drop: Path, started: Importer
) -> None:
    done = started(f"touch {drop}/b")

    assert done.returncode == 0
    assert done.stdout.splitlines() == 2 * [f"run --drop {drop} --data /srv/reviews"]


def test_a_failed_import_ends_the_unit_with_its_status(
    drop: Path, started: Importer
) -> None:
    done = started("exit 78")

    assert done.returncode == 78
    assert done.stdout.splitlines() == [f"run --drop {drop} --data /srv/reviews"]
