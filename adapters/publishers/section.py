"""The sections of `filing` in plumbline.yaml: where people may file issues and postmortems.

Definitions in YAML describe the targets that come with Plumbline: how a report is found, written and checked, request by
request, as readers are described.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib import resources
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token as MarkdownToken
from pydantic import Field, TypeAdapter, create_model

from adapters.chat import CHATS
from adapters.http import Http, Token, basic, json_in
from adapters.readers.definition import DefinitionPart, Reading, Request, Setting
from adapters.readers.pages import CUT, Pages
from adapters.readers.values import JsonItem, JsonPath, Values, address, filled, name_of, word_of
from adapters.section import EnvironmentName, Host, Later, Section, Url
from core.incidents.postmortem import markdown_file
from core.model.conversation import PUBLIC, Platform
from core.model.errors import NotThere, ToolUnavailable
from core.model.incident import Filed, FilingKind, FilingTarget, Report
from core.ports import Publisher

_ADDRESS = re.compile(r"https?://|mailto:")  # a link to anything else could name a person, a file or a macro
# Jira links a bare address, and reads an escape in it as a part of it. Inside a word, “-” and “_” are not markup.
_WIKI_SPECIAL = re.compile(r"https?://[^\s\\{}\[\]|!]+|[\\{}\[\]*+^~|!#@?]|(?<![^\W_])[_-]|[_-](?![^\W_])")
_markdown = MarkdownIt("commonmark", {"html": False, "xhtmlOut": True})


def html(text: str) -> str:
    """Return Markdown as XHTML, which Confluence stores."""
    return _markdown.render(text)


def wiki_markup(text: str) -> str:
    """Return Markdown as Jira's wiki markup. Tables and images become text."""
    lines: list[str] = []
    prefixes: list[str] = []  # of the lists around a line, and of a quotation
    for token in _markdown.parse(text):
        match token.type:
            case "heading_open":
                prefixes.append(f"h{token.tag[1:]}. ")
            case "bullet_list_open" | "ordered_list_open":
                prefixes.append("*" if token.type.startswith("bullet") else "#")
            case "blockquote_open":
                prefixes.append("bq. ")
            case "heading_close" | "bullet_list_close" | "ordered_list_close" | "blockquote_close":
                prefixes.pop()
                lines.append("")
            case "inline":
                lists = "".join(each for each in prefixes if each in "*#")
                other = "".join(each for each in prefixes if each not in "*#")
                lines.append(" ".join(filter(None, (lists, f"{other}{_wiki_inline(token)}"))))
            case "paragraph_close" if not prefixes:
                lines.append("")
            case "fence" | "code_block":
                shown = token.content.rstrip().replace("{noformat", "{\u2060noformat")  # it would end here
                lines += [f"{{noformat}}\n{shown}\n{{noformat}}", ""]
    return "\n".join(lines).strip() + "\n"


def _wiki_inline(inline: MarkdownToken) -> str:
    parts: list[str] = []
    addresses: list[str] = []
    for token in inline.children or ():
        match token.type:
            case "code_inline":
                parts.append(f"{{{{{_plain(token.content)}}}}}")
            case "strong_open" | "strong_close":
                parts.append("*")
            case "em_open" | "em_close":
                parts.append("_")
            case "link_open":
                href = str(token.attrGet("href"))
                addresses.append(href.replace("|", "%7C").replace("]", "%5D") if _ADDRESS.match(href) else "")
                parts.append("[" if addresses[-1] else "")
            case "link_close":
                parts.append(f"|{address}]" if (address := addresses.pop()) else "")
            case "softbreak" | "hardbreak":
                parts.append(" ")
            case _:
                parts.append(_plain(token.content))
    return "".join(parts)


def _plain(text: str) -> str:
    return _WIKI_SPECIAL.sub(lambda match: match[0] if match[0][0] == "h" else f"\\{match[0]}", text)


TIMEOUT = 20.0  # seconds for one answer


def _person_id() -> Any:
    platforms = "|".join((*CHATS.all(), Platform.CONSOLE))
    return Annotated[str, Field(pattern=rf"^({platforms}):.+$")]


PersonId = Annotated[str, Later(_person_id)]


