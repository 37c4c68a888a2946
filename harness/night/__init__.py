"""Nights: a plan that is played for hours, survives being killed, and ends with one page."""
