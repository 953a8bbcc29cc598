"""A folder of Markdown, HTML and plain-text files as a knowledge source."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import structlog
from bs4 import BeautifulSoup
from markdownify import markdownify

from adapters.sources.front_matter import Properties, properties_from, split_front_matter
from core.errors import MalformedInput, SourceUnavailable
from core.knowledge.document import Document
from core.knowledge.markdown import BlockKind, blocks

MAX_BYTES = 2_000_000  # of one file; a larger one is data, not a document

log = structlog.get_logger()


class FolderSource:
    """Every document in a folder and the folders in it, as it is now.

    The family is the first folder on a document's path, or the source's name for a file at the top. Links that lead
    out of the folder are not followed. A file that cannot be understood is logged and left out.
    """

    def __init__(self, name: str, folder: Path, url: str = "") -> None:
        """`url` is where the folder is published: a document's path is appended to it; empty: nowhere."""
        self._name = name
        self._folder = folder
        self._url = url.rstrip("/")

    @property
    def name(self) -> str:
        return self._name

    async def documents(self) -> AsyncIterator[Document]:
        for path in await asyncio.to_thread(lambda: sorted(self._files())):
            try:
                yield await asyncio.to_thread(self._read, path)
            except MalformedInput as error:
                log.warning("document_left_out", path=str(path), error=str(error))

    def _files(self) -> Iterator[Path]:
        def fail(error: OSError) -> None:
            raise SourceUnavailable(f"The folder {error.filename} cannot be read: {error.strerror}.") from error

        root = self._folder.resolve()
        for parent, _, names in os.walk(root, onerror=fail):
            for path in (Path(parent) / name for name in names if Path(name).suffix.lower() in _FORMATS):
                if path.resolve().is_relative_to(root) and path.is_file():
                    yield path

    def _read(self, path: Path) -> Document:
        relative = PurePosixPath(path.relative_to(self._folder.resolve()))
        try:
            if path.stat().st_size > MAX_BYTES:
                raise MalformedInput(f"The file is larger than {MAX_BYTES} bytes.")
            content = path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError as error:
            raise MalformedInput("The file is gone.") from error
        except OSError as error:
            raise SourceUnavailable(f"The file {path} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise MalformedInput("The file is not UTF-8 text.") from error
        properties, text = _FORMATS[path.suffix.lower()](content)
        return Document(
            id=f"{self._name}/{relative}",
            source=self._name,
            family=relative.parts[0] if len(relative.parts) > 1 else self._name,
            title=properties.title or relative.stem,
            text=text,
            url=f"{self._url}/{quote(str(relative))}" if self._url else "",
            owner=properties.owner,
            updated_at=properties.updated_at,
            readers=properties.readers,
        )


def parse_markdown(content: str) -> tuple[Properties, str]:
    """Front matter, or else the first heading as the title, and the text below. Raises MalformedInput."""
    properties, text = split_front_matter(content)
    if not properties.title:
        headings = (block.heading for block in blocks(text) if block.kind is BlockKind.HEADING)
        properties = replace(properties, title=next(headings, ""))
    return properties, text.strip()


def _html(content: str) -> tuple[Properties, str]:
    soup = BeautifulSoup(content, "html.parser")
    metadata = {str(tag.get("name")): str(tag.get("content") or "") for tag in soup.find_all("meta") if tag.get("name")}
    title = soup.title.get_text() if soup.title else ""
    for tag in soup(["script", "style", "nav", "head"]):
        tag.decompose()
    text = markdownify(str(soup.body or soup), heading_style="ATX", bullets="-", escape_misc=False)
    return properties_from(metadata | {"title": title}), text.strip()


def _plain(content: str) -> tuple[Properties, str]:
    """The first line is the title."""
    properties, text = split_front_matter(content)
    title, _, rest = text.strip().partition("\n")
    return replace(properties, title=properties.title or title.strip()), rest.strip() or title.strip()


_FORMATS: dict[str, Callable[[str], tuple[Properties, str]]] = {
    ".md": parse_markdown,
    ".markdown": parse_markdown,
    ".html": _html,
    ".htm": _html,
    ".txt": _plain,
}
