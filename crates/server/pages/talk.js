// The page on which a person talks.

import { hasSecret, keepSecret, linkPath, memory, randomHex, talkPath } from "./address.js";
import { AnswerForm } from "./answer.js";
import { Messages, clean, element } from "./messages.js";
import { backoff, pause } from "./pause.js";
import { Refused, Stream, request } from "./server.js";
import { texts } from "./texts.js";

const main = document.getElementById("main");
const menu = document.getElementById("menu");
const connection = document.getElementById("connection");
const title = document.getElementById("title");
// Days in a copy are those of the person.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";
// One of the texts is for a problem whose name is also that of an end.
const ends = { completed: texts.completed, failed: texts.failedEnd, cancelled: texts.cancelled };

function setTitle(text) {
  title.textContent = clean(text);
  document.title = clean(text);
}

// A page that says one thing.
function showNotice(text, ...more) {
  main.replaceChildren(element("div", { class: "card" }, element("p", { class: "notice", role: "status" }, text), ...more));
  menu.replaceChildren();
}

// Sends a request until the server answers, and shows that it does not.
async function lasting(send, failures = 4) {
  for (let attempt = 0; ; attempt++) {
    try {
      const result = await send();
      connection.textContent = "";
      return result;
    } catch (error) {
      if (!(error instanceof Refused) || !error.passes || (error.word === "failed" && attempt >= failures)) throw error;
      connection.textContent = texts[error.word] ?? texts.offline;
      await pause(error.wait ?? backoff(attempt));
    }
  }
}

class Talk {
  constructor() {
    this.messages = new Messages();
    this.form = new AnswerForm((text) => this.answer(text));
    this.takeBackButton = element("button", { type: "button", class: "quiet take-back", hidden: true, onclick: () => this.takeBack() }, texts.takeBack);
    this.state = element("p", { class: "state", role: "status" });
    this.again = element("button", { type: "button", class: "main", hidden: true, onclick: () => this.tryAgain() }, texts.tryAgain);
    this.save = element("button", { type: "button", class: "main", hidden: true, onclick: () => this.saveCopy() }, texts.copy);
    this.form.under.append(this.takeBackButton);
    this.foot = element("div", { class: "foot" }, this.state, this.again, this.save, this.form.root);
    this.lastSeq = 0;
    this.pending = memory.get("pending") ?? [];
    this.copy = null;
    this.stream = new Stream({
      connected: (isConnected) => this.connected(isConnected),
      shown: () => this.refresh(),
      message: (message) => this.message(message),
      piece: (piece) => this.piece(piece),
      discard: () => {
        this.messages.stopLive();
        this.messages.setTyping(true);
      },
      waiting: (waiting) => this.waits(waiting),
      taken_back: () => this.refresh(),
      end: ({ status }) => this.ends(status),
      stopped: () => this.stops(),
      // Somebody lets it go on, here or in another tab, or the server was started again.
      running: () => this.form.waiting || this.busy(),
      gone: () => this.refresh(),
      revoked: () => this.refresh(),
    });
  }

  async open() {
    if (await this.refresh()) for (const item of this.pending) this.deliver(item);
  }

  // Shows the conversation as it is now, and connects. Returns whether there is one. Whoever asks meanwhile waits for the newest state.
  refresh() {
    this.isOutdated = true;
    this.refreshing ??= this.load().finally(() => (this.refreshing = null));
    return this.refreshing;
  }

  async load() {
    try {
      let state;
      do {
        this.isOutdated = false;
        this.stream.disconnect();
        // Whatever answers in the place of the server meanwhile: what was not sent yet stays here.
        state = await lasting(() => request(`${talkPath}/state`), Infinity);
      } while (this.isOutdated);
      this.show(state);
      return true;
    } catch (error) {
      this.stream.end();
      if (!(error instanceof Refused)) throw error;
      if (error.word === "not_found" || error.word === "consent_needed") await showLink();
      else this.close(error.word);
      return false;
    }
  }

  show(state) {
    if (!this.messages.root.isConnected) main.replaceChildren(this.messages.root, this.foot);
    setTitle(state.title);
    this.showMenu(state.has_consent);
    this.messages.show(state.messages, state.has_earlier);
    for (const item of this.pending) this.messages.addPending(item);
    this.lastSeq = state.last_seq;
    this.canTakeBack = state.can_take_back;
    this.isRevoked = state.is_revoked;
    if (this.isRevoked || ends[state.status]) {
      this.ends(state.status);
      // What is being written is still shown.
      if (state.status === "running") this.stream.connect(this.lastSeq);
      return;
    }
    this.save.hidden = true;
    if (state.status === "running") this.busy();
    else if (state.status === "stopped") this.stops();
    else this.waits(state.waiting);
    this.takeBackButton.hidden = !this.canTakeBack;
    this.stream.connect(this.lastSeq);
  }

