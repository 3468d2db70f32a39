"""Run real programs of other vendors against us; ``dev.py check --real`` installs them first."""
