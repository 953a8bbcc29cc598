"""Sections of plumbline.yaml for the systems that definitions describe: one class each, made from its definition.

AWS Signature Version 4: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
botocore would bring 17 MB and hold python-dateutil below version 3 for these lines.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial, reduce
from importlib import resources
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Optional
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model
from yarl import URL

from adapters.http import (
    TOOL,
    Credentials,
    Http,
    IssuedToken,
    RenewedToken,
    Sign,
    Token,
    basic,
    exchange,
    reason_in,
)
from adapters.readers.builds import Builds
from adapters.readers.definition import Definition, parsed, read_definition, shipped
from adapters.readers.pages import Pages, Schedules
from adapters.readers.reader import Reader
from adapters.readers.values import Services, filled
from adapters.section import EnvironmentName, Host, Section, Url
from adapters.tools.alertmanager import PrometheusAlerts
from adapters.tools.section import Tools, ToolSection, system_at
from core.model.errors import ConfigurationError, ToolRefused, ToolUnavailable

Name = Annotated[str, Field(min_length=1)]  # an empty id in a query could match every schedule
Names = Annotated[tuple[Name, ...], Field(min_length=1)]
Labels = Annotated[dict[str, str], Field(min_length=1)]
_SERVICES: dict[str, tuple[Any, Any]] = {
    "labels": (Annotated[dict[str, Labels], Field(min_length=1)], ...),
    "names": (Annotated[dict[str, Name], Field(min_length=1)], ...),
    "any": (dict[str, Name], {}),
}
"""The type and the default of a section's services, by what its definition says about them."""


class DefinedSection(Section):
    """A system that a definition describes. The other keys are the definition's settings, and `…_env` for its secrets."""

    kind: str
    name: str
    url: str

    @property
    def definition(self) -> Definition:
        raise NotImplementedError

    @property
    def given(self) -> dict[str, str]:
        """Return the settings that are not empty."""
        return {name: value for name in self.definition.settings if (value := getattr(self, name))}

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables by secret."""
        return {name: value for name in self.definition.secrets if (value := getattr(self, f"{name}_env"))}

    def pages(self, host: Host) -> Pages:
        """Return the client of the system. Raises ConfigurationError for a missing secret."""
        secrets = {name: host.settings.secret(variable, self.name) for name, variable in self.variables.items()}
        url = filled(self.url, self.given)
        return Pages(
            replace(
                opened(self.definition, system_at(self.name, url), url, host.session, self.given, secrets),
                elsewhere=frozenset(getattr(self, "log_hosts", ())),
            ),
            self.given,
        )


class ReaderTool(DefinedSection, ToolSection):
    """A system whose logs, metrics, changes or traces are read."""

    services: Services

    def open(self, host: Host) -> Tools:
        """Return what the definition describes, and the alerts of a server that has them like Prometheus."""
        definition, pages = self.definition, self.pages(host)
        reader = Reader(self.name, pages, definition, self.services)
        return Tools(
            logs=(reader,) if definition.logs is not None else (),
            metrics=(reader,) if definition.metrics is not None else (),
            changes=(reader,) if definition.changes or definition.commits or definition.deployments else (),
            toolboxes=(Builds(self.name, pages, definition, self.services),) if definition.builds is not None else (),
            monitors=(PrometheusAlerts(self.name, pages.http),) if self.kind == "prometheus" else (),
            graphs=(reader,) if definition.calls is not None or definition.spans is not None else (),
        )


class OnCallSystem(DefinedSection):
    """A system that knows who is on call. Each kind of schedules in it maps a team to the ids of its schedules."""

    @property
    def ids(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Return the ids of the schedules of each team, by their kind."""
        return {
            kind: {team: (ids,) if isinstance(ids, str) else ids for team, ids in getattr(self, kind).items()}
            for kind in self.definition.people
        }

    def open(self, host: Host) -> Schedules:
        """Return the schedules. Raises ConfigurationError for a missing secret."""
        return Schedules(self.name, self.pages(host), self.definition, self.ids)


