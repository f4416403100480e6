"""Imports of whole dumps, in batches that processes of one machine or of a cluster import into a library.

Batches and their outcomes are items of an ordinary import, whose lease belongs to the command that distributes them.
"""
