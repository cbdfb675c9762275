// The first view: figures, the map, what is chosen, and what happened last.
import { act, serverName, world } from './api.js';
import { button, clock, confirm, dialog, field, h, ms, number, plural, replace, short } from './dom.js';
import { colour, Rooms } from './rooms.js';
import { describe, regionActions } from './acts.js';

let ui;

export function enter(root) {
  ui = { by: ui?.by ?? 'table', only: '', chosen: ui?.chosen };
  ui.cards = h('div', { class: 'cards' });
  ui.rooms = new Rooms({ choose, open: (id) => choose(id, true), drop });
  ui.legend = h('div', { class: 'legend', role: 'group', 'aria-label': 'Legend: choose what to bring out' });
  ui.side = h('aside', { class: 'panel side', 'aria-label': 'What is chosen' });
  ui.live = h('ul', { class: 'live' });
  ui.by = ui.by ?? 'table';
  const seg = h('div', { class: 'seg', role: 'group', 'aria-label': 'Colour regions by' }, ['table', 'state'].map((by) =>
    h('button', { type: 'button', class: 'small', 'aria-pressed': String(ui.by === by), onclick: (e) => {
      ui.by = by;
      ui.only = '';
      for (const b of e.currentTarget.parentElement.children) b.setAttribute('aria-pressed', String(b === e.currentTarget));
      draw();
    } }, `by ${by}`)));
  root.append(ui.cards,
    h('h2', { class: 'row center spread' }, h('span', {}, 'Who holds what'), h('span', { class: 'row center' }, seg,
      button('Balance', balance, { class: 'small', 'aria-keyshortcuts': 'b' }), button('Add a server', () => act('Add a region server', '/add'), { class: 'small' }),
      button('Groups…', groups, { class: 'small' }), button('New table…', newTable, { class: 'small' }), button('Reset…', reset, { class: 'small danger' }))),
    ui.legend, h('div', { class: 'split' }, ui.rooms.root, ui.side),
    h('h2', {}, 'What happened'), h('div', { class: 'panel' }, ui.live));
  draw();
  happened();
}

export function leave() {
  ui.rooms.close();
}

export function changed(what) {
  if (what === 'map') draw();
  if (what === 'rates') {
    cards();
    ui.rooms.rates(world.rates);
  }
  if (what === 'happened') happened();
}

export function key(e) {
  if (e.key === 'b') balance();
  else if (e.key === 'Escape') choose(undefined);
  else {
    const region = find(ui.rooms.focused() ?? ui.chosen);
    const a = region && regionActions(region).find((x) => x.key === e.key);
    if (!a) return;
    e.preventDefault();
    a.run();
  }
}

const balance = () => act('Balance', '/balance');

const find = (id) => world.map?.regions.find((r) => r.id === id);

