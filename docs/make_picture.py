"""Draw docs/demo.png, the picture in README.md: the two runs of `lgcontrol demo`."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib.figure import Figure

from lgcontrol.controllers.designs.auv_helix import design as helix
from lgcontrol.controllers.designs.quadrotor_recovery import design as recovery
from lgcontrol.plotting import plot_path

TITLES = {recovery: "A quadrotor recovers", helix: "A BlueROV2 climbs a helix"}

FRAMES, ZOOM = {recovery: 8, helix: 10}, {recovery: 1.25, helix: 1.45}


def main() -> None:
    """Run both designs and draw their paths side by side."""
    figure = Figure(figsize=(9.0, 4.4))
    for part, (design, title) in zip(figure.subfigures(1, 2), TITLES.items(), strict=True):
        plot_path(design(seed=0).run(), frames=FRAMES[design], figure=part)
        part.texts[-1].set_text("")  # what is dashed and pale, too small here
        (ax,) = part.axes
        ax.set_axis_off()
        ax.set_box_aspect(ax._box_aspect, zoom=ZOOM[design])
        part.suptitle(title, x=0.03, ha="left", fontsize=11, fontweight="bold")
        part.subplots_adjust(left=0.0, right=0.95, bottom=0.0, top=1.0)
    figure.savefig(Path(__file__).with_name("demo.png"), dpi=150)


if __name__ == "__main__":
    main()
