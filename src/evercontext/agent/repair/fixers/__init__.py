"""Fixers: each knows one kind of mistake, needs no model, and only proposes."""
