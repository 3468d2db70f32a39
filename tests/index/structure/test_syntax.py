from __future__ import annotations

import pytest

from evercontext.index.languages import language_grammar
from evercontext.index.structure.syntax import SYNTAXES


@pytest.mark.parametrize("language", ["python", "typescript", "go", "rust", "java"])
def test_every_node_and_field_of_a_table_is_one_of_the_grammar(language: str) -> None:
    grammar, syntax = language_grammar(language), SYNTAXES[language]
    known = {grammar.node_kind_for_id(number) for number in range(grammar.node_kind_count)}
    nodes = {*syntax.definitions, *syntax.classes, *syntax.functions, *syntax.members}
    nodes |= {*syntax.calls, *syntax.imports, *syntax.bases, *syntax.bindings, *syntax.patterns}
    nodes |= {*syntax.wrappers, *syntax.free, *syntax.skipped}
    assert sorted(nodes - known) == []
    fields = {field for each in syntax.members.values() for field in each}
    fields |= {field for each in syntax.bindings.values() for field in each}
    fields |= set(syntax.calls.values())
    unknown = {field for field in fields - {""} if grammar.field_id_for_name(field) is None}
    assert sorted(unknown) == []