class OwnReaderTool(ReaderTool):
    """A system that a definition of yours describes, in the YAML file `definition`.

    `services` are as the definition says; `settings` are its settings, and `secrets` maps a secret to the environment
    variable with it.
    """

    kind: Literal["reader"]  # pyright: ignore[reportIncompatibleVariableOverride]  # sections are frozen
    url: Url
    definition_file: Path = Field(alias="definition")
    services: Services = Field(default_factory=dict[str, str])
    settings: dict[str, str] = Field(default_factory=dict[str, str])
    secrets: dict[str, EnvironmentName] = Field(default_factory=dict[str, EnvironmentName])

    @property
    def definition(self) -> Definition:
        return read_definition(self.definition_file)

    @property
    def given(self) -> dict[str, str]:
        return {
            name: value
            for name, each in self.definition.settings.items()
            if (value := self.settings.get(name, each.default))
        }

    @property
    def variables(self) -> dict[str, str]:
        if needed := [
            *(
                f"settings: {{{name}: VALUE}}"
                for name, each in self.definition.settings.items()
                if each.default is None and name not in self.given
            ),
            *(
                f"secrets: {{{name}: VARIABLE}}"
                for name, each in self.definition.secrets.items()
                if each.needed and name not in self.secrets
            ),
        ]:
            raise ConfigurationError(
                f"{self.name} in plumbline.yaml needs `{needed[0]}`: {self.definition_file.name} asks for it."
            )
        return dict(self.secrets)


@cache
def defined_sections() -> tuple[type[DefinedSection], ...]:
    """Return the sections that definitions describe, of tools and of systems that know who is on call."""
    return OwnReaderTool, *(_section(kind, definition) for kind, definition in shipped().items())


def section_of(point: EntryPoint) -> type[DefinedSection]:
    """Return the section of the definition `NAME.yaml` in the package of an entry point. Raises ConfigurationError."""
    file = resources.files(point.load()) / f"{point.name}.yaml"
    return _section(point.name, parsed(file.read_text("utf-8"), file.name))


def _section(kind: str, definition: Definition) -> type[DefinedSection]:
    """Return the section of a system: a tool, unless its definition says who is on call."""
    fields: dict[str, Any] = {
        "definition": (ClassVar[Definition], definition),
        "kind": (Literal[kind], ...),
        "name": (str, definition.title),
        "url": (Url, definition.url or ...),
    }
    fields |= {name: each.field for name, each in definition.settings.items()}
    fields |= {
        f"{name}_env": (
            EnvironmentName if each.needed else Optional[EnvironmentName],  # noqa: UP045  # of a value
            Field(... if each.needed else None, description=f"Names the variable with {each.about}"),
        )
        for name, each in definition.secrets.items()
    }
    name, about = kind.title().replace("_", ""), f"{definition.title}, as in {definition.reference[0]}"
    if not definition.people:
        fields["services"] = _SERVICES[definition.services]
        if definition.builds is not None:
            project = Annotated[str, Field(pattern=f"^(?:{definition.project.pattern})$")]
            about_hosts = "Names the hosts (`host` or `host:port`) that the server may redirect downloads of logs to."
            fields["services"] = Annotated[dict[str, project], Field(min_length=1)], ...
            fields["log_hosts"] = tuple[str, ...], Field((), description=about_hosts)
        return create_model(f"{name}Tool", __base__=ReaderTool, __doc__=about, **fields)
    ids: Any = dict[str, Name | Names]
    one: tuple[Any, Any] = (Annotated[ids, Field(min_length=1)], ...)
    fields |= {each: one if len(definition.people) == 1 else (ids, {}) for each in definition.people}
    return create_model(f"{name}Section", __base__=OnCallSystem, __doc__=about, **fields)


EARLY = 60.0  # seconds before a token's end in which it is renewed
LIFETIME = 300.0  # seconds of a token that does not say how long it lives


class _Issued(BaseModel):
    access_token: str
    expires_in: float = LIFETIME


_ISSUED = TypeAdapter(_Issued)


