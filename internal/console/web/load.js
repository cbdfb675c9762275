// Rates and latencies of the last five minutes.
import { serverName, world } from './api.js';
import { h, ms, number, replace, short } from './dom.js';
import { Chart, spark } from './chart.js';

let ui;

export function enter(root) {
  ui = {
    rate: new Chart('Calls a second', [{ cls: 'rate', name: 'calls', area: true }, { cls: 'failed', name: 'failed' }], short),
    latency: new Chart('Latency in the servers', [{ cls: 'p99', name: 'p99' }, { cls: 'p50', name: 'p50' }], ms),
    note: h('p', { class: 'note' }), servers: h('div', { class: 'wide' }), methods: h('div', { class: 'wide' }),
  };
  root.append(h('div', { class: 'charts' }, ui.rate.root, ui.latency.root), ui.note, h('h2', {}, 'By server'), ui.servers, h('h2', {}, 'By method'), ui.methods);
  draw();
}

export function changed(what) {
  if (what === 'rates') draw();
}

function table(lines, what, name) {
  const r = world.rates;
  return h('table', { class: 'flat' }, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, what), ['calls', 'a second', 'failed a second', 'p50', 'p99'].map((t) => h('th', { scope: 'col', class: 'n' }, t)), h('th', { scope: 'col', class: 'hide-small' }, 'five minutes'))),
    h('tbody', {}, lines.filter((l) => l.calls > 0).map((l) => h('tr', {}, h('td', {}, name(l.name)), h('td', { class: 'n' }, number(l.calls)), h('td', { class: 'n' }, short(l.perSecond)),
      h('td', { class: `n ${l.failedPerSecond ? 'badtext' : ''}` }, l.failedPerSecond ? short(l.failedPerSecond) : '0'), h('td', { class: 'n' }, ms(l.p50)), h('td', { class: 'n' }, ms(l.p99)), h('td', { class: 'hide-small' }, spark(l.rate, 'rate'))))),
    h('caption', { class: 'visually-hidden' }, `${what}: summaries of the last ${r.window} seconds`));
}

function draw() {
  const r = world.rates;
  if (!r) {
    ui.note.textContent = 'Waiting for figures…';
    return;
  }
  const marks = world.happened.filter((e) => ['kill', 'stop', 'start', 'pause', 'hang', 'resume', 'slow', 'expire', 'move', 'split', 'merge', 'reset', 'move-group', 'active-master'].includes(e.method))
    .map((e) => ({ second: Math.floor(Date.parse(e.time) / 1000), text: `${e.method} ${e.server ? serverName(e.server) : e.table ?? ''}` }));
  ui.rate.draw([r.total.rate, r.total.failed], r.now - 1, marks);
  ui.latency.draw([r.total.p99s, r.total.p50s], r.now - 1, marks);
  ui.note.textContent = !r.enabled ? 'The event log is off, so nothing is counted. The events view switches it on.'
    : `Figures are of the last ${r.window} seconds; the dashed lines are what happened to the cluster. Calls are counted one by one; ${r.sampled ? 'latencies are those of a sample, since there are more calls than the log remembers.' : 'latencies are those of every call, within 10 %.'}`;
  const none = h('p', { class: 'empty' }, 'No calls yet.');
  replace(ui.servers, r.servers.length ? table(r.servers, 'server', (n) => [serverName(n), ' ', h('span', { class: 'soft mono hide-small' }, n)]) : none);
  replace(ui.methods, r.methods.length ? table(r.methods, 'method', (n) => h('span', { class: 'mono' }, n)) : none.cloneNode(true));
}
