# %% [markdown]
# # To the target: C code, timing, hardware in the loop
#
# Predictive control works in Python. Does it work on the computer of the ship? This tutorial exports an MPC as C, compiles it, and lets it
# answer over a network socket, as a target would. On the way the loop gets a delay that the controller does not know, and it oscillates.
# The cure is one argument.

# %%
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.models import surface_vessel
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

vessel = surface_vessel()
berth = vessel.trim(position=[0, 0])
start = vessel.state.join(pose=lg.SE2.from_angle(1.0, [1.0, -1.5]), twist=np.zeros(3))
weights = {"Q": {"pose": 20, "twist": 0.1}, "R": 0.01}
mpc = lg.MPC(vessel, horizon=15, dt=0.3, reference=berth, **weights)
ideal = lg.simulate(vessel, mpc, x0=start, reference=berth, seconds=20)
print(
    f"in Python, without delay: {np.linalg.norm(ideal.x[-1, :2]):.4f} m from the berth at the end"
)

# %% [markdown]
# ## Export
#
# The folder holds a header with units, one C file without allocation, test vectors and a CMake file.

# %%
folder = Path(tempfile.mkdtemp())
package = mpc.export_c(folder / "firmware", name="ship")
for file in sorted(package.iterdir()):
    print(f"{file.name:16} {file.stat().st_size / 1e3:7.1f} kB")
header = (package / "ship.h").read_text()
print(
    "\n".join(
        line
        for line in header.splitlines()
        if "_RAM" in line or "_PERIOD" in line or "MOST_ITER" in line
    )
)

# %% [markdown]
# ## Does C answer as Python does?
#
# `main.c` of the package compares the answers with the test vectors.

# %%
compiler = shutil.which("cc") or "gcc"


def build(main, name, package):
    """Compile a main file with a package and return the program."""
    library, program = package.with_suffix(".o"), folder / name
    if not library.exists():
        subprocess.run([compiler, "-O1", "-c", package / "ship.c", "-o", library], check=True)
    subprocess.run([compiler, f"-I{package}", main, library, "-lm", "-o", program], check=True)
    return program


told = subprocess.run(
    [build(package / "main.c", "example", package)], capture_output=True, text=True
)
print("return code", told.returncode)

# %% [markdown]
# ## The target
#
# The target is a second program. It receives the time and the state, and sends the input. On a ship the network would be a cable; here
# it is the loopback of this machine. The program also measures how long the step takes.

# %%
(folder / "target.c").write_text(r"""
#define _POSIX_C_SOURCE 199309L
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include "ship.h"
static ship controller;
int main(void) {
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in own = {0}, from;
  socklen_t size = sizeof own;
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(s, (struct sockaddr *)&own, sizeof own)) return 1;
  getsockname(s, (struct sockaddr *)&own, &size);
  printf("%d\n", ntohs(own.sin_port));
  fflush(stdout);
  ship_init(&controller);
  for (;;) {
    double in[1 + SHIP_NS], out[SHIP_NU + 2];
    struct timespec a, b;
    size = sizeof from;
    if (recvfrom(s, in, sizeof in, 0, (struct sockaddr *)&from, &size) != sizeof in) return 0;
    clock_gettime(CLOCK_MONOTONIC, &a);
    out[SHIP_NU] = ship_step(&controller, in[0], in + 1, out);
    clock_gettime(CLOCK_MONOTONIC, &b);
    out[SHIP_NU + 1] = (b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec);
    sendto(s, out, sizeof out, 0, (struct sockaddr *)&from, size);
  }
}
""")


class Target:
    """The program, asked like any controller; `late` calls pass before an answer is used."""

    def __init__(self, program, late=0):
        self.process = subprocess.Popen([program], stdout=subprocess.PIPE, text=True)
        self.address = ("127.0.0.1", int(self.process.stdout.readline()))
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(5.0)
        self.waiting = [np.zeros(3)] * late
        self.steps, self.trips = [], []

    def __call__(self, t, x, reference):
        begun = time.perf_counter()
        self.socket.sendto(np.r_[t, x].tobytes(), self.address)
        *u, _status, step = np.frombuffer(self.socket.recv(1000))
        self.trips.append(time.perf_counter() - begun)
        self.steps.append(step)
        self.waiting.append(np.array(u))
        return self.waiting.pop(0)

    def close(self):
        self.socket.sendto(b"end", self.address)
        self.process.wait()


