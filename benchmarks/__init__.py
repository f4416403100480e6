"""Repeatable measurements; see README.md in this folder."""
