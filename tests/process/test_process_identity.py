from __future__ import annotations

import os
import subprocess
import sys

from evercontext.process.process_identity import is_alive, owner_of


def test_a_process_is_known_while_it_runs_and_not_by_its_number_alone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        owner = owner_of(child.pid)
        assert is_alive(owner)
        assert not is_alive({**owner, "born": "1"})
        child.communicate(b"\n")
    assert not is_alive(owner)
    assert is_alive(owner_of(os.getpid()))


def test_odd_owners_are_nobody() -> None:
    for odd in (None, {}, {"pid": "1"}, {"pid": 2**80, "born": None}, {"pid": -5}):
        assert not is_alive(odd)


def test_other_machines_are_what_the_asker_takes_them_for() -> None:
    ours = owner_of(os.getpid())
    theirs = {**ours, "host": "another"}
    assert not is_alive(theirs)
    assert is_alive(theirs, elsewhere=True)
    assert not is_alive({**ours, "boot": "an earlier one"}, elsewhere=True)
    assert is_alive({"pid": os.getpid(), "born": ours["born"]})
