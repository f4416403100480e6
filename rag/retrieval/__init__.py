"""Retrieval of passages for a question: the legs, their fusion, and MMR. Independent of users and sign-in."""