class PublisherSection(Section):
    """A target. It may be used in `channels`, by `people` (`slack:U123…`, `teams:…`; empty: everybody there).

    `private_to` names the channels whose members alone can read the target; without it, everybody is assumed to.
    """

    filed: ClassVar[FilingKind] = FilingKind.ISSUE
    says_who_may_write: ClassVar[bool] = True  # of the system: whether a check proves that the token may write

    name: Annotated[str, Field(min_length=1, max_length=60)]
    url: Url
    token_env: EnvironmentName
    channels: Annotated[tuple[str, ...], Field(min_length=1)]
    people: tuple[PersonId, ...] = ()
    private_to: tuple[str, ...] = ()

    def open(self, host: Host) -> Publisher:
        """Return the publisher. Raises ConfigurationError, for example for a missing secret."""
        raise NotImplementedError

    @property
    def target(self) -> FilingTarget:
        readers = frozenset(f"channel:{name}" for name in self.private_to) or frozenset({PUBLIC})
        return FilingTarget(self.name, self.filed, frozenset(self.channels), frozenset(self.people), readers)

    def http(self, host: Host, headers: Mapping[str, str] | None = None, *, email: str = "") -> Http:
        """Return the client of the server, with the token, or with the email and the token as password."""
        token = host.settings.secret(self.token_env, self.name)
        credentials = basic(email, token) if email else Token(f"Bearer {token}")
        system = f"{self.name} at {self.url}"
        return Http(system, self.url, host.session, credentials, headers or {}, timeout=TIMEOUT)


CLOCKS_DIFFER = timedelta(hours=1)  # at most, between this machine and the system
_ANYTHING = TypeAdapter(dict[str, Any])


class Conditional(DefinitionPart):
    """A part for the case that all values of `when` are known, and none of `unless` is."""

    when: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()

    def applies(self, values: Values) -> bool:
        return all(map(values.get, self.when)) and not any(map(values.get, self.unless))


class TargetStep(Conditional):
    """A request: a GET unless it has a `method`. The value at `at` is then known as `name`.

    Where there is nothing (status 404), it is not known, if the step is `optional`.
    """

    method: Literal["GET", "POST", "PUT"] = "GET"
    request: Request
    name: str = ""
    at: JsonPath | None = None
    optional: bool = False


class Search(Conditional, Reading):
    """A search for an earlier attempt: the item with the report's marker at `text`, or the first one.

    Every item has a text, unless it may be `blank`.
    """

    text: JsonPath | None = None
    blank: bool = False


class Check(Conditional):
    """A question whether the token may write: no, with a `problem`, if there is nothing at `at`, or only what is not true."""

    request: Request
    at: JsonPath
    problem: str


class TargetDefinition(DefinitionPart):
    """The definition of a target.

    `before` are requests before all others. `shown` are values of what was found or written, of which `key` and `link` are
    made. `cloud` is the end of the host names of the vendor's own installation, where `${cloud}` is known. The settings may
    have groups in their patterns, whose values are known, too.
    """

    title: str
    reference: tuple[str, ...]
    filed: FilingKind = FilingKind.ISSUE
    says_who_may_write: bool = True
    settles_after: float = 0.0
    url: str = ""
    cloud: str = ""
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    settings: dict[str, Setting]
    before: tuple[TargetStep, ...] = ()
    find: tuple[Search, ...]
    write: tuple[TargetStep, ...]
    check: tuple[Check, ...]
    shown: dict[str, JsonPath]
    key: str
    link: str


