"""Decoys like those that fool people: harmless edits of what breaks, in the words of the error and right at the onset;
culprits with harmless titles; deployments with the id of their commit, and some that are back-dated."""

from __future__ import annotations

import re
from typing import cast

from tests.evaluation.incident_faults import VAGUE, Truth
from tests.evaluation.incident_world import Record, World

SAME_PLACE, HARMLESS_TITLE, CLASH, BACK_DATED = 0.6, 0.3, 0.3, 0.25  # shares of the incidents
_WORD = re.compile(r"[A-Za-z_]{4,24}")


def deceive(world: World, truth: Truth, onset: float) -> None:
    """Add decoys to an incident. The culprit's record keeps its content, and may lose its title."""
    culprit = next((each for each in world.changes if each.id in truth.culprits and "diff" in each.fields), None)
    if world.chance(SAME_PLACE):
        _same_place(world, truth, onset, culprit)
    if culprit is not None and world.chance(HARMLESS_TITLE):
        culprit.fields["title"] = world.pick(
            (*VAGUE, "Update comments", "Improve readability", "Minor clean-up of names")
        )
        culprit.fields.pop("detail", None)
    if world.chance(BACK_DATED):
        _back_dated(world, truth, onset)
    if world.chance(CLASH):
        _clash(world, truth)


def _same_place(world: World, truth: Truth, onset: float, culprit: Record | None) -> None:
    """Ship an edit of the same file, or of the service in which it shows, that changes nothing but speaks of the error."""
    name = str(culprit.fields.get("service", "")) if culprit else ""
    service = world.services[name or truth.first_failing]
    if service.is_store:
        service = world.services[truth.alerting]
    said = [
        entry.text
        for entry in world.logs.get(truth.first_failing, ())
        if entry.minute >= onset and entry.level in ("ERROR", "FATAL")
    ]
    words = list(dict.fromkeys(_WORD.findall((said or ["request failed"])[-1])))[:8] or ["request"]
    first, second, third = (world.pick(words) for _ in range(3))
    noun = world.pick(service.nouns)
    files = cast("list[str]", culprit.fields.get("files") or []) if culprit else []
    path = files[0] if files else world.path(service, noun, "service")
    title, edited, minus, plus = _edits(world, path, noun, (first, second, third))
    head = [f"--- a/{edited}", f"+++ b/{edited}", f"@@ -12,{len(minus)} +12,{len(plus)} @@"]
    diff = "\n".join([*head, *(f"-{line}" for line in minus), "     unchanged", *(f"+{line}" for line in plus)])
    shipped = onset - world.between(0.1, 1.2)
    decoy = world.commit(shipped - world.between(3, 40), [service.name], title, [edited], diff)
    truth.decoys += [decoy.id, world.deploy(shipped, service.name, [decoy]).id]


def _edits(world: World, path: str, noun: str, words: tuple[str, str, str]) -> tuple[str, str, list[str], list[str]]:
    """A title, a file, and the lines of an edit that is inert, or can only make things better."""
    first, second, third = words
    block = [f"    {first} = check_{second}({noun})", f"    if not {first}:", f"        raise {third}"]
    size = int(world.random.integers(5, 40))
    forms = (
        (f"Comment the {first} {second} of {noun}", path, [], [f"    # {first}: {second} {third}, see the runbook"]),
        (f"Explain {first} {second}", f"docs/{noun}.md", [], [f"When {first} {second}, look at {third}."]),
        (
            f"Cover {first} {second} by a test",
            f"tests/test_{noun}.py",
            [],
            [f"    assert {first}({second}) == '{third}'"],
        ),
        (f"Format {noun} {first}", path, block, [line.replace("    ", "\t") for line in block]),
        (f"Move {first} {second} down", path, block, block),
        (f"Refactor {first} {second} handling", path, ["", "    # old name"], [f"    # {first} {second}", ""]),
        (
            f"Rename a variable of {first} {second}",
            path,
            [f"    res = {first}({noun})", f"    return {second}(res)"],
            [f"    {third}_result = {first}({noun})", f"    return {second}({third}_result)"],
        ),
        (
            f"Extract {first} {second} of the {noun} handler",
            path,
            block,
            [f"    _{first}({noun})", f"def _{first}({noun}):", *block],
        ),
        (f"Check {noun} before {first}", path, [], [f"    if {noun} is None:", f"        return {first}_default"]),
        (f"Give {first} {second} more room", path, [f"{first}_max_size: {size}"], [f"{first}_max_size: {size * 2}"]),
        (f"Wait longer for {second}", path, [f"{second}_timeout_ms: {size}00"], [f"{second}_timeout_ms: {size * 3}00"]),
        (f"Log {first} {second}", path, [], [f'    logger.warning("{first} {second} {third}: %s", {noun})']),
        (
            f"Say more when {first} {second}",
            path,
            [f'    fail("{first}")'],
            [f'    fail("{first} {second} {third}: " + {noun}.id)'],
        ),
    )
    return forms[int(world.random.integers(len(forms)))]


def _back_dated(world: World, truth: Truth, onset: float) -> None:
    """Record a deployment from before the onset that ships a commit made after it: somebody entered it later."""
    service = world.services[truth.alerting]
    noun = world.pick(service.nouns)
    made = onset + world.between(1, 5)
    fix = world.commit(
        made,
        [service.name],
        world.pick((f"Fix {noun} errors", f"Hotfix for failing {noun}s", f"Handle {noun} error")),
        [world.path(service, noun, "service")],
        f"--- a/x\n+++ b/x\n@@ -4,1 +4,2 @@\n-    return {noun}\n+    if {noun} is None: return None\n+    return {noun}",
    )
    truth.decoys += [fix.id, world.deploy(onset - world.between(0.2, 2), service.name, [fix]).id]


def _clash(world: World, truth: Truth) -> None:
    """Give each deployment that names its last commit the id of that commit, as some systems do."""
    for record in world.changes:
        revision = record.fields.get("revision") or (record.fields.get("commits") or [""])[-1]  # type: ignore[index]
        if record.fields["kind"] != "deploy" or not revision:
            continue
        for ids in (truth.culprits, truth.decoys):
            if record.id in ids:
                ids.remove(record.id)
        record.fields["id"] = revision
