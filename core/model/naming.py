"""The identity of names of services, teams, hosts and channels: names that look the same are the same."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache


def visible_name(name: str) -> str:
    """Return a name in one Unicode form (NFKC), without invisible signs and without outer and repeated spaces."""
    signs = (sign for sign in unicodedata.normalize("NFKC", name) if unicodedata.category(sign) != "Cf")
    return " ".join("".join(signs).split())


@lru_cache(maxsize=10_000)
def name_key(name: str) -> str:
    """Return the key by which names are compared: the visible name, without its case."""
    return unicodedata.normalize("NFKC", visible_name(name).casefold())


def spellings(names: Iterable[str]) -> dict[str, str]:
    """Return the spelling of each name by its key: that of the first name with this key."""
    return {name_key(name): name for name in reversed([*names])}
