"""Tests of random schedules."""
