"""Printing the pages of docs/ that follow from tables in the code."""
