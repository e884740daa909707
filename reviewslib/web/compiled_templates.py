"""Compiled templates: kept in files, as the interpreter keeps those of modules.

Compiling templates is a third of a start. What comes of it depends on much besides a
template, so a kept one counts only where all of that is the same. Files that cannot be
read or written cost time and nothing else. This module must not know what a template
says.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from hashlib import sha256
from importlib.util import cache_from_source
from pathlib import Path
from typing import cast

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from reviewslib import files
from reviewslib.web.language import Language


class CompiledTemplates(BytecodeCache):
    """The compiled templates of a directory, in all languages.

    They lie where the interpreter would keep modules of that directory, and are written
    only where it would write those. `makers` is a digest of what compiles them, but for
    the template and its language. Jinja compares the template, and gives each a `key`.
    """

    def __init__(self, directory: Path, makers: bytes):
        self._directory = directory
        self._makers = makers

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take what is kept for a template, if it is whole and was made like this."""
        with suppress(OSError):
            kept = self._path(bucket).read_bytes()
            compiled = kept[sha256().digest_size :]
            if kept == self._sealed(compiled, bucket):
                bucket.bytecode_from_string(compiled)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a compiled template, if that is possible and wanted."""
        if sys.dont_write_bytecode:
            return
        sealed = self._sealed(bucket.bytecode_to_string(), bucket)
        with suppress(OSError):
            files.write(self._path(bucket), sealed, sync=files.not_awaited)

    def _path(self, bucket: Bucket) -> Path:
        # The interpreter expects the name of a module.
        name = f"{bucket.key}.{_language(bucket).tag}.py"
        return Path(cache_from_source(str(self._directory / name)))

    def _sealed(self, compiled: bytes, bucket: Bucket) -> bytes:
        """What is kept: a digest of everything, then the compiled template."""
        seal = sha256(self._makers)
        # Messages without values are compiled into the template.
        seal.update(repr(_language(bucket).catalogue.translations).encode())
        seal.update(compiled)
        return seal.digest() + compiled


def _language(bucket: Bucket) -> Language:
    return cast(Language, bucket.environment.globals["language"])