function choose(id, focusSide) {
  ui.chosen = id;
  ui.rooms.select(id);
  side();
  // On a small screen what is chosen is told below the map.
  if (id && matchMedia('(max-width: 900px)').matches) ui.side.scrollIntoView({ block: 'nearest', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
  if (focusSide) ui.side.querySelector('button, select')?.focus();
}

function drop(id, server) {
  const r = find(id);
  if (r && r.s !== server) act(`Move ${describe(r)} to rs ${server}`, '/move', { region: id, to: String(server) });
}

function cards() {
  const m = world.map;
  if (!m) return;
  const t = world.rates?.total;
  const running = m.servers.filter((x) => x.state === 'running').length;
  const card = (value, text, cls) => h('div', { class: 'card' }, h('b', { class: cls }, value), h('span', {}, text));
  const master = m.masters.find((x) => x.active);
  replace(ui.cards,
    card(`${running}/${m.servers.length}`, 'servers running', running < m.servers.length ? 'warntext' : 'good'),
    card(m.open < 1e5 ? number(m.open) : short(m.open), m.open + m.parents === m.total ? 'regions, all open' : `of ${number(m.total - m.parents)} regions open`, m.open + m.parents < m.total ? 'warntext' : undefined),
    card(number(m.inTransition), 'in transition', m.inTransition ? 'warntext' : undefined),
    card(master ? `master ${master.index}` : 'none', 'active master', master ? undefined : 'badtext'),
    card(t ? short(t.perSecond) : '–', 'calls a second'),
    card(t ? short(t.failedPerSecond) : '–', 'failed a second', t?.failedPerSecond ? 'badtext' : undefined),
    card(t ? ms(t.p99) : '–', t?.p50 >= 0 ? `p99, p50 ${ms(t.p50)}` : 'p99'),
    card(number(m.rules), m.rules === 1 ? 'rule' : 'rules', m.rules ? 'warntext' : undefined),
    m.zkFault !== 'healthy' && card(m.zkFault, 'ZooKeeper', 'badtext'), m.clock.frozen && card('frozen', 'clock', 'warntext'));
}

function draw() {
  const m = world.map;
  if (!m) {
    if (!ui.rooms.root.childNodes.length) ui.rooms.root.append(h('p', { class: 'empty' }, 'Looking at the cluster…'));
    return;
  }
  cards();
  if (!ui.named) happened(); // servers have names now
  ui.named = true;
  ui.rooms.draw(m, ui.by, ui.only);
  ui.rooms.rates(world.rates);
  legend(m);
  if (ui.chosen && !find(ui.chosen)) ui.chosen = undefined;
  ui.rooms.select(ui.chosen);
  side();
}

const states = [['open', 'open'], ['moving', 'opening or closing'], ['closed', 'closed'], ['parent', 'split or merged away'], ['failed', 'failed']];

function legend(m) {
  const mark = JSON.stringify([ui.by, ui.only, m.tables.map((t) => [t.name, t.total, t.listed])]);
  if (ui.mark === mark) return;
  ui.mark = mark;
  const pick = (name) => () => {
    ui.only = ui.only === name ? '' : name;
    draw();
    [...ui.legend.querySelectorAll('button')].find((b) => b.dataset.name === name)?.focus();
  };
  const entry = (name, cls, text) => h('button', { type: 'button', class: 'small', 'data-name': name, 'aria-pressed': String(ui.only === name), onclick: pick(name) },
    h('i', { class: `swatch ${cls}`, 'aria-hidden': 'true' }), h('span', {}, text));
  const shapes = ui.by === 'table' && [['striped', 'on its way'], ['hollow', 'closed'], ['hollow round', 'split parent']].map(([cls, text]) =>
    h('span', {}, h('i', { class: `swatch ${cls}`, 'aria-hidden': 'true' }), text));
  replace(ui.legend, ui.by === 'table'
    ? m.tables.map((t, i) => entry(t.name, colour(m, i), `${t.name} (${number(t.total)})`))
    : states.map(([s, text]) => entry(s, `st-${s}`, text)),
  m.moreTables > 0 && h('span', {}, `and ${plural(m.moreTables, 'table')} more`), shapes);
}

function side() {
  const m = world.map;
  const r = find(ui.chosen);
  const mark = r ? JSON.stringify([r, m.servers.map((x) => x.state)]) : '';
  if (mark === ui.sideMark && ui.side.childNodes.length) return;
  ui.sideMark = mark;
  const at = document.activeElement;
  const kept = ui.side.contains(at) ? at.dataset.act : undefined;
  if (!r) {
    replace(ui.side, h('h3', {}, 'Nothing chosen'), h('p', { class: 'note' }, 'Choose a region to see what it is and to move, split or merge it; or drag it to another server. ',
      h('kbd', {}, '?'), ' lists the keys.'), m && h('p', { class: 'note' }, 'The buttons below a server do to it what its name says; ', h('em', {}, 'More…'), ' has the rest.'));
    return;
  }
  const t = m.tables[r.t];
  replace(ui.side, h('h3', {}, 'Region of ', h('span', { class: 'mono' }, t.name), r.replica ? ` (replica ${r.replica})` : ''),
    h('dl', {}, h('dt', {}, 'from'), h('dd', { class: 'mono' }, r.start || '(the first key)'), h('dt', {}, 'to'), h('dd', { class: 'mono' }, r.end || '(the last key)'),
      h('dt', {}, 'server'), h('dd', {}, r.s < 0 ? 'none' : `rs ${r.s}`), h('dt', {}, 'state'), h('dd', {}, r.parent ? `${r.state} (a parent, served no more)` : r.state),
      h('dt', {}, 'open seqnum'), h('dd', {}, r.seq < 0 ? '–' : String(r.seq)), h('dt', {}, 'encoded'), h('dd', { class: 'mono' }, r.id), r.name && [h('dt', {}, 'name'), h('dd', { class: 'mono' }, r.name)]),
    h('div', { class: 'acts' }, regionActions(r).map((a) => button(a.text, a.run, { class: 'small', disabled: !!a.not, title: a.not || undefined, 'data-act': a.key, 'aria-keyshortcuts': a.key }))));
  if (kept) ui.side.querySelector(`[data-act="${kept}"]`)?.focus();
}

function happened() {
  const list = world.happened.slice(-9).reverse();
  if (!list.length) {
    replace(ui.live, h('li', { class: 'soft' }, 'Nothing yet.'));
    return;
  }
  replace(ui.live, list.map((e) => h('li', {}, h('time', { datetime: e.time }, clock(e.time, true)), h('span', {}, h('b', {}, e.method), ' ', e.server && `${serverName(e.server)} `,
    e.table && h('span', { class: 'mono' }, e.table, ' '), e.region && h('span', { class: 'mono soft' }, e.region.slice(0, 8), ' '), e.detail && h('span', { class: 'soft' }, e.detail)))));
}

async function reset() {
  const m = world.map;
  const own = m.tables.filter((t) => !t.system);
  if (await confirm('Reset the cluster?', `Every table (${plural(own.length, 'table')} of yours), group, namespace and snapshot is dropped, with all rows. Servers come back, rules and disturbances go.`, 'Drop everything and reset')) {
    await act('Reset', '/reset');
  }
}

async function newTable() {
  const name = h('input', { required: true, value: 't', autocomplete: 'off', spellcheck: 'false' });
  const families = h('input', { value: 'f', autocomplete: 'off', spellcheck: 'false' });
  const splits = h('input', { placeholder: 'g m t', autocomplete: 'off', spellcheck: 'false' });
  const regions = h('input', { type: 'number', min: '0', max: '1000000', value: '0' });
  const body = h('div', { class: 'form' }, field('Name', name), field('Families, with spaces between', families), field('Split keys, with spaces between', splits, { class: 'all' }),
    field('Or generated: so many regions', regions), h('p', { class: 'note all' }, 'A generated table of up to 1,000,000 regions is stored nowhere; its rows follow a formula.'));
  if (await dialog('New table', body, [{ text: 'Cancel', value: '' }, { text: 'Create', value: 'yes', class: 'primary' }], { focus: name }) !== 'yes') return;
  const words = (x) => x.value.split(/\s+/).filter(Boolean);
  const n = Number(regions.value);
  if (n > 0) await act(`Generate ${name.value}`, '/generate', { table: name.value, families: words(families), regions: n });
  else await act(`Create ${name.value}`, '/create', { table: name.value, families: words(families), splits: words(splits) });
}

async function groups() {
  const m = world.map;
  const name = h('input', { required: true, autocomplete: 'off', spellcheck: 'false', placeholder: 'fast', list: 'groups' });
  const make = h('input', { type: 'checkbox', checked: true });
  const servers = m.servers.map((x) => [x, h('input', { type: 'checkbox' })]);
  const tables = m.tables.filter((t) => !t.system).slice(0, 40).map((t) => [t, h('input', { type: 'checkbox' })]);
  const body = h('div', { class: 'form' }, field('Group', name), h('label', { class: 'check' }, make, 'make it first'), h('datalist', { id: 'groups' }, m.groups.map((g) => h('option', { value: g.name }))),
    h('fieldset', { class: 'all row center' }, h('legend', {}, 'Servers to move there'), servers.map(([x, c]) => h('label', { class: 'check' }, c, `rs ${x.index}`))),
    tables.length > 0 && h('fieldset', { class: 'all row center' }, h('legend', {}, 'Tables to move there; their regions follow'), tables.map(([t, c]) => h('label', { class: 'check' }, c, t.name))));
  const how = await dialog('Region server groups', body, [{ text: 'Cancel', value: '' }, { text: 'Remove the group', value: 'remove', class: 'danger' }, { text: 'Move', value: 'yes', class: 'primary' }], { focus: name });
  if (!how || !name.value) return;
  if (how === 'remove') {
    await act(`Remove group ${name.value}`, '/group', { name: name.value, remove: true });
    return;
  }
  await act(`Group ${name.value}`, '/group', { name: name.value, add: make.checked && !m.groups.some((g) => g.name === name.value),
    servers: servers.filter(([, c]) => c.checked).map(([x]) => String(x.index)), tables: tables.filter(([, c]) => c.checked).map(([t]) => t.name) });
}
