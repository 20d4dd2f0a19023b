// The state of a session, folded from its events: up to any of them, so that earlier turns can be looked at.

import { WrittenNumber } from "./display.js";

// Events that are rows of the talk, besides messages.
const NOTES = new Set(["phase_entered", "topic_entered", "skipped", "triggered", "orchestrated", "budget_reached", "warning", "error", "taken_back", "tool_called", "undone"]);
const ENDS = { session_completed: "completed", session_failed: "failed", session_stopped: "stopped", session_cancelled: "cancelled" };
const HANDLERS = new Set([
  "session_started",
  "session_resumed",
  "phase_entered",
  "topic_entered",
  "action_started",
  "skipped",
  "message",
  "variable_set",
  "outcome",
  "routed",
  "monitor_feedback",
  "orchestrated",
  "plan_changed",
  "cell",
  "request_opened",
  "request_answered",
  "undone",
]);

export const nodeKey = (...ids) => ids.map((id) => id ?? "").join("\u0000");

export class SessionFold {
  constructor() {
    this.rows = [];
    this.nodes = new Map();
    this.current = null;
    this.status = "running";
    this.waiting = null;
    this.variables = new Map();
    this.calls = [];
    this.metrics = [];
    this.feedback = [];
    this.plans = [];
    this.planChanges = [];
    this.cells = 0;
    this.requests = new Map();
    this.steps = [];
    this.turns = [];
    this.failures = 0;
    this.tokens = { in: 0, out: 0 };
    this.script = "";
    this.model = "";
    this.forkOf = null;
    this.lastSeq = 0;
    this.openCalls = new Map();
    this.openSteps = new Map();
    this.active = { phase: null, topic: null };
    this.used = new Map();
  }

  // Folds the events up to `until`. What an answer that was taken back led to does not count.
  static of(events, until = Infinity) {
    const fold = new SessionFold();
    const taken = events.filter((event) => event.type === "taken_back" && event.seq <= until);
    for (const event of events) {
      if (event.seq > until) break;
      const isTaken = taken.some((back) => event.seq >= back.from_seq && event.seq <= back.to_seq);
      fold.add(event, isTaken);
    }
    return fold;
  }

  add(event, isTaken = false) {
    this.lastSeq = event.seq;
    // Model calls were made, whatever was taken back.
    if (event.type === "model_call") this.call(event, isTaken);
    if (isTaken) return;
    if (HANDLERS.has(event.type)) this[event.type](event);
    else if (event.type === "waiting") this.waits(event);
    else if (ENDS[event.type]) this.end(event);
    if (NOTES.has(event.type)) this.row("note", event);
  }

  row(kind, event) {
    this.rows.push({ key: `${kind}-${event.seq}`, kind, seq: event.seq, event });
  }

  node(event, depth, name) {
    const { phase_id, topic_id, action_id } = event.location ?? {};
    const ids = [phase_id, topic_id, action_id].slice(0, depth);
    const key = nodeKey(...ids);
    let node = this.nodes.get(key);
    if (!node) {
      node = { key, ids, depth, status: "pending", visits: 0, seq: event.seq };
      this.nodes.set(key, node);
    }
    if (name) node.name = name;
    return node;
  }

  // What is entered ends what was entered before it at this level.
  enter(level, node, seq) {
    const before = this.active[level];
    if (before && before !== node && before.status === "running") before.status = "done";
    this.active[level] = node;
    Object.assign(node, { status: "running", seq, visits: node.visits + 1 });
  }

  session_started(event) {
    this.script = event.script;
    this.model = event.model;
    if (event.fork_of || event.retry_of) this.forkOf = { id: event.fork_of ?? event.retry_of, seq: event.fork_seq ?? null };
  }

  session_resumed(event) {
    this.model = event.model ?? this.model;
    if (this.status !== "stopped") return;
    this.status = "running";
    for (const node of [this.active.phase, this.active.topic, this.current]) {
      if (node?.status === "stopped") node.status = "running";
    }
  }

  phase_entered(event) {
    this.enter("phase", this.node(event, 1, event.name), event.seq);
    this.enter("topic", { status: "done", visits: 0 }, event.seq);
  }

  topic_entered(event) {
    this.enter("topic", this.node(event, 2, event.name), event.seq);
  }

  action_started(event) {
    const node = this.node(event, 3);
    Object.assign(node, { status: "running", type: event.name, seq: event.seq, visits: node.visits + 1, round: null });
    this.current = node;
    const step = { seq: event.seq, at: event.at, id: event.location?.action_id, path: event.location?.path, type: event.name, status: "running", key: node.key };
    this.steps.push(step);
    this.openSteps.set(event.location?.path, step);
    this.status = "running";
  }

  skipped(event) {
    const ids = event.location ?? {};
    const depth = ids.action_id ? 3 : ids.topic_id ? 2 : 1;
    const at = { ...event, location: { ...ids } };
    if (ids[["phase_id", "topic_id", "action_id"][depth - 1]] !== event.name) {
      if (depth < 3) at.location[["phase_id", "topic_id", "action_id"][depth]] = event.name;
      Object.assign(this.node(at, Math.min(3, depth + 1)), { status: "skipped", seq: event.seq });
    } else Object.assign(this.node(at, depth), { status: "skipped", seq: event.seq });
  }

