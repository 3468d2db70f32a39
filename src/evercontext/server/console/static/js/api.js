// Requests to our own server; changes carry the token that only this page was given.

export class Problem extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

let me = null;
let acted = Date.now();
const ATTENTIVE = 60_000;
for (const kind of ["keydown", "pointerdown"]) addEventListener(kind, () => { acted = Date.now(); }, { capture: true, passive: true });

/** What a page asks for by itself is no sign that somebody is there. */
const attention = () => (Date.now() - acted < ATTENTIVE ? { "x-evercontext-active": "1" } : {});

async function ask(path, options) {
  const response = await fetch(`/console/api/${path}`, { credentials: "same-origin", ...options, headers: { ...attention(), ...options?.headers } });
  let body = null;
  try {
    body = await response.json();
  } catch {
    body = null;
  }
  if (response.status === 401) location.reload();
  if (!response.ok) throw new Problem(body?.error?.message ?? response.statusText, response.status);
  return body;
}

export async function whoAmI() {
  me ??= await ask("me");
  return me;
}

export function get(path, query = {}, signal = undefined) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const words = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return ask(words ? `${path}?${words}` : path, { signal });
}

export async function post(path, body) {
  const { csrf } = await whoAmI();
  return ask(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-evercontext-csrf": csrf },
    body: JSON.stringify(body),
  });
}

export const part = encodeURIComponent;
