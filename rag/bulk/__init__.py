"""Imports of whole dumps: split into batches, which processes of one machine or of a cluster take into a library.

Batches and their outcomes are items of an ordinary import, whose lease is with the command that hands them out.
"""
