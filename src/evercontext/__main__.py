"""Run the command line: ``python -m evercontext``."""

from evercontext.cli.main import main

main()
