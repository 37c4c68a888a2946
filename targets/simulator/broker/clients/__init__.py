"""Clients of our broker in virtual time: they produce, read, create, alter and delete."""
