"""Imports of whole dumps, in batches that processes on one machine or a cluster import into a library.

Batches and their results are items of an ordinary job; the command that distributes them holds its lease.
"""
