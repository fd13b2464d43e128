"""Robot descriptions and parameters that the models read."""

from pathlib import Path


def robot_file(name: str) -> Path:
    """Path of a robot description of this package.

    Parameters
    ----------
    name : str
        Without the ending: "panda", "ur5".

    Examples
    --------
    >>> robot_file("ur5").suffix
    '.urdf'
    """
    return Path(__file__).with_name(f"{name}.urdf")
