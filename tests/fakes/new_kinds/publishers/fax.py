"""A publisher that somebody adds: a fax machine that keeps what it is sent as numbered sheets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field, TypeAdapter

from adapters.http import Http
from adapters.publishers.section import PublisherSection
from adapters.section import Host
from core.model.incident import Filed, Report


class _Sheet(BaseModel):
    number: str
    text: str = ""


_SHEET, _SHEETS = TypeAdapter(_Sheet), TypeAdapter(list[_Sheet])


@dataclass(frozen=True, slots=True)
class Fax:
    http: Http
    line: str
    settles_after: float = 0.0

    async def find(self, report: Report) -> Filed | None:
        sheets = await self.http.parsed(f"lines/{self.line}", _SHEETS)
        return next((self._filed(sheet) for sheet in sheets if report.marker in sheet.text), None)

    async def file(self, report: Report) -> Filed:
        return self._filed(await self.http.send("POST", f"lines/{self.line}", {"text": report.body}, _SHEET))

    async def check(self) -> None:
        await self.http.parsed(f"lines/{self.line}", _SHEETS)

    def _filed(self, sheet: _Sheet) -> Filed:
        return Filed(sheet.number, f"{self.http.url}/sheets/{sheet.number}")


class FaxSection(PublisherSection):
    """A fax machine, by its line."""

    kind: Literal["fax"]
    line: Annotated[str, Field(pattern=r"^\d+$")]

    def open(self, host: Host) -> Fax:
        return Fax(self.http(host), self.line)
