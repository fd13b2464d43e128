"""Draw docs/demo.png, the picture in README.md: the two runs of `lgcontrol demo`."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib.figure import Figure

from lgcontrol.controllers.designs.auv_helix import design as helix
from lgcontrol.controllers.designs.quadrotor_recovery import design as recovery
from lgcontrol.plotting import plot_path

TITLES = {recovery: "A quadrotor recovers", helix: "A BlueROV2 climbs a helix"}


def main() -> None:
    """Run both designs and draw their paths side by side."""
    figure = Figure(figsize=(9.0, 4.2))
    for part, (design, title) in zip(figure.subfigures(1, 2), TITLES.items(), strict=True):
        plot_path(design(seed=0).run(), figure=part)
        part.suptitle(title, x=0.02, ha="left", fontsize=10, fontweight="bold")
        part.subplots_adjust(left=0.0, right=0.93, bottom=0.06, top=0.97)
    figure.savefig(Path(__file__).with_name("demo.png"), dpi=100)


if __name__ == "__main__":
    main()
