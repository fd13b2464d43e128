"""Files of the page that shows a scene: its frame, its script, and the bundle of the script."""
