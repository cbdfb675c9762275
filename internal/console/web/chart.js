// Small charts of one value a second, as SVG.
import { clock, h, s } from './dom.js';

const H = 170;
const LEFT = 44;
const BOTTOM = 20;
const TOP = 8;

/** ceiling is a round number at or above v. */
function ceiling(v) {
  if (!(v > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(v));
  for (const m of [1, 2, 2.5, 5, 10]) if (v <= m * unit * 1.0001) return m * unit;
  return 10 * unit;
}

/** Chart draws lines over the last seconds. lines: [{cls, name, area}]. */
export class Chart {
  constructor(title, lines, format) {
    Object.assign(this, { lines, format });
    this.says = h('span', {});
    this.svg = s('svg', { class: 'chart', role: 'img', 'aria-label': title });
    this.root = h('figure', {}, h('figcaption', {}, title, this.says), this.svg);
    this.title = title;
    this.svg.addEventListener('pointermove', (e) => {
      const box = this.svg.getBoundingClientRect();
      this.at = Math.round((e.clientX - box.left - LEFT) / (box.width - LEFT) * (this.n - 1));
      this.paint();
    });
    this.svg.addEventListener('pointerleave', () => { this.at = undefined; this.paint(); });
    new ResizeObserver(() => this.paint()).observe(this.svg);
  }

  /** draw shows values (a list for each line, oldest first; -1 is a gap); end is the last one's second. */
  draw(values, end, marks) {
    // What is known of a young cluster fills the picture.
    const known = Math.max(...values.map((list) => { const i = list.findIndex((v) => v > 0); return i < 0 ? 0 : list.length - i; }), 0);
    const n = Math.min(values[0].length, Math.max(60, Math.ceil(known / 30) * 30));
    Object.assign(this, { values: values.map((list) => list.slice(-n)), end, marks, n });
    this.paint();
  }

  paint() {
    if (!this.values) return;
    const { values, n, end } = this;
    // One unit is one pixel, so that text keeps its size on a small screen.
    const W = Math.max(this.svg.clientWidth, 200);
    this.svg.setAttribute('viewBox', `0 0 ${W} ${H}`);
    const top = ceiling(Math.max(...values.flat(), 0));
    const x = (i) => LEFT + (W - LEFT) * (n > 1 ? i / (n - 1) : 1);
    const y = (v) => H - BOTTOM - (H - BOTTOM - TOP) * v / top;
    const parts = [];
    for (const f of [0, 0.5, 1]) {
      parts.push(s('line', { class: 'grid', x1: LEFT, x2: W, y1: y(top * f), y2: y(top * f) }),
        s('text', { x: LEFT - 6, y: y(top * f) + 4, 'text-anchor': 'end' }, this.format(top * f)));
    }
    const step = n > 150 || W < 300 && n > 100 ? 60 : n > 70 ? 30 : 15;
    for (let ago = 0; ago < n; ago += step) parts.push(s('text', { x: Math.min(x(n - 1 - ago), W - 12), y: H - 4, 'text-anchor': 'middle' }, ago === 0 ? 'now' : ago % 60 ? `−${ago} s` : `−${ago / 60} min`));
    for (const m of this.marks ?? []) {
      const i = n - 1 - (end - m.second);
      if (i < 0 || i > n - 1) continue;
      parts.push(s('line', { class: 'mark', x1: x(i), x2: x(i), y1: TOP, y2: H - BOTTOM }, s('title', {}, m.text)));
    }
    values.forEach((list, k) => {
      if (list.every((v) => v <= 0)) return;
      let path = '';
      let pen = false;
      list.forEach((v, i) => {
        if (v < 0) {
          pen = false;
          return;
        }
        // A value between two gaps would be no line at all.
        path += pen ? `L${x(i).toFixed(1)},${y(v).toFixed(1)}` : `M${x(i).toFixed(1)},${y(v).toFixed(1)}h.01`;
        pen = true;
      });
      const { cls, area } = this.lines[k];
      if (area && path) parts.push(s('path', { class: `area ${cls}`, d: `M${x(0)},${y(0)}${list.map((v, i) => `L${x(i).toFixed(1)},${y(Math.max(v, 0)).toFixed(1)}`).join('')}L${x(n - 1)},${y(0)}Z` }));
      if (path) parts.push(s('path', { class: `series ${cls}`, d: path }));
    });
    const at = this.at >= 0 && this.at < n ? this.at : n - 1;
    if (this.at >= 0 && this.at < n) parts.push(s('line', { class: 'cursor', x1: x(at), x2: x(at), y1: TOP, y2: H - BOTTOM }));
    this.svg.replaceChildren(...parts);
    const text = this.lines.map((l, k) => `${l.name} ${values[k][at] >= 0 ? this.format(values[k][at]) : '–'}`).join(', ');
    this.says.textContent = `${this.at === undefined ? '' : clock((end - (n - 1 - at)) * 1000) + ' '}${text}`;
    this.svg.setAttribute('aria-label', `${this.title}, last second: ${text}`);
  }
}

/** spark is a line without axes. */
export function spark(values, cls) {
  const n = values.length;
  const top = Math.max(...values, 1);
  const d = values.map((v, i) => `${i ? 'L' : 'M'}${(120 * i / Math.max(n - 1, 1)).toFixed(1)},${(20 - 18 * Math.max(v, 0) / top).toFixed(1)}`).join('');
  return s('svg', { class: 'spark', viewBox: '0 0 120 22', 'aria-hidden': 'true' }, s('path', { class: `series ${cls}`, d }));
}
