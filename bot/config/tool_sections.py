"""The `tools` section of plumbline.yaml: systems that an investigation may read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from adapters.section import EnvironmentName, Section, Url
from bot.config.reader_sections import OwnReaderTool, ShippedReaderTool

Project = Annotated[str, Field(min_length=1)]
Named = Annotated[dict[str, Project], Field(min_length=1)]  # service → its name in the tool


class _FilesTool(Section):
    path: Path


class LogFilesTool(_FilesTool):
    kind: Literal["log_files"]
    name: str = "log files"


class MetricFilesTool(_FilesTool):
    kind: Literal["metric_files"]
    name: str = "metric files"


class ChangeFilesTool(_FilesTool):
    kind: Literal["change_files"]
    name: str = "change files"


class TraceFilesTool(_FilesTool):
    kind: Literal["trace_files"]
    name: str = "trace files"


class AlertmanagerTool(Section):
    """Alertmanager, which reports whether alerts fire and are silenced. `source` is the webhook of its alerts."""

    kind: Literal["alertmanager"]
    name: str = "Alertmanager"
    url: Url
    source: str = "alertmanager"
    token_env: EnvironmentName | None = None


class WorkloadSection(Section):
    namespace: str
    selector: str


class KubernetesTool(Section):
    """A Kubernetes cluster.

    `ca_file` contains the certificate of its authority; the default is the system's authorities.
    """

    kind: Literal["kubernetes"]
    name: str = "Kubernetes"
    url: Url
    services: Annotated[dict[str, WorkloadSection], Field(min_length=1)]
    token_env: EnvironmentName
    ca_file: Path | None = None


class GitHubActionsTool(Section):
    """GitHub Actions. `services` maps a service to `owner/repository`.

    `log_hosts` (`host` or `host:port`) are the hosts that GitHub may redirect log downloads to.
    """

    kind: Literal["github_actions"]
    name: str = "GitHub Actions"
    url: Url = "https://api.github.com"
    services: Named
    token_env: EnvironmentName
    log_hosts: tuple[str, ...] = ()


class GitLabCiTool(Section):
    """GitLab CI. `services` maps a service to its project path, including groups."""

    kind: Literal["gitlab_ci"]
    name: str = "GitLab CI"
    url: Url = "https://gitlab.com"
    services: Named
    token_env: EnvironmentName


class AzureDevOpsTool(Section):
    """Azure DevOps. `url` names the organization or collection; `services` maps a service to the pipeline that ships it.

    A pipeline is `PROJECT/ID`, with the number that its address shows as `definitionId`. `token_env` names the variable
    with a personal access token that may read builds and code.
    """

    kind: Literal["azure_devops"]
    name: str = "Azure DevOps"
    url: Url
    services: Annotated[dict[str, Annotated[str, Field(pattern=r"^[^/]+/\d+$")]], Field(min_length=1)]
    token_env: EnvironmentName


class JenkinsTool(Section):
    """Jenkins. `services` maps a service to its job path, including folders. `token_env` names the token of `user`."""

    kind: Literal["jenkins"]
    name: str = "Jenkins"
    url: Url
    services: Named
    user: str
    token_env: EnvironmentName


class CodeTool(Section):
    """Source code. `services` maps a service to a checkout, kept up to date externally. Code and commits are read."""

    kind: Literal["code"]
    name: str = "code"
    services: Annotated[dict[str, Path], Field(min_length=1)]


class McpTool(Section):
    """An MCP server. `tools` maps each tool that may be called to its description for the language model."""

    kind: Literal["mcp"]
    name: str
    url: Url
    tools: Named
    token_env: EnvironmentName | None = None


ToolSection = Annotated[
    LogFilesTool
    | MetricFilesTool
    | ChangeFilesTool
    | TraceFilesTool
    | AlertmanagerTool
    | KubernetesTool
    | GitHubActionsTool
    | GitLabCiTool
    | AzureDevOpsTool
    | JenkinsTool
    | CodeTool
    | McpTool
    | OwnReaderTool
    | ShippedReaderTool,
    Field(discriminator="kind"),
]
