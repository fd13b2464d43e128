"""Ready vehicles, arms and mechanisms."""
