"""Catalogues of teams: the same from a folder and from a repository that is fetched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from adapters.catalogues import section as files_module
from adapters.catalogues.backstage import read_backstage
from adapters.catalogues.codeowners import read_codeowners
from adapters.catalogues.section import CatalogueFiles, FolderFiles
from adapters.sources.git_repository import GitRepositorySource, Repository
from core.model.conversation import Platform
from core.model.errors import SourceUnavailable
from core.model.team import Catalogue, Team, named_code
from tests.contract.backstage_entities import CATALOGUE, GROUPS
from tests.contract.source_worlds.repository import git

Place = Callable[[dict[str, str]], CatalogueFiles]


@pytest.fixture(params=["folder", "repository"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Writes files, and reads them in one way or the other."""
    folder = tmp_path / "catalogue"

    def written(files: dict[str, str]) -> CatalogueFiles:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        if request.param == "folder":
            return FolderFiles(folder)
        git(folder, "init", "--quiet", "--initial-branch=main")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message=all")
        return GitRepositorySource("docs", Repository(tmp_path / "copy.git", folder.as_uri()))

    return written


async def test_backstage_says_which_teams_there_are_what_they_run_and_how_they_are_reached(place: Place) -> None:
    found = await read_backstage(place({"catalog-info.yaml": CATALOGUE, "teams/org.yaml": GROUPS}))
    teams = {team.id: team for team in found.teams}
    assert teams.keys() == {"payments", "fleet"}
    payments = teams["payments"]
    assert (payments.name, payments.document, payments.channel) == ("Payments", "Charges and refunds.", "pay")
    assert payments.services == {"till", "pg-till", "checkout"}
    assert payments.people == {"ana", "bo"}
    assert payments.mentions == {Platform.SLACK: "S0PAY", Platform.TEAMS: "tag:MjQzMmI1N2I="}


async def test_backstage_says_which_service_calls_which(place: Place) -> None:
    found = await read_backstage(place({"deep/down/catalog-info.yml": CATALOGUE}))
    assert found.dependencies == {"till": ("pg-till", "shelf", "stock-keeper")}


async def test_a_wrong_file_hides_none_of_the_others(place: Place) -> None:
    wrong = {"a/catalog-info.yaml": "kind: [", "b/catalog-info.yaml": "just text", "c/catalog-info.yaml": GROUPS}
    found = await read_backstage(place(wrong))
    assert [team.id for team in found.teams] == ["payments"]


async def test_no_catalogue_at_all_is_said(place: Place) -> None:
    files = place({"README.md": "nothing"})
    with pytest.raises(SourceUnavailable, match="no entity"):
        await read_backstage(files)
    with pytest.raises(SourceUnavailable, match="no CODEOWNERS file"):
        await read_codeowners(files, frozenset())


async def test_codeowners_names_groups_as_teams_and_whose_each_path_is(place: Place) -> None:
    text = "* @acme/platform\n/till/ @acme/payments @ana\n"
    found = await read_codeowners(place({"docs/CODEOWNERS": "* @x/y", ".github/CODEOWNERS": text}), frozenset({"till"}))
    assert [team.id for team in found.teams] == ["platform", "payments"]
    (code,) = found.code
    assert code.services == {"till"}
    assert [rule.owners for rule in code.rules_for("till/ledger.py")] == [("@acme/payments", "@ana")]


async def test_only_wanted_files_are_read(place: Place) -> None:
    read = await place({"a.txt": "A", "b/c.txt": "C"}).read(lambda path: path.name == "c.txt")
    assert dict(read) == {PurePosixPath("b/c.txt"): "C"}


async def test_too_many_files_are_a_mistake_that_is_said(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "MAX_FILES", 1)
    with pytest.raises(SourceUnavailable, match=r"more than 1|at most 1"):
        await place({"a.txt": "A", "b.txt": "B"}).read(lambda _: True)


async def test_what_was_fetched_before_is_read_where_the_repository_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "catalogue"
    folder.mkdir()
    (folder / "CODEOWNERS").write_text("* @acme/platform\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=all")
    files = GitRepositorySource("docs", Repository(tmp_path / "copy.git", folder.as_uri()))
    await read_codeowners(files, frozenset())
    folder.rename(tmp_path / "gone")
    assert (await read_codeowners(files, frozenset())).teams


