"""The definition of a system that is read over HTTP: how it is asked, and what in its answers is what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path as File
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from adapters.readers.values import CHECKED, LANGUAGES, RAW, TIMES, UNITS, JsonPath, names_in
from core.model.errors import ConfigurationError
from core.model.text import refuse_deep_yaml

PLAIN = frozenset({"start", "end", "length", "step", "limit", "page", "offset"})
"""Values that are times and numbers, so that they may stand anywhere."""

OF_REQUESTS = PLAIN | {"service", "cursor", "item"}
OF_BUILDS = frozenset("run part attempt job log".split())
MAX_FILE = 256 * 1024  # bytes of a definition


class DefinitionPart(BaseModel):
    """A part of a definition."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


Paths = Annotated[tuple[JsonPath, ...], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)]
"""One path, or several."""


class Setting(DefinitionPart):
    """A key of the system's section, with the value that it has where none is given; None if it must be."""

    about: str
    default: str | None = None
    pattern: re.Pattern[str] | None = None

    @property
    def field(self) -> tuple[Any, Any]:
        """Return the type and the default of the key."""
        pattern = f"^(?:{self.pattern.pattern})$" if self.pattern is not None else None
        kind = Annotated[str, Field(min_length=1 if self.default is None else None, pattern=pattern)]
        return kind, Field(... if self.default is None else self.default, description=self.about)


class Secret(DefinitionPart):
    """A secret, whose environment variable the tool's section names as `<name>_env`."""

    about: str
    needed: bool = True


class Basic(DefinitionPart):
    user: str
    password: str


class ClientCredentials(DefinitionPart):
    """OAuth 2.0 client credentials (RFC 6749, section 4.4)."""

    url: str
    client: str
    secret: str
    scope: str = ""


class Aws(DefinitionPart):
    """AWS Signature Version 4. `token` is the session token of temporary credentials."""

    service: str
    region: str
    key: str
    secret: str
    token: str = ""


class Authentication(DefinitionPart):
    """At most one way, besides `headers` whose values may hold secrets."""

    bearer: str = ""
    basic: Basic | None = None
    headers: dict[str, str] = {}
    oauth: ClientCredentials | None = None
    aws: Aws | None = None


class Request(DefinitionPart):
    """A GET, or a POST of a `form` or of `json`. `language` is that of the queries in its texts.

    A time has a form of `TIMES` in `template.py`, `${start:iso}` by default: `seconds` is ISO 8601 to the second. As a
    number since 1970, it has a unit of `UNITS` there, such as `s` or `ms`.
    """

    path: str
    query: dict[str, str] = {}
    form: dict[str, str] | None = None
    json_: Any = Field(None, alias="json")
    headers: dict[str, str] = {}
    language: Literal[tuple(LANGUAGES)] | None = None  # pyright: ignore[reportInvalidTypeForm]  # names them


class Paging(DefinitionPart):
    """The pages of an answer, of `size` items each, of which at most `most` are read.

    - `time`: the latest items of a span of time come first, and the next page is what is before them.
    - `cursor`: `next` is the value for `${cursor}`, none at the end.
    - `link`: the header Link names the next page (RFC 8288), or `next` is its address.
    - `offset`, `page`: the next items follow by number, as long as a page is full or `more` is true.
    """

    by: Literal["time", "cursor", "link", "offset", "page"]
    size: Annotated[int, Field(ge=1, le=10_000)] = 100
    most: Annotated[int, Field(ge=1, le=50)] = 8
    next: JsonPath | None = None
    more: JsonPath | None = None
    first: int = 1


class Never(DefinitionPart):
    """The reason why an answer is never partial without an HTTP status that says so."""

    never: Annotated[str, Field(min_length=1)]


class Reading(DefinitionPart):
    """One kind of data: the request, the list of its items in the answer, and what says that some are missing.

    An item lies in a list within a list if `items` has several paths; without any, the answer is the only item. With
    `columns`, a list of columns in each of them, the items are its rows.

    `partial` are the places where an answer says that it is incomplete or wrong although its status is 200, or why it
    `never` is. `left_out` says why something is not read that an answer has at a place.

    With `each`, `then` is requested for each value there (`${item}`), and the items are in its answers; with several
    paths, the value lies in an item of a list.
    """

    request: Request
    each: Paths = ()
    then: Request | None = None
    format: Literal["json", "lines", "text"] = "json"
    items: Paths = ()
    columns: JsonPath | None = None
    partial: Never | Annotated[Paths, Field(min_length=1)]
    left_out: dict[str, JsonPath] = {}
    paging: Paging | None = None


