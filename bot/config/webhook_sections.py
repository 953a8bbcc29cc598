"""The `webhooks` section of plumbline.yaml: the settings of each format that a module of `adapters.alerts` declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict
from typing_extensions import TypedDict

from adapters import alerts
from adapters.alerts.fields import ConfiguredFormat, Format, WebhookSection
from adapters.kinds import Later, modules, unique

AnyFormat = Format[Any] | ConfiguredFormat[Any]


def formats() -> dict[str, AnyFormat]:
    """Return all webhook formats by source. Raises ValueError if two claim one."""
    return dict(sorted(unique(_declared()).items()))


def _declared() -> Iterator[tuple[str, AnyFormat, str]]:
    for module in modules(alerts):
        for value in vars(module).values():
            if isinstance(value, Format | ConfiguredFormat):
                yield value.source, value, module.__name__


def _sections() -> Any:
    """Return the type of the whole section."""
    section_of = {source: _section(each) for source, each in formats().items()}
    make: Any = TypedDict
    sections = make("WebhooksSection", {source: NotRequired[section] for source, section in section_of.items()})
    sections.__pydantic_config__ = ConfigDict(extra="forbid")
    return sections


def _section(of: AnyFormat) -> type[WebhookSection]:
    return of.section if isinstance(of, ConfiguredFormat) else WebhookSection


WebhookSections = Annotated[Mapping[str, WebhookSection], Later(_sections)]
"""The sections by source, of those that have one."""
