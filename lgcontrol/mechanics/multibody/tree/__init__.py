"""The tree: links, joints, frames, parameters, and the ways to build one."""
