"""Feedback laws; ``controllers/designs`` puts them together with models and tasks."""