class Logs(Reading):
    """Log records. `labels` is an object of fields that may state the level. `at` are places of the time, the best first.

    A record without a text at `text` has that of the first of its `text_fields`, which are fields of `labels`: `a.b` is
    `b` of `a`, or a field with a dot in its name. Without any, it is left out and named, unless a line may be `blank`.
    """

    at: Paths
    text: Paths = ()
    text_fields: tuple[str, ...] = ()
    blank: bool = False
    level: JsonPath | None = None
    labels: JsonPath | None = None


class Types(Reading):
    """The types of metrics: `items` is an object with the metrics by name, and `type` the types of each."""

    type: JsonPath


class Metrics(Reading):
    """Series of samples: an item has `points`, each with `at` and `value`, or lists of `times` and `values`, or is a sample.

    Series are named after `name`, or `title`, and `labels` without `hidden` ones; those with equal names are averaged. What
    only grows is read as a rate, and rates are added: a name that ends with one of `counters`, if `types`, where they are
    given, say that it is a counter.
    """

    name: JsonPath | None = None
    title: str = ""
    labels: JsonPath | None = None
    hidden: frozenset[str] = frozenset()
    points: JsonPath | None = None
    at: JsonPath | None = None
    value: JsonPath | None = None
    times: JsonPath | None = None
    values: JsonPath | None = None
    counters: tuple[str, ...] = ()
    types: Types | None = None
    most: int = 500

    @model_validator(mode="after")
    def _has_samples(self) -> Self:
        if (self.at is None or self.value is None) == (self.times is None or self.values is None):
            raise ValueError("give `at` and `value` of a sample, or `times` and `values`")
        return self


class Details(DefinitionPart):
    """A further request for each of the first `most` items, whose answer is then `$.details` of the item.

    `of` is the value for `${item}`; an item without one has no details. `name` says what they are.
    """

    name: str
    of: JsonPath
    request: Request
    most: int


class ChangeOutcome(DefinitionPart):
    """The states of a change, which was made if one of them is `done`. Without any state, that is not known."""

    states: JsonPath
    state: JsonPath
    at: JsonPath
    done: str


class Changes(Reading):
    """Changes. `kind` is a word of its own. Where the services have other names in the system, they are translated.

    A change of several `sources` has one of the `revisions` for each, in their order; `source` are the texts of one.
    `files` are those that a change affects, each with its `path` and `patch`, unless it is a `folder`.

    With `listed`, a list begins with the latest of these times, and is read as far as six hours before the window.
    """

    kind: str
    id: Paths
    at: Paths
    title: Paths
    service: JsonPath | None = None
    author: Paths = ()
    detail: Paths = ()
    url: JsonPath | None = None
    revision: JsonPath | None = None
    sources: JsonPath | None = None
    source: Paths = ()
    revisions: JsonPath | None = None
    listed: JsonPath | None = None
    details: Details | None = None
    outcome: ChangeOutcome | None = None
    files: JsonPath | None = None
    path: Paths = ()
    folder: Paths = ()
    patch: Paths = ()


class Calls(Reading):
    """Calls between services, as pairs."""

    caller: JsonPath
    callee: JsonPath


class Spans(Reading):
    """Spans, of which one whose parent is another service's is a call."""

    trace: JsonPath
    span: JsonPath
    parent: JsonPath
    service: JsonPath
    at: JsonPath


class People(Reading):
    """People on call, in the order of `rank`, as far as they are on call from `start` to `end`."""

    name: Paths
    rank: JsonPath | None = None
    start: JsonPath | None = None
    end: JsonPath | None = None


class BuildPage(DefinitionPart):
    """The addresses of pages about a run or a job: a regular expression of what is below the server's address, with a fragment.

    A project stands in it as in requests. Its groups, and those of the `query` by the names of parameters, are the `run`,
    the `part` of the project that it is of, the `attempt`, the `job`, and a `step` within that.
    """

    path: re.Pattern[str]
    query: dict[str, tuple[str, ...]] = {}


