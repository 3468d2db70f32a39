"""The code index: always fresh, and the same search for people, agents and servers."""
