// The map: a room for each region server, a cell for each region, a block for
// what is too much to show one by one. Elements stay while the picture changes,
// so that a move can be seen and the focus is kept.
import { button, h, ms, number, plural, replace, short } from './dom.js';
import { serverActions } from './acts.js';

const moving = new Set(['OPENING', 'CLOSING', 'SPLITTING', 'MERGING', 'SPLITTING_NEW', 'MERGING_NEW', 'PENDING_OPEN', 'PENDING_CLOSE']);
const failed = new Set(['FAILED_OPEN', 'FAILED_CLOSE', 'ABNORMALLY_CLOSED']);

/** doing says in one word what a region is doing. */
function doing(r, map) {
  if (r.parent) return 'parent';
  if (moving.has(r.state)) return 'moving';
  if (failed.has(r.state)) return 'failed';
  if (r.state !== 'OPEN') return 'closed';
  const state = map.servers[r.s]?.state;
  return state === 'dead' || state === 'stopped' ? 'lost' : 'open';
}

/** way says where a region is going. */
const way = (r) => (r.to === undefined ? '' : ` on its way to rs ${r.to}`);

const colours = new Map(); // table -> number, kept while there is the table

/** colour is the class of a table's colour: the same as long as the page is open. */
export function colour(map, i) {
  const t = map.tables[i];
  if (t.system) return 'system';
  if (!colours.has(t.name)) {
    const present = new Set(map.tables.map((x) => x.name));
    for (const name of [...colours.keys()]) if (!present.has(name)) colours.delete(name);
    const used = new Set(colours.values());
    let n = 0;
    while (used.has(n)) n++;
    colours.set(t.name, n);
  }
  return `c${colours.get(t.name) % 8}`;
}

const sizes = [[60, 26, 5], [200, 20, 4], [600, 15, 3], [1300, 11, 3], [Infinity, 9, 2]];

export class Rooms {
  constructor({ choose, open, drop }) {
    this.on = { choose, open, drop };
    this.root = h('div', {});
    this.tip = h('div', { class: 'tip', role: 'tooltip', hidden: true });
    document.body.append(this.tip);
    this.cells = new Map(); // id -> {e, r}
    this.rooms = new Map(); // server index -> {e, cells, blocks, facts, acts, badge}
    this.groups = new Map();
    this.root.addEventListener('keydown', (e) => this.keys(e));
    this.root.addEventListener('focusin', (e) => this.enter(e));
    this.root.addEventListener('focusout', () => this.hint());
    this.root.addEventListener('pointerover', (e) => this.hint(e.target.closest('.cell')));
    this.root.addEventListener('pointerout', () => this.hint());
    this.root.addEventListener('pointerdown', (e) => this.drag(e));
    this.root.addEventListener('click', (e) => {
      const c = e.target.closest('.cell');
      if (c) this.on.choose(c.dataset.id);
    });
  }

  close() { this.tip.remove(); }

  focused() {
    const e = document.activeElement;
    return e?.classList.contains('cell') && this.root.contains(e) ? e.dataset.id : undefined;
  }

  select(id) {
    if (this.chosen) this.cells.get(this.chosen)?.e.setAttribute('aria-selected', 'false');
    this.chosen = id;
    this.cells.get(id)?.e.setAttribute('aria-selected', 'true');
  }

