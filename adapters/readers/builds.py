"""The builds of a server that a definition describes: its runs, what failed in them, and the log of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from yarl import URL

from adapters.http import LAST, typed, unread
from adapters.readers.definition import Definition, Reading, Request
from adapters.readers.pages import Pages
from adapters.readers.values import (
    JsonItem,
    Path,
    Services,
    Values,
    address,
    expression,
    first_word,
    lines_at,
    moment,
    name_of,
    text_of,
    texts,
    word_of,
)
from adapters.tools.section import chosen, whole_text, with_gaps
from core.model.errors import NoFailedBuild, NotThere, ToolUnavailable
from core.ports import FailedBuild, Partial, TimeWindow, Tool
from core.rca.build_log import ENDED, build_end, plain
from core.rca.observation_tools import ServiceTool

MAX_RUNS = 20  # latest runs that are listed
EXPLAINED = 5  # failed runs whose steps are requested
MAX_LOG = 64 * 1024  # last bytes of a log that a language model may read
MAX_FAILED_LOG = 16 * 1024 * 1024  # last bytes of a failed run's log that are requested
MAX_WHOLE_LOG = 1024 * 1024  # last characters of a log that are searched for the failing lines
MAX_CANCELLED = 3  # cancelled steps whose logs are searched for a timeout
MAX_CHILDREN = 5  # failed child runs whose jobs are requested
MAX_LEVELS = 2  # of child runs, the maximum of GitLab
STATES = {
    "passed": "passed",
    "cancelled": "was cancelled",
    "failed": "failed, but has no failed job with a log",
    "unknown": "has no failed job",
}
Link = Mapping[str, str]  # what the address of a page names: the `run`, `part`, `attempt`, `job` or `step`
NO_LINK: Link = {}
R = TypeVar("R", bound=Reading)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a pipeline. All texts are untrusted. `values` are those of requests about it."""

    id: str
    at: datetime
    title: str
    branch: str
    commit: str
    result: str
    url: str
    values: Values

    def __str__(self) -> str:
        """Return a line about the run."""
        branch = (self.branch or "no branch").removeprefix("refs/heads/")
        return f"{self.at:%Y-%m-%d %H:%M} UTC {self.id} {self.result}: {self.title} ({branch} {self.commit[:12]})"


@dataclass(frozen=True, slots=True)
class BuildStep:
    """A job of a run, or a step of one, with its `record` in the answer.

    `stated` is what the server says of its end besides the result, on lines. `within` are the ids of it and of what contains it.
    """

    id: str
    name: str
    result: str
    stated: str
    log: str
    begin: str
    run: str
    within: frozenset[str]
    record: Any


