"""How often somebody may do something: a token bucket for each of them, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network

MAX_KEYS = 10_000  # buckets kept; a bucket that was not used for the longest time is forgotten first
IPV6_NETWORK = 64  # bits: what one subscriber is given, who may send from any address in it


class RateLimit:
    """`burst` times at once, and `per_second` times a second for good."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, datetime]] = OrderedDict()

    def take(self, key: str, now: datetime) -> float:
        """Take a token: 0 if there was one, else the seconds until there is one again."""
        missing = self.wait(key, now)
        if not missing:
            self._keep(key, self._tokens(key, now) - 1, now)
        return missing

    def wait(self, key: str, now: datetime) -> float:
        """The seconds until `take` gives a token: 0 if it would now."""
        return max(0.0, (1 - self._tokens(key, now)) / self._per_second)

    def _tokens(self, key: str, now: datetime) -> float:
        tokens, at = self._buckets.get(key, (float(self._burst), now))
        # A clock that was set back fills no bucket, and empties none.
        return min(self._burst, tokens + max(now - at, timedelta()).total_seconds() * self._per_second)

    def _keep(self, key: str, tokens: float, now: datetime) -> None:
        self._buckets[key] = (tokens, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > MAX_KEYS:
            self._buckets.popitem(last=False)


def client_key(address: str | None) -> str:
    """Return the key of a client by its address: an IPv6 address stands for its network."""
    try:
        parsed = ip_address((address or "").partition("%")[0])
    except ValueError:
        return address or ""
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or ip_network((parsed, IPV6_NETWORK), strict=False))
