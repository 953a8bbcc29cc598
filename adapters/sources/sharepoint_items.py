"""Sites, libraries, files and pages of SharePoint as Microsoft Graph returns them, and the HTML of a page's canvas.

https://learn.microsoft.com/graph/api/resources/site · https://learn.microsoft.com/graph/api/resources/driveitem
https://learn.microsoft.com/graph/api/resources/sitepage · https://learn.microsoft.com/graph/api/resources/canvaslayout
https://learn.microsoft.com/graph/api/resources/standardwebpart
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import PurePosixPath
from typing import Any

from pydantic import AliasPath, BaseModel, ConfigDict, Field

from adapters.edge import Moment
from adapters.sources.formats import has_format, web_address
from adapters.sources.sharepoint_access import Identity
from core.model.layout import missing_part

ID = r"^[\w!-]+$"
SILENT = frozenset(
    {
        "2161a1c6-db61-4731-b97c-3cdb303f7cbb",  # divider
        "8654b779-4886-46d4-8ffb-b5ed960ee986",  # spacer
        "d1d91016-032f-456d-98a4-721247c305e8",  # image
        "6410b3b6-d440-4663-8744-378976dc041e",  # link preview
    }
)
"""Types of web parts that hold no text: https://learn.microsoft.com/graph/api/resources/standardwebpart"""
CODE = "code"  # the key of the text of a code snippet and of Markdown


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Site(_Model):
    id: str = Field(pattern=r"^[\w!-][\w.,!-]*$")
    name: str = ""
    displayName: str = ""


class Library(_Model):
    id: str = Field(pattern=ID)
    name: str = ""


class Item(_Model):
    """The properties that files and pages share."""

    id: str = Field(pattern=ID)
    name: str = ""
    eTag: str | None = None
    webUrl: str = ""
    lastModifiedDateTime: Moment | None = None
    author: Identity | None = Field(None, validation_alias=AliasPath("createdBy", "user"))
    editor: Identity | None = Field(None, validation_alias=AliasPath("lastModifiedBy", "user"))

    @property
    def version(self) -> str:
        """Return a text that changes with the item; empty if there is none."""
        return self.eTag or (self.lastModifiedDateTime.isoformat() if self.lastModifiedDateTime else "")

    @property
    def url(self) -> str:
        return web_address(self.webUrl)

    @property
    def people(self) -> Iterator[tuple[str, ...]]:
        return (each.names for each in (self.author, self.editor) if each and each.names)


class File(Item):
    """An item of a library: a file, a folder, or what was deleted."""

    size: int = 0
    file: dict[str, Any] | None = None
    deleted: dict[str, Any] | None = None

    @property
    def is_there(self) -> bool:
        return self.file is not None and self.deleted is None

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath(PurePosixPath(self.name).name)

    @property
    def is_document(self) -> bool:
        return self.is_there and has_format(self.path)


class _Pair(_Model):
    key: str = ""
    value: str = ""


class _WebPart(_Model):
    """A text with HTML, or another part with what SharePoint's own search indexes of it."""

    innerHtml: str | None = None
    webPartType: str | None = None
    title: str | None = Field(None, validation_alias=AliasPath("data", "title"))
    html: list[_Pair] = Field([], validation_alias=AliasPath("data", "serverProcessedContent", "htmlStrings"))
    texts: list[_Pair] = Field([], validation_alias=AliasPath("data", "serverProcessedContent", "searchablePlainTexts"))

    @property
    def content(self) -> str:
        if self.innerHtml:
            return self.innerHtml
        parts = [pair.value for pair in self.html]
        if not any(parts):
            parts = [_text(pair) for pair in self.texts if pair.value]
        if not any(parts) and self.webPartType and self.webPartType.lower() not in SILENT:
            parts = [f"<p>{escape(missing_part(self.title or 'a web part'))}</p>"]
        return "".join(parts)


class _Column(_Model):
    webparts: list[_WebPart] = []


class _Section(_Model):
    columns: list[_Column] = []


class _Canvas(_Model):
    horizontalSections: list[_Section] = []
    verticalSection: _Column | None = None


class SitePage(Item):
    title: str = ""
    level: str = Field("", validation_alias=AliasPath("publishingState", "level"))
    canvasLayout: _Canvas | None = None

    @property
    def is_published(self) -> bool:
        """Return whether the newest version is published; Graph returns drafts, which only editors see."""
        return self.level == "published"

    @property
    def html(self) -> str:
        """Return the content from left to right and from top to bottom."""
        canvas = self.canvasLayout or _Canvas()
        columns = [column for section in canvas.horizontalSections for column in section.columns]
        if canvas.verticalSection:
            columns.append(canvas.verticalSection)
        return "".join(f"<div>{part.content}</div>" for column in columns for part in column.webparts)


def _text(pair: _Pair) -> str:
    return f"<pre>{escape(pair.value)}</pre>" if pair.key == CODE else f"<p>{escape(pair.value)}</p>"
