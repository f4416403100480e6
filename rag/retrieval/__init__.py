"""From a question to passages: the legs, their fusion, and MMR over the candidates. Knows nothing about users."""
