"""Print the pages of docs/ that are generated from tables in the code."""
