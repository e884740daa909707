"""What the bench runs on: programs from Debian, packages from PyPI, and the names of all versions.

Sections: Debian programs - Virtual environments - Versions
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from load import BenchError

BENCH = Path(__file__).resolve().parent
PROJECT = BENCH.parent
FASTAPI_REQUIREMENTS = ("fastapi>=0.130", "uvicorn[standard]")
MCP_SDK_REQUIREMENTS = ("mcp>=2.3,<3", "uvicorn[standard]")
INSTALL_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything that servers are started with."""

    nginx: str
    wrk: str
    openssl: str
    service_python: Path  # has the dependencies of pyproject.toml and nothing else
    fastapi_python: Path
    mcp_sdk_python: Path


def prepare(cache: Path) -> Environment:
    """Install whatever is missing. Raises BenchError with what to do when that is impossible."""
    dependencies = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    return Environment(
        nginx=debian_program("nginx"),
        wrk=debian_program("wrk"),
        openssl=debian_program("openssl"),
        service_python=virtual_environment(cache / "venv-reviewsd", dependencies),
        fastapi_python=virtual_environment(cache / "venv-fastapi", FASTAPI_REQUIREMENTS),
        mcp_sdk_python=virtual_environment(cache / "venv-mcp-sdk", MCP_SDK_REQUIREMENTS),
    )


# ---- Debian programs ----


def debian_program(name: str) -> str:
    """The path of a program, from the Debian package of the same name when it is not there yet."""
    if found := _find(name):
        return found
    advice = f"{name} is needed and not installed; as root: apt-get install {name}"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise BenchError(advice)
    _run("apt-get", "update", "--quiet", failure=advice)
    _run("apt-get", "install", "--quiet", "--yes", "--no-install-recommends", name, failure=advice)
    if name == "nginx" and Path("/run/systemd/system").exists():
        # The package starts a public web server of its own, which nobody asked for.
        _run("systemctl", "disable", "--now", "nginx", failure="the nginx service cannot be stopped")
    if found := _find(name):
        return found
    raise BenchError(advice)


def _find(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


# ---- Virtual environments ----


def virtual_environment(directory: Path, requirements: tuple[str, ...] | list[str]) -> Path:
    """The interpreter of an environment with `requirements`, made when absent or made for others."""
    python = directory / "bin" / "python"
    wanted = "\n".join([platform.python_version(), *requirements])
    stamp = directory / "requirements.txt"
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    failure = f"cannot install {', '.join(requirements)} into {directory}"
    _run(sys.executable, "-m", "venv", "--clear", str(directory), failure=failure)
    _run(
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        *requirements,
        failure=failure,
    )
    stamp.write_text(wanted)
    return python


def _run(*command: str, failure: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    if done.returncode != 0:
        raise BenchError(f"{failure}\n{' '.join(command)}: {done.stderr.strip()[-2000:]}")


# ---- Versions ----

VERSION_OF = (
    "import importlib.metadata as m, sys; print(*(n + ' ' + m.version(n) for n in sys.argv[1:]), sep=', ')"
)


def versions(environment: Environment) -> dict[str, str]:
    """What was measured with what, for the head of the results."""
    service = _packages(environment.service_python, "granian", "werkzeug", "jsonschema")
    fastapi = _packages(
        environment.fastapi_python, "fastapi", "starlette", "pydantic", "uvicorn", "uvloop", "httptools"
    )
    sdk = _packages(environment.mcp_sdk_python, "mcp", "starlette", "pydantic", "uvicorn", "uvloop")
    nginx = _output(environment.nginx, "-v").rpartition("/")[2]
    wrk = _output(environment.wrk, "-v").partition("[")[0].removeprefix("wrk ")
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory_gb():.0f} GB",
        "system": f"{platform.freedesktop_os_release()['PRETTY_NAME']}, Linux {platform.release()}",
        "Python": platform.python_version(),
        "reviewsd": f"{_commit()}; {service}",
        "nginx": nginx,
        "FastAPI": fastapi,
        "MCP SDK": sdk,
        "wrk": wrk,
    }


def _packages(python: Path, *names: str) -> str:
    return _output(str(python), "-c", VERSION_OF, *names)


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return ((done.stdout + done.stderr).strip().splitlines() or [""])[0].strip()


def _commit() -> str:
    describe = ("git", "-C", str(PROJECT), "describe", "--always", "--dirty", "--abbrev=12")
    done = subprocess.run(describe, capture_output=True, text=True, timeout=60)
    return f"commit {done.stdout.strip()}" if done.returncode == 0 else "no commit"


def _processor() -> str:
    names = (
        line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")
    )
    return next(names, platform.machine())


def _memory_gb() -> float:
    kilobytes = next(int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal"))
    return kilobytes / 1024 / 1024


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