async def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("heliotrope")
    (tmp_path / "catalogue").mkdir()
    (tmp_path / "catalogue" / "CODEOWNERS").symlink_to(tmp_path / "secret.txt")
    assert await FolderFiles(tmp_path / "catalogue").read(lambda _: True) == {}


async def test_a_file_whose_aliases_would_fill_the_memory_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "catalog-info.yaml").write_text(CATALOGUE)
    laughs = "".join(f"  - &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 30))
    bomb = f"x:\n  - &a0 [lol, lol]\n{laughs}kind: Group\nmetadata: {{name: bomb}}\nspec: {{members: [*a29]}}\n"
    (tmp_path / "bomb").mkdir()
    (tmp_path / "bomb" / "catalog-info.yaml").write_text(bomb)
    found = await read_backstage(FolderFiles(tmp_path))
    assert "bomb" not in {team.id for team in found.teams}
    assert "payments" in {team.id for team in found.teams}


async def test_an_entity_that_is_wrong_hides_no_other_of_its_file_and_an_empty_field_is_no_mistake(
    tmp_path: Path,
) -> None:
    (tmp_path / "catalog-info.yaml").write_text(
        """\
kind: Group
metadata: {name: payments, description: , annotations: }
spec: {type: team, members: }
---
kind: Component
metadata: {name: [till]}
spec: {owner: payments}
---
kind: Component
metadata: {name: seats}
spec: {owner: bookings}
"""
    )
    found = await read_backstage(FolderFiles(tmp_path))
    assert {team.id: set(team.services) for team in found.teams} == {"payments": set(), "bookings": {"seats"}}


async def test_a_name_that_is_written_in_another_case_means_the_same(tmp_path: Path) -> None:
    (tmp_path / "catalog-info.yaml").write_text(
        """\
kind: Group
metadata: {name: payments}
---
kind: Component
metadata: {name: till}
spec: {owner: "group:default/Payments", dependsOn: ["component:Shelf"], consumesApis: [Stock]}
---
kind: Component
metadata: {name: shelf}
spec: {owner: Fleet, providesApis: [stock]}
---
kind: Component
metadata: {name: van}
spec: {owner: fleet}
"""
    )
    found = await read_backstage(FolderFiles(tmp_path))
    assert {team.id: set(team.services) for team in found.teams} == {"payments": {"till"}, "Fleet": {"shelf", "van"}}
    assert found.dependencies == {"till": ("shelf",)}


def entity(kind: str, name: str, namespace: str = "", spec: str = "{}", metadata: str = "") -> str:
    within = f", namespace: {namespace}" if namespace else ""
    return f"kind: {kind}\nmetadata: {{name: {name}{within}{metadata}}}\nspec: {spec}\n"


async def read_as(tmp_path: Path, *entities: str) -> Catalogue:
    (tmp_path / "catalog-info.yaml").write_text("---\n".join(entities))
    return await read_backstage(FolderFiles(tmp_path))


async def test_groups_and_services_of_one_name_in_two_namespaces_stay_two(tmp_path: Path) -> None:
    found = await read_as(
        tmp_path,
        entity("Group", "crew", "harbour", "{profile: {displayName: Crew}}"),
        entity("Group", "crew", "fleet", "{profile: {displayName: Crew}}"),
        entity("Group", "crew", spec="{profile: {displayName: Deck crew}}"),
        entity("Component", "gate", "harbour", "{owner: crew, dependsOn: [component:lamp, component:fleet/lamp]}"),
        entity("Component", "gate", "fleet", "{owner: 'group:harbour/crew', dependsOn: ['Component:lamp']}"),
        entity("Component", "lamp", "fleet", "{owner: Fleet/Crew}"),
        entity("Component", "lamp", "harbour", "{owner: default/crew}"),
        entity("Component", "buoy", "harbour", "{owner: crew}"),
    )
    assert {team.id: (team.name, set(team.services)) for team in found.teams} == {
        "harbour/crew": ("Crew (harbour/crew)", {"harbour/gate", "fleet/gate", "buoy"}),
        "fleet/crew": ("Crew (fleet/crew)", {"fleet/lamp"}),
        "default/crew": ("Deck crew", {"harbour/lamp"}),
    }
    assert found.dependencies == {"harbour/gate": ("harbour/lamp", "fleet/lamp"), "fleet/gate": ("fleet/lamp",)}


async def test_entities_of_one_name_and_two_kinds_stay_two_and_the_component_has_the_name_alone(tmp_path: Path) -> None:
    found = await read_as(
        tmp_path,
        entity("API", "berths", spec="{owner: fleet}"),
        entity("System", "berths", spec="{owner: harbour}"),
        entity("Component", "berths", spec="{owner: crew, dependsOn: ['system:berths']}"),
        entity("Component", "gate", spec="{owner: crew, consumesApis: [berths]}"),
    )
    assert {team.id: set(team.services) for team in found.teams} == {
        "fleet": {"api:berths"},
        "harbour": {"system:berths"},
        "crew": {"berths", "gate"},
    }
    assert found.dependencies == {"berths": ("system:berths",), "gate": ("api:berths",)}


async def test_an_owner_that_is_no_group_of_the_namespace_is_not_the_one_of_another(tmp_path: Path) -> None:
    found = await read_as(
        tmp_path, entity("Group", "crew", "fleet"), entity("Component", "gate", "harbour", "{owner: crew}")
    )
    assert {team.id: set(team.services) for team in found.teams} == {"crew": set(), "harbour/crew": {"gate"}}


async def test_an_odd_field_is_left_out_alone_and_named(tmp_path: Path) -> None:
    found = await read_as(
        tmp_path,
        entity("Component", "gate", spec="{owner: crew}", metadata=", description: {$text: ./README.md}"),
        entity("Component", "lamp", spec="{owner: [crew], dependsOn: ['component:gate']}"),
        entity("Component", "buoy", spec="{owner: crew, dependsOn: {$yaml: ./needs.yaml}}"),
        entity("Group", "crew", spec="{profile: tall, members: [ana]}", metadata=", title: 7, annotations: none"),
        entity("Resource", "cable", spec="[crew]"),
        entity("Component", "[mast]", spec="{owner: crew}"),
    )
    (crew,) = found.teams
    assert (crew.name, crew.services, crew.members) == ("7", {"gate", "buoy"}, {"ana"})
    assert found.dependencies == {"lamp": ("gate",)}
    named = (
        "default/gate: description",
        "lamp: owner",
        "buoy: dependsOn",
        "crew: annotations",
        "crew: profile",
        "cable: spec",
    )
    for line, field in zip(found.left_out, named, strict=False):
        assert field in line
        assert line.startswith("catalog-info.yaml: ")
    assert len(found.left_out) == len(named) + 1


async def test_the_content_of_a_template_is_no_entity(tmp_path: Path) -> None:
    content = entity("Component", "${{ values.name }}", spec="{owner: '${{ values.owner }}'}")
    texts = {
        "catalog-info.yaml": entity("Component", "gate", spec="{owner: crew}"),
        "templates/web/skeleton/catalog-info.yaml": entity("Component", "example", spec="{owner: nobody}"),
        "templates/job/content/catalog-info.yaml": content.replace("name: ${{", "name: '${{").replace("}}}", "}}'}", 1),
        "templates/cut/catalog-info.yaml": entity("Component", "{{cookiecutter.name}}"),
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = await read_backstage(FolderFiles(tmp_path))
    assert {team.id: set(team.services) for team in found.teams} == {"crew": {"gate"}}


async def test_groups_of_one_name_in_two_organizations_stay_two_in_codeowners(tmp_path: Path) -> None:
    (tmp_path / "CODEOWNERS").write_text("/gate/ @acme/harbour/crew\n/lamp/ @acme/fleet/crew\n/buoy/ @acme/deck @ana\n")
    found = await read_codeowners(FolderFiles(tmp_path), frozenset())
    assert [team.id for team in found.teams] == ["acme/harbour/crew", "acme/fleet/crew", "deck"]
    code = named_code(found.code[0], [*found.teams, Team("crew", "Crew")], {})
    assert [rule.owners for rule in code.rules] == [("acme/harbour/crew",), ("acme/fleet/crew",), ("deck",)]
