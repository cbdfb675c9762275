// Elements without HTML text: everything shown is a text node or an attribute,
// so nothing that comes from a table, a server or an error can become markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(e, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else if (name === 'vars') for (const [k, v] of Object.entries(value)) e.style.setProperty(k, v);
    else if (name in e && !(e instanceof SVGElement) && typeof value !== 'string') e[name] = value;
    else if (name === 'value') e.value = value;
    else e.setAttribute(name === 'className' ? 'class' : name, value === true ? '' : value);
  }
  e.append(...children.flat(3).filter((c) => c !== undefined && c !== null && c !== false));
  return e;
}

/** h makes an HTML element: h('p', {class: 'note'}, 'text', child). */
export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);

/** s makes an SVG element. */
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

/** button makes a button that is busy while what it does is going on. */
export function button(text, onclick, props = {}) {
  const b = h('button', { type: 'button', ...props }, text);
  b.addEventListener('click', async (e) => {
    if (b.getAttribute('aria-busy') === 'true') return;
    b.setAttribute('aria-busy', 'true');
    try {
      await onclick(e);
    } finally {
      b.removeAttribute('aria-busy');
    }
  });
  return b;
}

/** field is a labelled control. */
export const field = (text, control, props) => h('label', props, text, control);

export const select = (options, value, props) =>
  h('select', { ...props }, options.map((o) => {
    const [v, text] = Array.isArray(o) ? o : [o, o];
    return h('option', { value: String(v), selected: String(v) === String(value ?? '') }, text);
  }));

/** replace gives an element other children, in lists or not. */
export function replace(e, ...children) {
  const next = children.flat(3).filter((c) => c !== undefined && c !== null && c !== false);
  e.replaceChildren(...next);
}

export const number = (n) => new Intl.NumberFormat('en').format(n);

/** short is a number for a small place: 12.3k. */
export function short(n) {
  if (n < 0 || n === undefined) return '–';
  if (n >= 1e6) return (n / 1e6).toPrecision(3) + 'M';
  if (n >= 1e4) return (n / 1e3).toPrecision(3) + 'k';
  if (n >= 100 || Number.isInteger(n)) return String(Math.round(n));
  return n.toPrecision(2);
}

/** ms is a latency. */
export function ms(v) {
  if (v === undefined || v < 0) return '–';
  if (v >= 1000) return (v / 1000).toPrecision(3) + ' s';
  if (v >= 10) return Math.round(v) + ' ms';
  if (v >= 1) return v.toFixed(1) + ' ms';
  return v.toPrecision(2) + ' ms';
}

const two = (n) => String(n).padStart(2, '0');

/** clock is a time of day. */
export function clock(t, millis = false) {
  const d = new Date(t);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}${millis ? '.' + String(d.getMilliseconds()).padStart(3, '0') : ''}`;
}

export const plural = (n, one, many = one + 's') => `${number(n)} ${n === 1 ? one : many}`;

// --- what was done ----------------------------------------------------------

const toasts = () => document.getElementById('toasts');

/** toast tells a result; errors stay until they are dismissed. */
export function toast(text, { bad = false, request } = {}) {
  const box = h('div', { class: bad ? 'toast bad' : 'toast', role: bad ? 'alert' : undefined },
    h('p', {}, text), h('button', { type: 'button', class: 'quiet small', 'aria-label': 'Dismiss', onclick: () => box.remove() }, '✕'),
    request && h('code', {}, request));
  toasts().append(box);
  const good = toasts().querySelectorAll('.toast:not(.bad)');
  if (good.length > 2) good[0].remove();
  if (toasts().children.length > 5) toasts().firstChild.remove();
  if (!bad) setTimeout(() => box.remove(), 5000);
}

/** dialog shows a modal dialog and gives what it was closed with ('' for Escape). */
export function dialog(title, body, actions, { focus } = {}) {
  return new Promise((resolve) => {
    const d = h('dialog', { 'aria-label': title },
      h('form', { method: 'dialog' }, h('h2', {}, title), body,
        h('div', { class: 'acts' }, actions.map((a) => h('button', { value: a.value, class: a.class, type: 'submit' }, a.text)))));
    const before = document.activeElement;
    // Enter does what the dialog is for. Left to itself, it would press the
    // first button, or open a list.
    d.addEventListener('keydown', (e) => {
      if (e.key !== 'Enter' || !e.target.matches('select, input')) return;
      e.preventDefault();
      d.querySelector('button.primary')?.click();
    });
    d.addEventListener('close', () => {
      d.remove();
      if (before?.isConnected) before.focus({ preventScroll: true });
      resolve(d.returnValue);
    });
    document.body.append(d);
    d.showModal();
    (focus ?? d.querySelector('button[value=""]') ?? d.querySelector('button'))?.focus();
  });
}

/** confirm asks before something goes away; it begins at Cancel. */
export async function confirm(title, text, verb) {
  return await dialog(title, h('p', {}, text), [{ text: 'Cancel', value: '' }, { text: verb, value: 'yes', class: 'danger primary' }]) === 'yes';
}

/** copy makes a line with a text and a button that copies it. */
export function copyLine(label, text) {
  return h('div', { class: 'copy' }, h('span', {}, label), h('code', {}, text), copyButton(text, label));
}

export function copyButton(text, label) {
  return button('Copy', async (e) => {
    const b = e.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      b.textContent = 'Copied';
    } catch {
      // Without permission the text is marked, so that Ctrl-C copies it.
      const code = b.parentElement.querySelector('code, pre');
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      b.textContent = 'Marked';
    }
    setTimeout(() => { b.textContent = 'Copy'; }, 1500);
  }, { class: 'small', 'aria-label': `Copy ${label}` });
}
