"""The settings that speak of the same thing as an error: its host, its file, its port."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.model.incident import Evidence, EvidenceKind
from core.rca.tool_outputs.clue import Clue, ToolOutput, cut
from core.rca.tool_outputs.focus import stem
from core.rca.tool_outputs.reading import is_configuration

_THING = re.compile(r"(?<![\w./@-])[\w./@-]{0,200}[\w@-][:./_-][\w./@:-]{0,200}\w|(?<=[\"'`])[^\"'`\s]{4,80}(?=[\"'`])")
_EVENT = re.compile(r"\b(?:Normal|Warning)\s")
MIN_THING = 5  # characters of a name that is not found just anywhere


def setting_of(clue: Clue, outputs: Sequence[ToolOutput]) -> Evidence | None:
    """The first line of a configuration that names what the clue complains of; None if none does.

    The more exact the name, the better: an address with its port goes before the host alone.
    """
    own = stem(clue.subject)
    things = {
        part
        for found in _THING.findall(clue.statement)
        for part in (found, found.rpartition(":")[0])
        if len(part) >= MIN_THING and own not in part and not part.replace(".", "").isdigit()
    }
    lines = [(line, each) for each in outputs if is_configuration(each) for line in each.text.splitlines()]
    for thing in sorted(things, key=lambda each: (-len(each), each)):
        for line, output in lines:
            if thing in line and line.strip() not in clue.quote and not _EVENT.search(line):
                return Evidence(EvidenceKind.TOPOLOGY, output.source, cut(line.strip(), line.find(thing)))
    return None
