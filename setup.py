"""What `pyproject.toml` cannot say of the package: its folders, and the README.

Every folder of `reviewslib` is packed, and `data` as the sample. On the package index a
link into the repository leads nowhere: with the address of the repository it becomes
absolute, without one plain text.
"""

import re
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
LINK = re.compile(r"!?\[([^]]*)\]\((?!https?://)([^)]+)\)")


def address() -> str:
    """The address of the repository; empty if its owner has not filled it in."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    filled: str = project["tool"]["reviewsd"]["address"]
    return filled.rstrip("/")


def readme(address: str) -> str:
    """The README with links that lead somewhere from anywhere."""

    def absolute(link: re.Match[str]) -> str:
        text, target = link.groups()
        if not address:
            return "" if link[0].startswith("!") else text
        if link[0].startswith("!"):
            return f"![{text}]({address}/raw/HEAD/{target})"
        return f"[{text}]({address}/blob/HEAD/{target})"

    return LINK.sub(absolute, (HERE / "README.md").read_text(encoding="utf-8"))


def urls(address: str) -> dict[str, str]:
    """The links beside the description on the package index."""
    if not address:
        return {}
    return {"Source": address, "Changelog": f"{address}/blob/HEAD/CHANGELOG.md"}


if __name__ == "__main__":
    # Here, since tests read this module where there is no setuptools.
    from setuptools import find_namespace_packages, setup

    folders = find_namespace_packages(include=["reviewslib*"])
    setup(
        packages=[*folders, "reviewslib.sample"],
        long_description=readme(address()),
        long_description_content_type="text/markdown",
        project_urls=urls(address()),
    )
