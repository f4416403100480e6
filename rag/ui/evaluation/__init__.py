"""The evaluation page: question sets, runs, comparisons, and two settings side by side."""
