"""Rate limiting with a token bucket per client, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network

MAX_KEYS = 10_000  # buckets kept; the least recently used one is dropped first
IPV6_NETWORK = 64  # prefix length of one subscriber's IPv6 network


class TokenBuckets:
    """A limit of `burst` at once, and `per_second` in the long run."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, datetime]] = OrderedDict()

    def take(self, key: str, now: datetime) -> float:
        """Take a token. Returns 0 on success, otherwise the seconds until a token is available."""
        missing = self.wait(key, now)
        if not missing:
            self._keep(key, self._tokens(key, now) - 1, now)
        return missing

    def wait(self, key: str, now: datetime) -> float:
        """Return the seconds until `take` succeeds; 0 if it would now."""
        return max(0.0, (1 - self._tokens(key, now)) / self._per_second)

    def _tokens(self, key: str, now: datetime) -> float:
        tokens, at = self._buckets.get(key, (float(self._burst), now))
        # A clock that was set back neither fills nor empties a bucket.
        return min(self._burst, tokens + max(now - at, timedelta()).total_seconds() * self._per_second)

    def _keep(self, key: str, tokens: float, now: datetime) -> None:
        self._buckets[key] = (tokens, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > MAX_KEYS:
            self._buckets.popitem(last=False)


def client_key(address: str | None) -> str:
    """Return the key of a client's address. IPv6 addresses share the key of their network."""
    try:
        parsed = ip_address((address or "").partition("%")[0])
    except ValueError:
        return address or ""
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or ip_network((parsed, IPV6_NETWORK), strict=False))
