"""``python -m evercontext``: the same front door."""

from evercontext.cli.main import main

main()
