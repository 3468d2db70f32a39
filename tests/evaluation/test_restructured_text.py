from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.evaluation.document_parser import Document
from evercontext.evaluation.restructured_text import is_restructured, to_markdown

PAGE = """Title
=====

See `the guide <guide.rst>`_ and ``run()``, or :ref:`below`.

.. _below:

Part
----

Type this::

    first line

    last line

.. code-block:: python
   :linenos:

   print(1)

.. |logo| image:: logo.svg

.. A comment
   that nobody reads.

+------+------+
| name | size |
+======+======+
| a    | 1    |
+------+------+

.. toctree::
   :maxdepth: 1

   usage
   limits
"""


def test_its_parts_are_read_with_their_lines() -> None:
    document = Document.parse(PAGE)
    lines = PAGE.split("\n")
    assert [(h.level, h.text) for h in document.headings] == [(1, "Title"), (2, "Part")]
    assert [lines[h.line - 1] for h in document.headings] == ["Title", "Part"]
    assert [(f.language, f.code.strip(), f.closed) for f in document.fences] == [
        ("text", "first line\n\nlast line", True),
        ("python", "print(1)", True),
    ]
    assert [(link.text, link.target) for link in document.links] == [
        ("the guide", "guide.rst"),
        ("logo", "logo.svg"),
    ]
    said = " ".join(paragraph.text for paragraph in document.paragraphs)
    assert "nobody reads" not in said
    assert all(word in said for word in ("`run()`", "| a | 1 |", "- usage", "- limits"))


@pytest.mark.parametrize(
    "text",
    [
        "# T\n\nText.\n",
        "Title\n=====\n\nText.\n",
        "---\ntitle: x\n---\n\n# T\n",
        "a :: b\n",
        "# T\n\n```rst\n.. note:: x\n```\n",
        "| a | b |\n|---|---|\n",
    ],
)
def test_markdown_is_left_as_it_is(text: str) -> None:
    assert not is_restructured(text)


@given(
    st.lists(
        st.sampled_from(
            [
                ".. code-block:: py",
                "::",
                "a::",
                "   x",
                "",
                "====",
                "Title",
                ".. note:: a",
                "== ==",
                "+--+",
                ".. toctree::",
                "   :a: b",
                ".. image:: x",
                "text",
                "..",
                ":f: x",
                ".. [1] n",
                "````",
                "\t",
            ]
        ),
        max_size=12,
    )
)
def test_every_line_keeps_its_number(lines: list[str]) -> None:
    turned = to_markdown("\n".join(lines)).split("\n")
    # A block of code at the very end is closed on a line of its own.
    assert len(turned) in (len(lines), len(lines) + 1) or not lines


@pytest.mark.case(131)
@pytest.mark.parametrize(
    "piece", ["a::\n\n  b\n", ".. note:: a\n\n   ", "== ==\n", "`a <", "|a", ":a:`"]
)
def test_hostile_pages_are_turned_in_bounded_work(piece: str) -> None:
    to_markdown(".. note:: x\n\n" + piece * (50_000 // len(piece)))


@pytest.mark.case(131)
def test_notes_in_notes_have_an_end() -> None:
    to_markdown("\n".join(f"{' ' * 2 * depth}.. note::\n" for depth in range(700)))
