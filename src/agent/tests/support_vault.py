"""For the tests of core, vault, sections and jobs: a supervisor that listens, and programs under the agent."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import support_cpu  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(os.path.dirname(HERE), "python")
WORKLOADS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "tests", "workloads")


class Supervisor:
    """Listens on a socket in a folder of its own and keeps the messages; `with Supervisor() as s`."""

    def __init__(self, reads=True, listens=True):
        self.folder = tempfile.mkdtemp(prefix="fpt")
        self.path = os.path.join(self.folder, "s")
        self.vault = os.path.join(self.folder, "vault")
        self.messages, self.connections, self.reads = [], [], reads
        self.server = None
        if listens:
            self.listen()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.silence()
        shutil.rmtree(self.folder, ignore_errors=True)

    def listen(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.server.bind(self.path)
        self.server.listen(16)
        threading.Thread(target=self._serve, args=(self.server,), daemon=True).start()

    def silence(self):
        """Closes the listening socket and all connections."""
        if self.server is not None:
            self.server.shutdown(socket.SHUT_RDWR)
            self.server.close()
            self.server = None
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the program has hung up
            connection.close()
        self.connections = []

    def _serve(self, server):
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            self.connections.append(connection)
            if self.reads:
                threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection):
        buffered = b""
        while True:
            try:
                data = connection.recv(1 << 16)
            except OSError:
                return
            if not data:
                return
            buffered += data
            *lines, buffered = buffered.split(b"\n")
            self.messages.extend(json.loads(line) for line in lines)

    def of(self, kind, **fields):
        return [m for m in list(self.messages) if m["type"] == kind and all(m.get(k) == v for k, v in fields.items())]

    def wait(self, kind, seconds=240, count=1, **fields):
        """The messages of the kind once there are so many; AssertionError after so many seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.of(kind, **fields)
            if len(found) >= count:
                return found
            time.sleep(0.02)
        raise AssertionError("no %s %s in %s" % (kind, fields, [m["type"] for m in self.messages][-40:]))

    def environment(self, package=True, **told):
        settings = told.pop("settings", {})
        told = dict({"run": "r1", "attempt": 1, "vault": self.vault, "settings": settings}, **told)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("FPT_", "PYTHONPATH"))}
        env.update(FPT_AGENT_SOCKET=self.path, FPT_AGENT_CONFIG=json.dumps(told), PYTHONUNBUFFERED="1",
                   FPT_AGENT_DEBUG="1", HF_HUB_OFFLINE="1")
        if package:
            env["PYTHONPATH"] = PACKAGE
        return env

    def start(self, *command, env=None, python=sys.executable, **told):
        """A Python program under the agent."""
        return subprocess.Popen([python, *command], env=env or self.environment(**told), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)

    def run(self, *command, timeout=600, **more):
        """Its (exit code, standard output, standard error)."""
        process = self.start(*command, **more)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError("still running: %s" % (process.communicate(),))
        return process.returncode, out, err


def until(what, seconds=240):
    """Waits; AssertionError where it has not come true after so many seconds."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise AssertionError("it did not come true")
        time.sleep(0.05)


def kill(process):
    """SIGKILL, and its (standard output, standard error)."""
    process.send_signal(signal.SIGKILL)
    if process.stdout.closed:
        return "", ""
    return process.communicate()
