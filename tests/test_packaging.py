"""The package, the image and the workflows name what is in this repository, and agree with the program.

What an installed package does is in `test_installation`.

Sections: The package - The image - The compose file - The workflows
"""

import re
import runpy
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab.services import ROOT

from reviewslib.process.settings import Settings, variable_name

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MODULES = PROJECT["tool"]["setuptools"]["py-modules"]
# Without being told.
SETUPTOOLS_PACKS = {"pyproject.toml", "setup.py", "MANIFEST.in"}
SETUPTOOLS_PACKS |= {f"{name}.py" for name in MODULES}
SETUP = runpy.run_path(str(ROOT / "setup.py"))
CONTAINERFILE = (ROOT / "Containerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


def is_in_unit(assignment: str) -> bool:
    unit = (ROOT / "reviewsd.service").read_text(encoding="utf-8")
    return assignment in unit.splitlines()


# ---- The package ----


def test_the_supported_pythons_are_those_that_are_tested() -> None:
    (check,) = [path for path in WORKFLOWS if path.name == "check.yml"]
    jobs = yaml.safe_load(check.read_text(encoding="utf-8"))["jobs"]
    named = re.findall(
        r"Python :: (3\.[0-9]+)$", "\n".join(PROJECT["project"]["classifiers"]), re.M
    )

    assert jobs["test"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"


def imported_by_the_program() -> set[str]:
    """The packages of others that modules of the program import."""
    names = set()
    for path in [*ROOT.glob("*.py"), *(ROOT / "reviewslib").rglob("*.py")]:
        if path.name == "setup.py":
            continue
        lines = re.findall(
            r"^ *(?:from|import) (\w+)", path.read_text("utf-8"), re.MULTILINE
        )
        names.update(lines)
    return names - sys.stdlib_module_names - {"reviewslib", *MODULES}


def test_the_package_requires_what_the_program_imports() -> None:
    required = [re.split(r"\W", line)[0] for line in PROJECT["project"]["dependencies"]]

    # Jinja brings MarkupSafe.
    assert imported_by_the_program() - {"markupsafe"} == set(required)


def test_the_source_archive_has_what_the_tests_read() -> None:
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    packed = {*manifest.split(), "reviewslib", *SETUPTOOLS_PACKS}
    tests = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py")]

    read = set(re.findall(r'ROOT / "([\w.]+)"', "\n".join(tests)))

    documents = {name for name in read if name.endswith(".md")}
    assert "docs" in read
    assert "*.md" in packed
    assert read - documents - packed == set()


def links_in(text: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", text)


def test_without_an_address_the_package_page_links_to_nothing_missing() -> None:
    readme = SETUP["readme"]("")

    assert [link for link in links_in(readme) if ":" not in link] == []
    assert "docs/home.png" not in readme
    assert "- docs/api.md: parameters" in readme


def test_with_an_address_the_package_page_links_to_the_documents() -> None:
    readme = SETUP["readme"]("https://forge.example/a/reviewsd")

    assert "[docs/api.md](https://forge.example/a/reviewsd/blob/HEAD/docs/api.md)" in (
        readme
    )
    assert "(https://forge.example/a/reviewsd/raw/HEAD/docs/home.png)" in readme
    assert [link for link in links_in(readme) if ":" not in link] == []


# ---- The image ----


def test_the_image_is_built_from_all_that_the_wheel_needs() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sent = {line.removeprefix("!") for line in ignored if line.startswith("!")}

    modules = {f"{name}.py" for name in PROJECT["tool"]["setuptools"]["py-modules"]}
    assert modules | {"reviewslib", "data", "setup.py", "pyproject.toml"} <= sent
    assert [name for name in sent if not (ROOT / name).exists()] == []


def test_every_variable_of_the_image_is_a_setting() -> None:
    variables = re.findall(r"\b(REVIEWSD_[A-Z_]+)=", CONTAINERFILE)

    assert variables
    for variable in variables:
        name = variable.removeprefix("REVIEWSD_").lower()
        assert variable_name(name) == variable
        assert hasattr(Settings(), name)


def test_the_image_serves_on_the_port_that_it_names() -> None:
    port = Settings().port

    assert f"EXPOSE {port}\n" in CONTAINERFILE
    assert f"http://127.0.0.1:{port}/healthz" in CONTAINERFILE


def test_the_image_is_reached_from_outside_of_it() -> None:
    assert " REVIEWSD_HOST=0.0.0.0\n" in CONTAINERFILE


def test_data_and_state_of_the_image_are_volumes() -> None:
    assert 'VOLUME ["/data", "/state"]' in CONTAINERFILE
    assert "REVIEWSD_DATA=/data REVIEWSD_STATE_DIR=/state" in CONTAINERFILE


def test_the_image_runs_as_a_user_that_owns_its_state_alone() -> None:
    *_, user = re.findall(r"^USER (.+)$", CONTAINERFILE, re.MULTILINE)

    assert f"--no-create-home {user} " in CONTAINERFILE
    assert f"install --directory --owner={user} --mode=0700 /state" in CONTAINERFILE


# ---- The compose file ----

SERVICE: dict[str, Any] = COMPOSE["services"]["reviewsd"]
FRONT: dict[str, Any] = COMPOSE["services"]["nginx"]
SCRIPT: str = FRONT["command"][-1]


def test_the_compose_file_builds_this_repository() -> None:
    context = ROOT / "deploy" / SERVICE["build"]["context"]

    assert context.resolve() == ROOT
    assert (context / SERVICE["build"]["dockerfile"]).is_file()


def test_the_compose_file_mounts_the_shipped_file_of_nginx() -> None:
    source, target, mode = FRONT["volumes"][0].split(":")

    assert (ROOT / "deploy" / source).is_file()
    assert f" {target} > " in SCRIPT
    assert mode == "ro"


@pytest.mark.parametrize("replaced", ["reviews.example.com", "127.0.0.1:8080"])
def test_what_the_compose_file_replaces_is_in_the_shipped_file(replaced: str) -> None:
    nginx = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")

    assert f"s/{replaced}/" in SCRIPT
    assert replaced in nginx


def test_nginx_has_the_connections_of_the_readme() -> None:
    (command,) = re.findall(r"sed -i (.*worker_connections.*) /etc/nginx", README)

    assert command in SCRIPT


def test_the_container_has_the_limits_of_the_unit() -> None:
    assert SERVICE["mem_limit"] == "1g"
    assert is_in_unit("MemoryMax=1G")
    assert is_in_unit(f"TasksMax={SERVICE['pids_limit']}")
    assert is_in_unit(f"TimeoutStopSec={SERVICE['stop_grace_period'].rstrip('s')}")


def test_the_container_is_as_closed_as_the_unit() -> None:
    assert SERVICE["read_only"] is True
    assert is_in_unit("ProtectSystem=strict")
    assert SERVICE["cap_drop"] == ["ALL"]
    assert is_in_unit("CapabilityBoundingSet=")
    assert SERVICE["security_opt"] == ["no-new-privileges:true"]
    assert is_in_unit("NoNewPrivileges=yes")


def test_the_container_writes_nothing_but_its_state() -> None:
    writable = [one for one in SERVICE["volumes"] if not one.endswith(":ro")]

    assert writable == ["state:/state"]


@pytest.mark.parametrize("container", [SERVICE, FRONT], ids=["the service", "nginx"])
def test_a_container_starts_again_with_the_machine(container: dict[str, Any]) -> None:
    assert container["restart"] == "unless-stopped"


def test_the_front_has_the_ports_of_the_web() -> None:
    assert FRONT["ports"] == ["80:80", "443:443"]


def test_nginx_starts_when_the_service_answers_and_with_it_again() -> None:
    # It looks up the address of the service once.
    assert FRONT["depends_on"]["reviewsd"] == {
        "condition": "service_healthy",
        "restart": True,
    }


# ---- The workflows ----


@pytest.mark.parametrize("path", WORKFLOWS, ids=[path.name for path in WORKFLOWS])
def test_a_workflow_can_do_nothing_but_read_by_default(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))

    assert workflow["permissions"] == {"contents": "read"}


def test_nothing_is_published_until_the_owner_says_so() -> None:
    jobs = yaml.safe_load((WORKFLOWS[0].with_name("release.yml")).read_text("utf-8"))
    package = jobs["jobs"]["package"]
    (build,) = [
        step
        for step in jobs["jobs"]["image"]["steps"]
        if step["uses"].startswith("docker/build-push-action@")
    ]

    assert package["if"] == "vars.PUBLISH_PACKAGE == 'yes'"
    assert build["with"]["push"] == "${{ vars.PUBLISH_IMAGE == 'yes' }}"
    assert build["with"]["file"] == "Containerfile"
