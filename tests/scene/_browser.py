"""A headless Chromium over a pipe: pages, scripts, keys, pictures, and what the console said."""

import base64
import io
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
OPTIONS = (
    "--headless=new --no-sandbox --use-gl=angle --use-angle=swiftshader "
    "--enable-unsafe-swiftshader --remote-debugging-pipe --no-first-run "
    "--disable-extensions --mute-audio --hide-scrollbars"
).split()


class Browser:
    """One page at a time."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="lgcontrol-chromium-")
        read, self._out = os.pipe()
        self._in, write = os.pipe()

        def pipes() -> None:  # the browser reads from 3 and writes to 4
            os.dup2(read, 63), os.dup2(write, 64)
            os.dup2(63, 3), os.dup2(64, 4)

        command = [PROGRAM, *OPTIONS, f"--user-data-dir={self.folder}", "about:blank"]
        self.process = subprocess.Popen(
            command, preexec_fn=pipes, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read), os.close(write)
        self._count, self._rest, self.told, self.requests = 0, b"", [], []
        self._session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.size(1200, 800)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)  # fmt: skip

    def call(self, method, **parameters):
        """Answer of the browser; what it says in between is kept."""
        self._count += 1
        number = self._count
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._keep(answer)

    def _next(self):
        while b"\0" not in self._rest:
            part = os.read(self._in, 1 << 20)
            if not part:
                raise RuntimeError("the browser has gone")
            self._rest += part
        one, _, self._rest = self._rest.partition(b"\0")
        return json.loads(one)

    def _keep(self, event):
        method, given = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.told.append(given["exceptionDetails"].get("exception", {}).get("description", "?"))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "assert"):
            self.told.append(str(given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.told.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])

    def open(self, path: Path, query: str = ""):
        """Load a page and wait until it shows its scene."""
        self.told, self.requests = [], []
        self.call("Page.navigate", url=path.as_uri() + query)
        until = time.monotonic() + 60
        while self.run("document.documentElement?.dataset.ready ?? ''") == "":
            if time.monotonic() > until:
                raise RuntimeError(f"{path} is not ready; {self.told}")
            time.sleep(0.05)
        return self

    def run(self, script):
        """Value of a JavaScript expression."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description"))
        return found["result"].get("value")

    def key(self, key, **options):
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **options)

    def picture(self, path=None) -> np.ndarray:
        """What is on the screen, shape (height, width, 3)."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            Path(path).write_bytes(data)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))

    def close(self):
        """End the browser and remove its profile."""
        self.process.terminate()
        self.process.wait(timeout=20)
        os.close(self._in), os.close(self._out)
        shutil.rmtree(self.folder, ignore_errors=True)
