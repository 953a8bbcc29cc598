"""plumbline.yaml: what an investigation may read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from bot.config.section import Section
from bot.config.source_sections import EnvironmentName

Url = Annotated[str, Field(pattern=r"^https?://[^/?#\s]+[^?#\s]*$")]  # a server and the path that its API is under
Project = Annotated[str, Field(min_length=1)]
Named = Annotated[dict[str, Project], Field(min_length=1)]  # service → what it is called there


class LogFilesTool(Section):
    kind: Literal["log_files"]
    name: str = "log files"
    path: Path


class MetricFilesTool(Section):
    kind: Literal["metric_files"]
    name: str = "metric files"
    path: Path


class ChangeFilesTool(Section):
    kind: Literal["change_files"]
    name: str = "change files"
    path: Path


class PrometheusTool(Section):
    kind: Literal["prometheus"]
    name: str = "Prometheus"
    url: str


class AlertmanagerTool(Section):
    """Asked whether an alert still fires, and what is silenced. `source` is the webhook that its alerts come by."""

    kind: Literal["alertmanager"]
    name: str = "Alertmanager"
    url: Url
    source: str = "alertmanager"
    token_env: EnvironmentName | None = None


class TraceFilesTool(Section):
    kind: Literal["trace_files"]
    name: str = "trace files"
    path: Path


class TraceGraphTool(Section):
    """The store of traces, from which the calls between services are read, beside `dependencies`."""

    kind: Literal["jaeger", "zipkin"]
    name: str = "traces"
    url: Url
    token_env: EnvironmentName | None = None


class LokiTool(Section):
    """`services` maps a service to the labels of its log streams; `tenant` is for an installation with several."""

    kind: Literal["loki"]
    name: str = "Loki"
    url: Url
    services: Annotated[dict[str, Annotated[dict[str, str], Field(min_length=1)]], Field(min_length=1)]
    token_env: EnvironmentName | None = None
    tenant: str = ""


class WorkloadSection(Section):
    namespace: str
    selector: str


class KubernetesTool(Section):
    """`ca_file` holds the certificate of the cluster's authority; without it the system's authorities are trusted."""

    kind: Literal["kubernetes"]
    name: str = "Kubernetes"
    url: Url
    services: Annotated[dict[str, WorkloadSection], Field(min_length=1)]
    token_env: EnvironmentName
    ca_file: Path | None = None


class GitHubActionsTool(Section):
    """`services` maps a service to `owner/repository`.

    `log_hosts` (`host` or `host:port`) are where GitHub may send us for a job's log.
    """

    kind: Literal["github_actions"]
    name: str = "GitHub Actions"
    url: Url = "https://api.github.com"
    services: Named
    token_env: EnvironmentName
    log_hosts: tuple[str, ...] = ()


class GitLabCiTool(Section):
    """`services` maps a service to the path of its project, with its groups."""

    kind: Literal["gitlab_ci"]
    name: str = "GitLab CI"
    url: Url = "https://gitlab.com"
    services: Named
    token_env: EnvironmentName


class JenkinsTool(Section):
    """`services` maps a service to the path of its job, its folders first. `token_env` names the token of `user`."""

    kind: Literal["jenkins"]
    name: str = "Jenkins"
    url: Url
    services: Named
    user: str
    token_env: EnvironmentName


class CodeTool(Section):
    """`services` maps a service to its checkout, which somebody keeps up to date: its code and its commits are read."""

    kind: Literal["code"]
    name: str = "code"
    services: Annotated[dict[str, Path], Field(min_length=1)]


class McpTool(Section):
    """`tools` maps the name of each tool that may be called to what the language model is told about it."""

    kind: Literal["mcp"]
    name: str
    url: Url
    tools: Named
    token_env: EnvironmentName | None = None


ToolSection = Annotated[
    LogFilesTool
    | MetricFilesTool
    | ChangeFilesTool
    | PrometheusTool
    | TraceFilesTool
    | TraceGraphTool
    | AlertmanagerTool
    | LokiTool
    | KubernetesTool
    | GitHubActionsTool
    | GitLabCiTool
    | JenkinsTool
    | CodeTool
    | McpTool,
    Field(discriminator="kind"),
]