class Runs(Reading):
    """The runs of a project: up to 20 that began before `${end}`, the newest first. `one` is the request for a run.

    A run is another project's unless each value of `of` is at its path. `unfinished` is the result of one that has none.
    """

    one: Request
    id: Paths
    at: JsonPath
    result: Paths
    unfinished: str = "unknown"
    title: Paths = ()
    branch: Paths = ()
    commit: Paths = ()
    url: Paths = ()
    part: Paths = ()
    attempt: Paths = ()
    of: dict[str, JsonPath] = {}


class Jobs(Reading):
    """The jobs of a run, and their steps. The first value at each path of `name` is a part of it.

    `of_attempt` is the request for the jobs of an attempt that is not the latest, and `one` that for a job of any, which
    names its `run`. Otherwise it is looked for in `earlier` attempts, which a job of the latest names.

    `reason` and `stated` say why a job ended. What is `optional` is left out. Jobs that contain others are named by the
    `parent` of these; then `^.KIND` of a job is what contains it of that `kind`. They are sorted by when they `begin`.
    `first_of` are the jobs that explain a failed run: the first of these that has any, of those that did not pass.

    `children` are runs that the run started, in which a failed job is looked for if it has none.
    """

    id: Paths
    name: Paths
    result: Paths
    reason: Paths = ()
    stated: Paths = ()
    log: Paths = ()
    run: Paths = ()
    optional: Paths = ()
    parent: Paths = ()
    kind: Paths = ()
    begin: Paths = ()
    first_of: Paths = ()
    of_attempt: Request | None = None
    one: Request | None = None
    earlier: Details | None = None
    children: Reading | None = None


class BuildServer(DefinitionPart):
    """A server of continuous integration. `results` are the words for `passed`, `failed` and `cancelled`. The `log` of a job
    is a text, or its items are the lines. The items of its `notes`, if they may be read, are what the server says of its end.

    `addresses` are how the addresses of its pages begin, by how that of the server or of an earlier page does. What is
    `skipped` has no meaning in a page's path.
    """

    pages: tuple[BuildPage, ...]
    addresses: dict[str, str] = {}
    skipped: re.Pattern[str] = re.compile(r"\Z")
    results: dict[Literal["passed", "failed", "cancelled"], frozenset[str]]
    runs: Runs
    jobs: Jobs
    notes: Reading | None = None
    log: Reading


