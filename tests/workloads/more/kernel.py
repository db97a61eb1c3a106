"""Stands in for `jupyter nbconvert --execute` where Jupyter is not installed: kernel.py SCRIPT [arguments].

Of the same shape, not the same program: a front process starts a kernel process, hands it the code over a socket, gathers
its output and prints all of it at the end. The kernel runs the script by runpy in its main thread.
"""
import contextlib
import json
import os
import runpy
import socket
import subprocess
import sys


class SocketWriter:
    """Output of the kernel becomes messages, as IOPub's."""

    def __init__(self, connection):
        self.connection = connection

    def write(self, text):
        self.connection.sendall(json.dumps({"stream": text}).encode() + b"\n")
        return len(text)

    def flush(self):
        """Messages are sent at once."""

    def isatty(self):
        return False


def run_kernel(port):
    connection = socket.create_connection(("127.0.0.1", int(port)))
    request = json.loads(connection.makefile().readline())
    sys.argv = request["argv"]
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    writer, status = SocketWriter(connection), 0
    with contextlib.redirect_stdout(writer), contextlib.redirect_stderr(writer):
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except BaseException:  # noqa: BLE001 - the notebook shows it
            import traceback
            traceback.print_exc()
            status = 1
    connection.sendall(json.dumps({"status": status}).encode() + b"\n")


def run_front(argv):
    with socket.create_server(("127.0.0.1", 0)) as server:
        kernel = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--kernel", str(server.getsockname()[1])])
        connection = server.accept()[0]
    connection.sendall(json.dumps({"argv": argv}).encode() + b"\n")
    output, status = [], 1
    for line in connection.makefile():
        message = json.loads(line)
        output.append(message.get("stream", ""))
        status = message.get("status", status)
    kernel.wait()
    print("".join(output), end="", flush=True)
    return status


if __name__ == "__main__":
    if sys.argv[1] == "--kernel":
        run_kernel(sys.argv[2])
    else:
        sys.exit(run_front(sys.argv[1:]))
