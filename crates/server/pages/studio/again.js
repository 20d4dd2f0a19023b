// Begins a session again from one of its turns.

import { api, path } from "./api.js";

// Makes a session with everything that this one was after the event `seq`, and returns its id.
export async function beginAgain(id, seq) {
  const made = await api.post(path`/v1/sessions/${id}/fork`, { after_seq: seq });
  return made.id;
}