  // A conversation that cannot be shown any more.
  close(word) {
    if (word === "withdrawn" || word === "deleted") {
      memory.set("pending", null);
      memory.set("draft", null);
    }
    showNotice(texts[word] ?? texts.failed);
  }

  connected(isConnected) {
    if (isConnected && connection.textContent) {
      connection.textContent = texts.online;
      setTimeout(() => connection.textContent === texts.online && (connection.textContent = ""), 3000);
    } else if (!isConnected) {
      connection.textContent = texts.offline;
    }
  }

  message(message) {
    this.messages.add(message);
    if (!message.own) return;
    this.forget(message.key);
    this.busy();
  }

  piece(piece) {
    if (!this.isRevoked) this.state.textContent = "";
    this.again.hidden = true;
    this.messages.setTyping(false);
    this.messages.piece(piece);
  }

  // A turn runs.
  busy() {
    if (this.isRevoked) return;
    this.state.textContent = "";
    this.again.hidden = true;
    this.takeBackButton.hidden = true;
    this.form.show(null);
    this.messages.setTyping(true);
  }

  waits(waiting) {
    if (this.isRevoked) return this.ends();
    this.messages.stopLive();
    this.messages.setTyping(false);
    this.again.hidden = true;
    const waitsFor = waiting?.for ?? "somebody";
    this.state.textContent = waitsFor === "answer" ? "" : texts[waitsFor];
    this.form.root.hidden = waitsFor !== "answer";
    this.form.show(waiting);
    // Whoever has answered can take the answer back.
    this.canTakeBack = waitsFor === "answer" && Boolean(this.messages.list.querySelector(".own[data-id]"));
    this.takeBackButton.hidden = !this.canTakeBack;
  }

  stops() {
    if (this.isRevoked) return this.ends();
    this.messages.stopLive();
    this.messages.setTyping(false);
    this.form.show(null);
    this.takeBackButton.hidden = true;
    this.state.textContent = texts.stopped;
    this.again.hidden = false;
  }

  async tryAgain() {
    this.busy();
    try {
      await lasting(() => request(`${talkPath}/continue`, {}));
    } finally {
      await this.refresh();
    }
  }

  ends(status) {
    this.stream.end();
    connection.textContent = "";
    this.messages.stopLive();
    this.messages.setTyping(false);
    // What was written and not sent can still be copied.
    this.form.root.hidden = !this.form.close();
    this.takeBackButton.hidden = true;
    this.again.hidden = true;
    this.state.textContent = this.isRevoked ? texts.revokedTalk : ends[status];
    this.save.hidden = false;
    this.messages.toEnd();
    // Loaded now: the server of one conversation ends with it.
    this.loadCopy().catch(() => {});
  }

  // Sends an answer to the question that is shown.
  answer(text) {
    const item = { key: randomHex(16), text, answer_id: this.form.waiting.answer_id };
    this.pending.push(item);
    memory.set("pending", this.pending);
    this.busy();
    this.deliver(item);
  }

  // Sends it until the server has stored it or says that it does not. The key makes sure that it is answered once.
  async deliver(item) {
    const shown = this.messages.addPending(item);
    for (let attempt = 0; ; attempt++) {
      try {
        const body = { text: item.text, answer_id: item.answer_id };
        const { id } = await request(`${talkPath}/messages`, body, { "idempotency-key": item.key });
        this.messages.stored(shown, id);
        return this.forget(item.key);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        if (!error.passes) return this.refused(item, shown, error.word);
        this.messages.mark(shown, "later");
        if (error.word !== "offline") this.form.tell(texts[error.word] ?? texts.unavailable);
        await pause(error.wait ?? backoff(attempt));
        this.form.tell("");
        this.messages.mark(shown, "sending");
      }
    }
  }

  // An answer that is not accepted is given back.
  async refused(item, shown, word) {
    shown.remove();
    this.forget(item.key);
    this.form.giveBack(item.text);
    await this.refresh();
    if (!this.form.text.readOnly) this.form.tell(texts[word === "not_possible" ? "answered" : word] ?? texts.bad_request);
  }

  forget(key) {
    this.pending = this.pending.filter((item) => item.key !== key);
    memory.set("pending", this.pending.length ? this.pending : null);
  }

