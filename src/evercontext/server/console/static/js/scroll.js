// Follow what grows at the end of the page, unless somebody scrolled up to read.
const NEAR = 120;

export const atBottom = () => scrollY + innerHeight >= document.documentElement.scrollHeight - NEAR;

export function toBottom() {
  requestAnimationFrame(() => scrollTo({ top: document.documentElement.scrollHeight }));
}
