"""What could stand in the headers of a request."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.external.inbound_formats.changes import FORM

_header_texts = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60)
headers = st.dictionaries(
    st.sampled_from(
        [
            "Authorization",
            "Content-Type",
            "Content-Encoding",
            "Origin",
            "Sec-Fetch-Site",
            "Cookie",
            "X-Slack-Signature",
            "X-Slack-Request-Timestamp",
            "X-PagerDuty-Signature",
            "Sentry-Hook-Signature",
            "X-Grafana-Alerting-Signature",
            "X-Forwarded-Proto",
            "Last-Event-ID",
            "Accept-Encoding",
            "Range",
        ]
    ),
    _header_texts
    | st.sampled_from(
        ["gzip", "deflate", "br", "identity", "application/json", FORM, "Bearer ", "Basic Og==", "v1=00"]
    ),
    max_size=5,
)