  draw(map, by, only) {
    this.map = map;
    const kept = this.focused();
    const [, size, gap] = sizes.find(([n]) => map.regions.length <= n);
    this.root.classList.toggle('big', size >= 20);
    this.root.style.setProperty('--size', `${size}px`);
    this.root.style.setProperty('--gap', `${gap}px`);
    const colours = map.tables.map((_, i) => colour(map, i));
    const motion = this.cells.size > 0 && matchMedia('(prefers-reduced-motion: no-preference)').matches;
    const seen = new Set();
    const many = map.regions.length - this.cells.size > 60;
    const content = new Map(); // server -> cells in order
    const from = []; // [cell, rect] of those that change rooms
    for (const r of map.regions) {
      seen.add(r.id);
      let c = this.cells.get(r.id);
      const fresh = !c;
      if (fresh) {
        c = { e: h('button', { type: 'button', role: 'option', tabindex: '-1', 'data-id': r.id, 'aria-selected': 'false' }) };
        this.cells.set(r.id, c);
      } else if (motion && c.r.s !== r.s && from.length < 80) from.push([c.e, c.e.getBoundingClientRect()]);
      this.dress(c, r, map, by, only, colours, fresh && this.drawn && !many);
      if (!content.has(r.s)) content.set(r.s, []);
      content.get(r.s).push(c.e);
    }
    for (const [id, c] of this.cells) {
      if (seen.has(id)) continue;
      c.e.remove();
      this.cells.delete(id);
    }
    this.layout(map, content);
    for (const [i, room] of this.rooms) this.fill(room, i, content.get(i) ?? [], map, by, only, colours);
    for (const [e, was] of from) {
      const is = e.getBoundingClientRect();
      e.style.zIndex = '3';
      e.animate([{ transform: `translate(${was.left - is.left}px, ${was.top - is.top}px) scale(1.25)` }, { transform: 'none' }], { duration: 550, easing: 'cubic-bezier(.3,.8,.3,1)' })
        .finished.finally(() => { e.style.zIndex = ''; });
    }
    if (kept) this.cells.get(kept)?.e.focus({ preventScroll: true });
    if (this.hinted && !this.tip.hidden) this.hint(this.cells.get(this.hinted)?.e);
    this.drawn = true;
  }

  dress(c, r, map, by, only, colours, fresh) {
    const t = map.tables[r.t];
    const what = doing(r, map);
    const dim = only && only !== (by === 'table' ? t.name : what === 'lost' ? 'failed' : what);
    const cls = ['cell', what, by === 'table' ? colours[r.t] : `st-${what === 'lost' ? 'failed' : what}`, r.replica && 'replica', t.name === 'hbase:meta' && 'meta', dim && 'dim', fresh && 'fresh'].filter(Boolean).join(' ');
    if (c.cls !== cls) c.e.className = c.cls = cls;
    const where = r.s < 0 ? 'on no server' : `on rs ${r.s}`;
    const label = `${t.name}${r.replica ? ` replica ${r.replica}` : ''}, from ${r.start || 'the first key'} to ${r.end || 'the last key'}, ${what === 'parent' ? 'split or merged away' : r.state.toLowerCase()}${what === 'lost' ? ' on a server that is gone' : ''} ${where}${way(r)}, open seqnum ${r.seq}`;
    if (c.label !== label) c.e.setAttribute('aria-label', c.label = label);
    c.r = r;
  }

  /** layout puts rooms into groups. */
  layout(map, content) {
    const list = map.groups.map((g) => ({ name: g.name, servers: g.servers }));
    if (content.has(-1) || map.blocks.some((b) => b.s < 0)) list.push({ name: '', servers: [-1] });
    const mark = JSON.stringify(list);
    if (mark === this.layoutMark) return;
    this.layoutMark = mark;
    const known = new Set(list.flatMap((g) => g.servers));
    for (const i of this.rooms.keys()) if (!known.has(i)) this.rooms.delete(i);
    replace(this.root, list.map((g) => h('section', { class: 'group', 'aria-label': g.name ? `Group ${g.name}` : 'No server' },
      h('h3', {}, g.name ? ['group ', h('b', {}, g.name), `, ${plural(g.servers.length, 'server')}`] : h('b', {}, 'on no server')),
      h('div', { class: 'rooms' }, g.servers.map((i) => this.room(i)), !g.servers.length && h('p', { class: 'note' }, 'No servers.')))));
  }

