// Tables, their regions and their rows.
import { act, get, query, world } from './api.js';
import { button, confirm, dialog, field, h, number, plural, replace, select } from './dom.js';

let ui;

export function enter(root, params) {
  ui = { list: h('div', { class: 'wide' }), detail: h('div', {}), table: '' };
  root.append(ui.list, ui.detail);
  draw();
  go(params);
}

export function go(params) {
  const table = params.get('table');
  if (table) open(table, params.get('from') ?? '');
}

export function changed(what) {
  if (what !== 'map') return;
  draw();
  if (ui.table && !ui.asked && world.map.tables.some((t) => t.name === ui.table)) open(ui.table, ui.from.value);
}

function draw() {
  const m = world.map;
  if (!m) {
    replace(ui.list, h('p', { class: 'empty' }, 'Looking at the cluster…'));
    return;
  }
  const mark = JSON.stringify([m.tables, ui.table]);
  if (mark === ui.mark) return;
  ui.mark = mark;
  const kept = ui.list.contains(document.activeElement) ? document.activeElement.dataset.table : undefined;
  replace(ui.list, h('table', { class: 'flat' }, h('thead', {}, h('tr', {}, ['table', 'state', 'families'].map((t) => h('th', { scope: 'col' }, t)), h('th', { scope: 'col', class: 'n' }, 'regions'), h('th', { scope: 'col' }, 'doing'), h('th', { scope: 'col', class: 'hide-small' }, 'group'))),
    h('tbody', {}, m.tables.map((t) => h('tr', { class: t.name === ui.table ? 'on' : undefined },
      h('td', {}, h('a', { href: `#tables?table=${encodeURIComponent(t.name)}`, 'data-table': t.name, 'aria-current': t.name === ui.table ? 'true' : undefined, class: 'mono' }, t.name), t.generated && h('span', { class: 'soft' }, ' generated'), t.replicas > 1 && h('span', { class: 'soft' }, ` ${t.replicas} replicas`)),
      h('td', {}, t.state.toLowerCase()), h('td', { class: 'mono' }, t.families.join(' ')), h('td', { class: 'n' }, number(t.total)),
      h('td', {}, Object.entries(t.regions).map(([s, n]) => `${number(n)} ${s.toLowerCase()}`).join(', ')), h('td', { class: 'hide-small' }, t.group))))),
  m.moreTables > 0 && h('p', { class: 'note' }, `and ${plural(m.moreTables, 'table')} more`));
  if (kept) [...ui.list.querySelectorAll('a')].find((a) => a.dataset.table === kept)?.focus();
}

/** open shows one table. */
function open(name, from) {
  ui.table = name;
  ui.mark = '';
  draw();
  const t = world.map?.tables.find((x) => x.name === name);
  if (!t) {
    ui.asked = false;
    replace(ui.detail, h('p', { class: 'empty' }, world.map ? `There is no table ${name}.` : ''));
    ui.from = h('input', { value: from });
    return;
  }
  ui.asked = true;
  ui.from = h('input', { value: from, placeholder: 'the first key', autocomplete: 'off', spellcheck: 'false', 'data-first': '' });
  ui.limit = select([10, 20, 50, 100, 200], 20);
  ui.family = select([['', 'every one'], ...t.families], '');
  ui.versions = select([1, 2, 3, 5, 10, 100], 1);
  ui.raw = h('input', { type: 'checkbox' });
  ui.rows = h('div', { 'aria-live': 'polite' });
  ui.regions = h('div', {});
  const read = (e) => {
    e?.preventDefault();
    return rows(ui.from.value);
  };
  replace(ui.detail, h('h2', { class: 'row center spread' }, h('span', {}, 'Rows of ', h('span', { class: 'mono' }, name)), !t.system && button('Drop the table…', () => drop(t), { class: 'small danger' })),
    h('form', { class: 'row', onsubmit: read }, field('From key, as \\xHH what is not printable', ui.from), field('Rows', ui.limit), field('Family', ui.family), field('Versions', ui.versions),
      h('label', { class: 'check' }, ui.raw, 'delete markers too'), h('button', { type: 'submit', class: 'primary' }, 'Read')),
    ui.rows, h('h2', {}, 'Regions of ', h('span', { class: 'mono' }, name)), ui.regions);
  read();
  regions(from);
}

