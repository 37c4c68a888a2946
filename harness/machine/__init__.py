"""What a machine may lack, as one table: what each row serves, why it is not here, and what brings it."""
