"""The real programs from npm, if ``benchmarks/vendor_programs.py`` has brought them here."""

from __future__ import annotations

import pytest
from benchmarks.vendor_programs import CACHE, NEWEST, attack

from evercontext.process.sandbox import available

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not any(entry.works for entry in available()), reason="no sandbox works here"
    ),
]
CACHED = {kind: CACHE / f"{kind}-{version}" for kind, version in NEWEST.items()}


@pytest.mark.parametrize("kind", NEWEST)
async def test_injected_replies_have_no_effect(kind: str) -> None:
    """P2, P3: a few of the 40; the benchmark plays all of them."""
    folder = CACHED[kind] / "node_modules" / ".bin"
    if not (folder / kind).exists():
        pytest.skip(f"no {kind} here; bring it with: python benchmarks/vendor_programs.py {kind}")
    score = await attack(kind, NEWEST[kind], folder, "auto", only=3)
    assert (score.attacks, score.effects) == (3, [])
    assert score.offered <= {"request_user_input"}
