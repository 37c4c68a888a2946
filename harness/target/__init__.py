"""The seam: the interfaces of a target, which is a system under test, one part a file."""
