"""Exports in the form of real ones, with invented names, and imports of them.

Sections: reviews - files - a shop.
"""

import csv
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from reviewslib import files
from reviewslib.importer import command
from reviewslib.importer.reading import Settling
from reviewslib.terminal import EXIT_BAD_DATA, EXIT_SUCCESS

FOLDER = "Takeout/Google Business Profile"
PLACE = "11717195200126145618"
ZONE = "America/Los_Angeles"
HEADER = "id author rating date text source source_url reply reply_date"
ROW = [
    "7",
    "Ann",
    "5",
    "2024-01-02",
    "Good",
    "fb",
    "https://fb.example/7",
    "Thanks",
    "2024-01-03",
]
# A file of Google Maps with reviews that the owner wrote.
OWN_REVIEWS = b'{"type": "FeatureCollection", "features": [{"properties": {}}]}'

# ---- Reviews ----

Item = dict[str, Any]


def moment(day: int, second: int = 0, fraction: str = ".709635") -> str:
    """A moment of a day of 2025, whose months have 28 days here."""
    month = day // 28 + 1
    day_of_month = day % 28 + 1
    return f"2025-{month:02}-{day_of_month:02}T20:15:{second:02}{fraction}Z"


def item(number: int, account: str = "1", place: str = PLACE, **changes: Any) -> Item:
    """A review as Takeout has it; a change to None removes a key."""
    id = f"ChZDSUhNMG9n{number:04}EAE"
    usual = {
        "reviewer": {"displayName": f"Ósk Nr{number}"},
        "starRating": "FIVE",
        "comment": f"Kom aftur, í {number}. skipti",
        "createTime": moment(number),
        "updateTime": moment(number),
        "name": f"accounts/{account}/locations/{place}/reviews/{id}",
    }
    return {key: value for key, value in (usual | changes).items() if value is not None}


def takeout_id(number: int) -> str:
    """The id that is given to `item`."""
    return f"google-ChZDSUhNMG9n{number:04}EAE"


def api_item(number: int, **changes: Any) -> Item:
    """The same review as a page of the Business Profile API has it."""
    own = {
        "reviewId": f"AbFvOq{number:04}",
        "name": f"accounts/9/locations/{PLACE}/reviews/AbFvOq{number:04}",
        "createTime": moment(number, fraction=".709"),
        "updateTime": moment(number, fraction=".709"),
    }
    return item(number, **(own | changes))


# ---- Files ----


def page(items: Iterable[Item], **more: Any) -> bytes:
    return json.dumps({"reviews": list(items), **more}).encode()


def takeout_files(
    items: Sequence[Item],
    place: str = PLACE,
    title: str | None = "Bó's Bakarí",
    size: int = 20,
) -> dict[str, bytes]:
    """The files of one location by path, `size` reviews a page."""
    base = f"{FOLDER}/account-1/location-{place}"
    files = {f"{base}/data.json": json.dumps({"title": title}).encode()}
    for start in range(0, max(len(items), 1), size):
        # Only the first page has no token in its name.
        token = f"-t{start}" if start else ""
        files[f"{base}/reviews{token}.json"] = page(items[start : start + size])
    return files


