"""Tasks of a tree: targets of frames, inverse kinematics, capsules of links."""
