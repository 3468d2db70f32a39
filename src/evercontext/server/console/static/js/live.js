// Server-sent events. A hidden page lets its connection go and takes it up at its place again.

import { get } from "./api.js";

/** Follow runs, or one run; returns how to stop. `on` has run, event, text, approvals, reset, state. */
export function follow(on, trace = null, after = "") {
  let source = null;
  let last = after;
  const heard = (kind) => (message) => {
    if (message.lastEventId) last = message.lastEventId;
    on[kind]?.(JSON.parse(message.data));
  };
  const open = () => {
    if (source || document.hidden) return;
    const query = new URLSearchParams();
    if (trace) query.set("trace", trace);
    if (last) query.set("after", last);
    source = new EventSource(`/console/api/stream?${query}`);
    for (const kind of ["run", "event", "text", "approvals", "reset"]) source.addEventListener(kind, heard(kind));
    source.onopen = () => on.state?.(true);
    source.onerror = () => {
      on.state?.(false);
      // A refused stream is not tried again by the browser; we do, with patience.
      if (source?.readyState === EventSource.CLOSED) {
        source = null;
        // If it was refused because the server was started again, this leads to the locked page.
        get("me").catch(() => {});
        setTimeout(open, 4000);
      }
    };
  };
  const close = () => {
    source?.close();
    source = null;
  };
  const seen = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", seen);
  open();
  return {
    stop() {
      document.removeEventListener("visibilitychange", seen);
      close();
    },
  };
}
