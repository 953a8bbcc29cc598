"""Readers as plumbline.yaml opens them, over a server of the tests."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.http import Http
from adapters.readers.definition import shipped
from adapters.readers.pages import Pages, Schedules
from adapters.readers.reader import Reader


def reader(
    kind: str,
    http: Http,
    services: Mapping[str, str | Mapping[str, str]] | None = None,
    *,
    name: str = "",
    page: int = 0,
) -> Reader:
    """A reader of what a shipped definition describes; with `page`, that many items of logs are on a page."""
    definition = shipped()[kind]
    if page and definition.logs is not None and definition.logs.paging is not None:
        paging = definition.logs.paging.model_copy(update={"size": page})
        definition = definition.model_copy(update={"logs": definition.logs.model_copy(update={"paging": paging})})
    return Reader(name or kind, Pages(http), definition, services or {})


def schedules(kind: str, http: Http, ids: Mapping[str, tuple[str, ...]], of: str = "schedules") -> Schedules:
    """The schedules of each team, as a shipped definition describes their system."""
    return Schedules(kind, Pages(http, {"cloud_id": "c1"}), shipped()[kind], {of: ids})
