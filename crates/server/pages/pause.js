// How long to wait before a request is sent again.

export function pause(milliseconds) {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    // A network that comes back ends the pause.
    addEventListener("online", done);
    function done() {
      clearTimeout(timer);
      removeEventListener("online", done);
      resolve();
    }
  });
}

// How long to wait before attempt number `attempt`: one second first, half a minute at most.
export function backoff(attempt) {
  return Math.min(30_000, 1000 * 2 ** attempt) * (0.75 + Math.random() / 2);
}
