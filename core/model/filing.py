"""Issues and postmortems that people file from an incident, and the systems in which they may file them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from core.model.conversation import PUBLIC, Audience, EventId, Person, PersonName, Words


class FilingKind(StrEnum):
    ISSUE = "issue"
    POSTMORTEM = "postmortem"
    UPDATE = "update"  # for people outside the teams; its targets are channels


@dataclass(frozen=True, slots=True)
class FilingTarget:
    """A place of `plumbline.yaml` in which people may file.

    `channels` are the channels in which it may be pressed. `people` are those who may press, as `PLATFORM:ID`; empty
    means everybody in these channels. `readers` are the reader names of all who can read what is filed there.
    """

    name: str
    kind: FilingKind
    channels: frozenset[str]
    people: frozenset[str] = frozenset()
    readers: frozenset[str] = frozenset({PUBLIC})

    def is_open_to(self, person: Person) -> bool:
        """Return whether this person may file here, if they may do so in the channel."""
        return not self.people or person.key in self.people

    def is_allowed_in(self, audience: Audience) -> bool:
        """Return whether filing is allowed in the channel with this audience, which must include the target's readers."""
        is_here = any(f"channel:{name}" in audience.readers for name in self.channels)
        return is_here and self.is_no_wider_than(audience.disclosed_to)

    def is_no_wider_than(self, readers: frozenset[str]) -> bool:
        """Return whether everybody who can read the target is among these readers."""
        return PUBLIC in readers or self.readers <= readers


@dataclass(frozen=True, slots=True)
class Report:
    """The text to be filed, in Markdown, as a person has sent it. `stem` is a file name without suffix.

    `marker` is a unique word; `footer` contains it, and is written below the text.
    """

    marker: str
    title: str
    text: str
    stem: str
    since: datetime  # the first attempt to file it

    @property
    def footer(self) -> str:
        return f"Filed with Plumbline ({self.marker})"

    @property
    def body(self) -> str:
        return f"{self.text.rstrip()}\n\n{self.footer}\n"

    def path(self, folder: str) -> str:
        return "/".join(filter(None, (folder.strip("/"), f"{self.stem}.md")))


@dataclass(frozen=True, slots=True)
class Filed:
    """A filed report: its name in the other system, and its address."""

    key: str
    url: str


@dataclass(frozen=True, slots=True)
class Filing:
    """A report that a person sent, recorded before it is written. `title`, `text` and `person` are untrusted.

    `filed` is None until it is written; until then, `text` keeps the draft and `problem` says why the last attempt
    failed. `press` is the id of the press that sent it, `since` and `at` are the times of the first and the latest attempt.
    `readers` are the reader names of the place of that press.
    """

    target: str
    kind: FilingKind
    title: str
    text: Words
    person: PersonName
    press: EventId
    since: datetime
    at: datetime
    filed: Filed | None = None
    problem: Words = ""
    readers: tuple[str, ...] = ()


def marker_of(incident_id: str, target: str) -> str:
    """Return the marker of the one report that an incident has in a target."""
    return f"plumbline{hashlib.blake2b(f'{incident_id} {target}'.encode(), digest_size=8).hexdigest()}"
