"""Series-elastic trees: motors, springs, the flat map."""
