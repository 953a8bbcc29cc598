from __future__ import annotations

from urllib.parse import unquote

import pytest

from core.knowledge.clean_text import clean, columns_as_tables, with_whole_links, without_dead_links
from core.model.text import missing_part, missing_parts
from tests.cases import every_case

PAGE = "https://docs.example/guides/runner/"


@every_case(
    ("written", "read"),
    [
        ("a <!-- not for\n\nreaders --> b", "a  b"),
        ('{{< admonition type="note" >}}\nDrain first.\n{{< /admonition >}}', "**Note:**\nDrain first."),
        ('{{% alert color="warning" title="Slow" %}}\nWait.\n{{% /alert %}}', "**Warning: Slow**\nWait."),
        ('{{% tab "Linux" %}}\nRun it.\n{{% /tab %}}', "**Linux**\n\nRun it."),
        ('see {{< tooltip text="the pod" id="pod" >}}', "see the pod"),
        ('[here]({{< relref "../drain.md" >}})', "[here](../drain.md)"),
        (
            '!!! warning "Stop"\n    Drain first.\n\n    ```\n    drain\n    ```\nThen go on.',
            "**Warning: Stop**\nDrain first.\n\n```\ndrain\n```\n\nThen go on.",
        ),
        (":::tip Faster\nUse the cache.\n:::", "**Tip: Faster**\nUse the cache."),
        ("> [!NOTE]\n> Drain first.", "**Note:** Drain first."),
        ("![logo](x.png)\n\nText.", "Text."),
        ("![The queue grows while the runner drains](x.png)", "The queue grows while the runner drains"),
        ("[![Build](b.svg)](https://ci.example) Text.", "Text."),
        ('<a name="x"></a>Run <code>drain</code>, see <a href="/y">this</a>.', "Run `drain`, see [this](/y)."),
        ("<details>\n<summary>More</summary>\n\nText.\n</details>", "**More**\n\nText."),
        ("## Drain {#drain-it}\n\nText.", "## Drain\n\nText."),
        ("## Contents\n\n- [A](#a)\n- [B](#b)\n- [C](#c)\n\n## A", "## A"),
        ("5 &lt; 6&nbsp;s", "5 < 6 s"),
        ("> Run it:\n> ```\n> drain\n> ```\n\n```\n> kept\n```", "Run it:\n```\ndrain\n```\n\n```\n> kept\n```"),
        ("See [the page][p].\n\n[p]: https://a.example/b", "See [the page](https://a.example/b)."),
        ("## Drain [¶](#drain \"Permalink\")\n\nText.", "## Drain\n\nText."),
        ("## Drain [](#drain)\n\nText.", "## Drain\n\nText."),
        ("## Drain🔗\n\nUse C#.", "## Drain\n\nUse C#."),
        ("[Home](/) > [Runbooks](/r) > Drain\n\n# Drain", "# Drain"),
        ("Text.\n\nWas this page helpful?\n\n- Yes\n- No", "Text."),
        ("Text.\n\n[Edit this page](https://forge.example/x)", "Text."),
        ("Text.\n\n[« Previous](a.md) | [Next »](b.md)", "Text."),
        ("Run:\n\n```sh\n1  tillctl drain\n2  tillctl stop\n3  tillctl start\n```", "Run:\n\n```sh\ntillctl drain\ntillctl stop\ntillctl start\n```"),
    ],
)  # fmt: skip
def test_what_a_site_is_built_from_becomes_text_or_goes(written: str, read: str) -> None:
    assert clean(written) == read


INCLUDES = {
    '1. Announce it.\n2. {{% include "drain.md" %}}\n3. Start it.': ["drain.md"],  # Hugo
    '{{< readfile file="steps/drain.md" >}}': ["steps/drain.md"],
    '{{< include "drain" >}}': ["drain"],
    '{{% code_sample file="queue.yaml" %}}': ["queue.yaml"],
    '1. Announce it.\n2. --8<-- "drain.md"': ["drain.md"],  # MkDocs
    "--8<--\ndrain.md\nstart.md\n--8<--": ["drain.md", "start.md"],
    "{! drain.md !}": ["drain.md"],
    '{% include "drain.md" %}': ["drain.md"],
    "{%- include_relative drain.md service=till -%}": ["drain.md"],
    '{% include-markdown "../drain.md" start="<!--s-->" %}': ["../drain.md"],
    "{{#include drain.md}}": ["drain.md"],  # mdBook
    "import Drain from './_drain.mdx';\n\n1. Announce it.\n2. <Drain till={1} />": ["./_drain.mdx"],  # Docusaurus
    ".. include:: drain.rst": ["drain.rst"],
    "include::drain.adoc[lines=1..7]": ["drain.adoc"],
}


