"""What could come in at the local page: forms, and addresses of pages."""

from __future__ import annotations

from urllib.parse import quote

from hypothesis import strategies as st

from tests.external.inbound_formats.changes import TEXTS, Payload, as_form, changed, plain, spoilt

FORMS: dict[str, list[Payload]] = {
    "/console/messages": [
        {"channel": "help", "text": "how do I roll back a canary?"},
        {"channel": "help", "thread": "1"},
    ],
    "/console/feedback": [
        {"verdict": "helpful", "message": "1", "page": "/"},
        {"verdict": "reassign", "message": "1", "choice": "payments", "text": "x"},
        {"verdict": "take-it", "incident": "none"},
    ],
    "/console/dead-letters": [{"intent": "incident:none"}],
    "/console/replays": [{"name": "none", "page": "/"}],
    "/console/sign-out": [{}],
    "/console/login": [{"token": "one-token-for-every-door", "page": "/sources"}, {"page": "//evil.example"}],
}
forms = st.sampled_from(list(FORMS)).flatmap(
    lambda path: st.tuples(st.just(path), spoilt(changed(st.sampled_from(FORMS[path])).map(as_form)))
)
PAGES = [
    "/",
    "/incidents",
    "/incidents/{}",
    "/incidents/{}/postmortem",
    "/incidents/{}/postmortem.md",
    "/sources",
    "/documents/{}",
    "/predictions",
    "/audit",
    "/dead-letters",
    "/console/messages.json",
    "/console/sign-in",
    "/console/signed-in",
    "/console/static/{}",
    "/healthz",
    "/{}",
    "/webhooks/{}",
]
QUERY = ["channel", "before", "after", "kind", "outcome", "quote", "act", "incidents", "page", "code", "state", ""]
words = plain | st.sampled_from([*TEXTS, "help", "vault", "handbook/release/canary.md", "1", "9" * 30])


@st.composite
def addresses(draw: st.DrawFn) -> str:
    path = draw(st.sampled_from(PAGES)).format(_quoted(draw(words)))
    query = draw(st.dictionaries(st.sampled_from(QUERY) | plain, words, max_size=3))
    pairs = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in query.items())
    return f"{path}?{pairs}" if pairs else path


def _quoted(word: str) -> str:
    return quote(word[:500], safe="", errors="surrogatepass")
