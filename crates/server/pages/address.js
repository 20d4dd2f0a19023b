// The address of the page: `/t/TOKEN` before a conversation begins, `/t/TOKEN/SECRET` after it. Whoever has the second one can come back, so
// the secret is in no query, which servers and proxies write to logs.

const [, , token, kept] = location.pathname.split("/");

// Made here, so that a beginning whose response is lost can be sent again.
export const secret = kept || randomHex(32);

export const linkPath = `/t/${token}`;
export const talkPath = `/t/${token}/${secret}`;
export const hasSecret = Boolean(kept);

export function keepSecret() {
  history.replaceState(null, "", talkPath);
}

export function randomHex(bytes) {
  const random = crypto.getRandomValues(new Uint8Array(bytes));
  return Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// What this tab remembers across a reload: answers that are not stored by the server yet, and what is being written.
export const memory = {
  get(name) {
    try {
      return JSON.parse(sessionStorage.getItem(`${secret}.${name}`));
    } catch {
      return null;
    }
  },
  set(name, value) {
    try {
      if (value === null || value === "") sessionStorage.removeItem(`${secret}.${name}`);
      else sessionStorage.setItem(`${secret}.${name}`, JSON.stringify(value));
    } catch {
      // Without storage, only a reload loses it.
    }
  },
};