def zipped(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def dated(path: Path, time: str) -> Path:
    """A file that was last written at this moment."""
    seconds = datetime.fromisoformat(time).timestamp()
    os.utime(path, (seconds, seconds))
    return path


def stamped(day: int, part: int = 1) -> str:
    """The name of a part of a Takeout, made on this day after all its reviews."""
    date = moment(day)[: len("2025-01-01")].replace("-", "")
    return f"takeout-{date}T230000Z-{part:03}.zip"


def takeout(path: Path, items: Sequence[Item], **where: str) -> Path:
    """A ZIP as Google makes it."""
    other = {
        f"{FOLDER}/businessPersonalization.json": b"{}",
        "Takeout/archive_browser.html": b"<html>",
    }
    return zipped(path, other | takeout_files(items, **where))


def table(header: str, *rows: Sequence[str], delimiter: str = ",") -> str:
    """A CSV with a header that names columns by spaces."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows([header.split(), *rows])
    return out.getvalue()


# ---- A shop ----


class Shop:
    """A data directory into which a test imports."""

    def __init__(self, root: Path, output: Callable[[], Any] = str):
        """`output` returns what was printed since its last call, as `out` and `err`."""
        root.mkdir(exist_ok=True)
        self.root = root
        self.data = root / "data"
        self.output = output

    # ---- Files to import ----

    def file(self, name: str, content: bytes | str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        return path

    def page(self, *items: Item, name: str = "p", **more: Any) -> Path:
        """A page of reviews."""
        return self.file(name, page(items, **more))

    def zip(self, name: str, files: Mapping[str, bytes]) -> Path:
        """An archive."""
        return zipped(self.root / name, files)

    def takeout(
        self, day: int, reviews: Iterable[int | Item], name: str = "", **where: str
    ) -> Path:
        """A Takeout with these reviews, given as items or numbers.

        `name` replaces the name with the day.
        """
        items = [item(entry) if isinstance(entry, int) else entry for entry in reviews]
        return takeout(self.root / (name or stamped(day)), items, **where)

    def csv(
        self,
        *rows: Sequence[str],
        header: str = "author rating date text",
        name: str = "a.csv",
    ) -> Path:
        """A CSV file."""
        return self.file(name, table(header, *rows))

    # ---- Commands ----

    def run(self, *arguments: object) -> int:
        # Files of a test are at rest as soon as they are written.
        settling = Settling(quiet_seconds=0)
        words = [*map(str, arguments), "--data", str(self.data)]
        return command.main(words, settling)

    def run_until_killed(self, *arguments: object, name: str = "reviews.json") -> None:
        """Run a command that is killed before it puts the file `name` in its place."""
        rename = files.rename

        def killed(path: Path, target: Path, *others: Any) -> None:
            if target.name == name:
                raise SystemExit(9)
            rename(path, target, *others)

        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
            patch.setattr(files, "rename", killed)
            self.run(*arguments)

    def take(self, *arguments: object) -> None:
        """Run an import, which must succeed."""
        assert self.run(*arguments, "--zone", ZONE) == EXIT_SUCCESS

    def told(self, *arguments: object) -> str:
        """The report of an import that succeeds."""
        self.output()
        self.take(*arguments)
        return str(self.output().out)

    def refused(self, *arguments: object) -> str:
        """The error output of a command, which must fail and change no file."""
        self.output()
        before = self.files()
        assert self.run(*arguments) == EXIT_BAD_DATA
        assert self.files() == before
        return str(self.output().err)

    # ---- The data directory ----

    def files(self) -> dict[str, bytes]:
        """The content of each file; none before the first import."""
        if not self.data.exists():
            return {}
        files = filter(Path.is_file, self.data.iterdir())
        return {path.name: path.read_bytes() for path in files}

    @property
    def document(self) -> dict[str, Any]:
        return json.loads((self.data / "reviews.json").read_bytes())  # type: ignore[no-any-return]

    @property
    def state(self) -> dict[str, Any]:
        return json.loads((self.data / "import-state.json").read_bytes())  # type: ignore[no-any-return]

    @property
    def reviews(self) -> dict[str, dict[str, Any]]:
        return {review["id"]: review for review in self.document["reviews"]}

    def only(self) -> dict[str, Any]:
        (review,) = self.document["reviews"]
        return review  # type: ignore[no-any-return]

    def texts(self) -> set[Any]:
        return {review["text"] for review in self.document["reviews"]}

    def numbers(self) -> set[int]:
        """The numbers of the stored reviews of Google."""
        words = [text.split() for text in self.texts()]
        # The last but one of each: see `item`.
        return {int(number.rstrip(".")) for *_, number, _ in words}

    def edit(self, id: str, **changes: Any) -> None:
        """Change a review by hand, or add one."""
        document = self.document
        reviews = self.reviews
        reviews[id] = reviews.pop(id, {"id": id}) | changes
        document["reviews"] = list(reviews.values())
        self.file("data/reviews.json", json.dumps(document))

    def lose(self, *names: str) -> None:
        """Lose files of the data directory."""
        for name in names or ("import-state.json",):
            (self.data / name).unlink()
