"""The `filing` section of plumbline.yaml: where people may file issues and postmortems. Without it, nothing is written."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from adapters.section import EnvironmentName, Section, Url
from bot.config.tool_sections import Project
from core.model.conversation import PUBLIC
from core.model.filing import FilingKind, FilingTarget

Repository = Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
Key = Annotated[str, Field(pattern=r"^~?[\w.-]+$")]
PersonId = Annotated[str, Field(pattern=r"^(slack|teams|console):.+$")]


class _FilingSection(Section):
    """A target. It may be used in `channels`, by `people` (`slack:U123…`, `teams:…`; empty: everybody there).

    `private_to` names the channels whose members alone can read the target; without it, everybody is assumed to.
    """

    filed: ClassVar[FilingKind] = FilingKind.ISSUE

    name: Annotated[str, Field(min_length=1, max_length=60)]
    token_env: EnvironmentName
    channels: Annotated[tuple[str, ...], Field(min_length=1)]
    people: tuple[PersonId, ...] = ()
    private_to: tuple[str, ...] = ()

    @property
    def target(self) -> FilingTarget:
        readers = frozenset(f"channel:{name}" for name in self.private_to) or frozenset({PUBLIC})
        return FilingTarget(self.name, self.filed, frozenset(self.channels), frozenset(self.people), readers)


class _PostmortemSection(_FilingSection):
    filed = FilingKind.POSTMORTEM


class GitHubIssueSection(_FilingSection):
    """Issues of a GitHub repository, `owner/name`. The token needs to write issues."""

    kind: Literal["github_issue"]
    url: Url = "https://api.github.com"
    repository: Repository


class GitLabIssueSection(_FilingSection):
    """Issues of a GitLab project, named by its path including groups."""

    kind: Literal["gitlab_issue"]
    url: Url = "https://gitlab.com"
    project: Project


class JiraIssueSection(_FilingSection):
    """Issues of a Jira project. The token is that of the account `email` (Cloud), or needs no `email` (Data Center)."""

    kind: Literal["jira_issue"]
    url: Url
    project: Key
    issue_type: Annotated[str, Field(min_length=1)] = "Task"
    email: str = ""


class ConfluencePageSection(_PostmortemSection):
    """Pages of a Confluence space, below the page with the id `parent`. For `url` and `email`, see the source."""

    kind: Literal["confluence_page"]
    url: Url
    space: Key
    parent: Annotated[str, Field(pattern=r"^\d*$")] = ""
    email: str = ""


class GitHubFileSection(_PostmortemSection):
    """Markdown files in a GitHub repository, each proposed as a pull request against the default branch."""

    kind: Literal["github_file"]
    url: Url = "https://api.github.com"
    repository: Repository
    folder: str = "postmortems"


class GitLabFileSection(_PostmortemSection):
    """Markdown files in a GitLab project, each proposed as a merge request into the default branch."""

    kind: Literal["gitlab_file"]
    url: Url = "https://gitlab.com"
    project: Project
    folder: str = "postmortems"


FilingSection = Annotated[
    GitHubIssueSection
    | GitLabIssueSection
    | JiraIssueSection
    | ConfluencePageSection
    | GitHubFileSection
    | GitLabFileSection,
    Field(discriminator="kind"),
]
