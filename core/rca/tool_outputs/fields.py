"""`kubectl describe` and YAML as what both are: fields with a name, nested by indentation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_FIELD = re.compile(r"""["']?(?P<key>[A-Za-z_$][^:"'=]{0,60}?)["']?:(?:\s++(?P<value>\S(?:.*\S)?))?\s*$""")
_WORD_END = re.compile(r"[\s_-]+")
MAX_DEPTH = 40  # of nesting; what is deeper counts as nested so deep
MAX_LINES = 20_000  # that are read as fields
NOTHING = frozenset({"", "<none>", "<unset>", "null", "{}", "[]", "''", '""'})


@dataclass(slots=True)
class Node:
    """A field with what is nested in it. `key` is in lower case without spaces, so that `Exit Code` is `exitcode`.

    A line that is no field has no key; an item of a YAML list has the key `-`. `line` counts from 0.
    """

    key: str
    name: str
    value: str
    line: int
    parent: Node | None = None
    children: list[Node] = field(default_factory=list["Node"])

    def get(self, key: str) -> str:
        """The value of a field of this one; empty if there is none or nothing in it."""
        child = self.child(key)
        return "" if child is None or child.value in NOTHING else child.value.strip("\"'")

    def child(self, key: str) -> Node | None:
        return next((child for child in self.children if child.key == key), None)

    def whole(self, key: str) -> str:
        """The value of a field with the lines that continue it."""
        child = self.child(key)
        if child is None:
            return ""
        return " ".join([self.get(key), *(each.value for each in child.children if not each.key)]).strip()

    def walk(self) -> Iterator[Node]:
        """This node and all below it, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()

    def resource(self) -> str:
        """The name of the resource in a list that this field belongs to; empty outside of one."""
        above = self.parent
        while above is not None:
            metadata = above.child("metadata") if above.key == "-" else None
            if metadata is not None:
                return metadata.get("name")
            above = above.parent
        return ""

    def find(self, key: str) -> Iterator[Node]:
        return (node for node in self.walk() if node.key == key)

    @property
    def last_line(self) -> int:
        return max(node.line for node in self.walk())


def parse_fields(lines: Sequence[str]) -> Node:
    """The fields of the first MAX_LINES of a text as a tree; its root has no name."""
    root = Node("", "", "", -1)
    open_nodes: list[tuple[int, Node]] = [(-1, root)]
    for number, line in enumerate(lines[:MAX_LINES]):
        text = line.expandtabs().rstrip()
        if not text.strip() or text.strip() in ("stdout:", "stderr:", "---"):
            continue
        indent = len(text) - len(text.lstrip())
        rest = text.lstrip()
        while rest.startswith("- "):
            _add(open_nodes, indent, Node("-", "-", "", number))
            indent, rest = indent + 2, rest[2:].lstrip()
        found = _FIELD.match(rest)
        if found is None:
            _add(open_nodes, indent, Node("", "", rest, number))
        else:
            key = _WORD_END.sub("", found["key"]).lower()
            _add(open_nodes, indent, Node(key, found["key"], found["value"] or "", number))
    return root


def _add(open_nodes: list[tuple[int, Node]], indent: int, node: Node) -> None:
    # in YAML the items of a list may stand as deep as the field that holds them
    as_deep = node.key == "-"
    while open_nodes[-1][0] > indent or (
        open_nodes[-1][0] == indent and not (as_deep and open_nodes[-1][1].key != "-")
    ):
        open_nodes.pop()
    parent = open_nodes[-1][1]
    node.parent = parent
    parent.children.append(node)
    if len(open_nodes) < MAX_DEPTH:
        open_nodes.append((indent, node))