  async takeBack() {
    const last = this.messages.lastOwn();
    const text = last?.querySelector(".text").textContent ?? "";
    // Of the question that is shown now, also when this is sent again after the answer was taken back.
    const body = { answer_id: this.form.waiting.answer_id };
    this.takeBackButton.disabled = true;
    let problem = texts.cannotTakeBack;
    try {
      await lasting(() => request(`${talkPath}/take_back`, body));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.passes) problem = texts[error.word];
    } finally {
      this.takeBackButton.disabled = false;
    }
    // A response that was lost may have been a success: what counts is whether the answer is still there.
    if (!(await this.refresh())) return;
    if (last?.isConnected) return this.form.tell(problem);
    this.form.putBack(text);
    this.form.tell(texts.takenBack);
    this.form.text.focus();
  }

  async loadCopy() {
    this.copy = await request(`${talkPath}/copy?zone=${encodeURIComponent(zone)}`);
    return this.copy;
  }

  async saveCopy() {
    let blob = null;
    try {
      blob = await this.loadCopy();
    } catch {
      blob = this.copy;
    }
    if (!blob) {
      this.state.textContent = texts.copyFailed;
      return;
    }
    const url = URL.createObjectURL(blob);
    // The day of the person, not that of UTC.
    const now = new Date();
    const day = new Date(now - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
    element("a", { href: url, download: `conversation-${day}.md` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  }

  showMenu(hasConsent) {
    if (menu.childElementCount) return;
    const details = element("details", { class: "menu" });
    const entry = (text, action) =>
      element("button", { type: "button", onclick: () => { details.open = false; action(); } }, text);
    const entries = [entry(texts.copy, () => this.saveCopy())];
    // Only pages that came over an encrypted connection, or from this machine, may write to the clipboard.
    if (navigator.clipboard) {
      entries.push(entry(texts.address, async () => {
        await navigator.clipboard.writeText(location.href);
        connection.textContent = texts.addressCopied;
        setTimeout(() => connection.textContent === texts.addressCopied && (connection.textContent = ""), 3000);
      }));
    }
    if (hasConsent) entries.push(entry(texts.withdraw, () => this.withdraw()));
    details.append(element("summary", {}, texts.menu), element("div", { class: "entries" }, element("p", { class: "hint" }, texts.keep), ...entries));
    details.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !details.open) return;
      details.open = false;
      details.querySelector("summary").focus();
    });
    menu.replaceChildren(details);
  }

  withdraw() {
    const question = element("p", { id: "question" }, texts.withdrawQuestion);
    const no = element("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, texts.cancel);
    const yes = element("button", { type: "button", class: "main", onclick: erase }, texts.withdrawYes);
    const dialog = element("dialog", { "aria-labelledby": "question", onclose: () => dialog.remove() }, question, element("div", { class: "line" }, no, yes));
    const talk = this;
    document.body.append(dialog);
    dialog.showModal();
    no.focus();

    async function erase() {
      yes.disabled = no.disabled = true;
      question.textContent = texts.erasing;
      try {
        await lasting(() => request(`${talkPath}/withdraw`, {}));
        talk.stream.end();
        talk.close("withdrawn");
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        await talk.refresh();
      } finally {
        dialog.close();
      }
    }
  }
}

// What a visitor sees first. The conversation begins with a click and not with the visit: programs that look at links do not use them up.
async function showLink() {
  let link;
  try {
    link = await lasting(() => request(`${linkPath}/link`));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return showNotice(texts[error.word] ?? texts.failed);
  }
  setTitle(link.title);
  const begin = element("button", { type: "submit", class: "main", disabled: Boolean(link.consent) }, texts.begin);
  const problem = element("p", { class: "notice", role: "alert", hidden: true });
  const form = element("form", { class: "card", onsubmit: start });
  if (link.consent) {
    const agree = element("input", { type: "checkbox", id: "agree", onchange: () => (begin.disabled = !agree.checked) });
    form.append(
      element("h2", {}, texts.consentTitle),
      element("div", { class: "consent", lang: link.consent.language, dir: "auto" }, clean(link.consent.text)),
      element("p", { class: "agree" }, agree, element("label", { for: "agree" }, texts.agree)),
    );
  } else {
    form.append(element("p", {}, texts.welcome));
  }
  form.append(problem, begin);
  main.replaceChildren(form);

  async function start(event) {
    event.preventDefault();
    begin.disabled = true;
    begin.textContent = texts.beginning;
    // From now on, this address leads to the conversation, also if the response is lost.
    keepSecret();
    try {
      await lasting(() => request(`${talkPath}/begin`, { consent: link.consent?.sha256 ?? null }));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.word === "consent_needed") {
        await showLink();
        return main.querySelector("form")?.prepend(element("p", { class: "notice", role: "alert" }, texts.consent_needed));
      }
      return showNotice(texts[error.word] ?? texts.failed);
    }
    main.focus();
    await new Talk().open();
  }
}

showNotice(texts.loading);
if (hasSecret) await new Talk().open();
else await showLink();
