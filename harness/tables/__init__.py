"""A large history as typed tables in Parquet, for checks that do not read every op as an object."""
