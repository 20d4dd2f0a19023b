"""A kernel that is late with what it tells to all: the word that a question is over comes long after the answer to it."""

import json
import sys

import zmq
from jupyter_client.session import Session

with open(sys.argv[1]) as file:
    connection = json.load(file)
session = Session(key=connection["key"].encode(), signature_scheme=connection["signature_scheme"])
context = zmq.Context()


def bound(kind, name):
    socket = context.socket(kind)
    socket.bind("tcp://127.0.0.1:%d" % connection[name])
    return socket


iopub = bound(zmq.PUB, "iopub_port")
control = bound(zmq.ROUTER, "control_port")
shell = bound(zmq.ROUTER, "shell_port")


def tell(kind, content, question):
    session.send(iopub, kind, content, parent=question)


while True:
    ready = zmq.select([shell, control], [], [])[0]
    if control in ready:
        break
    addresses, question = session.recv(shell, mode=0)
    if question["header"]["msg_type"] == "kernel_info_request":
        # Many words that it is over, so that some are not read yet when the next question comes.
        for _ in range(200):
            tell("status", {"execution_state": "idle"}, question)
        info = {"status": "ok", "language_info": {"name": "late"}}
        session.send(shell, "kernel_info_reply", info, parent=question, ident=addresses)
        continue
    done = {"status": "ok", "execution_count": 1, "user_expressions": {}}
    session.send(shell, "execute_reply", done, parent=question, ident=addresses)
    tell("stream", {"name": "stdout", "text": "late\n"}, question)
    tell("status", {"execution_state": "idle"}, question)
