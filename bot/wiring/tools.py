"""Wiring of the tools that investigations read, from plumbline.yaml."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import aiohttp
from yarl import URL

from adapters.http import Http, Token, basic
from adapters.readers.credentials import opened
from adapters.readers.pages import Pages
from adapters.readers.reader import Reader
from adapters.readers.template import filled
from adapters.tools.change_files import ChangeFiles
from adapters.tools.ci import Builds
from adapters.tools.kubernetes import Kubernetes, Workload
from adapters.tools.log_files import LogFiles
from adapters.tools.metric_files import MetricFiles
from adapters.tools.prometheus_alerts import PrometheusAlerts
from bot.config import tool_sections as sections
from bot.config.reader_sections import ReaderTool
from bot.config.settings import named_secret
from core.model.errors import ConfigurationError
from core.ports import (
    AlertMonitor,
    ChangeReader,
    CheckedTool,
    CodeReader,
    DependencyReader,
    LogReader,
    MetricReader,
    Toolbox,
)


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools that investigations may read."""

    logs: tuple[LogReader, ...] = ()
    metrics: tuple[MetricReader, ...] = ()
    changes: tuple[ChangeReader, ...] = ()
    code: tuple[CodeReader, ...] = ()
    toolboxes: tuple[Toolbox, ...] = ()
    monitors: tuple[AlertMonitor, ...] = ()
    graphs: tuple[DependencyReader, ...] = ()

    @property
    def checked(self) -> list[CheckedTool]:
        """Return the distinct tools whose access can be checked."""
        every = (*self.logs, *self.metrics, *self.changes, *self.code, *self.toolboxes, *self.monitors, *self.graphs)
        return [tool for tool in {id(each): each for each in every}.values() if isinstance(tool, CheckedTool)]


def open_tools(tool_sections: Sequence[sections.ToolSection], session: aiohttp.ClientSession) -> Tools:
    """Open every configured tool. Raises ConfigurationError for a missing secret or certificate."""
    opened = [open_tool(section, session) for section in tool_sections]
    kinds = [each.name for each in fields(Tools)]
    return Tools(*(tuple(each for tools in opened for each in getattr(tools, kind)) for kind in kinds))


def open_tool(section: sections.ToolSection, session: aiohttp.ClientSession) -> Tools:
    """Open the tools of one section. Raises ConfigurationError."""
    match section:
        case sections.LogFilesTool():
            return Tools(logs=(LogFiles(section.name, section.path),))
        case sections.MetricFilesTool():
            return Tools(metrics=(MetricFiles(section.name, section.path),))
        case sections.ChangeFilesTool():
            return Tools(changes=(ChangeFiles(section.name, section.path),))
        case ReaderTool():
            return _defined(section, session)
        case sections.AlertmanagerTool():
            from adapters.tools.alertmanager import Alertmanager

            return Tools(monitors=(Alertmanager(section.name, _http(section, session), section.source),))
        case sections.TraceFilesTool():
            from adapters.tools.trace_files import TraceFiles

            return Tools(graphs=(TraceFiles(section.name, section.path),))
        case sections.KubernetesTool():
            cluster = _kubernetes(section, session)
            return Tools(logs=(cluster,), toolboxes=(cluster,))
        case (
            sections.GitHubActionsTool() | sections.GitLabCiTool() | sections.AzureDevOpsTool() | sections.JenkinsTool()
        ):
            return _build_server(section, session)
        case sections.CodeTool():
            from adapters.tools.code_repository import CodeRepositories
            from adapters.tools.git_history import GitHistory

            history = GitHistory(f"{section.name} history", section.services)
            return Tools(changes=(history,), code=(CodeRepositories(section.name, section.services),))
        case sections.McpTool():
            return Tools(toolboxes=(_mcp(section),))


def _defined(section: ReaderTool, session: aiohttp.ClientSession) -> Tools:
    """Open what a definition describes, and the alerts of a server that has them like Prometheus."""
    definition, settings = section.definition, section.given
    secrets = {name: named_secret(variable, section.name) for name, variable in section.variables.items()}
    url = filled(section.url, settings)
    http = opened(definition, _system(section.name, url), url, session, settings, secrets)
    reader = Reader(section.name, Pages(http, settings), definition, section.services)
    return Tools(
        logs=(reader,) if definition.logs is not None else (),
        metrics=(reader,) if definition.metrics is not None else (),
        changes=(reader,) if definition.changes is not None else (),
        monitors=(PrometheusAlerts(section.name, http),) if section.kind == "prometheus" else (),
        graphs=(reader,) if definition.calls is not None or definition.spans is not None else (),
    )


def _kubernetes(section: sections.KubernetesTool, session: aiohttp.ClientSession) -> Kubernetes:
    tls: ssl.SSLContext | bool = True
    if section.ca_file is not None:
        try:
            tls = ssl.create_default_context(cafile=str(section.ca_file))
        except OSError as error:  # ssl.SSLError is a subclass
            raise ConfigurationError(f"{section.name}: {section.ca_file} is not a certificate: {error}.") from None
    http = _http(section, session, tls=tls)
    workloads = {service: Workload(each.namespace, each.selector) for service, each in section.services.items()}
    return Kubernetes(section.name, http, workloads)


def _build_server(
    section: sections.GitHubActionsTool | sections.GitLabCiTool | sections.AzureDevOpsTool | sections.JenkinsTool,
    session: aiohttp.ClientSession,
) -> Tools:
    """Open the builds of a server, and the commits and deployments of one with repositories."""
    from adapters.tools.hosted_changes import HostedChanges

    match section:
        case sections.GitHubActionsTool():
            from adapters.tools.github import GitHub

            headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
            server = GitHub(_http(section, session, headers=headers, elsewhere=frozenset(section.log_hosts)))
        case sections.GitLabCiTool():
            from adapters.tools.gitlab import GitLab

            server = GitLab(_http(section, session))
        case sections.AzureDevOpsTool():
            from adapters.tools.azure_devops import AzureDevOps

            server = AzureDevOps(_http(section, session, user=""))
        case sections.JenkinsTool():
            from adapters.tools.jenkins import Jenkins

            jenkins = Jenkins(_http(section, session, user=section.user))
            return Tools(toolboxes=(Builds(section.name, jenkins, section.services),))
    builds = Builds(section.name, server, section.services)
    return Tools(toolboxes=(builds,), changes=(HostedChanges(f"{section.name} changes", server, section.services),))


def _mcp(section: sections.McpTool) -> Toolbox:
    from adapters.tools.mcp_server import McpServer

    token = named_secret(section.token_env, section.name) if section.token_env else ""
    return McpServer(section.name, section.url, section.tools, token)


class _Served(Protocol):
    """A section about a server."""

    @property
    def name(self) -> str: ...

    @property
    def url(self) -> str: ...


def _http(
    section: _Served,
    session: aiohttp.ClientSession,
    *,
    user: str | None = None,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | bool = True,
    elsewhere: frozenset[str] = frozenset(),
) -> Http:
    """Open the server of a section with the token that it names: a bearer token, or the password of a `user`.

    Errors, which chats show, name the server by its address without a name and password.
    """
    variable = getattr(section, "token_env", None)
    token = named_secret(variable, section.name) if variable else ""
    credentials = basic(user, token) if user is not None else Token(f"Bearer {token}" if token else "")
    return Http(_system(section.name, section.url), section.url, session, credentials, headers or {}, tls, elsewhere)


def _system(name: str, url: str) -> str:
    return f"{name} at {URL(url).with_user(None)}"
