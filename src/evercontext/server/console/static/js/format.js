// Numbers, moments and durations as people read them, in the page's language.
import { language, t } from "./words.js";

export const number = (value) => new Intl.NumberFormat(language()).format(value ?? 0);

export function short(value) {
  return new Intl.NumberFormat(language(), { notation: "compact", maximumFractionDigits: 1 }).format(value ?? 0);
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Math.round((ms % 60_000) / 1000);
  return minutes < 60 ? `${minutes} m ${seconds} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

export function money(usd) {
  if (usd === null || usd === undefined) return "–";
  if (usd > 0 && usd < 0.01) return `$${usd.toFixed(4)}`;
  return `$${usd.toFixed(2)}`;
}

export const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(share * 100)}%`);

function parsed(text) {
  // Tables keep UTC without saying so.
  return new Date(/[zZ]|[+-]\d\d:\d\d$/.test(text) ? text : `${text.replace(" ", "T")}Z`);
}

export function when(text) {
  if (!text) return "–";
  return new Intl.DateTimeFormat(language(), { dateStyle: "medium", timeStyle: "short" }).format(parsed(text));
}

export function ago(text) {
  if (!text) return "–";
  const seconds = (Date.now() - parsed(text).getTime()) / 1000;
  const relative = new Intl.RelativeTimeFormat(language(), { numeric: "auto", style: "short" });
  if (seconds < 45) return t("just now");
  if (seconds < 3600) return relative.format(-Math.round(seconds / 60), "minute");
  if (seconds < 86_400) return relative.format(-Math.round(seconds / 3600), "hour");
  if (seconds < 30 * 86_400) return relative.format(-Math.round(seconds / 86_400), "day");
  return new Intl.DateTimeFormat(language(), { dateStyle: "medium" }).format(parsed(text));
}

export function since(start, at) {
  const ms = Math.max(0, parsed(at) - parsed(start));
  if (ms < 1000) return `+${ms}ms`;
  if (ms < 60_000) return `+${(ms / 1000).toFixed(1)}s`;
  return `+${Math.floor(ms / 60_000)}m${String(Math.round((ms % 60_000) / 1000)).padStart(2, "0")}`;
}

export function day(text) {
  return new Intl.DateTimeFormat(language(), { month: "short", day: "numeric", timeZone: "UTC" }).format(new Date(`${text}T00:00:00Z`));
}

export function moment(text) {
  return new Intl.DateTimeFormat(language(), { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }).format(parsed(text));
}

/** A model's name without the folders of a file that plays one. */
export function model(name) {
  return String(name || "–").replace(/^([\w-]+:)?.*\/(?=[^/]+\.jsonl$)/, "$1");
}

/** The hour of a moment that is cut after it, in UTC. */
export function hour(text) {
  return new Intl.DateTimeFormat(language(), { hour: "2-digit", minute: "2-digit" }).format(new Date(`${text}:00:00Z`));
}

/** The day of a moment, as a heading names it. */
export function dayOf(text) {
  return new Intl.DateTimeFormat(language(), { dateStyle: "full" }).format(parsed(text));
}
