"""Names that are words or products too: alone they name a person only where the sentence says so."""

from __future__ import annotations

WORD_NAMES = frozenset(
    """
    ace amber angel art ash autumn basil bay bill bob brook buck buddy bud carol chance chase chip christian cliff clay
    crew dale dash dawn daisy dean dee dell desire dot drew duke dusty earl early ellis eve faith fern flint forest frank
    frost gale gay gene ginger glen golden grace grant guy hale harmony harper harry hazel heath heather hope hunter iris
    ivy jack jade jasmine jay jean jewel jo joy june justice kit lance lane lark laurel leaf lee len levy lily link lou
    love mac major man mark mars marsh mason mel mercy mike miles minh mo myrtle nick noble noel nova olive opal
    page pat patience pearl penny pepper peter piper pierce porter prince rain ray read red reed rex rich rick rob robin
    rocky rod roman rose rowan royal rush rusty sage sal sandy scout shade sky skip sol sonny spencer star stone storm
    sue summer sunny sunshine tab tad taylor ted teal tim tom trace true tucker van victor violet wade walker ward warren
    wayne west wilder will win winter wood woody wren young
    admin bot ci deploy guest oncall ops owner release root service support system test user
    """.split()
)
"""Given names and user names that are English words. A capital in the middle of a sentence makes them a name."""

PRODUCT_NAMES = frozenset(
    """
    ada alexa alloy apollo april argo asana athena august aurora austin avro beats bamboo bazel boston
    cassandra chef clair claude clojure cortana crystal dallas dart delphi denver devin django druid elixir
    elm emacs falco flux geneva gerrit gin go hera houston hudson hugo iris ivy jaeger jan jasmine jasper java
    jenkins jira julia june kafka karma kepler kylin lima loki london luigi lua lucene luna lynx madison
    magnolia mariadb marvin maven mercury mesos michelangelo milan milo mimir max min mocha monty nova orion pan
    pandora paris pascal perl phoenix pino piper prometheus puppet python ray rasa redis rocky ruby rust salt
    scala selenium sentry serena siri sonar sydney tempo thanos titan travis trino turing vault vienna
    virginia vue zuul baker banks bell bishop black brown bush case carpenter church cloud cole cook cross day
    dean dyer farmer field fields fisher flowers ford foster fox friend gardner gates good grant gray green
    hall hand hart head hill hook host hooks house hunt hunter key king knight lamb law little lock long love
    mann marsh mason may mercer mill miller mills moon moore nash null page palmer park parks parsons pipes
    pool poole pope porter post potter power price rich rivers rock root roots rowe rule sanders shepherd
    short singer small smart snow song speed spring steel stock street strong swift table taylor teller temple
    test tower turner tyler vale waters weaver webb webber white wise wolf wong wood woods workman worth
    wright young
    """.split()
)
"""Products, places, months and words that are names: a capital says nothing, only talk of a person does."""
