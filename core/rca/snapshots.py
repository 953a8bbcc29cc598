"""Long observations are kept aside under a key, and only their head is shown (RCAgent, section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

HEAD = 1_200  # characters of an observation that the controller sees
KEY_LENGTH = 6  # hexadecimal digits; an investigation has a few dozen observations


@dataclass(slots=True)
class Snapshots:
    """The observations of one investigation by key."""

    by_key: dict[str, str] = field(default_factory=dict[str, str])

    def keep(self, observation: str) -> str:
        """The key of an observation; the same for the same text."""
        key = f"obs_{sha256(observation.encode()).hexdigest()[:KEY_LENGTH]}"
        self.by_key[key] = observation
        return key

    def head(self, key: str) -> str:
        """What is shown of an observation: its first whole lines, and how much more there is."""
        text = self.by_key[key]
        if len(text) <= HEAD:
            return text
        shown = text[:HEAD].rpartition("\n")[0] or text[:HEAD]
        return f"{shown}\n… {len(text) - len(shown)} more characters in {key}"
