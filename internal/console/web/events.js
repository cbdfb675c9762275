// The event log, newest first.
import { act, get, query, serverName, world } from './api.js';
import { button, clock, field, h, number, replace, select } from './dom.js';

let ui;

export function enter(root, params) {
  const servers = [['', 'any'], ...(world.map?.servers ?? []).map((x) => [x.address, `rs ${x.index}`]), ...(world.map?.masters ?? []).map((x) => [x.address, `master ${x.index}`])];
  const again = () => { ui.since = 0; ui.list = []; fetchNow(); };
  const text = (name, placeholder) => h('input', { name, placeholder, autocomplete: 'off', spellcheck: 'false', onchange: again });
  ui = { open: true, since: 0, list: [], paused: false };
  ui.form = {
    kind: select([['', 'everything'], ['cluster', 'cluster events'], ['rpc', 'calls']], params.get('kind') ?? '', { onchange: again, 'data-first': '' }),
    server: select(servers, params.get('server') ?? '', { onchange: again }),
    method: text('method', 'Scan'), table: text('table', 't'), outcome: text('outcome', 'ok'), failed: h('input', { type: 'checkbox', onchange: again }),
  };
  ui.form.table.value = params.get('table') ?? '';
  const f = ui.form;
  ui.pause = button('Pause', pause, { 'aria-keyshortcuts': 'p', 'aria-pressed': 'false' });
  ui.body = h('tbody', {});
  ui.note = h('p', { class: 'note', 'aria-live': 'off' });
  ui.log = button('', toggle, { class: 'small' });
  root.append(h('form', { class: 'row', onsubmit: (e) => { e.preventDefault(); again(); } }, field('Show', f.kind), field('Server', f.server), field('Method', f.method), field('Table', f.table), field('Outcome', f.outcome),
    h('label', { class: 'check' }, f.failed, 'only what failed'), ui.pause), h('div', { class: 'row center' }, ui.note, ui.log),
  h('div', { class: 'wide' }, h('table', { class: 'flat' }, h('thead', {}, h('tr', {}, ['number', 'time', 'server', 'what', 'table', 'row', 'outcome', 'took', 'detail'].map((t) => h('th', { scope: 'col' }, t)))), ui.body)));
  loop(ui);
}

export function leave() { ui.open = false; }

export function key(e) {
  if (e.key === 'p') pause();
}

function pause() {
  ui.paused = !ui.paused;
  ui.pause.setAttribute('aria-pressed', String(ui.paused));
  ui.pause.textContent = ui.paused ? 'Go on' : 'Pause';
}

async function toggle() {
  await act(ui.enabled ? 'Switch the event log off' : 'Switch the event log on', '/events', { enabled: !ui.enabled });
  await fetchNow();
}

async function loop(mine) {
  while (mine.open) {
    if (!mine.paused && document.visibilityState === 'visible') await fetchNow();
    await new Promise((resolve) => { setTimeout(resolve, 700); });
  }
}

const LIMIT = 100;

async function fetchNow() {
  const mine = ui;
  const f = mine.form;
  let e;
  try {
    e = await get(query('/console/events', { since: mine.since, limit: LIMIT, kind: f.kind.value, server: f.server.value, method: f.method.value, table: f.table.value, outcome: f.outcome.value, failed: f.failed.checked && 'true' }));
  } catch (err) {
    mine.note.textContent = err.message;
    return;
  }
  if (!mine.open) return;
  if (e.last < mine.since) {
    mine.list = []; // another cluster
  }
  mine.passed = mine.since ? e.older : 0;
  mine.since = e.last;
  mine.enabled = e.enabled;
  mine.list = mine.list.concat(e.events).slice(-LIMIT);
  mine.note.textContent = !e.enabled ? 'The event log is off.' : `${mine.list.length ? `The newest ${mine.list.length} that match` : 'Nothing matches'}, of ${number(e.last)} events in all${mine.passed ? `; ${number(mine.passed)} passed since the last look` : ''}.`;
  mine.log.textContent = e.enabled ? 'Switch the log off' : 'Switch the log on';
  if (e.events.length || !mine.body.childNodes.length) draw();
}

function draw() {
  replace(ui.body, ui.list.slice().reverse().map((e) => {
    const bad = e.kind === 'rpc' && e.outcome !== 'ok';
    return h('tr', { class: e.kind === 'cluster' ? 'cluster' : bad ? 'fail' : undefined },
      h('td', { class: 'n' }, String(e.seq)), h('td', { class: 'nowrap' }, clock(e.time, true)), h('td', { class: 'nowrap' }, e.server ? serverName(e.server) : ''), h('td', {}, e.method),
      h('td', { class: 'mono' }, e.table ?? ''), h('td', { class: 'mono' }, e.row ?? '', e.rows > 1 ? h('span', { class: 'soft' }, ` (${number(e.rows)})`) : ''),
      h('td', {}, e.kind === 'rpc' ? e.outcome : '', e.rule ? h('span', { class: 'soft' }, ` by rule ${e.rule}`) : ''), h('td', { class: 'nowrap' }, e.kind === 'rpc' ? took(e.latency) : ''), h('td', { class: 'soft' }, e.detail ?? '', e.kind === 'cluster' && e.region ? ` ${e.region.slice(0, 8)}` : ''));
  }), !ui.list.length && h('tr', {}, h('td', { colspan: '9', class: 'empty' }, 'Nothing to show.')));
}

/** took shortens Go's 1.234567ms. */
const took = (d) => (d ?? '').replace(/(\.\d\d)\d+/, '$1');
