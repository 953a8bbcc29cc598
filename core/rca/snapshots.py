"""Long observations are kept aside under a key, and only their head is shown (RCAgent, section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

HEAD = 1_200  # characters of an observation that the controller sees
KEY_LENGTH = 6  # hexadecimal digits; an investigation has a few dozen observations


@dataclass(slots=True)
class Snapshots:
    """The observations of one investigation by key.

    `written` are the keys of those that show nothing of the system: what a model wrote, and what could not be read.
    """

    by_key: dict[str, str] = field(default_factory=dict[str, str])
    written: set[str] = field(default_factory=set[str])

    def keep(self, observation: str, *, written: bool = False) -> str:
        """The key of an observation; the same for the same text."""
        digest = sha256(observation.encode("utf-8", "surrogatepass")).hexdigest()
        key = f"obs_{digest[:KEY_LENGTH]}"
        self.by_key[key] = observation
        if written:
            self.written.add(key)
        return key

    @property
    def read(self) -> dict[str, str]:
        """The observations that show something of the system: what evidence can be quoted from."""
        return {key: text for key, text in self.by_key.items() if key not in self.written}

    def head(self, key: str) -> str:
        """What is shown of an observation: its first whole lines, and how much more there is."""
        text = self.by_key[key]
        if len(text) <= HEAD:
            return text
        shown = text[:HEAD].rpartition("\n")[0] or text[:HEAD]
        return f"{shown}\n… {len(text) - len(shown)} more characters in {key}"