async def issued_token(
    system: str, session: aiohttp.ClientSession, url: str, form: Mapping[str, str], seconds: float = 6.0
) -> IssuedToken:
    """Request a token by client credentials (RFC 6749, section 4.4). Raises ToolUnavailable."""
    login = f"The login of {system}"
    answer = await exchange(
        session, "POST", url, system=login, errors=TOOL, seconds=seconds, max_body=65_536, data=form
    )
    status = f"HTTP status {answer.status}"
    if answer.may_pass:
        raise ToolUnavailable(f"{login} answered with {status}.", answer.retry_after)
    if answer.status != 200:
        reason = reason_in(answer.body, secrets=[form["client_secret"]])
        raise ToolRefused(f"{login} issued no token ({status}{f': {reason}' if reason else ''}): check the client.")
    try:
        issued = _ISSUED.validate_json(answer.body)
    except ValidationError as error:
        raise ToolUnavailable(f"{login} answered in an unexpected format.") from error
    return IssuedToken(issued.access_token, issued.expires_in)


def opened(
    definition: Definition,
    system: str,
    url: str,
    session: aiohttp.ClientSession,
    settings: Mapping[str, str],
    secrets: Mapping[str, str],
) -> Http:
    """Return the client of a system, whose errors name it `system`. Empty secrets are those that are not given."""
    ways, values = definition.authentication, {**settings, **secrets}

    def value_of(template: Any) -> Any:
        return filled(template, values)

    credentials: Credentials = Token()
    sign: Sign | None = None
    if ways.bearer and (token := value_of(ways.bearer)):
        credentials = Token(f"Bearer {token}")
    elif ways.basic is not None and (password := value_of(ways.basic.password)):
        credentials = basic(value_of(ways.basic.user) or "", password)
    elif ways.oauth is not None:
        form = {"grant_type": "client_credentials", "client_id": ways.oauth.client, "client_secret": ways.oauth.secret}
        form |= {"scope": ways.oauth.scope} if ways.oauth.scope else {}
        address = str(value_of(ways.oauth.url))
        credentials = RenewedToken(partial(issued_token, system, session, address, value_of(form)), EARLY)
    elif ways.aws is not None:
        given = value_of(ways.aws.model_dump())
        sign = AwsSigner(
            given["service"], given["region"], given["key"], given["secret"], given.get("token") or ""
        ).signed
    headers = {name: value for name, value in value_of({**definition.headers, **ways.headers}).items() if value}
    hidden = frozenset(filter(None, secrets.values()))
    return Http(system, url, session, credentials, headers, sign=sign, secrets=hidden)


ALGORITHM = "AWS4-HMAC-SHA256"
PLAIN = "-_.~"  # characters that are not escaped (RFC 3986, section 2.3)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class AwsSigner:
    """Signs requests to a service in a region with an access key; `token` is that of temporary credentials."""

    service: str
    region: str
    key: str
    secret: str
    token: str = ""
    now: Callable[[], datetime] = _now

    def signed(self, method: str, url: URL, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        at = f"{self.now():%Y%m%dT%H%M%SZ}"
        more = {"X-Amz-Date": at} | ({"X-Amz-Security-Token": self.token} if self.token else {})
        every = {**headers, **more}
        host = f"{url.host}" if url.is_default_port() else f"{url.host}:{url.port}"
        of_signature = {name.lower(): " ".join(value.split()) for name, value in {**every, "Host": host}.items()}
        names = ";".join(sorted(of_signature))
        query = sorted((quote(name, safe=PLAIN), quote(value, safe=PLAIN)) for name, value in url.query.items())
        request = [
            method,
            quote(url.raw_path, safe=f"/{PLAIN}") or "/",
            "&".join(f"{name}={value}" for name, value in query),
            *(f"{name}:{of_signature[name]}" for name in sorted(of_signature)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        ]
        scope = f"{at[:8]}/{self.region}/{self.service}/aws4_request"
        text = "\n".join([ALGORITHM, at, scope, hashlib.sha256("\n".join(request).encode()).hexdigest()])
        signature = reduce(
            lambda key, part: hmac.digest(key, part.encode(), "sha256"),
            [*scope.split("/"), text],
            f"AWS4{self.secret}".encode(),
        ).hex()
        claim = f"{ALGORITHM} Credential={self.key}/{scope}, SignedHeaders={names}, Signature={signature}"
        return every | {"Authorization": claim}