  room(i) {
    let room = this.rooms.get(i);
    if (!room) {
      room = { badge: h('span', { class: 'badge' }), place: h('div', { class: 'mono' }), load: h('div', {}), acts: h('div', { class: 'acts' }), blocks: h('div', { class: 'blocks' }), meta: h('span', { class: 'badge plain', hidden: true }, 'hbase:meta') };
      room.facts = h('div', { class: 'facts' }, room.place, room.load);
      room.cells = h('div', { class: 'cells', role: 'listbox', 'aria-label': i < 0 ? 'Regions on no server' : `Regions of rs ${i}`, 'aria-orientation': 'horizontal' });
      room.e = h('article', { class: 'room', 'data-server': String(i), 'aria-label': i < 0 ? 'No server' : `Region server ${i}` },
        h('header', {}, h('h4', {}, i < 0 ? 'Nowhere' : `rs ${i}`), room.badge, room.meta), room.facts, room.cells, room.blocks, room.acts);
      this.rooms.set(i, room);
    }
    return room.e;
  }

  fill(room, i, cells, map, by, only, colours) {
    const x = map.servers[i];
    if (x) {
      room.e.className = `room ${x.state}`;
      room.badge.className = `badge ${x.state}`;
      room.badge.textContent = x.state;
      room.meta.hidden = !x.meta;
      if (room.state !== x.state) {
        const kept = room.acts.contains(document.activeElement);
        replace(room.acts, serverActions(x).map((a) => button(a.text, () => a.run(map.servers[i]), { class: `small ${a.danger ? 'danger' : ''}`, 'aria-label': `${a.text} rs ${i}` })));
        room.state = x.state;
        if (kept) room.acts.firstChild?.focus();
      }
      room.address = x.address;
      room.regions = x.regions;
      this.facts(room);
    } else {
      room.badge.hidden = true;
      room.load.textContent = 'Waiting for a server.';
    }
    // Only what changed is touched: a thousand cells are quick to compare.
    const now = room.cells.children;
    if (now.length !== cells.length || cells.some((e, k) => now[k] !== e)) room.cells.replaceChildren(...cells);
    if (cells.length && !room.cells.querySelector('[tabindex="0"]')) cells[0].tabIndex = 0;
    const blocks = map.blocks.filter((b) => b.s === i);
    const mark = JSON.stringify([blocks, only, by]);
    if (mark === room.blockMark) return;
    room.blockMark = mark;
    const byTable = new Map();
    for (const b of blocks) byTable.set(b.t, [...(byTable.get(b.t) ?? []), b]);
    replace(room.blocks, [...byTable].map(([ti, list]) => {
      const t = map.tables[ti];
      const n = list.reduce((sum, b) => sum + b.n, 0);
      const bar = h('i', { class: colours[ti], 'aria-hidden': 'true', vars: { width: `${Math.max(2, 100 * n / t.total)}%` } });
      return h('button', { type: 'button', class: `block ${only && by === 'table' && only !== t.name ? 'dim' : ''}`, title: `${t.name}: ${plural(t.total, 'region')} in all`, onclick: () => { location.hash = `tables?table=${encodeURIComponent(t.name)}`; } },
        bar, h('b', {}, number(n)), ` of ${t.name} `, h('span', { class: 'soft' }, list.map((b) => (list.length > 1 || b.state !== 'OPEN' ? `${number(b.n)} ${b.state.toLowerCase()}` : 'open')).join(', ')));
    }));
  }

  facts(room) {
    const l = this.lines?.get(room.address);
    const text = `${plural(room.regions, 'region')}${l && l.perSecond > 0 ? ` · ${short(l.perSecond)}/s · p99 ${ms(l.p99)}` : ''}`;
    if (room.load.textContent !== text) room.load.textContent = text;
    if (room.place.textContent !== room.address) room.place.textContent = room.address;
  }

  rates(r) {
    this.lines = new Map((r?.servers ?? []).map((l) => [l.name, l]));
    for (const room of this.rooms.values()) if (room.address) this.facts(room);
  }

  /** enter makes the cell that has the focus the one that Tab comes back to. */
  enter(e) {
    const c = e.target.closest('.cell');
    if (!c) return;
    for (const o of c.parentElement.querySelectorAll('[tabindex="0"]')) o.tabIndex = -1;
    c.tabIndex = 0;
    this.hint(c);
  }

