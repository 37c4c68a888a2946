"""Random schedules: scenarios that one seed draws, in the words of scenario files, for any ground."""