class Builds:
    """Toolbox and BuildReader over a build server. `services` maps a service to its project."""

    def __init__(self, name: str, pages: Pages, definition: Definition, services: Services) -> None:
        assert definition.builds is not None
        self.name = name
        self._pages = pages
        self._definition = definition
        self._server = definition.builds
        self._projects = {service: text_of(project) for service, project in services.items()}

    async def check(self) -> None:
        """Raise ToolUnavailable if the runs of a project cannot be listed."""
        for project in self._projects.values():
            await self._runs(project, LAST)

    async def linked_failure(self, url: str) -> FailedBuild | None:
        return await _certain(self._behind(url))

    async def _behind(self, url: str) -> FailedBuild | None:
        try:
            links = [(service, self.link(URL(url), project)) for service, project in self._projects.items()]
        except ValueError:
            return None
        for service, link in links:
            if link and (build := await self._linked(service, link, url)):
                return build
        return None

    def link(self, url: URL, project: str) -> Link:
        """Return what an address names of a project; nothing for other addresses."""
        page, server = self._current(url), self._current(URL(self._pages.http.url))
        prefix = server.raw_path.rstrip("/")
        if (page.host, page.port) != (server.host, server.port) or not page.raw_path.startswith(f"{prefix}/"):
            return {}
        parts = page.raw_path.removeprefix(prefix).strip("/").split("/")
        path = self._server.skipped.sub("", "/".join(quote(unquote(part), safe="") for part in parts))
        address, values = f"{path}#{page.raw_fragment}".rstrip("#"), self._definition.values_of(project)
        for each in self._server.pages:
            pattern = expression(each.path.pattern, values)
            if match := re.fullmatch(_plain(pattern), _plain(address), re.IGNORECASE):
                in_path = {name: unquote(value).replace("/", "%2F") for name, value in match.groupdict("").items()}
                in_query = {
                    name: next(filter(None, (page.query.get(parameter) for parameter in parameters)), "")
                    for name, parameters in each.query.items()
                }
                link = {name: value for name, value in {**in_query, **in_path}.items() if value}
                return link if "run" in link or ("job" in link and self._server.jobs.one is not None) else {}
        return {}

    def _current(self, url: URL) -> URL:
        """Return an address in the form that the addresses of the server's pages have."""
        address = str(url)
        for earlier, current in self._server.addresses.items():
            address = re.sub(rf"\A{earlier}", current, address)
        return URL(address)

    async def _linked(self, service: str, link: Link, url: str) -> FailedBuild | None:
        project = self._projects[service]
        run = "/".join(link[name] for name in ("part", "run") if name in link)
        named = f"run {run}" if run else f"job {link['job']}"
        try:
            linked = await self._run(project, link)
            return await self._failed(service, linked, link, url) if linked else None
        except NotThere as error:
            raise NoFailedBuild(
                f"{named} of {project}, or its log, is gone or hidden from the token: {error}"
            ) from error

    async def last_failure(self, service: str, before: datetime) -> FailedBuild | None:
        if service not in self._projects:
            return None
        try:
            return await _certain(self._last(service, before))
        except NoFailedBuild:
            return None

    async def _last(self, service: str, before: datetime) -> FailedBuild | None:
        runs = await self._runs(self._projects[service], before)
        return await self._failed(service, runs[0]) if runs else None

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        built = tuple(service for service in services if service in self._projects)

        async def runs(service: str) -> str:
            return await whole_text(self._list(self._projects[service], window.end))

        async def failure(service: str) -> str:
            return await whole_text(self._failure(self._projects[service], window.end))

        if not built:
            return []
        return [
            ServiceTool("build_runs", "The last builds and deployments of a service, with failed steps.", built, runs),
            ServiceTool("build_failure", "The end of the log of the last build that failed.", built, failure),
        ]

    async def _list(self, project: str, before: datetime) -> str:
        runs = await self._runs(project, before)
        failures = [run for run in runs if self._state(run.result) == "failed"]
        explained = chosen(failures, EXPLAINED, f"{self.name}: failed steps", lambda run: run.id)
        named = await asyncio.gather(*map(self._failed_steps, explained))
        steps = {run.id: failed for run, failed in zip(explained, named, strict=True)}
        rows = "\n".join(_row(run, steps.get(run.id, ())) for run in runs) or f"No runs of {project}."
        return with_gaps(rows, explained.gaps)

    async def _failure(self, project: str, before: datetime) -> str:
        runs = await self._runs(project, before)
        run = next((run for run in runs if self._state(run.result) == "failed"), None)
        if run is None:
            among = f" among the last {MAX_RUNS}" if len(runs) >= MAX_RUNS else ""
            return f"No run of {project} failed{among}."
        steps = await self._failed_steps(run)
        log = await self._log(run, steps[0], MAX_LOG) if steps else ""
        return f"{_row(run, steps)}\n{plain(log)}".rstrip()

    async def _failed_steps(self, run: Run) -> list[BuildStep]:
        """Return the steps that failed, or that the server says it ended, for example because they took too long."""
        return [
            step
            for step in await self._steps(run)
            if self._state(step.result) == "failed"
            or ((end := build_end("", step.stated)) is not None and end.end in ENDED)
        ]

    async def _failed(self, service: str, run: Run, link: Link = NO_LINK, url: str = "") -> FailedBuild:
        """Return a run with the log of what a link names, or of its first failed step. Raises NoFailedBuild."""
        project, job, attempt = self._projects[service], link.get("job", ""), run.values["attempt"]
        named = f"run {run.id}, attempt {attempt}" if attempt else f"run {run.id}"
        if job:
            step = await self._step(run, job, link.get("step", job))
            named = f"job {step.name if step else job} of {named}"
            steps, state = [step] if step else [], self._clause(step.result) if step else "is gone"
        else:
            steps = [] if self._state(run.result) == "passed" else await self._steps(run)
            state = self._clause(run.result)
        tried = [step for state in ("failed", "cancelled") for step in steps if self._state(step.result) == state]
        for step in tried[: MAX_CANCELLED + 1]:
            is_failed, stated = self._state(step.result) == "failed", await self._stated(run, step)
            try:
                log = await self._log(run, step, MAX_FAILED_LOG)
            except ToolUnavailable:  # a job whose runner was lost, or that never began, may have no log
                if is_failed and build_end("", stated) is None:
                    raise
                log = ""
            end = build_end(log[-MAX_LOG:], stated)
            if (end is not None and end.end in ENDED) or (is_failed and log.strip()):
                lines = whole_lines(log)
                return FailedBuild(
                    self.name, project, service, run.id, step.name, lines, url or run.url, run.at, stated
                )
        raise NoFailedBuild(f"{named} of {project} {state}")

    def _state(self, result: str) -> str:
        """Return `passed`, `failed` or `cancelled`; the result itself if it is none of them."""
        return next((state for state, results in self._server.results.items() if result in results), result)

    def _clause(self, result: str) -> str:
        """Return a clause about a run or job that has no failed step to show."""
        return STATES.get(self._state(result), f"is {result}")

    async def _runs(self, project: str, before: datetime) -> Sequence[Run]:
        """Return up to MAX_RUNS runs of a project that began before a time, newest first."""
        values = {**self._definition.values_of(project), "end": before}
        read = await self._pages.items(self._server.runs, values, lambda item: self._run_of(item, values))
        inside = [run for run in read if run.at < before]
        return sorted(inside, key=lambda run: run.at, reverse=True)[:MAX_RUNS]

    async def _run(self, project: str, link: Link) -> Run | None:
        """Return the run that a link names; None if it is another project's.

        Without its result, which is that of the latest attempt, if the link names an earlier one.
        """
        values, runs = {**self._definition.values_of(project), **link}, self._server.runs
        if "run" not in link:
            values["run"] = (await self._job(values)).run
        read = await self._pages.items(_single(runs, runs.one), values, lambda item: (item, self._run_of(item, values)))
        own = (run for item, run in read if all(first_word([runs.of[name]], item) == values[name] for name in runs.of))
        return next(own, None)

    def _run_of(self, item: JsonItem, values: Values) -> Run:
        runs, attempt = self._server.runs, values.get("attempt", "")
        number, part = first_word(runs.id, item), first_word(runs.part, item) or values.get("part", "")
        if not number:
            raise ValueError("a run has no id")
        earlier = attempt if attempt != first_word(runs.attempt, item) else ""
        return Run(
            f"{part}/{number}" if part else number,
            moment(runs.at.first(item)),
            texts(runs.title, item).partition("\n")[0],
            first_word(runs.branch, item),
            first_word(runs.commit, item),
            "unknown" if earlier else first_word(runs.result, item, name_of) or runs.unfinished,
            texts(runs.url, item),
            {**values, "run": number, "part": part, "attempt": earlier},
        )

    async def _steps(self, run: Run) -> list[BuildStep]:
        """Return the steps of a run that failed or were cancelled, in order; those of child runs if none did."""
        jobs = self._server.jobs
        request = (jobs.of_attempt if run.values["attempt"] else None) or jobs.request
        runs: list[Values] = [run.values]
        for _ in range(1 + MAX_LEVELS):
            if steps := [step for each in runs for step in self._decisive(await self._all(each, request))]:
                return steps
            runs = [{**run.values, "run": child} for each in runs for child in await self._children(each)]
        return []

    async def _children(self, values: Values) -> list[str]:
        if (children := self._server.jobs.children) is None:
            return []
        return (await self._pages.items(children, values, lambda item: word_of(item.value)))[:MAX_CHILDREN]

    async def _all(self, values: Values, request: Request) -> Partial[BuildStep]:
        """Return all jobs that a request lists, and their steps, by when they began."""
        jobs = self._server.jobs
        listed = jobs.model_copy(update={"request": request})
        items = await self._pages.items(listed, values, lambda item: (first_word(jobs.id, item), item))
        by_id = dict(items)
        steps = typed(
            by_id.values(),
            lambda item: (
                None if any(path.first(item) is True for path in jobs.optional) else self._step_of(item, by_id)
            ),
        )
        return Partial(sorted(steps, key=lambda step: step.begin), steps.gaps)

    async def _job(self, values: Values) -> BuildStep:
        """Return the job with an id. Raises NotThere."""
        jobs = self._server.jobs
        assert jobs.one is not None
        (step,) = await self._pages.items(_single(jobs, jobs.one), values, lambda item: self._step_of(item, {}))
        return step

    def _step_of(self, item: JsonItem, by_id: Mapping[str, JsonItem]) -> BuildStep:
        jobs, id_, reason = (
            self._server.jobs,
            first_word(self._server.jobs.id, item),
            first_word(self._server.jobs.reason, item),
        )
        if not id_:
            raise ValueError("a job has no id")
        containers = list(_containers(item, jobs.parent, by_id))
        of_kind = {first_word(jobs.kind, by_id[each]): by_id[each].value for each in reversed(containers)}
        inner = JsonItem(item.value, (of_kind,))
        name = ": ".join(filter(None, (word_of(path.first(inner)) for path in jobs.name)))
        return BuildStep(
            id_,
            f"{name} ({reason})" if reason else name,
            first_word(jobs.result, item, name_of) or "unknown",
            "\n".join([reason, *lines_at(jobs.stated, inner)]).strip(),
            first_word(jobs.log, item),
            first_word(jobs.begin, item),
            first_word(jobs.run, item),
            frozenset((id_, *containers)),
            item.value,
        )

    def _decisive(self, steps: Sequence[BuildStep]) -> list[BuildStep]:
        """Return the steps that failed or were cancelled; where the definition has an order, the first kind of these."""
        first_of = self._server.jobs.first_of
        failed = [step for step in steps if self._state(step.result) in ("failed", "cancelled")]
        records = JsonItem([step.record for step in failed])
        kinds = [
            [step for record in path.all(records) for step in failed if step.record is record] for path in first_of
        ]
        return next(filter(None, kinds), []) if first_of else failed

    async def _step(self, run: Run, job: str, step: str) -> BuildStep | None:
        """Return what a link names, of any attempt and result; None if the run has no such job.

        If a `step` did not fail, it is what failed within its job.
        """
        jobs = self._server.jobs
        if jobs.one is not None:
            try:
                linked = await self._job({**run.values, "job": job})
            except NotThere:
                return None
            return linked if linked.run in ("", run.values["run"]) else None
        steps = await self._all(run.values, jobs.request)
        if jobs.earlier is not None and not any(each.id == job for each in steps):
            of_steps = (lines_at([jobs.earlier.of], JsonItem(each.record)) for each in steps)
            ids = list(dict.fromkeys(chain.from_iterable(of_steps)))[: jobs.earlier.most]
            attempts = [await self._all({**run.values, "item": each}, jobs.earlier.request) for each in ids]
            steps = next((each for each in attempts if any(step.id == job for step in each)), [])
        inside = [[each for each in steps if place in each.within] for place in (step, job)]
        decisive = [each for place in inside for each in self._decisive(place)]
        return next(iter([*decisive, *(each for each in inside[1] if each.id == job)]), None)

    async def _stated(self, run: Run, step: BuildStep) -> str:
        """Return what the server says of the end of a step, a state or message on each line."""
        notes, texts_noted = self._server.notes, list[str]()
        if notes is not None:
            with suppress(ToolUnavailable):
                texts_noted += await self._pages.items(notes, _of(run, step), lambda item: text_of(item.value))
        return "\n".join(filter(None, [step.result, step.stated, *texts_noted]))

    async def _log(self, run: Run, step: BuildStep, last: int) -> str:
        """Return the last bytes of the log; nothing for a step without one."""
        log, values = self._server.log, _of(run, step)
        if self._server.jobs.log and not step.log:
            return ""
        if log.format == "text":
            return await self._pages.http.text(address(log.request.path, values), last=last)
        return "\n".join(await self._pages.items(log, values, lambda item: name_of(item.value)))[-last:]