  message(event) {
    this.row("message", event);
    if (event.role !== "user") return;
    this.waiting = null;
    this.status = "running";
    if (this.current?.status === "waiting") this.current.status = "running";
  }

  variable_set(event) {
    const where = { phase: event.location?.phase_id, topic: event.location?.path?.split("/")[0] }[event.scope] ?? "";
    const key = nodeKey(event.scope, where, event.name);
    const known = this.variables.get(key);
    const change = { value: event.value, source: event.source, at: event.at, seq: event.seq, round: event.location?.round };
    if (known) known.changes.push(change);
    else this.variables.set(key, { key, name: event.name, scope: event.scope, where, changes: [change] });
  }

  call(event, isTaken) {
    const call = { seq: event.seq, event, isTaken, detail: null, parseError: event.debug_info?.parse_error ?? null };
    this.calls.push(call);
    this.tokens.in += event.tokens_in ?? 0;
    this.tokens.out += event.tokens_out ?? 0;
    if (event.debug_info?.left_out) call.detail = event.seq;
    else this.openCalls.set(event.location?.path, call);
    // The outcome of the turn has the failure of a reply with which the turn went on.
    if (call.parseError && !isTaken) this.failure(event, call.parseError, event.purpose);
  }

  failure(event, parseError, purpose) {
    this.failures += 1;
    this.rows.push({ key: `failure-${event.seq}`, kind: "failure", seq: event.seq, event, parseError, purpose });
  }

  outcome(event) {
    const path = event.location?.path;
    const call = this.openCalls.get(path);
    const info = event.debug_info ?? {};
    if (call && info.left_out) {
      call.detail = event.seq;
      call.parseError = info.parse_error ?? null;
      this.openCalls.delete(path);
    }
    if (info.parse_error) this.failure(event, info.parse_error, "action");
    const node = this.node(event, 3);
    node.seq = event.seq;
    node.round = event.metadata?.current_round ?? node.round;
    node.maxRounds = event.metadata?.max_rounds ?? node.maxRounds;
    node.reason = event.exit_reason;
    const isFailed = event.success === false || ["error", "failed"].includes(event.exit_reason);
    if (event.completed || isFailed) node.status = isFailed ? "failed" : "done";
    const step = this.openSteps.get(path);
    if (step) {
      Object.assign(step, { status: node.status, reason: event.exit_reason, ended: event.at, rounds: node.round });
      if (event.completed) this.openSteps.delete(path);
    }
    if (Object.keys(event.metrics ?? {}).length) this.metrics.push(event);
  }

  // A compensation is over. What it could only undo in part counts as done.
  undone(event) {
    if (!event.complete) return;
    const node = this.node(event, 3);
    Object.assign(node, { status: "undone", seq: event.seq });
    for (const step of this.steps) if (step.key === node.key) step.status = "undone";
  }

  routed(event) {
    const last = this.steps.at(-1);
    if (last && last.id === event.from) last.route = { reason: event.reason, route: event.route, why: event.why };
  }

  monitor_feedback(event) {
    if (event.used) {
      const first = this.feedback.find((entry) => entry.seq === event.feedback);
      // The turn that used it has just called the model.
      const usedCall = this.calls.findLast((call) => call.event.purpose === "action") ?? null;
      if (first) first.usedCall = usedCall;
      else this.feedback.push({ seq: event.seq, event, usedCall });
    } else this.feedback.push({ seq: event.seq, event, usedCall: null });
  }

  orchestrated(event) {
    this.plans.push(event);
  }

  plan_changed(event) {
    this.planChanges.push(event);
  }

  cell() {
    this.cells += 1;
  }

  request_opened(event) {
    this.requests.set(event.request_id, { opened: event, answered: null });
    this.row("request", event);
  }

  request_answered(event) {
    const known = this.requests.get(event.request_id);
    if (known) known.answered = event;
    this.row("decision", event);
    this.waiting = null;
  }

  waits(event) {
    this.waiting = event;
    this.status = { approval: "waiting_approval", form: "waiting_approval", time: "waiting_time" }[event.for] ?? "waiting_input";
    const { action_id } = event.location ?? {};
    if (action_id) {
      const node = this.node(event, 3);
      if (node.status !== "failed") node.status = "waiting";
      const step = this.openSteps.get(event.location?.path);
      if (step) step.status = "waiting";
    }
    this.turns.push({ seq: event.seq, at: event.at, prompt: event.prompt, isAnswered: event.for === "input" });
  }

  end(event) {
    this.status = ENDS[event.type];
    this.waiting = null;
    const status = { completed: "done", failed: "failed", stopped: "stopped", cancelled: "cancelled" }[this.status];
    for (const node of [this.active.phase, this.active.topic, this.current]) {
      if (node && ["running", "waiting"].includes(node.status)) node.status = status;
    }
    this.turns.push({ seq: event.seq, at: event.at, prompt: "", isAnswered: false });
    this.row("end", event);
  }
}

// A metric as a number, if it begins with one.
export function metricNumber(value) {
  if (value instanceof WrittenNumber) return Number(value.text);
  if (typeof value === "number") return value;
  if (typeof value !== "string") return null;
  const found = /^\s*(-?\d+(?:\.\d+)?)\s*(%|\/\s*\d+)?/.exec(value);
  return found ? Number(found[1]) : null;
}
