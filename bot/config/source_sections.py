"""The `sources` section of plumbline.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bot.config.section import Section
from core.model.conversation import PUBLIC

EnvironmentName = Annotated[str, Field(pattern="^[A-Z][A-Z0-9_]*$")]  # of a variable that contains a secret
Readers = Annotated[tuple[str, ...], Field(min_length=1)]  # `public`, `channel:NAME`, `person:PLATFORM:ID`
SiteAddress = Annotated[str, Field(pattern=r"^https://[^/?#\s]+[^?#\s]*$")]
SourceName = Annotated[str, Field(pattern="^[^/]+$")]  # the first part of its documents' ids


class _SourceSection(Section):
    """A source. Documents are marked as stale `fresh_for_days` after their last change; null disables that."""

    name: SourceName
    fresh_for_days: Annotated[int, Field(ge=1)] | None = 365

    @property
    def place(self) -> str:
        """Return a short description of the location."""
        raise NotImplementedError


class _FileSection(_SourceSection):
    path: Path

    @property
    def place(self) -> str:
        return self.path.name


class FolderSection(_FileSection):
    """Markdown, HTML, PDF and text files. `readers` applies to files that do not name their readers."""

    kind: Literal["folder"]
    url: str = ""
    readers: Readers = (PUBLIC,)


class ChatThreadsSection(_FileSection):
    kind: Literal["chat_threads"]


class PastIncidentsSection(_FileSection):
    """Past incidents. `readers` applies to incidents that do not name their readers. They never become stale."""

    kind: Literal["past_incidents"]
    fresh_for_days: Annotated[int, Field(ge=1)] | None = None
    readers: Readers = (PUBLIC,)


class SlackExportSection(_FileSection):
    """A Slack export. `url` is the workspace's address (`https://acme.slack.com`); if empty, threads have no links."""

    kind: Literal["slack_export"]
    url: str = ""


class TeamsExportSection(_FileSection):
    kind: Literal["teams_export"]


class GitRepositorySection(_SourceSection):
    """A Git repository: either `path`, a clone that is kept up to date externally, or `url`, which is fetched.

    `links` is a web address with `{commit}` and `{path}`; if empty, it is derived from an https URL.
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
    """A Confluence site. `url` includes its context path (`https://acme.atlassian.net/wiki`).

    `token_env` names the variable with the API token of the account `email` (Cloud), or with a personal access token if
    there is no `email` (Data Center). `readers` are the readers of unrestricted pages: everybody with access to the
    spaces. `identities` maps `group:NAME` and `user:ID` of Confluence to reader names.
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


class AzureWikiSection(_SourceSection):
    """A wiki of Azure DevOps. `url` names the organization or collection, `wiki` the wiki by its name or id.

    `token_env` names the variable with a personal access token that may read wikis and code. `readers` are those of pages
    that do not name any in front matter.
    """

    kind: Literal["azure_devops_wiki"]
    url: Annotated[str, Field(pattern=r"^https?://[^/?#\s]+[^?#\s]*$")]
    project: Annotated[str, Field(min_length=1)]
    wiki: Annotated[str, Field(min_length=1)]
    token_env: EnvironmentName
    readers: Readers

    @property
    def place(self) -> str:
        return f"{self.url} {self.project} {self.wiki}"


class SlackChannelsSection(_SourceSection):
    """Slack channels, by id. The bot with the token in `token_env` must be a member of each."""

    kind: Literal["slack_channels"]
    channels: Annotated[tuple[str, ...], Field(min_length=1)]
    token_env: EnvironmentName = "SLACK_BOT_TOKEN"  # noqa: S105 — the name of a variable

    @property
    def place(self) -> str:
        return ", ".join(self.channels)


class GraphSection(_SourceSection):
    """A source that is read through Microsoft Graph, by an app registered in a tenant."""

    tenant_id: str
    client_id: str
    client_secret_env: EnvironmentName


class TeamsChannelsSection(GraphSection):
    """Teams channels. `teams` maps a team id to the ids of the channels to read; empty means all visible ones."""

    kind: Literal["teams_channels"]
    teams: Annotated[dict[str, tuple[str, ...]], Field(min_length=1)]

    @property
    def place(self) -> str:
        return ", ".join(self.teams)


class SharePointSection(GraphSection):
    """Document libraries and pages of SharePoint sites. `sites` are addresses, `libraries` names; none means all.

    People and groups that may read a file are known from Microsoft Graph; `identities` maps `site-group:NAME`, whose
    members Graph does not give, `group:ID` and `user:ID` to reader names. Graph does not say who may read a page:
    `page_readers` may read every page; none means that no page is read.
    """

    kind: Literal["sharepoint"]
    sites: Annotated[tuple[SiteAddress, ...], Field(min_length=1)]
    libraries: tuple[str, ...] = ()
    page_readers: tuple[str, ...] = ()
    identities: Annotated[dict[str, tuple[str, ...]], Field(default_factory=dict)]

    @property
    def place(self) -> str:
        return ", ".join(self.sites)


SourceSection = Annotated[
    FolderSection
    | ChatThreadsSection
    | PastIncidentsSection
    | SlackExportSection
    | TeamsExportSection
    | GitRepositorySection
    | ConfluenceSection
    | AzureWikiSection
    | SlackChannelsSection
    | TeamsChannelsSection
    | SharePointSection,
    Field(discriminator="kind"),
]
