from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command import evercontext, home


def test_skills_are_listed_shown_trusted_and_untrusted(tmp_path: Path) -> None:
    place = tmp_path / ".agents" / "skills" / "出荷"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text("---\ndescription: 版を出す手順\n---\n\x1b[31m手順1\n")
    own = home() / "skills" / "mine"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text("Do it well")
    shown = evercontext("skills", "list", cwd=tmp_path).out.splitlines()
    assert shown == [
        "mine  trusted, user",
        "  Do it well",
        "出荷  untrusted, project",
        "  版を出す手順",
    ]
    assert "\\x1b[31m手順1" in evercontext("skills", "show", "出荷", cwd=tmp_path).out
    assert evercontext("skills", "trust", "出荷", cwd=tmp_path).code == 5
    assert evercontext("skills", "trust", "出荷", "--yes", cwd=tmp_path).code == 0
    told = json.loads(evercontext("skills", "list", "--json", cwd=tmp_path).out)
    assert [one["state"] for one in told] == ["trusted", "trusted"]
    assert evercontext("skills", "untrust", "出荷", cwd=tmp_path).code == 0
    ended = evercontext("skills", "untrust", "mine", cwd=tmp_path)
    assert (ended.code, "Remove its folder" in ended.err) == (1, True)
    assert "There are: mine" in evercontext("skills", "show", "min", cwd=tmp_path).err
