"""Confluence pages as listed by the REST API, and their readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC

from pydantic import AliasPath, BaseModel, ConfigDict, Field

from adapters.edge import Moment
from adapters.sources.front_matter import NOBODY

_READ = ("read", "restrictions")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Author(_Model):
    displayName: str = ""
    accountId: str = ""
    username: str = ""
    userKey: str = ""
    email: str = ""


class _Version(_Model):
    when: Moment
    by: Author = Author()


class _Ancestor(_Model):
    id: str


class _Group(_Model):
    name: str


class Restrictions(_Model):
    """The people and groups that may read a page. The counts include those that are hidden from us."""

    users: list[Author] = Field(validation_alias=AliasPath(*_READ, "user", "results"))
    user_count: int = Field(0, validation_alias=AliasPath(*_READ, "user", "size"))
    groups: list[_Group] = Field(validation_alias=AliasPath(*_READ, "group", "results"))
    group_count: int = Field(0, validation_alias=AliasPath(*_READ, "group", "size"))


class ListedPage(_Model):
    """A listed page. None means unknown."""

    id: str
    title: str
    version: _Version
    ancestors: list[_Ancestor] | None = None
    restrictions: Restrictions | None = None

    @property
    def changed_at(self) -> str:
        """Return the time of the change in UTC, so that times compare as text."""
        return self.version.when.astimezone(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class Access:
    """Reading rights. `readers` may read unrestricted pages.

    `identities` maps a Confluence group or user, as `group:NAME` or `user:ID` (account id, user name or user key), to
    reader names. Unmapped ones map to no reader.
    """

    readers: frozenset[str]
    identities: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    def of(self, restrictions: Restrictions | None) -> frozenset[str] | None:
        """Return the readers that restrictions allow; None if there are no restrictions.

        Unknown restrictions allow nobody.
        """
        if restrictions is None:
            return frozenset({NOBODY})
        groups = [f"group:{group.name}" for group in restrictions.groups]
        users = [
            [f"user:{key}" for key in (user.accountId, user.username, user.userKey) if key]
            for user in restrictions.users
        ]
        # A page may be restricted to people who are hidden from us.
        if not (groups or users or restrictions.user_count or restrictions.group_count):
            return None
        named = [self.identities.get(group, frozenset()) for group in groups]
        named += [self.identities.get(key, frozenset()) for keys in users for key in keys]
        return frozenset[str]().union(*named) or frozenset({NOBODY})


def names_of(author: Author) -> tuple[str, ...]:
    """Return the displayed name and other identifiers of an author; empty for somebody without a name."""
    if not author.displayName:
        return ()
    return (author.displayName, *filter(None, (author.accountId, author.username, author.userKey, author.email)))
