"""A cluster for tests: starts `holdfast up`, and speaks to its control port and its shell."""

import json
import os
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

BINARY = os.environ.get("HOLDFAST", "holdfast")


class Refused(Exception):
    """The control port said no; the text says why."""


class Cluster:
    def __init__(self, *flags):
        self._dir = tempfile.TemporaryDirectory()
        ready = os.path.join(self._dir.name, "ready.json")
        self._log = open(os.path.join(self._dir.name, "log"), "w+", encoding="utf-8")
        # The cluster ends with the pipe: whatever becomes of this process, none is left behind.
        self._process = subprocess.Popen(
            [BINARY, "up", "--in-memory", "--free-ports", "--ready-file", ready, "--die-with-stdin", *flags],
            stdin=subprocess.PIPE, stdout=self._log, stderr=self._log)
        deadline = time.monotonic() + 30
        while not os.path.exists(ready):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._log.seek(0)
                raise RuntimeError("holdfast up: " + self._log.read())
            time.sleep(0.002)
        # The file appears whole: there is never half of it.
        with open(ready, encoding="utf-8") as f:
            self.ready = json.load(f)

    def close(self):
        self._process.stdin.close()
        self._process.wait(30)
        self._log.close()
        self._dir.cleanup()

    def control(self, method, path, body=None):
        """One request to the control port: docs/control-api.md lists them."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.ready["control"] + path, data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            raise Refused(json.load(e)["error"]) from None

    def post(self, path, **body):
        return self.control("POST", path, body)

    def shell(self, *commands):
        """Commands of the HBase shell; what they print."""
        args = [BINARY, "shell", self.ready["address"] + "?rpc-timeout=300ms", "-n"]
        for c in commands:
            args += ["-e", c]
        return subprocess.run(args, check=True, capture_output=True, text=True, timeout=60).stdout
