"""The user of a server, outside the tree: client.py gradio|comfy-silent|comfy-polling [OUTCOME]. Reads the file `port`.

Sends one job. Writes `done` once the server's answer is as OUTCOME asks: `file` (the default), or `error`.
"""
import json
import os
import sys
import time
import urllib.error
import urllib.request


def wait_for_port(patience_s=240):
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        try:
            with open("port") as f:
                return int(f.read())
        except OSError:
            time.sleep(0.3)
    sys.exit("the server wrote no port")


def wait_for_server(url, patience_s=240):
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(url, timeout=5).read()
            return
        except OSError:
            time.sleep(0.5)
    sys.exit("no server at " + url)


def note_done(outcome, expected):
    print("answer:", outcome, flush=True)
    if outcome == expected:
        with open("done", "w") as f:
            f.write(repr(time.monotonic()))


def ask_gradio(url, expected):
    from gradio_client import Client
    try:
        answer = Client(url, verbose=False).predict("a cat", 1, 6, api_name="/generate")
        note_done("file" if os.path.exists(answer) else "no file", expected)
    except Exception as error:  # noqa: BLE001 - AppError, or the connection is lost
        print(error, flush=True)
        note_done("error", expected)


def ask_comfy(url, expected, polls):
    """Posts a graph. The silent client looks for the file only; the polling one asks for queue and history each second."""
    body = json.dumps({"prompt": {"1": {"class_type": "Wan", "inputs": {}}}, "client_id": "proof"}).encode()
    request = urllib.request.Request(url + "/prompt", body, {"Content-Type": "application/json"})
    identity = json.loads(urllib.request.urlopen(request).read())["prompt_id"]
    while not os.path.exists("comfy.mp4") and not os.path.exists("comfy.error"):
        time.sleep(1)
        if polls:
            for path in ("/queue", "/history/" + identity):
                try:
                    urllib.request.urlopen(url + path, timeout=5).read()
                except (OSError, urllib.error.URLError):
                    pass
    note_done("file" if os.path.exists("comfy.mp4") else "error", expected)


def main():
    kind, expected = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "file"
    url = "http://127.0.0.1:%d" % wait_for_port()
    if kind == "gradio":
        wait_for_server(url)
        ask_gradio(url, expected)
    else:
        wait_for_server(url + "/queue")
        ask_comfy(url, expected, kind == "comfy-polling")


if __name__ == "__main__":
    main()
