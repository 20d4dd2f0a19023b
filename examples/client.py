"""A client of `bcc-script run --json`: it talks through a child process, and survives the death of that child.

python3 examples/client.py SCRIPT SESSION < answers.txt

BCC_SCRIPT names the program; without it, `bcc-script` is looked for on the path.
"""

import json
import os
import subprocess
import sys

PROGRAM = os.environ.get("BCC_SCRIPT", "bcc-script")
ENDED = ("session_completed", "session_failed", "session_stopped")


class Talk:
    """One session. Every event is seen once, in order, however often the child dies."""

    def __init__(self, script, session):
        self.script = script
        self.session = session
        self.seen = 0  # the seq of the last event that was handled
        self.pending = None  # the answer that was sent and not yet seen as a message
        self.child = None

    def start(self):
        if self.seen == 0:
            # The same command begins the session, or goes on with it if the first child died very early.
            command = [PROGRAM, "run", self.script, "--session", self.session, "--json"]
        else:
            command = [PROGRAM, "sessions", "resume", self.session, "--json", "--after", str(self.seen)]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, answer_id, text):
        self.pending = (answer_id, text)
        try:
            self.child.stdin.write(json.dumps({"user": text, "answer_id": answer_id}) + "\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            pass  # the child is dead: the answer is sent again to the next one

    def events(self):
        """Yields events until the session ends. A child that is killed is replaced."""
        while True:
            if self.child is None:
                self.start()
            for line in self.child.stdout:
                event = json.loads(line)
                seq = event.get("seq")
                if event["type"] == "waiting" and self.pending and self.pending[0] == event["answer_id"]:
                    # It waits for what was sent to the child that died. An answer that was taken is only taken once.
                    self.send(*self.pending)
                    continue
                if event["type"] == "message" and event["role"] == "user":
                    self.pending = None
                if seq is not None:
                    # A session that waits tells again what it waits for, under the number that it had.
                    if seq <= self.seen and event["type"] != "waiting":
                        continue
                    self.seen = max(self.seen, seq)
                yield event
                if event["type"] in ENDED:
                    self.child.stdin.close()
                    self.child.wait()
                    return
            code = self.child.wait()
            self.child = None
            if code >= 0:
                # It was not killed. 1 and 2 are errors, which are on standard error; 3: the session can be resumed; 4: it has ended.
                sys.exit(code)


def main():
    script, session = sys.argv[1:]
    talk = Talk(script, session)
    asked = None
    for event in talk.events():
        if event["type"] == "message":
            print(f"{event['role']}: {event['text']}", flush=True)
        elif event["type"] == "waiting" and event["answer_id"] != asked:
            asked = event["answer_id"]
            line = sys.stdin.readline()
            if not line:
                return
            talk.send(asked, line.rstrip("\n"))


if __name__ == "__main__":
    main()
