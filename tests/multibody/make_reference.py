"""Write tests/data/multibody from the full reference data: a state of a few models, slimmer.

Run as ``python -m tests.multibody.make_reference FOLDER`` with the folder of the full data.
"""

import json
import sys
from pathlib import Path

import numpy as np

OWN = Path(__file__).resolve().parents[1] / "data" / "multibody"
MODELS = ("chain_Composite", "chain_Planar", "chain_RUBY", "chain_Universal", "tree_A", "ur5")
SOURCE = (
    "Pinocchio 4.1 (BSD-2-Clause), checked against finite differences; universal and composite "
    "joints through equivalent chains of single joints. Parameters of ur5: Universal Robots' "
    "description in example-robot-data (BSD-3-Clause); the others are random."
)
UNUSED = ("motion_subspace_at_neutral_local_linear_first",)


def main(folder: Path) -> None:
    OWN.mkdir(parents=True, exist_ok=True)
    for model in MODELS:
        text = json.loads((folder / f"mbs_{model}.json").read_text())
        joints = [{k: x for k, x in j.items() if k not in UNUSED} for j in text["joints"]]
        own = {"source": SOURCE, "joints": joints}
        own |= {key: text[key] for key in ("model", "gravity", "armature", "frames")}
        (OWN / f"mbs_{model}.json").write_text(json.dumps(own) + "\n")
        with np.load(folder / f"mbs_{model}.npz", allow_pickle=False) as file:
            arrays = {k: file[k][:1] for k in file.files if not k.startswith("hessian")}
        np.savez_compressed(OWN / f"mbs_{model}.npz", **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
