// A list of any length: only the rows that are seen exist, and only their pages are asked for.
import { h } from "./dom.js";

const PAGE = 100;
const SPARE = 6;

export class VirtualList {
  /** `load(start, limit)` → {rows, total}; `draw(row, index)` → children; `choose(row, index)`. */
  constructor({ label, rowHeight, rowClass, load, draw, choose }) {
    Object.assign(this, { rowHeight, rowClass, load, draw, choose });
    this.total = 0;
    this.selected = -1;
    this.pages = new Map();
    this.rows = new Map();
    this.inner = h("div", { class: "inner", role: "presentation" });
    this.node = h("div", { class: "virtual", role: "listbox", tabindex: "0", "aria-label": label, "data-keys": "" }, this.inner);
    this.node.addEventListener("scroll", () => this.paint(), { passive: true });
    this.node.addEventListener("keydown", (event) => this.key(event));
    this.node.moveBy = (step) => this.select(this.selected + step);
    new ResizeObserver(() => this.paint()).observe(this.node);
  }

  async open() {
    await this.fetchPage(0);
    this.paint();
    return this;
  }

  /** Ask again for what is seen; the rest is asked for when it is seen. */
  async refresh() {
    const first = Math.floor(this.node.scrollTop / this.rowHeight / PAGE);
    const old = this.pages;
    this.pages = new Map([...old].filter(([page]) => Math.abs(page - first) <= 1));
    await this.fetchPage(first, true);
    if (this.node.clientHeight > PAGE * this.rowHeight) await this.fetchPage(first + 1, true);
    this.repaint();
  }

  get atEnd() {
    return this.node.scrollTop + this.node.clientHeight >= this.inner.offsetHeight - this.rowHeight * 2;
  }

  /** Take rows that came live, at their own positions. */
  append(rows) {
    const stick = this.atEnd;
    for (const [index, row] of rows) {
      const page = this.pages.get(Math.floor(index / PAGE));
      if (Array.isArray(page)) page[index % PAGE] = row;
      else if (index % PAGE === 0) this.pages.set(index / PAGE, [row]);
      this.total = Math.max(this.total, index + 1);
    }
    this.repaint();
    if (stick) this.node.scrollTop = this.inner.offsetHeight;
  }

  async fetchPage(page, again = false) {
    if (this.pages.has(page) && !again) return;
    if (!again) this.pages.set(page, null);
    try {
      const { rows, total } = await this.load(page * PAGE, PAGE);
      this.pages.set(page, rows);
      this.total = total;
    } catch (problem) {
      this.pages.delete(page);
      throw problem;
    }
  }

  row(index) {
    return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  repaint() {
    for (const node of this.rows.values()) node.remove();
    this.rows.clear();
    this.paint();
  }

  paint() {
    this.inner.style.height = `${this.total * this.rowHeight}px`;
    const first = Math.max(0, Math.floor(this.node.scrollTop / this.rowHeight) - SPARE);
    const last = Math.min(this.total, Math.ceil((this.node.scrollTop + this.node.clientHeight) / this.rowHeight) + SPARE);
    for (const [index, node] of this.rows) {
      if (index < first || index >= last) {
        node.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < last; index += 1) {
      if (!this.rows.has(index)) this.place(index);
    }
    for (const page of new Set([Math.floor(first / PAGE), Math.floor(Math.max(0, last - 1) / PAGE)])) {
      if (!this.pages.has(page) && page * PAGE < this.total) this.fetchPage(page).then(() => this.repaint(), () => {});
    }
  }

  place(index) {
    const row = this.row(index);
    const node = h("div", {
      class: `row ${this.rowClass}`, role: "option", id: `row-${index}`, "aria-selected": String(index === this.selected),
      "aria-setsize": this.total, "aria-posinset": index + 1, on: { click: () => this.select(index, true) },
    }, row ? this.draw(row, index) : h("span", { class: "meta" }, "…"));
    node.style.height = `${this.rowHeight}px`;
    node.style.transform = `translateY(${index * this.rowHeight}px)`;
    this.inner.append(node);
    if (row) this.rows.set(index, node);
    else this.rows.set(index, node);
  }

  select(index, chosen = false) {
    if (!this.total) return;
    this.selected = Math.max(0, Math.min(this.total - 1, index));
    const top = this.selected * this.rowHeight;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top + this.rowHeight > this.node.scrollTop + this.node.clientHeight) this.node.scrollTop = top + this.rowHeight - this.node.clientHeight;
    this.node.setAttribute("aria-activedescendant", `row-${this.selected}`);
    for (const [at, node] of this.rows) node.setAttribute("aria-selected", String(at === this.selected));
    const row = this.row(this.selected);
    if (row) this.choose(row, this.selected, chosen);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.node.clientHeight / this.rowHeight) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      event.preventDefault();
      const to = this.selected + steps[event.key];
      this.select(to === -Infinity ? 0 : to === Infinity ? this.total - 1 : to);
    } else if (event.key === "Enter" && this.selected >= 0) this.select(this.selected, true);
  }
}
