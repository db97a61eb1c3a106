"""The other side of a connection, outside the supervised tree: `peer.py serve` prints its port and answers for ever.

The first line of a connection selects the behaviour.
  HTTP   GET /drip?rate=B      bytes at B a second, without an end
         GET /late?after=S     an answer after S seconds (a long poll)
         GET /events?each=S    server-sent events, one each S seconds
         GET /poll             an empty answer at once
         PUT or POST /...?rate=B   the body is read at B bytes a second
  plain  `silent`              nothing is ever sent
         `swallow`             everything is read
         `echo RATE`           100-byte messages, RATE a second, each way
`peer.py scrape PORTFILE EACH [PATH]`: a client outside the tree that asks http://127.0.0.1:PORT/PATH each EACH seconds.
`peer.py order PORTFILE`: a user outside the tree who waits for the answer to GET /generate.
`peer.py cancel PORTFILE`: a user outside the tree: GET /generate, then GET /progress until six steps are done, then GET /interrupt.
`peer.py trace PIDFILE`: attaches to the process with ptrace and stops it, as a debugger does, after its file `hang-began`.
"""
import ctypes
import os
import socket
import sys
import threading
import time
import urllib.parse
import urllib.request


def send_at_rate(connection, rate):
    piece = max(1, int(rate / 10))
    while True:
        connection.sendall(b"d" * piece)
        time.sleep(0.1)


def receive_at_rate(connection, rate):
    while connection.recv(max(1, int(rate / 10))):
        time.sleep(0.1)


def answer_http(connection, method, target):
    parts = urllib.parse.urlsplit(target)
    query = {k: float(v[0]) for k, v in urllib.parse.parse_qs(parts.query).items()}
    if method in ("PUT", "POST"):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        receive_at_rate(connection, query.get("rate", 20000))
        return
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: "
    if parts.path == "/drip":
        connection.sendall(head + b"application/octet-stream\r\nContent-Length: 100000000\r\n\r\n")
        send_at_rate(connection, query["rate"])
    elif parts.path == "/late":
        time.sleep(query["after"])
        connection.sendall(head + b"application/json\r\n\r\n{}")
    elif parts.path == "/events":
        connection.sendall(head + b"text/event-stream\r\n\r\n")
        while True:
            time.sleep(query["each"])
            connection.sendall(b"data: {}\n\n")
    else:
        connection.sendall(head + b"application/json\r\n\r\n{}")


def answer(connection):
    try:
        with connection, connection.makefile("rb", buffering=0) as lines:
            words = lines.readline().decode("latin-1").split()
            if words and words[0] in ("GET", "PUT", "POST"):
                while lines.readline().strip():
                    pass
                answer_http(connection, words[0], words[1])
            elif words[:1] == ["echo"]:
                while True:
                    connection.sendall(b"k" * 100)
                    connection.recv(4096)
                    time.sleep(1 / float(words[1]))
            else:
                while connection.recv(65536):
                    pass
    except OSError:
        pass


def serve():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)
    print(listener.getsockname()[1], flush=True)
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


def wait_for_file(path):
    while not os.path.exists(path) or not os.path.getsize(path):
        time.sleep(0.2)
    with open(path) as f:
        return int(f.read().split()[0])


def scrape(port_file, each, path="metrics"):
    port = wait_for_file(port_file)
    while True:
        try:
            urllib.request.urlopen("http://127.0.0.1:%d/%s" % (port, path), timeout=5).read()
        except OSError:
            pass
        time.sleep(float(each))


def order(port_file):
    urllib.request.urlopen("http://127.0.0.1:%d/generate" % wait_for_file(port_file)).read()


def cancel(port_file):
    port = wait_for_file(port_file)

    def ask(path):
        return urllib.request.urlopen("http://127.0.0.1:%d/%s" % (port, path), timeout=300).read()
    clip = threading.Thread(target=ask, args=("generate",))
    clip.start()
    while int(ask("progress")) < 6:
        time.sleep(0.5)
    ask("interrupt")
    clip.join()


def trace(pid_file):
    """PTRACE_ATTACH stops the process; it stays stopped while this process lives."""
    pid = wait_for_file(pid_file)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, pid, None, None) != 0:
        sys.exit("ptrace: %s" % os.strerror(ctypes.get_errno()))
    os.waitpid(pid, 0)
    for entry in os.listdir("/proc/%d/task" % pid):
        if int(entry) != pid and libc.ptrace(16, int(entry), None, None) == 0:
            os.waitpid(int(entry), 0x40000000)  # __WALL
    with open("hang-began", "w") as f:
        f.write(repr(time.monotonic()))
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    {"serve": serve, "scrape": scrape, "order": order, "cancel": cancel, "trace": trace}[sys.argv[1]](*sys.argv[2:])
