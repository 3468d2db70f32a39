"""Repair: red checks are made green, or everything that was tried is taken back."""
