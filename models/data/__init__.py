"""Robot descriptions and parameters that the models read."""
