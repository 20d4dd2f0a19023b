"""Runs the same cells as the bench `cells` in a kernel, and stores nothing. Prints what a cell takes as JSON.

    python bare_kernel.py CELLS sockets|jupyter_client [ARGUMENT OF THE KERNEL]...

`jupyter_client` is the client that Jupyter has for programs. `sockets` does as little as there can be done: of the messages, it reads
only the types and the states.
"""

import hashlib
import hmac
import json
import os
import sys
import time

import zmq
from jupyter_client import KernelManager

CELLS, CLIENT = int(sys.argv[1]), sys.argv[2]

manager = KernelManager(kernel_name="python3")
manager.start_kernel(extra_arguments=sys.argv[3:])
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=60)
connection = manager.get_connection_info()
context = zmq.Context()


def connect(kind, port):
    socket = context.socket(kind)
    socket.connect(f"tcp://127.0.0.1:{connection[port]}")
    return socket


shell, iopub = connect(zmq.DEALER, "shell_port"), connect(zmq.SUB, "iopub_port")
iopub.subscribe(b"")
KEY = connection["key"]


def run_over_sockets(number, code):
    message_id = f"bare_{number}"
    header = {"msg_id": message_id, "session": "bare", "username": "bench", "date": "2026-01-01T00:00:00Z"}
    header |= {"msg_type": "execute_request", "version": "5.3"}
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}}
    content |= {"allow_stdin": False, "stop_on_error": True}
    parts = [json.dumps(part).encode() for part in (header, {}, {}, content)]
    signature = hmac.new(KEY, b"".join(parts), hashlib.sha256).hexdigest().encode()
    shell.send_multipart([b"<IDS|MSG>", signature, *parts])
    while True:
        frames = iopub.recv_multipart()
        start = frames.index(b"<IDS|MSG>")
        kind, parent = json.loads(frames[start + 2])["msg_type"], json.loads(frames[start + 3])
        if parent.get("msg_id") == message_id and kind == "status":
            if json.loads(frames[start + 5])["execution_state"] == "idle":
                break
    shell.recv_multipart()


def run_with_jupyter_client(_number, code):
    client.execute_interactive(code, allow_stdin=False, output_hook=lambda message: None)


run = run_over_sockets if CLIENT == "sockets" else run_with_jupyter_client


def kernel_seconds():
    with open(f"/proc/{manager.provisioner.process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if CLIENT == "sockets":
    client.stop_channels()
# The subscription is there when the first idle state arrives; what was sent before is lost.
time.sleep(0.5)
run(0, "x_0 = 0\nprint(x_0 + 1)")
began, client_began, kernel_began = time.perf_counter(), time.process_time(), kernel_seconds()
for number in range(1, CELLS + 1):
    run(number, f"x_{number} = {number}\nprint(x_{number} + 1)")
took = {
    "ms": (time.perf_counter() - began) * 1e3 / CELLS,
    "client_ms": (time.process_time() - client_began) * 1e3 / CELLS,
    "kernel_ms": (kernel_seconds() - kernel_began) * 1e3 / CELLS,
}
if CLIENT == "jupyter_client":
    client.stop_channels()
context.destroy(linger=0)
manager.shutdown_kernel(now=True)
print(json.dumps(took))
