"""The systemd unit exposes as little as it claims, and agrees with the program."""

import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
from services import ROOT
from tools import program

import reviewsd
from reviewslib.process import serving
from reviewslib.process.settings import Settings, variable_name

UNIT = (ROOT / "reviewsd.service").read_text(encoding="utf-8")
DROP_INS = ["deploy/settings.conf", "deploy/read-instance.conf", "deploy/unix-socket.conf"]
FILES = ["reviewsd.service", *DROP_INS]
DOCUMENTS = ["README.md", *(str(file.relative_to(ROOT)) for file in sorted((ROOT / "docs").glob("*.md")))]
IMPORT_UNITS = [f"deploy/reviewsd-import.{kind}" for kind in ("service", "path", "timer")]
MAX_EXPOSURE = {"reviewsd.service": 1.2, IMPORT_UNITS[0]: 1.6}
WRONG_USAGE = 2  # argparse's exit status


@pytest.mark.parametrize(("name", "most"), MAX_EXPOSURE.items())
def test_the_exposure_of_the_unit_is_small(name: str, most: float) -> None:
    command = [program("systemd-analyze"), "security", "--offline=true", str(ROOT / name)]
    report = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    level = re.search(r"Overall exposure level for .*: ([0-9.]+)", report)
    assert level
    assert float(level[1]) <= most


def merged(*names: str) -> dict[str, list[str]]:
    """The directives of files read in this order, commented examples included.

    An assignment adds to the list of its directive, an empty one clears it (systemd.syntax(7)), and that of
    StateDirectory= the mode as well (seen in systemd 252).
    """
    values: dict[str, list[str]] = {}
    for name in names:
        text = (ROOT / name).read_text(encoding="utf-8")
        for directive, value in re.findall(r"(?m)^#?([A-Z][A-Za-z]+)=(.*)$", text):
            values[directive] = [*values.get(directive, []), value] if value else []
            if not value:
                values.pop(f"{directive}Mode", None)
    return values


def test_the_unit_agrees_with_the_program() -> None:
    service = dict(re.findall(r"(?m)^([A-Z]\w+)=(.*)$", UNIT))
    assert (service["Type"], service["SyslogLevel"], service["WatchdogSec"]) == ("notify", "err", "60")
    assert (service["Restart"], service["RestartSec"]) == ("on-failure", "2")
    never_mended = {WRONG_USAGE, reviewsd.EXIT_BAD_DATA}
    assert set(map(int, service["RestartPreventExitStatus"].split())) == never_mended
    assert int(service["TimeoutStopSec"]) > serving.BEFORE_STOP_SECONDS + serving.STOP_SECONDS
    assert service["SocketBindAllow"] == f"tcp:{Settings().port}"


SHARED_SANDBOX = """
    SystemCallArchitectures=native SystemCallFilter=@system-service ProtectSystem=strict ProtectProc=invisible
    ProcSubset=pid MemoryMax=1G NoNewPrivileges=yes ProtectHome=yes PrivateTmp=yes PrivateDevices=yes
    ProtectKernelTunables=yes ProtectKernelModules=yes ProtectKernelLogs=yes ProtectControlGroups=yes
    ProtectClock=yes ProtectHostname=yes RestrictNamespaces=yes RestrictRealtime=yes RestrictSUIDSGID=yes
    LockPersonality=yes MemoryDenyWriteExecute=yes
"""
SANDBOXES = {
    "reviewsd.service": f"""{SHARED_SANDBOX}
        DynamicUser=yes StateDirectory=reviewsd StateDirectoryMode=0700 UMask=0077 CapabilityBoundingSet=
        AmbientCapabilities= DevicePolicy=closed PrivateMounts=yes PrivateIPC=yes RemoveIPC=yes TasksMax=256
        PrivateUsers=yes KeyringMode=private RestrictAddressFamilies=AF_INET+AF_INET6+AF_UNIX
        SocketBindDeny=any SocketBindAllow=tcp:8080 SystemCallFilter=~@privileged+@resources
        SystemCallErrorNumber=EPERM
    """,
    "deploy/reviewsd-import.service": f"""{SHARED_SANDBOX}
        UMask=0022 ReadWritePaths=/srv/reviews CapabilityBoundingSet=CAP_DAC_READ_SEARCH PrivateNetwork=yes
        RestrictAddressFamilies=none
    """,
    "deploy/reviewsd-import.path": "",
    "deploy/reviewsd-import.timer": "",
}
"""The lines that protect the machine, or another service, from a service; `+` for a blank."""
RUNNING = """
    Type NotifyAccess ExecStart Environment ExecReload WatchdogSec Restart RestartSec RestartPreventExitStatus
    TimeoutStopSec SyslogLevel
"""
"""Names of the other directives of a service."""


