"""The one road to every tool."""
