"""AWS Signature Version 4: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html

botocore would bring 17 MB and hold python-dateutil below version 3 for these lines.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from urllib.parse import quote

from yarl import URL

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
        signature = reduce(_mac, [*scope.split("/"), text], f"AWS4{self.secret}".encode()).hex()
        claim = f"{ALGORITHM} Credential={self.key}/{scope}, SignedHeaders={names}, Signature={signature}"
        return every | {"Authorization": claim}


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
