"""HTML as text."""

from __future__ import annotations

from evercontext.workspace.html_text import html_to_text


def test_what_a_reader_sees_is_kept_and_the_rest_is_not() -> None:
    page = (
        "<html><head><title>The  guide</title><style>p{}</style></head><body>"
        "<script>if (a < b) steal()</script><h2>Install</h2><p>Use&nbsp;it &amp; <b>enjoy</b>"
        " 日本語</p><ul><li>one<li>two</ul><pre>  x = 1\n  y = 2</pre></body></html>"
    )
    assert html_to_text(page) == (
        "The guide\n\n## Install\n\nUse it & enjoy 日本語\n\n- one\n- two\n\n  x = 1\n  y = 2"
    )


def test_broken_pages_are_read_as_far_as_they_go() -> None:
    assert html_to_text("<p>a</script></div><p>b<svg><p>hidden") == "a\n\nb"
    assert html_to_text("") == ""