@pytest.mark.parametrize("name", SANDBOXES)
def test_a_unit_has_every_line_of_its_sandbox(name: str) -> None:
    service = (ROOT / name).read_text(encoding="utf-8").partition("[Service]\n")[2].partition("\n[")[0]
    lines = [line for line in service.splitlines() if re.match("[A-Z]", line)]
    sandbox = [line.replace(" ", "+") for line in lines if line.partition("=")[0] not in RUNNING.split()]
    assert sorted(sandbox) == sorted(SANDBOXES[name].split())


def variables(name: str) -> dict[str, str]:
    """The variables that a unit or a drop-in sets, commented examples included."""
    return dict(setting.split("=", 1) for setting in merged(name).get("Environment", []))


def test_every_variable_is_a_setting() -> None:
    known = {variable_name(declared.name) for declared in fields(Settings)}
    for name in FILES:
        assert set(variables(name)) <= known


@pytest.mark.parametrize("name", [FILES[0], IMPORT_UNITS[0]])
def test_starts_of_a_service_have_no_limit(name: str) -> None:
    """It would end the path unit for good (unit-start-limit-hit), as seen in systemd 252."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "\nStartLimitIntervalSec=0\n" in text and "\nStartLimitBurst" not in text


def test_the_second_instance_has_its_own_state_and_port() -> None:
    text = (ROOT / "deploy/read-instance.conf").read_text(encoding="utf-8")
    installed = sorted(re.findall(r"/reviewsd-read\.service\.d/(\S+)", text))  # the order of systemd.unit(5)
    assert installed == ["10-settings.conf", "20-read-instance.conf"]
    first, second = merged(*FILES[:2]), merged(*FILES[:3])
    assert (first["StateDirectory"], second["StateDirectory"]) == (["reviewsd"], ["reviewsd-read"])
    assert first["StateDirectoryMode"] == second["StateDirectoryMode"] == ["0700"]
    port = dict(each.split("=", 1) for each in second["Environment"])["REVIEWSD_PORT"]
    assert second["SocketBindAllow"] == [f"tcp:{port}"] == ["tcp:8081"]
    of_proxies = (ROOT / "docs/server.md").read_text(encoding="utf-8").count("127.0.0.1:8081")
    assert of_proxies == 2


@pytest.mark.parametrize("name", [*DOCUMENTS, "deploy/Caddyfile", *FILES, *IMPORT_UNITS])
def test_files_that_the_unit_names_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    named = re.findall(r"\b(?:deploy|docs)/[\w.-]*\w", text)
    assert all((ROOT / path).is_file() for path in named), named


def test_the_example_of_another_port_is_whole() -> None:
    allowed = merged(*FILES[:2])["SocketBindAllow"]
    assert allowed == [f"tcp:{variables('deploy/settings.conf')['REVIEWSD_PORT']}"]


def test_the_import_units_can_be_loaded_and_meet_in_one_directory(tmp_path: Path) -> None:
    for name in IMPORT_UNITS:
        text = (ROOT / name).read_text(encoding="utf-8")
        runnable = text.replace("/opt/reviewsd/bin/reviewsd-import", "/bin/true")
        (tmp_path / Path(name).name).write_text(runnable)
    command = [program("systemd-analyze"), "verify", *map(str, sorted(tmp_path.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "reviewsd-import" not in done.stderr
    assert merged(IMPORT_UNITS[1])["PathChanged"] == ["/srv/reviews-drop"]
    assert "--drop /srv/reviews-drop --data /srv/reviews" in merged(IMPORT_UNITS[0])["ExecStart"][0]


def run_import(drop: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the unit for this directory, with another program in place of ours."""
    command = merged(IMPORT_UNITS[0])["ExecStart"][0].replace("$$", "$")
    replaced = {
        "/srv/reviews-drop": str(drop),
        "/opt/reviewsd/bin/reviewsd-import": program,
        "/bin/sh -c ": "",
    }
    for shipped, ours in replaced.items():
        assert shipped in command
        command = command.replace(shipped, ours)
    arguments = ["/bin/sh", "-c", command.strip("'")]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)


def import_command(directory: Path, script: str) -> str:
    """A program in place of `reviewsd-import`, and a drop folder with a file beside it."""
    (directory / "drop").mkdir()
    (directory / "drop" / "a").touch()
    importer = directory / "importer"
    importer.write_text(f"#!/bin/sh\n{script}\n")
    importer.chmod(0o755)
    return str(importer)


def test_an_export_that_arrives_during_an_import_is_imported_next(tmp_path: Path) -> None:
    drop = tmp_path / "drop"
    done = run_import(drop, import_command(tmp_path, f'echo run "$@"\ntouch {drop}/b'))
    assert done.stdout.splitlines() == 2 * [f"run --drop {drop} --data /srv/reviews"]


def test_the_unit_ends_with_the_status_of_a_failed_import(tmp_path: Path) -> None:
    assert run_import(tmp_path / "drop", import_command(tmp_path, "exit 78")).returncode == 78
