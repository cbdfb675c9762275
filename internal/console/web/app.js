// The frame of the page: views, keys, the state of the connection.
import { begin, watch, world } from './api.js';
import { dialog, h, plural } from './dom.js';
import * as cluster from './cluster.js';
import * as load from './load.js';
import * as events from './events.js';
import * as tables from './tables.js';
import * as faults from './faults.js';
import * as connect from './connect.js';

const views = [
  ['cluster', 'Cluster', cluster], ['load', 'Load', load], ['events', 'Events', events],
  ['tables', 'Tables', tables], ['faults', 'Faults', faults], ['connect', 'Connect', connect],
];

const main = document.getElementById('main');
const nav = document.getElementById('nav');
let current; // {name, view, state}

for (const [i, [name, text]] of views.entries()) {
  nav.append(h('a', { href: `#${name}`, id: `nav-${name}`, 'aria-keyshortcuts': String(i + 1) }, text, h('kbd', { 'aria-hidden': 'true' }, String(i + 1))));
}

/** show opens the view that the address names: #tables?table=t. */
function show() {
  const [name, rest] = location.hash.slice(1).split('?');
  const found = views.find((v) => v[0] === name) ?? views[0];
  const params = new URLSearchParams(rest ?? '');
  for (const a of nav.children) {
    if (a.id === `nav-${found[0]}`) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  document.title = `${found[1]} · Holdfast console`;
  if (current?.name === found[0]) {
    current.view.go?.(params);
    return;
  }
  current?.view.leave?.();
  main.replaceChildren();
  current = { name: found[0], view: found[2] };
  current.view.enter(main, params);
  scrollTo(0, 0);
}

const link = document.getElementById('link');

function connection() {
  const m = world.map;
  if (world.down) {
    link.className = 'pill down';
    link.textContent = world.down;
  } else if (m) {
    link.className = 'pill ok';
    const up = m.servers.filter((x) => x.state === 'running').length;
    const text = `${up} of ${plural(m.servers.length, 'server')} up`;
    if (link.textContent !== text) link.textContent = text;
  }
}

const keys = [
  ['1 … 6', 'go to a view'], ['?', 'this list'], ['/', 'to the first filter or key field of the view'], ['Esc', 'close a dialog, let go of what is chosen'],
  ['Tab', 'to the next control; a server\'s regions are one stop'], ['← → ↑ ↓', 'between regions, once one has the focus; Home and End'], ['Enter', 'choose the region that has the focus'],
  ['m', 'move the region that is chosen or has the focus'], ['s', 'split it'], ['g', 'merge it with the next one'], ['o', 'look at its rows'],
  ['b', 'balance the cluster'], ['p', 'pause or go on with the events'],
];

function help() {
  return dialog('Keys', h('div', { class: 'keys' }, keys.map(([k, text]) => [h('span', {}, k.split(' ').map((x) => (x === '…' ? '… ' : [h('kbd', {}, x), ' ']))), h('span', {}, text)])),
    [{ text: 'Close', value: '' }]);
}

document.getElementById('help').addEventListener('click', help);

document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
  const typing = e.target.matches('input:not([type=checkbox]):not([type=radio]), textarea, select');
  if (typing) {
    if (e.key === 'Escape') e.target.blur();
    return;
  }
  const i = Number(e.key) - 1;
  if (views[i]) {
    location.hash = views[i][0];
    e.preventDefault();
    return;
  }
  if (e.key === '?') {
    e.preventDefault();
    help();
  } else if (e.key === '/') {
    const f = main.querySelector('[data-first]') ?? main.querySelector('input, select');
    if (f) {
      e.preventDefault();
      f.focus();
    }
  } else current?.view.key?.(e);
});

watch((what) => {
  if (what === 'link' || what === 'map') connection();
  current?.view.changed?.(what);
});
addEventListener('hashchange', show);
begin();
show();
