"""What mail programs put around the words of an incident that came by mail, and an embedding model would take for content."""

from __future__ import annotations

import re

# Both look no further than an address or a name can reach: the text is anybody's.
_REFERENCE = re.compile(
    r"\[cid:[^\]\n]{0,200}\]|<?(?:mailto:)?\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+>?", re.IGNORECASE
)
_HEADER = re.compile(
    r"[^\w\n]{0,20}(?:received from|from|sent|to|cc|date"
    r"|von|gesendet|an|datum|de|envoyé|à|enviado|para|fecha)[ \t]{0,20}:",
    re.IGNORECASE,
)  # in English, German, French and Spanish; of a mail that is quoted, its subject stays


def without_mail(text: str) -> str:
    """The lines without addresses, references to pictures and headers of quoted mails; all of it if nothing else remains."""
    lines = (_REFERENCE.sub(" ", line) for line in text.splitlines() if not _HEADER.match(line))
    said = filter(None, (" ".join(line.split()) for line in lines))
    return "\n".join(said) or text
