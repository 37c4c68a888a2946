"""Does coverage tell which seeds are worth growing? See docs/search.md, "Guidance"."""
