"""The `sources` section of plumbline.yaml: each kind of source, its settings and how it is opened.

A kind of source is declared here and nowhere else. Its adapter is imported when a source of the kind is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from adapters.section import EnvironmentName, Host, HostSettings, Section
from core.model.conversation import PUBLIC
from core.ports import ChangingSource, KnowledgeSource

if TYPE_CHECKING:
    from adapters.http import Http
    from adapters.sources.git_repository import GitRepositorySource

Source = KnowledgeSource | ChangingSource

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

    def open(self, host: Host) -> Source:
        """Return the source. Raises ConfigurationError, for example for a missing secret."""
        raise NotImplementedError


class _FileSection(_SourceSection):
    path: Path

    @property
    def place(self) -> str:
        return self.path.name


class FolderSection(_FileSection):
    """Markdown, HTML, PDF, Word and text files. `readers` applies to files that do not name their readers."""

    kind: Literal["folder"]
    url: str = ""
    readers: Readers = (PUBLIC,)

    def open(self, host: Host) -> Source:
        from adapters.sources.folder import FolderSource

        return FolderSource(self.name, self.path, self.url, frozenset(self.readers))


class ChatThreadsSection(_FileSection):
    kind: Literal["chat_threads"]

    def open(self, host: Host) -> Source:
        from adapters.sources.chat_threads import ChatThreadSource

        return ChatThreadSource(self.name, self.path)


class PastIncidentsSection(_FileSection):
    """Past incidents. `readers` applies to incidents that do not name their readers. They never become stale."""

    kind: Literal["past_incidents"]
    fresh_for_days: Annotated[int, Field(ge=1)] | None = None
    readers: Readers = (PUBLIC,)

    def open(self, host: Host) -> Source:
        from adapters.sources.past_incidents import PastIncidentSource

        return PastIncidentSource(self.name, self.path, frozenset(self.readers))


class SlackExportSection(_FileSection):
    """A Slack export. `url` is the workspace's address (`https://acme.slack.com`); if empty, threads have no links."""

    kind: Literal["slack_export"]
    url: str = ""

    def open(self, host: Host) -> Source:
        from adapters.sources.slack_export import SlackExportSource

        return SlackExportSource(self.name, self.path, self.url)


class TeamsExportSection(_FileSection):
    kind: Literal["teams_export"]

    def open(self, host: Host) -> Source:
        from adapters.sources.teams_export import TeamsExportSource

        return TeamsExportSource(self.name, self.path)


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

    def open(self, host: Host) -> Source:
        return self.repository(host.settings)

    def repository(self, settings: HostSettings) -> GitRepositorySource:
        """Return the repository, whose files a catalogue may read too. Raises ConfigurationError."""
        from adapters.sources.git_repository import GitRepositorySource, Repository

        return GitRepositorySource(
            self.name,
            Repository(
                clone=self.path or settings.data_dir.absolute() / "repositories" / f"{self.name}.git",
                url=self.url,
                branch=self.branch,
                links=self.links,
                token=settings.secret(self.token_env, self.name) if self.token_env else "",
                readers=frozenset(self.readers),
            ),
        )


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

    def open(self, host: Host) -> Source:
        from adapters.http import Token, basic, source_server
        from adapters.sources.confluence import ConfluenceSource
        from adapters.sources.confluence_pages import Access

        secret = host.settings.secret(self.token_env, self.name)
        token = basic(self.email, secret) if self.email else Token(f"Bearer {secret}")
        server = source_server(f"Confluence at {self.url}", self.url, host.session, token)
        access = Access(frozenset(self.readers), _readers_by_identity(self.identities))
        return ConfluenceSource(self.name, server, self.url, self.spaces, access)


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

    def open(self, host: Host) -> Source:
        from adapters.http import basic, source_server
        from adapters.sources.azure_wiki import AzureWikiSource

        token = basic("", host.settings.secret(self.token_env, self.name))
        server = source_server(f"Azure DevOps at {self.url}", self.url, host.session, token)
        return AzureWikiSource(self.name, server, self.project, self.wiki, frozenset(self.readers))


class SlackChannelsSection(_SourceSection):
    """Slack channels, by id. The bot with the token in `token_env` must be a member of each."""

    kind: Literal["slack_channels"]
    channels: Annotated[tuple[str, ...], Field(min_length=1)]
    token_env: EnvironmentName = "SLACK_BOT_TOKEN"  # noqa: S105 — the name of a variable

    @property
    def place(self) -> str:
        return ", ".join(self.channels)

    def open(self, host: Host) -> Source:
        from adapters.slack.client import slack_reader
        from adapters.sources.slack_channels import SlackChannelsSource

        secret = host.settings.secret(self.token_env, self.name)
        client = slack_reader(secret, host.settings.slack_api_url, host.session)
        return SlackChannelsSource(self.name, client, self.channels, host.clock)


class _GraphSection(_SourceSection):
    """A source that is read through Microsoft Graph, by an app registered in a tenant."""

    tenant_id: str
    client_id: str
    client_secret_env: EnvironmentName

    def _graph(self, host: Host) -> Http:
        from adapters.http import source_server
        from adapters.microsoft_graph.credentials import GRAPH_URL, GraphCredentials

        secret = host.settings.secret(self.client_secret_env, self.name)
        credentials = GraphCredentials(self.tenant_id, self.client_id, secret, host.session)
        return source_server("Microsoft Graph", GRAPH_URL, host.session, credentials)


class TeamsChannelsSection(_GraphSection):
    """Teams channels. `teams` maps a team id to the ids of the channels to read; empty means all visible ones."""

    kind: Literal["teams_channels"]
    teams: Annotated[dict[str, tuple[str, ...]], Field(min_length=1)]

    @property
    def place(self) -> str:
        return ", ".join(self.teams)

    def open(self, host: Host) -> Source:
        from adapters.sources.teams_channels import TeamsChannelsSource

        bot_id = host.settings.teams_app_id
        return TeamsChannelsSource(self.name, self._graph(host), self.teams, host.clock, bot_id)


class SharePointSection(_GraphSection):
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

    def open(self, host: Host) -> Source:
        from adapters.sources.sharepoint import SharePointSource

        # Graph redirects downloads to the site's own host.
        hosts = frozenset(urlsplit(site).netloc for site in self.sites)
        return SharePointSource(
            self.name,
            replace(self._graph(host), elsewhere=hosts),
            self.sites,
            host.clock,
            libraries=self.libraries,
            page_readers=frozenset(self.page_readers),
            identities=_readers_by_identity(self.identities),
        )


class NotionSection(_SourceSection):
    """The pages of Notion that are shared with an integration, whose secret is in the variable `token_env`.

    Notion does not say who may read a page: `readers` may read all of these pages.
    """

    kind: Literal["notion"]
    token_env: EnvironmentName
    readers: Readers

    @property
    def place(self) -> str:
        return "pages shared with the integration"

    def open(self, host: Host) -> Source:
        from adapters.http import Token, source_server
        from adapters.sources.notion import HEADERS, NOTION_URL, NotionSource

        token = Token(f"Bearer {host.settings.secret(self.token_env, self.name)}")
        server = replace(source_server("Notion", NOTION_URL, host.session, token), headers=HEADERS)
        return NotionSource(self.name, server, frozenset(self.readers), host.clock)


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
    | SharePointSection
    | NotionSection,
    Field(discriminator="kind"),
]


def _readers_by_identity(identities: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    return {identity: frozenset(readers) for identity, readers in identities.items()}