class Definition(DefinitionPart):
    """The definition of a system.

    - `title`: its name. `reference`: the pages of its API's documentation.
    - `url`: its server; empty if everybody has their own. `headers`: of every request; an empty one is left out.
    - `services`: the name of a service in it, `labels`, which must be given for each, or `names`, which must be, too;
      with `any`, a service has its own name where none is given. The groups of `project`, which such a name must match,
      are values of requests, too.
    - `commits` and `deployments`: changes that each project is asked for.
    - `people`: who is on call, by the key of the section that maps a team to its schedules (`${schedule}`).
    - `tested`: how far it was compared with the system itself.
    - `notice`: a sentence that `plumbline doctor` prints for those who use it, for example when the system ends.
    """

    title: str
    reference: tuple[str, ...]
    tested: Literal["recorded", "server"] = "recorded"
    notice: str = ""
    url: str = ""
    settings: dict[str, Setting] = {}
    secrets: dict[str, Secret] = {}
    authentication: Authentication = Authentication()
    headers: dict[str, str] = {}
    services: Literal["any", "names", "labels"] = "any"
    project: re.Pattern[str] = re.compile(".+")
    logs: Logs | None = None
    metrics: Metrics | None = None
    changes: Changes | None = None
    commits: Changes | None = None
    deployments: Changes | None = None
    builds: BuildServer | None = None
    calls: Calls | None = None
    spans: Spans | None = None
    people: dict[str, People] = {}
    check: Request | None = None

    @property
    def readings(self) -> list[Reading]:
        changes = (self.changes, self.commits, self.deployments)
        every = (self.logs, self.metrics, *changes, self.calls, self.spans, *self.people.values())
        return [each for each in every if each is not None]

    def values_of(self, project: str) -> dict[str, str]:
        """Return the values of requests about a project."""
        match = self.project.fullmatch(project)
        return {"service": project, **(match.groupdict() if match else {})}

    @model_validator(mode="after")
    def _is_safe(self) -> Self:
        if not self.readings and self.builds is None:
            raise ValueError(
                "nothing is read: give `logs`, `metrics`, `changes`, `builds`, `calls`, `spans` or `people`"
            )
        for reading in self.readings:
            if bool(reading.each) != (reading.then is not None):
                raise ValueError("`each` and `then` belong together")
        if self.logs is not None:
            _only([*self.logs.text_fields], frozenset(self.settings), "`text_fields`")
            if not self.logs.text and (not self.logs.text_fields or self.logs.labels is None):
                raise ValueError("give `text`, or `text_fields` and `labels`")
        for request in self._requests():
            self._check(request)
        _only({**self.headers, "": self.url}, frozenset(self.settings), "`headers` and `url`")
        secret = frozenset(self.settings) | frozenset(self.secrets)
        _only(self.authentication.model_dump(), secret, "`authentication`")
        return self

    def _requests(self) -> Iterator[Request]:
        return _requests_in(dict(self))

    def _check(self, request: Request) -> None:
        names = OF_REQUESTS | frozenset(self.settings) | frozenset(self.project.groupindex)
        names |= ({"schedule"} if self.people else frozenset()) | (OF_BUILDS if self.builds else frozenset())
        _only([request.path, request.query, request.form, request.json_, request.headers], names, "a request")
        for name, form, is_whole in names_in([request.query, request.form, request.json_]):
            if form and form != RAW and (form not in {**UNITS, **TIMES} or name not in PLAIN):
                raise ValueError(
                    f"${{{name}:{form}}} is no form of a time: use {', '.join(TIMES)} or, as a number, {', '.join(UNITS)}"
                )
            if form == RAW and name not in self.settings:
                raise ValueError(f"${{{name}:raw}} could change the query: only a setting may be raw")
            if not is_whole and name not in PLAIN and form != RAW and request.language is None:
                raise ValueError(f"${{{name}}} stands within a text: name its `language`")


def _requests_in(value: Any) -> Iterator[Request]:
    """Yield the requests in a part of a definition."""
    if isinstance(value, Request):
        yield value
    elif isinstance(value, DefinitionPart | dict):
        for _, each in value.items() if isinstance(value, dict) else value:
            yield from _requests_in(each)


def _only(template: Any, names: frozenset[str], place: str) -> None:
    if unknown := [name for name, _, _ in names_in(template) if name not in names]:
        raise ValueError(f"${{{unknown[0]}}} is unknown in {place}")


def parsed(text: str, place: str, context: str = CHECKED) -> Definition:
    """Return the definition in a YAML text. Raises ConfigurationError, which names the place."""
    try:
        refuse_deep_yaml(text)
        return Definition.model_validate(yaml.load(text, Loader=_LOADER), context=context)  # noqa: S506  # a SafeLoader
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{place} is not valid YAML: {' '.join(str(error).split())}.") from None
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(map(str, problem["loc"])) or "the file"
        message = problem["msg"].removeprefix("Value error, ").rstrip(".")
        raise ConfigurationError(f"{place}: {where}: {message}.") from None


def read_definition(file: File) -> Definition:
    """Return the definition in a file of the operator. Raises ConfigurationError."""
    try:
        with file.open("rb") as opened:
            text = opened.read(MAX_FILE + 1)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.") from None
    if len(text) > MAX_FILE:
        raise ConfigurationError(f"{file} has more than {MAX_FILE} bytes.")
    return parsed(text.decode("utf-8", "replace"), str(file))


@cache
def shipped() -> dict[str, Definition]:
    """Return the definitions in this package by the kind of their tools."""
    folder = resources.files("adapters.readers") / "definitions"
    files = sorted((each for each in folder.iterdir() if each.name.endswith(".yaml")), key=lambda each: each.name)
    return {each.name.removesuffix(".yaml"): parsed(each.read_text("utf-8"), each.name, "") for each in files}


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where PyYAML was built with it
