"""The code of Kissel, Taves and Negrut, from a folder that the user has, in a process of its own.

    python _kissel_peer.py FOLDER MECHANISM FORM STEPS

FOLDER is 2021/ASME/rA-formulation/C1 of the repository uwsbel/sbel-reproducibility. The answer is a
line of JSON: time of a step of the dynamics in s at h = 1e-3 s and a tolerance of 1e-5, iterations
of a step, and the positions at the end.
"""

import json
import logging
import os
import sys
import time

folder, name, form, steps = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
os.chdir(folder)
sys.path.insert(0, "sim_engine_3d")
logging.disable(logging.CRITICAL)
module = __import__(f"mechanisms.{name}", fromlist=[name])
end = f"{steps * 1e-3:.6f}"
options = ["--form", form, "--mode", "dynamics", "--tol", "1e-5", "-t", end, "--step_size", "1e-3"]


def run():
    begin = time.process_time()
    r, _, _, iterations, _ = getattr(module, name)(options)
    return time.process_time() - begin, float(iterations), r[-1].tolist()


found = min((run() for _ in range(3)), key=lambda each: each[0])
print(json.dumps({"seconds": found[0] / steps, "iterations": found[1], "r": found[2]}))
