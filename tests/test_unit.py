"""The systemd units have every line that they promise, agree with the program, and import what arrives."""

import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
from services import ROOT

import reviewsd
from reviewslib.process import serving
from reviewslib.process.settings import Settings, variable_name

UNIT, IMPORT = "reviewsd.service", "deploy/reviewsd-import.service"
DROP_INS = ["deploy/settings.conf", "deploy/read-instance.conf", "deploy/unix-socket.conf"]
WRONG_USAGE = 2  # argparse's exit status

SHARED_SANDBOX = """
    ProtectSystem=strict ProtectHome=yes ProtectProc=invisible ProcSubset=pid ProtectKernelTunables=yes
    ProtectKernelModules=yes ProtectKernelLogs=yes ProtectControlGroups=yes ProtectClock=yes
    ProtectHostname=yes PrivateTmp=yes PrivateDevices=yes RestrictNamespaces=yes RestrictRealtime=yes
    RestrictSUIDSGID=yes LockPersonality=yes MemoryDenyWriteExecute=yes NoNewPrivileges=yes MemoryMax=1G
    SystemCallArchitectures=native SystemCallFilter=@system-service StartLimitIntervalSec=0
"""
LINES = {
    UNIT: f"""{SHARED_SANDBOX}
        Wants=network-online.target After=network-online.target WantedBy=multi-user.target
        Type=notify NotifyAccess=main ExecStart=/opt/reviewsd/bin/reviewsd ExecReload=/bin/kill+-HUP+$MAINPID
        Environment=REVIEWSD_DATA=/srv/reviews WatchdogSec=60 Restart=on-failure RestartSec=2
        RestartPreventExitStatus=2+78 TimeoutStopSec=20 SyslogLevel=err
        DynamicUser=yes StateDirectory=reviewsd StateDirectoryMode=0700 UMask=0077 CapabilityBoundingSet=
        AmbientCapabilities= DevicePolicy=closed PrivateMounts=yes PrivateIPC=yes RemoveIPC=yes TasksMax=256
        PrivateUsers=yes KeyringMode=private RestrictAddressFamilies=AF_INET+AF_INET6+AF_UNIX
        SocketBindDeny=any SocketBindAllow=tcp:8080 SystemCallFilter=~@privileged+@resources
        SystemCallErrorNumber=EPERM
    """,
    IMPORT: f"""{SHARED_SANDBOX}
        Type=oneshot UMask=0022 ReadWritePaths=/srv/reviews CapabilityBoundingSet=CAP_DAC_READ_SEARCH
        PrivateNetwork=yes RestrictAddressFamilies=none
    """,
    "deploy/reviewsd-import.path": "PathChanged=/srv/reviews-drop WantedBy=multi-user.target",
    "deploy/reviewsd-import.timer": """
        OnCalendar=weekly RandomizedDelaySec=1h Persistent=yes WantedBy=timers.target
    """,
    "deploy/settings.conf": """
        Environment=REVIEWSD_BASE_URL=https://reviews.example.com #Environment=REVIEWSD_PORT=8090
        #SocketBindAllow= #SocketBindAllow=tcp:8090 #Environment=REVIEWSD_ACCESS_LOG=on #MemoryMax=2G
        #Environment=REVIEWSD_ALLOWED_ORIGIN=https://app.example.com
        #IPAddressDeny=10.0.0.0/8+172.16.0.0/12+192.168.0.0/16+169.254.0.0/16+100.64.0.0/10+fc00::/7+fe80::/10
    """,
    "deploy/read-instance.conf": """
        Environment=REVIEWSD_PORT=8081 SocketBindAllow= SocketBindAllow=tcp:8081
        Environment=REVIEWSD_NO_HUB=on StateDirectory= StateDirectory=reviewsd-read StateDirectoryMode=0700
    """,
    "deploy/unix-socket.conf": """
        RuntimeDirectory=reviewsd RuntimeDirectoryMode=0750 Group=www-data
        Environment=REVIEWSD_UDS=/run/reviewsd/http.sock
    """,
}
"""The lines of a unit or drop-in, with commented examples, without descriptions; `+` stands for a blank."""


def lines_of(name: str) -> list[str]:
    """The assignments in a file, in order, commented examples included."""
    return re.findall(r"(?m)^#?[A-Z][A-Za-z]+=.*$", (ROOT / name).read_text(encoding="utf-8"))


def value_of(name: str, directive: str) -> str:
    (value,) = [line.partition("=")[2] for line in lines_of(name) if line.startswith(f"{directive}=")]
    return value


@pytest.mark.parametrize("name", LINES)
def test_a_unit_has_every_line_that_it_promises(name: str) -> None:
    """In drop-ins the order counts: an empty line revokes what stands before it."""
    untested_here, in_order = ("Description=", "ExecStart=/bin/sh"), list if name in DROP_INS else sorted
    lines = [line.replace(" ", "+") for line in lines_of(name) if not line.startswith(untested_here)]
    assert in_order(lines) == in_order(LINES[name].split())


def test_the_unit_agrees_with_the_program() -> None:
    not_restarted = {WRONG_USAGE, reviewsd.EXIT_BAD_DATA}
    assert set(map(int, value_of(UNIT, "RestartPreventExitStatus").split())) == not_restarted
    assert int(value_of(UNIT, "TimeoutStopSec")) > serving.BEFORE_STOP_SECONDS + serving.STOP_SECONDS
    assert value_of(UNIT, "SocketBindAllow") == f"tcp:{Settings().port}"


def test_every_variable_is_a_setting() -> None:
    lines = [line for name in (UNIT, *DROP_INS) for line in lines_of(name)]
    variables = {line.split("=")[1] for line in lines if line.lstrip("#").startswith("Environment=")}
    assert variables <= {variable_name(declared.name) for declared in fields(Settings)}


@pytest.mark.parametrize("file", [*(ROOT / "docs").glob("*.md"), *(ROOT / "deploy").iterdir(), ROOT / UNIT])
def test_files_that_a_document_or_a_unit_names_exist(file: Path) -> None:
    named = re.findall(r"\b(?:deploy|docs)/[\w.-]*\w", file.read_text(encoding="utf-8"))
    assert all((ROOT / path).is_file() for path in named), named


@pytest.mark.parametrize(
    ("script", "status", "runs"),
    [("touch {drop}/b", 0, 2), ("exit 78", 78, 1)],
    ids=["an export that arrives during an import is imported next", "a failed import ends it"],
)
def test_the_import_unit_imports_until_nothing_new_arrives(
    tmp_path: Path, script: str, status: int, runs: int
) -> None:
    drop, importer = tmp_path / "drop", tmp_path / "importer"
    drop.mkdir()
    (drop / "a").touch()
    importer.write_text(f'#!/bin/sh\necho run "$@"\n{script.format(drop=drop)}\n')
    importer.chmod(0o755)
    quoted = value_of(IMPORT, "ExecStart").replace("$$", "$").removeprefix("/bin/sh -c ").strip("'")
    shell = quoted.replace("/opt/reviewsd/bin/reviewsd-import", str(importer))
    shell = shell.replace("/srv/reviews-drop", str(drop))
    done = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == status
    assert done.stdout.splitlines() == runs * [f"run --drop {drop} --data /srv/reviews"]
