"""Measurements that anyone can repeat; see README.md beside this file."""