target = Target(build(folder / "target.c", "target", package))
hardware = lg.simulate(vessel, target, x0=start, seconds=20, dt=0.3)
target.close()
print(f"largest difference to Python's run: {np.abs(hardware.x - ideal.x).max():.0e}")

# %% [markdown]
# ## Timing
#
# What counts is the largest time, not the mean. The first call plans to convergence. The period of 300 ms leaves much room.

# %%
figure, ax = plt.subplots(figsize=(7, 3))
ax.semilogy(1e6 * np.array(target.steps), ".", label="step on the target")
ax.semilogy(1e6 * np.array(target.trips), ".", label="with the way there and back")
ax.set(xlabel="call", ylabel="time [µs]", title="every call of 20 s")
ax.legend()
plt.show()

# %% [markdown]
# ## What fails: an answer that comes later
#
# A real bus, a filter and the drives take their time. Here each answer acts two periods late, 0.6 s. The same code then overshoots and
# oscillates.

# %%
slow = Target(folder / "target", late=2)
delayed = lg.simulate(vessel, slow, x0=start, seconds=20, dt=0.3)
slow.close()

# %% [markdown]
# ## The cure: tell the controller
#
# With `delay=0.6` the MPC remembers the inputs on their way and plans from the state to which they lead. The export takes it along: the
# C code has the memory, too.

# %%
knowing = lg.MPC(vessel, horizon=15, dt=0.3, reference=berth, delay=0.6, **weights)
package = knowing.export_c(folder / "knowing", name="ship")
aware = Target(build(folder / "target.c", "aware", package), late=2)
cured = lg.simulate(vessel, aware, x0=start, seconds=20, dt=0.3)
aware.close()

runs = {"no delay": hardware, "0.6 s, unknown": delayed, "0.6 s, known": cured}
figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 4.5))
for name, run in runs.items():
    axes[0].plot(run.t, np.linalg.norm(run.x[:, :2], axis=1), label=name)
    axes[1].step(run.t[:-1], run.u[:, 1], where="post")
    late = run.t > 12
    print(f"{name:15} at most {np.linalg.norm(run.x[late, :2], axis=1).max():.3f} m off after 12 s")
axes[0].set(ylabel="distance [m]", title="C code over loopback")
axes[1].set(xlabel="time [s]", ylabel="sway force [N]")
axes[0].legend()
figure.align_ylabels()
plt.show()

# %% [markdown]
# ## Exercises
#
# 1. Give the share of the period of 0.3 s that the slowest step of `target` took.

# %%
answer = ...
check(
    1,
    answer,
    lambda share: np.isclose(share, max(target.steps) / 0.3),
    "target.steps has the times in seconds.",
)

# %% [markdown]
# 2. A target may allow no more than 8 iterations in any call. Give an MPC of the vessel that keeps this limit, also in its first call.

# %%
answer = ...
check(
    2,
    answer,
    lambda law: (
        "MOST_ITERATIONS 8 "
        in (law.export_c(Path(tempfile.mkdtemp()) / "c", name="ship") / "ship.h").read_text()
    ),
    "real_time=RealTime(most_iterations=8), from lgcontrol.controllers.",
)

# %% [markdown]
# 3. Give an LQR for the berth, sampled with 0.1 s, whose export has less than 10 kB of C code.

# %%
answer = ...
check(
    3,
    answer,
    lambda law: (
        (law.export_c(Path(tempfile.mkdtemp()) / "c", name="ship") / "ship.c").stat().st_size
        < 10_000
    ),
    "lg.LQR(vessel, berth, Q=…, R=…, dt=0.1)",
)
