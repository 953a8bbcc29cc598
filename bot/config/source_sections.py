"""plumbline.yaml: where knowledge comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bot.config.section import Section
from core.model.conversation import PUBLIC

EnvironmentName = Annotated[str, Field(pattern="^[A-Z][A-Z0-9_]*$")]  # of the variable that holds a secret
Readers = Annotated[tuple[str, ...], Field(min_length=1)]  # `public`, `channel:NAME`, `person:PLATFORM:ID`
SourceName = Annotated[str, Field(pattern="^[^/]+$")]  # the first part of its documents' ids


class _SourceSection(Section):
    """`fresh_for_days` after its last change a document is marked as stale in answers; null: it never is."""

    name: SourceName
    fresh_for_days: Annotated[int, Field(ge=1)] | None = 365

    @property
    def place(self) -> str:
        """The place that it reads, in a few words."""
        raise NotImplementedError


class _FileSection(_SourceSection):
    path: Path

    @property
    def place(self) -> str:
        return self.path.name


class FolderSection(_FileSection):
    """Markdown, HTML, PDF and text files. `readers` read those that do not say by whom they may be read."""

    kind: Literal["folder"]
    url: str = ""
    readers: Readers = (PUBLIC,)


class ChatThreadsSection(_FileSection):
    kind: Literal["chat_threads"]


class PastIncidentsSection(_FileSection):
    """`readers` read those that do not say by whom they may be read. What happened once does not become stale."""

    kind: Literal["past_incidents"]
    fresh_for_days: Annotated[int, Field(ge=1)] | None = None
    readers: Readers = (PUBLIC,)


class SlackExportSection(_FileSection):
    """`url` is the workspace's (`https://acme.slack.com`); empty: threads have no links."""

    kind: Literal["slack_export"]
    url: str = ""


class TeamsExportSection(_FileSection):
    kind: Literal["teams_export"]


class GitRepositorySection(_SourceSection):
    """Either `path`, a clone that somebody keeps up to date, or `url`, which is fetched.

    `links` is the address of a file on the web with `{commit}` and `{path}` in it; empty: derived from an https URL.
    """

    kind: Literal["git_repository"]
    path: Path | None = None
    url: str = ""
    branch: str = ""
    links: str = ""
    token_env: EnvironmentName | None = None
    readers: Readers = (PUBLIC,)

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if (self.path is None) == (not self.url):
            raise ValueError("set either `path` or `url`")
        return self

    @property
    def place(self) -> str:
        return self.url or (self.path.name if self.path else "")


class ConfluenceSection(_SourceSection):
    """`url` is the site's, with its context path (`https://acme.atlassian.net/wiki`).

    `token_env` names the variable with the API token of the account `email` (Cloud) or, without `email`, with a
    personal access token (Data Center). `readers` read the pages that are not restricted: whoever may read the spaces.
    `identities` maps `group:NAME` and `user:ID` of Confluence to the readers that they are here.
    """

    kind: Literal["confluence"]
    url: str
    spaces: Annotated[tuple[str, ...], Field(min_length=1)]
    token_env: EnvironmentName
    email: str = ""
    readers: Readers
    identities: Annotated[dict[str, tuple[str, ...]], Field(default_factory=dict)]

    @property
    def place(self) -> str:
        return f"{self.url} {', '.join(self.spaces)}"


class SlackChannelsSection(_SourceSection):
    """`channels` are ids; the bot whose token `token_env` names is a member of each."""

    kind: Literal["slack_channels"]
    channels: Annotated[tuple[str, ...], Field(min_length=1)]
    token_env: EnvironmentName = "SLACK_BOT_TOKEN"  # noqa: S105 — the name of a variable

    @property
    def place(self) -> str:
        return ", ".join(self.channels)


class TeamsChannelsSection(_SourceSection):
    """`teams` maps a team's id to those of the channels to read; none: all that the application can see."""

    kind: Literal["teams_channels"]
    tenant_id: str
    client_id: str
    client_secret_env: EnvironmentName
    teams: Annotated[dict[str, tuple[str, ...]], Field(min_length=1)]

    @property
    def place(self) -> str:
        return ", ".join(self.teams)


SourceSection = Annotated[
    FolderSection
    | ChatThreadsSection
    | PastIncidentsSection
    | SlackExportSection
    | TeamsExportSection
    | GitRepositorySection
    | ConfluenceSection
    | SlackChannelsSection
    | TeamsChannelsSection,
    Field(discriminator="kind"),
]
