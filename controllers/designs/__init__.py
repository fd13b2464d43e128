"""Designs: a model, a controller and a task each, what ``lgcontrol run NAME`` runs."""