async function rows(from) {
  const mine = ui.rows;
  ui.from.value = from; // now: what is typed while the answer is on its way stays
  let out;
  try {
    out = await get(query('/console/rows', { table: ui.table, from, limit: ui.limit.value, family: ui.family.value, versions: ui.versions.value, raw: ui.raw.checked && 'true' }));
  } catch (e) {
    replace(mine, h('p', { class: 'badtext', role: 'alert' }, e.message));
    return;
  }
  if (mine !== ui.rows) return;
  const when = (ts) => {
    const d = new Date(ts);
    return ts > 1e11 && ts < 4e12 ? d.toISOString().replace('T', ' ').replace('Z', '') : String(ts);
  };
  replace(mine, out.rows.length ? h('div', { class: 'wide' }, h('table', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'row'), h('th', { scope: 'col' }, 'column, time, value'))),
    h('tbody', {}, out.rows.map((r) => h('tr', {}, h('td', { class: 'mono rowkey' }, r.key || '(empty)'), h('td', {}, r.cells.map((c) => h('div', { class: 'cellrow' },
      h('span', { class: 'mono' }, c.family, ':', c.qualifier), h('time', { class: 'soft', title: `timestamp ${c.timestamp}` }, when(c.timestamp)),
      c.type === 'Put' ? h('span', { class: 'mono' }, c.value, c.length > 512 && h('span', { class: 'soft' }, ` … ${number(c.length)} bytes`)) : h('span', { class: 'del' }, c.type))), r.more && h('p', { class: 'note' }, 'This row has more cells.'))))))) : h('p', { class: 'empty' }, from ? `No rows from ${from} on.` : 'No rows.'),
  h('p', { class: 'row center' }, from && button('From the first row', () => rows(''), { class: 'small' }), out.more && button(`Next, from ${out.next.length > 40 ? out.next.slice(0, 40) + '…' : out.next}`, () => rows(out.next), { class: 'small' })));
}

async function regions(from) {
  const mine = ui.regions;
  let out;
  try {
    out = await get(query('/console/regions', { table: ui.table, from, limit: 50 }));
  } catch (e) {
    replace(mine, h('p', { class: 'badtext' }, e.message));
    return;
  }
  if (mine !== ui.regions) return;
  const again = () => regions(from);
  replace(mine, h('div', { class: 'wide' }, h('table', { class: 'flat' }, h('thead', {}, h('tr', {}, ['from', 'to', 'server', 'state', 'open seqnum', 'encoded', ''].map((t) => h('th', { scope: 'col' }, t)))),
    h('tbody', {}, out.regions.map((r) => h('tr', {}, h('td', { class: 'mono' }, r.start || '(first)'), h('td', { class: 'mono' }, r.end || '(last)'), h('td', { class: 'nowrap' }, r.s < 0 ? 'none' : `rs ${r.s}`), h('td', {}, r.state.toLowerCase()),
      h('td', { class: 'n' }, r.seq < 0 ? '–' : String(r.seq)), h('td', { class: 'mono', title: r.name }, r.id), h('td', {}, h('div', { class: 'row' }, button('Rows', () => { rows(r.start); ui.from.focus(); }, { class: 'small', 'aria-label': `Rows of the region from ${r.start || 'the first key'}` }), button('Move…', () => move(r).then(again), { class: 'small', 'aria-label': `Move the region from ${r.start || 'the first key'}` })))))))),
  h('p', { class: 'row center' }, from && button('From the first region', () => regions(''), { class: 'small' }), out.more && button('More regions', () => regions(out.next), { class: 'small' })));
}

async function move(r) {
  const to = select([['', 'the master chooses'], ...world.map.servers.filter((x) => x.index !== r.s).map((x) => [x.index, `rs ${x.index} (${x.state})`])], '');
  if (await dialog('Move a region', [h('p', { class: 'mono' }, r.name), field('To', to)], [{ text: 'Cancel', value: '' }, { text: 'Move', value: 'yes', class: 'primary' }], { focus: to }) !== 'yes') return;
  await act(`Move the region from ${r.start || 'the first key'}`, '/move', to.value === '' ? { region: r.id } : { region: r.id, to: to.value });
}

async function drop(t) {
  if (!await confirm(`Drop ${t.name}?`, `${plural(t.total, 'region')} and all rows of ${t.name} go. There is no way back.`, `Drop ${t.name}`)) return;
  if (await act(`Drop ${t.name}`, '/drop', { table: t.name })) {
    ui.table = '';
    location.hash = 'tables';
    replace(ui.detail);
  }
}