async def _certain(failure: Awaitable[FailedBuild | None]) -> FailedBuild | None:
    """Return a failure. Raises ToolUnavailable if there is none, and what was not read may be the failure."""
    with unread() as gaps:
        try:
            build = await failure
        except NoFailedBuild as error:
            if gaps:
                raise ToolUnavailable(f"{error}; not read: {gaps[0].detail}.") from error
            raise
    if build is None and gaps:
        raise ToolUnavailable(f"A build was not read: {gaps[0].detail}.")
    return build


def _of(run: Run, step: BuildStep) -> Values:
    return {**run.values, "job": step.id, "log": step.log}


def _single(reading: R, request: Request) -> R:
    """Return how the one item of an answer is read."""
    return reading.model_copy(update={"request": request, "items": (), "paging": None})


def _containers(item: JsonItem, parent: Sequence[Path], by_id: Mapping[str, JsonItem]) -> Iterator[str]:
    """Yield the ids of the items that contain an item, nearest first."""
    ids = set[str]()
    while (outer := first_word(parent, item)) in by_id and outer not in ids:
        ids.add(outer)
        yield outer
        item = by_id[outer]


def _plain(path: str) -> str:
    """Return a path in which a slash within a part is written in one way: Jenkins encodes it once more."""
    return path.replace("%252F", "%2F")


def whole_lines(log: str) -> str:
    """Return the last MAX_WHOLE_LOG characters of a log, plain, with blank lines for earlier ones, so that line numbers
    hold.
    """
    cut = max(0, len(log) - MAX_WHOLE_LOG)
    return "\n" * log.count("\n", 0, cut) + plain(log[cut:])


def _row(run: Run, failed: Sequence[BuildStep]) -> str:
    return f"{run}; failed: {', '.join(step.name for step in failed)}" if failed else str(run)
