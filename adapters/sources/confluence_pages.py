"""A page of Confluence as the REST API lists it, and who may read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC

from pydantic import AwareDatetime, BaseModel, ConfigDict

NOBODY = "confluence:nobody"  # a reader that nobody is


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Author(_Model):
    displayName: str = ""
    accountId: str = ""
    username: str = ""
    userKey: str = ""
    email: str = ""


class _Version(_Model):
    when: AwareDatetime
    by: Author = Author()


class _Ancestor(_Model):
    id: str


class _Group(_Model):
    name: str


class _Authors(_Model):
    results: list[Author]
    size: int = 0


class _Groups(_Model):
    results: list[_Group]
    size: int = 0


class _ReadersOfKind(_Model):
    user: _Authors
    group: _Groups


class _Read(_Model):
    restrictions: _ReadersOfKind


class Restrictions(_Model):
    read: _Read


class Page(_Model):
    """A page as it is listed. What is None was not said."""

    id: str
    title: str
    version: _Version
    ancestors: list[_Ancestor] | None = None
    restrictions: Restrictions | None = None

    @property
    def changed_at(self) -> str:
        """In UTC, so that two of them compare as texts."""
        return self.version.when.astimezone(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class Access:
    """The rights to read. `readers` may read what is not restricted.

    `identities` maps a Confluence group or user, as `group:NAME` or `user:ID` (account id, user name or user key), to
    the readers that it stands for here. One that is not mapped stands for a reader that nobody is.
    """

    readers: frozenset[str]
    identities: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    def of(self, restrictions: Restrictions | None) -> frozenset[str] | None:
        """The readers that restrictions leave; None if there are none. Restrictions that were not told leave nobody."""
        if restrictions is None:
            return frozenset({NOBODY})
        kinds = restrictions.read.restrictions
        groups = [f"group:{group.name}" for group in kinds.group.results]
        users = [_identities(user) for user in kinds.user.results]
        # A page may be restricted to somebody whom we are not shown.
        if not (groups or users or kinds.user.size or kinds.group.size):
            return None
        named = [self.identities.get(group, frozenset()) for group in groups]
        named += [self.identities.get(key, frozenset()) for keys in users for key in keys]
        return frozenset[str]().union(*named) or frozenset({NOBODY})


def _identities(author: Author) -> Iterator[str]:
    return (f"user:{key}" for key in (author.accountId, author.username, author.userKey) if key)


def names_of(author: Author) -> tuple[str, ...]:
    """The name that people see, and by what else the author is known; empty for somebody without a name."""
    if not author.displayName:
        return ()
    others = (author.accountId, author.username, author.userKey, author.email)
    return (author.displayName, *filter(None, others))
