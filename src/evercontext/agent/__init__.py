"""The agent: a loop around one model and one toolbox."""
