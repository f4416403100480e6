"""The evaluation page: sets of questions, runs over them, comparisons, two settings side by side."""
