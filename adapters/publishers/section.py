"""The sections of `filing` in plumbline.yaml: where people may file issues and postmortems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from adapters.chat import CHATS
from adapters.http import SOURCE, Http, Token, basic
from adapters.section import EnvironmentName, Host, Later, Section, Url
from core.model.conversation import PUBLIC, Platform
from core.model.incident import FilingKind, FilingTarget
from core.ports import Publisher

TIMEOUT = 20.0  # seconds for one answer

Repository = Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
Project = Annotated[str, Field(min_length=1)]


def _person_id() -> Any:
    platforms = "|".join((*CHATS.all(), Platform.CONSOLE))
    return Annotated[str, Field(pattern=rf"^({platforms}):.+$")]


PersonId = Annotated[str, Later(_person_id)]


class PublisherSection(Section):
    """A target. It may be used in `channels`, by `people` (`slack:U123…`, `teams:…`; empty: everybody there).

    `private_to` names the channels whose members alone can read the target; without it, everybody is assumed to.
    """

    filed: ClassVar[FilingKind] = FilingKind.ISSUE
    says_who_may_write: ClassVar[bool] = True  # of the system: whether a check proves that the token may write

    name: Annotated[str, Field(min_length=1, max_length=60)]
    url: Url
    token_env: EnvironmentName
    channels: Annotated[tuple[str, ...], Field(min_length=1)]
    people: tuple[PersonId, ...] = ()
    private_to: tuple[str, ...] = ()

    def open(self, host: Host) -> Publisher:
        """Return the publisher. Raises ConfigurationError, for example for a missing secret."""
        raise NotImplementedError

    @property
    def target(self) -> FilingTarget:
        readers = frozenset(f"channel:{name}" for name in self.private_to) or frozenset({PUBLIC})
        return FilingTarget(self.name, self.filed, frozenset(self.channels), frozenset(self.people), readers)

    def http(self, host: Host, headers: Mapping[str, str] | None = None, *, email: str = "") -> Http:
        """Return the client of the server, with the token, or with the email and the token as password."""
        token = host.settings.secret(self.token_env, self.name)
        credentials = basic(email, token) if email else Token(f"Bearer {token}")
        system = f"{self.name} at {self.url}"
        return Http(system, self.url, host.session, credentials, headers or {}, errors=SOURCE, timeout=TIMEOUT)
