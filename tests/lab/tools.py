"""Programs and rights that some tests need; programs can be installed, rights cannot.

Without one a test is skipped with the reason. `.ci/run` installs every program and
fails for every skip, except for a right that is not granted.

Sections: Programs - Rights - Limits
"""

import ctypes
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

CLONE_NEWNET = 0x40000000  # for unshare(2) and setns(2)


# ---- Programs ----


def program(name: str) -> str:
    """The path of a program; skips the test when there is none."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not found:
        pytest.skip(f"{name} is not installed; on Debian `.ci/run` installs it")
    return found


# ---- Rights ----


class Right(NamedTuple):
    """A right that a sandbox may lack, and the reason to skip without it."""

    is_granted: Callable[[], bool]
    reason: str


def needs(name: str) -> None:
    """Skip the test unless the right of this name is granted."""
    if not RIGHTS[name].is_granted():
        pytest.skip(f"not granted: {RIGHTS[name].reason}")


@cache
def succeeds(*command: str) -> bool:
    """Whether a command can be run and ends with status 0."""
    with suppress(OSError):
        return subprocess.run(command, capture_output=True).returncode == 0
    return False


NAMESPACE = (
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
)  # begins a command, which has no network


def can_change_network() -> bool:
    """Whether a process of ours may have a network with addresses of IPv6."""
    return succeeds(
        "unshare", "--net", "ip", "address", "add", "2001:db8::1/128", "dev", "lo"
    )


@contextmanager
def own_network(*addresses: str) -> Iterator[None]:
    """A network for this thread and what it starts: loopback with these addresses."""
    kernel = ctypes.CDLL(None)
    changes = [
        "link set lo up",
        *(f"address add {address} dev lo nodad" for address in addresses),
    ]
    with Path("/proc/thread-self/ns/net").open() as before:
        if kernel.unshare(CLONE_NEWNET):
            raise PermissionError("only root may have a network of its own")
        try:
            subprocess.run(
                ["ip", "-batch", "-"], input="\n".join(changes), text=True, check=True
            )
            yield
        finally:
            kernel.setns(before.fileno(), CLONE_NEWNET)


SMALL_DISK = "600k"


def on_a_small_disk(directory: Path, command: list[str]) -> list[str]:
    """The command with a small file system, which ends with it, at a directory."""
    mount = f'mount -t tmpfs -o size={SMALL_DISK} none {directory} && exec "$@"'
    namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    return [*namespace, "sh", "-c", mount, "sh", *command]


@cache
def can_mount() -> bool:
    """Whether a command of ours may have a file system of its own."""
    with TemporaryDirectory() as directory:
        return succeeds(*on_a_small_disk(Path(directory), ["true"]))


def booted_command(directory: Path, *arguments: str) -> list[str]:
    """The command that runs this machine's system in a container (systemd-nspawn(1)).

    It writes to memory. Its root has to be another directory than ours, so ours is
    mounted there; `directory` is empty.
    """
    options = "--quiet --volatile=overlay --register=no --keep-unit"
    options += " --link-journal=no --private-network"
    container = [
        "systemd-nspawn",
        *options.split(),
        "--console=pipe",
        f"--directory={directory}",
        *arguments,
    ]
    return [
        "unshare",
        "--mount",
        "sh",
        "-c",
        f'mount --bind / {directory} && exec "$@"',
        "sh",
        *container,
    ]


@cache
def can_boot() -> bool:
    """Whether a container of this machine's system can be run."""
    with TemporaryDirectory() as directory:
        return succeeds(*booted_command(Path(directory), "true"))


def can_judge_units() -> bool:
    """Whether `systemd-analyze` has its directory, or may make it."""
    return Path("/run/systemd").is_dir() or os.access("/run", os.W_OK)


RIGHTS = {
    "a network namespace": Right(
        lambda: succeeds(*NAMESPACE, "true"), "network namespaces are not allowed"
    ),
    "a network of its own": Right(
        can_change_network, "only root with `unshare` and `ip` may have a network"
    ),
    "a file system of its own": Right(can_mount, "mount namespaces are not allowed"),
    "a directory of systemd": Right(
        can_judge_units, "only root may make /run/systemd, which systemd would make"
    ),
    "a booted system": Right(can_boot, "a system cannot be booted here"),
}

# ---- Limits ----


@contextmanager
def limited(limit: int) -> Iterator[None]:
    """This process gets no more of a resource of the module `resource`."""
    soft, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(limit, (soft, hard))