@every_case("written", INCLUDES)
def test_a_part_that_is_included_is_named_in_its_place_with_a_link(written: str) -> None:
    read = clean(f"# Restart\n\n{written}\n\nDone.")
    assert [unquote(part) for part in missing_parts(read)] == [f"[{name}]({name})" for name in INCLUDES[written]]
    assert missing_parts(with_whole_links(read, PAGE))[0].partition("](")[2].startswith("https://docs.example/guides/")
    assert ("Announce it." in read) == ("Announce it." in written)
    assert clean(read) == read


@pytest.mark.parametrize(
    "text",
    [
        '```\n{% include "drain.md" %}\n--8<-- "drain.md"\n```',
        "Write `{{% include file %}}`, `{% include x.md %}`, `{! x.md !}` or `--8<-- x`.",
        "Tabs are shown by <Tabs />.",
        "What the kitchen includes :: more or less [all of it].",
    ],
)
def test_what_is_only_said_about_including_stays(text: str) -> None:
    assert clean(text) == text


def test_the_name_of_a_missing_part_cannot_forge_another_one() -> None:
    text = missing_part("a](https://evil.example) (Not included here: b)", "javascript:alert(1) [x](y)")
    assert len(missing_parts(text)) == 1
    assert "](https://evil.example)" not in text
    assert missing_parts(missing_part("")) == ("a part",)
    assert missing_parts(missing_part("x" * 999, "y" * 999)) == ("x" * 200,)


def test_tags_of_templates_go_and_a_part_that_they_include_is_named() -> None:
    written = """# Roll back <%= vars.product_full %>

<% if current_page.data.beta %>
Run `roll <%= kept %>` in <%= vars.tool -%>.
<% end %>
<%# for editors %>
<%= partial "shared/steps" %>

```
echo <%= kept %>
```
"""
    assert clean(written).replace("\n\n", "\n") == (
        f"# Roll back \nRun `roll <%= kept %>` in .\n{missing_part('shared/steps', 'shared/steps')}\n```\necho <%= kept %>\n```"
    )


@every_case(
    "text",
    [
        "Run `{{< not a shortcode >}}` and `<br>`.",
        "```\n<!-- kept -->\n{{< kept >}}\n!!! note\n```",
        "Text:\n\n    <div>{{% kept %}}</div>\n\nText.",
        "Less than 3 <% of all, and 4 % more.",
        "Replace <SERVICE> and <name> by yours; 3 < 4.",
        "- one\n\n  ```yaml\n  a: {{ .Values.b }}\n  ```",
        "a: {{ .Values.b }}",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "A comment <!-- never closed stays.",
        "## Programming in C#\n\nEdit this page table with `tillctl`. Was this helpful to the team? Next we drain.",
        "See [the next step](b.md).",
        "```\n1 general error\n2 wrong usage\n3 no such till\n```",
        "```\n1\n2\n3\n```",
        "```\n1 -a\n3 -b\n4 -c\n```",
    ],
)
def test_code_and_plain_text_stay_as_they_are(text: str) -> None:
    assert clean(text) == text


def test_columns_of_plain_text_below_a_rule_become_a_table() -> None:
    written = "Codes.\n\nCode  Meaning\n----  -------\n 10   gone | lost\n137   killed\n\nTitle\n-----"
    assert columns_as_tables(written) == (
        "Codes.\n\n| Code | Meaning |\n|---|---|\n| 10 | gone \\| lost |\n| 137 | killed |\n\nTitle\n-----"
    )
    askew = "Code  Meaning\n----  -------\nthe lock was lost"
    assert columns_as_tables(askew) == askew


@every_case(
    ("written", "whole"),
    [
        ("[a](../drain/#now)", "[a](https://docs.example/guides/drain/#now)"),
        ("[a](#now)", f"[a]({PAGE}#now)"),
        ("[a](/top)", "[a](https://docs.example/top)"),
        ("[a](https://other.example/)", "[a](https://other.example/)"),
        ("`[a](b)`", "`[a](b)`"),
    ],
)
def test_relative_links_lead_where_they_do_on_the_page(written: str, whole: str) -> None:
    assert with_whole_links(written, PAGE) == whole


def test_a_link_from_the_root_of_a_site_leads_nowhere_in_a_code_forge() -> None:
    assert with_whole_links("[a](/docs/b)", "https://forge.example/team/repo/blob/main/c.md") == "a"


def test_a_page_without_an_address_keeps_its_links_until_it_is_shown() -> None:
    assert with_whole_links("[a](b.md)", "") == "[a](b.md)"
    assert (
        without_dead_links("[a](b.md), [c](https://d.example) and `[e](f)`") == "a, [c](https://d.example) and `[e](f)`"
    )


def test_many_unclosed_marks_take_no_long_time() -> None:
    for mark in ("<!--", "{{< ", "![", "[![", "<a href='", "`", ":::", "> [!", '!!! a "', "    "):
        clean(mark * 5_000)
        clean(f"{mark}\n" * 2_000)
