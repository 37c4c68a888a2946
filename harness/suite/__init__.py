"""Playing suites: many runs side by side, checked on Spark, kept in one folder with one table and one report."""