@dataclass(frozen=True, slots=True)
class DefinedTarget:
    """Publisher to a target, as its definition says."""

    http: Http
    definition: TargetDefinition
    settings: Mapping[str, str]

    @property
    def settles_after(self) -> float:
        return self.definition.settles_after

    async def find(self, report: Report) -> Filed | None:
        values = await self._values(report)
        search = next(each for each in self.definition.find if each.applies(values))

        def one(item: JsonItem) -> Filed | None:
            text = name_of(search.text.one(item)) if search.text is not None else report.marker
            if not text and not search.blank:
                raise ValueError("it has no text")
            return self._filed(item, values) if report.marker in text else None

        earlier = await Pages(self.http).items(search, values, one)
        if (odd := [gap.detail for gap in earlier.gaps if gap != CUT]) and not earlier:
            raise ToolUnavailable(f"{self.http.system} may have the report already: {odd[0]}.")
        return next(iter(earlier), None)

    async def file(self, report: Report) -> Filed:
        values = await self._after(self.definition.write, await self._values(report))
        try:
            return self._filed(JsonItem(values["answer"]), values)
        except ValueError as error:
            raise ToolUnavailable(self.http.unexpected(b"", reason=str(error))) from error

    async def check(self) -> None:
        values = await self._after(self.definition.before, self._of_settings())
        for check in self.definition.check:
            if check.applies(values) and not any(check.at.all(JsonItem(await self._got(check.request, values)))):
                raise ToolUnavailable(filled(check.problem, values))

    def _of_settings(self) -> dict[str, Any]:
        is_in_cloud = (urlsplit(self.http.url).hostname or "").endswith(self.definition.cloud or "\0")
        return {**self.settings, "server": self.http.url.rstrip("/"), "cloud": is_in_cloud or None}

    async def _values(self, report: Report) -> Values:
        """Return the values of requests about a report."""
        of_report = {
            "marker": report.marker,
            "branch": f"plumbline/{report.marker}",
            "since": report.since - CLOCKS_DIFFER,
            "title": report.title,
            "footer": report.footer,
            "body": report.body,
            "wiki": wiki_markup(report.body),
            "html": html(report.body),
            "path": report.path(self.settings.get("folder", "")),
            "file": markdown_file(report),
            "file_base64": b64encode(markdown_file(report).encode()).decode(),
        }
        values = await self._after(self.definition.before, {**self._of_settings(), **of_report})
        if hidden := [
            each.name
            for each in self.definition.before
            if each.name and not each.optional and each.applies(values) and values.get(each.name) is None
        ]:
            raise ToolUnavailable(self.http.unexpected(b"", reason=f"it shows no {hidden[0]}; check the settings"))
        return values

    async def _after(self, steps: Sequence[TargetStep], values: Values) -> Values:
        """Return what is known after some requests, with the `answer` to the last one."""
        for step in steps:
            if step.applies(values):
                values = {**values, "answer": await self._answer(step, values)}
                if step.at is not None:
                    values = {**values, step.name: step.at.first(JsonItem(values["answer"]))}
        return values

    async def _answer(self, step: TargetStep, values: Values) -> Any:
        if step.method != "GET":
            to, value = address(step.request.path, values), filled(step.request.json_, values)
            return await self.http.send(step.method, to, value, _ANYTHING)
        try:
            return await self._got(step.request, values)
        except NotThere:
            if not step.optional:
                raise
            return {}

    async def _got(self, request: Request, values: Values) -> Any:
        answer = await Pages(self.http).send(request, values)
        try:
            return json_in(answer.body)
        except ValueError as error:
            raise ToolUnavailable(self.http.unexpected(answer.body)) from error

    def _filed(self, item: JsonItem, values: Values) -> Filed:
        """Return the report at an item. Raises ValueError for one without a value that is shown."""
        shown = {name: word_of(path.one(item)) for name, path in self.definition.shown.items()}
        if not all(shown.values()):
            raise ValueError(f"{', '.join(name for name, value in shown.items() if not value)} is missing")
        return Filed(
            filled(self.definition.key, {**values, **shown}), filled(self.definition.link, {**values, **shown})
        )


class TargetSection(PublisherSection):
    """A target that a definition describes. The other keys are the definition's settings."""

    definition: ClassVar[TargetDefinition]

    def open(self, host: Host) -> DefinedTarget:
        given = {name: value for name in self.definition.settings if (value := getattr(self, name))}
        for name, each in self.definition.settings.items():
            match = each.pattern.fullmatch(given.get(name, "")) if each.pattern is not None else None
            given |= match.groupdict() if match else {}
        http = self.http(host, self.definition.headers, email=given.get("email", ""))
        return DefinedTarget(http, self.definition, given)


def _section(kind: str, definition: TargetDefinition) -> type[TargetSection]:
    fields: dict[str, Any] = {
        "definition": (ClassVar[TargetDefinition], definition),
        "filed": (ClassVar[FilingKind], definition.filed),
        "says_who_may_write": (ClassVar[bool], definition.says_who_may_write),
        "kind": (Literal[kind], ...),
        "url": (Url, definition.url or ...),
    }
    fields |= {name: each.field for name, each in definition.settings.items()}
    return create_model(
        f"{kind.title().replace('_', '')}Section", __base__=TargetSection, __doc__=definition.title, **fields
    )


@cache
def target_sections() -> dict[str, type[TargetSection]]:
    """Return the sections of the targets that definitions in this package describe, by kind."""
    folder = resources.files("adapters.publishers") / "definitions"
    files = sorted((each for each in folder.iterdir() if each.name.endswith(".yaml")), key=lambda each: each.name)
    texts = {each.name.removesuffix(".yaml"): yaml.safe_load(each.read_text("utf-8")) for each in files}
    return {kind: _section(kind, TargetDefinition.model_validate(text)) for kind, text in texts.items()}
