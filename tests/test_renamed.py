"""Former module names stay importable for one release, with a warning that names the new one."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec

import pytest

from evercontext import errors, renamed


def test_a_former_name_gives_the_present_module_and_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(renamed.RENAMED, "evercontext.former_errors", "evercontext.errors")
    try:
        with pytest.warns(DeprecationWarning, match=r"is now evercontext\.errors") as warned:
            exec("import evercontext.former_errors")
        assert sys.modules["evercontext.former_errors"] is errors
        assert warned[0].filename == "<string>"
    finally:
        sys.modules.pop("evercontext.former_errors", None)


def test_a_name_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"evercontext\.never_was"):
        importlib.import_module("evercontext.never_was")


def test_every_row_leads_from_a_name_that_is_free_to_a_module_that_is_there() -> None:
    for former, present in renamed.RENAMED.items():
        assert find_spec(present) is not None, present
        assert present not in renamed.RENAMED, f"{former} leads to another former name"


@pytest.mark.parametrize(
    "former",
    ["evercontext.settings.keys", "evercontext.context.window", "evercontext.app.house"],
)
def test_a_module_that_was_renamed_is_imported_by_its_former_name(former: str) -> None:
    sys.modules.pop(former, None)
    present = renamed.RENAMED[former]
    with pytest.warns(DeprecationWarning, match=present.replace(".", r"\.")):
        importlib.import_module(former)
    assert sys.modules[former] is sys.modules[present]
    del sys.modules[former]
