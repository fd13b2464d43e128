"""Trees of rigid bodies with Lie-group joints."""
