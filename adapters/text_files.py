"""One rule for the text in files: UTF-8, or the encoding that its byte order mark names."""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, TextIO

MAX_RECODED = 64 * 1024 * 1024  # bytes read of a file in UTF-16

_MARKS = {BOM_UTF8: "utf-8-sig", BOM_UTF16_LE: "utf-16", BOM_UTF16_BE: "utf-16"}


def decoded(content: bytes, errors: str = "replace") -> str:
    """Return the text of a file without its byte order mark."""
    return content.decode(_encoding(content), errors)


def open_text(path: Path, newline: str | None = None) -> TextIO:
    """Open a file to read its text. Raises OSError."""
    with path.open("rb") as file:
        encoding = _encoding(file.read(4))
    return path.open(encoding=encoding, errors="replace", newline=newline)


def open_utf8(path: Path) -> BinaryIO:
    """Open a file to read its text in UTF-8, possibly with a byte order mark. Raises OSError.

    In UTF-16, it must begin with an ASCII character: a log may also begin with damaged bytes.
    """
    file = path.open("rb")
    start = file.read(4)
    if _encoding(start) == "utf-8-sig" or 0 not in start[2:]:
        file.seek(0)
        return file
    with file:
        file.seek(0)
        return BytesIO(decoded(file.read(MAX_RECODED)).encode("utf-8", "replace"))


def _encoding(start: bytes) -> str:
    """Return the encoding by the mark before the text. The bytes of a mark without text are damage."""
    marks = (encoding for mark, encoding in _MARKS.items() if start.startswith(mark) and start != mark)
    return next(marks, "utf-8-sig")