  hint(c) {
    const known = c && this.cells.get(c.dataset.id);
    this.hinted = known ? c.dataset.id : undefined;
    this.tip.hidden = !known;
    if (!known) return;
    const { r } = known;
    const t = this.map.tables[r.t];
    replace(this.tip, h('b', {}, t.name), r.replica ? ` replica ${r.replica}` : '', h('br'), h('span', { class: 'mono' }, `[${r.start || '–∞'}, ${r.end || '∞'})`), h('br'),
      `${r.parent ? 'split or merged away' : r.state}${r.s < 0 ? '' : ` on rs ${r.s}`}${way(r)}, seqnum ${r.seq}`, h('br'), h('span', { class: 'mono' }, r.id));
    const at = c.getBoundingClientRect();
    const tip = this.tip.getBoundingClientRect();
    const below = at.bottom + 8 + tip.height < innerHeight;
    this.tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - tip.width - 8))}px`;
    this.tip.style.top = `${below ? at.bottom + 8 : at.top - tip.height - 8}px`;
  }

  keys(e) {
    const c = e.target.closest('.cell');
    if (!c || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === 'Enter' || e.key === ' ') {
      e.preventDefault();
      this.on.open(c.dataset.id);
      return;
    }
    const all = [...c.parentElement.children];
    const i = all.indexOf(c);
    let to;
    switch (e.key) {
      case 'ArrowRight': to = all[i + 1] ?? this.beside(c, 1); break;
      case 'ArrowLeft': to = all[i - 1] ?? this.beside(c, -1); break;
      case 'Home': to = all[0]; break;
      case 'End': to = all.at(-1); break;
      case 'ArrowDown': case 'ArrowUp': to = this.vertical(c, all, e.key === 'ArrowDown' ? 1 : -1); break;
      default: return;
    }
    e.preventDefault();
    to?.focus();
  }

  beside(c, step) {
    const lists = [...this.root.querySelectorAll('.cells')].filter((l) => l.children.length);
    const list = lists[lists.indexOf(c.parentElement) + step];
    return step > 0 ? list?.firstElementChild : list?.lastElementChild;
  }

  vertical(c, all, step) {
    const at = c.getBoundingClientRect();
    let best;
    let distance = Infinity;
    for (const o of all) {
      const r = o.getBoundingClientRect();
      const dy = (r.top - at.top) * step;
      if (dy <= 2) continue;
      const d = dy * 1000 + Math.abs(r.left - at.left);
      if (d < distance) [best, distance] = [o, d];
    }
    return best;
  }

  /** drag moves a region with the mouse; m does it with the keyboard. */
  drag(e) {
    const c = e.target.closest('.cell');
    if (!c || e.button !== 0 || e.pointerType !== 'mouse') return;
    const begin = [e.clientX, e.clientY];
    let ghost;
    let over;
    const roomAt = (x, y) => document.elementFromPoint(x, y)?.closest('.room[data-server]');
    const go = (m) => {
      if (!ghost && Math.hypot(m.clientX - begin[0], m.clientY - begin[1]) < 6) return;
      if (!ghost) {
        ghost = h('span', { class: `${c.className} ghost` });
        ghost.style.setProperty('--size', getComputedStyle(this.root).getPropertyValue('--size'));
        document.body.append(ghost);
        this.hint();
      }
      ghost.style.left = `${m.clientX - 8}px`;
      ghost.style.top = `${m.clientY - 8}px`;
      const room = roomAt(m.clientX, m.clientY);
      if (room !== over) {
        over?.classList.remove('over');
        room?.classList.add('over');
        over = room;
      }
    };
    const end = (m) => {
      removeEventListener('pointermove', go);
      removeEventListener('pointerup', end);
      removeEventListener('pointercancel', end);
      over?.classList.remove('over');
      ghost?.remove();
      if (ghost && m.type === 'pointerup' && over && Number(over.dataset.server) >= 0) this.on.drop(c.dataset.id, Number(over.dataset.server));
    };
    addEventListener('pointermove', go);
    addEventListener('pointerup', end);
    addEventListener('pointercancel', end);
    e.preventDefault();
    c.focus({ preventScroll: true });
  }
}
