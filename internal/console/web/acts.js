// What can be done to a region and to a server.
import { act, world } from './api.js';
import { confirm, dialog, field, h, select } from './dom.js';

/** describe names a region for people. */
export const describe = (r) => `${world.map.tables[r.t].name} [${r.start || '–∞'}, ${r.end || '∞'})`;

/** next is the region that begins where r ends, if the map lists it. */
const next = (r) => r.end && world.map.regions.find((x) => x.t === r.t && x.start === r.end && !x.parent && !x.replica);

/** regionActions lists what can be done to a region; not says why not. */
export function regionActions(r) {
  const m = world.map;
  const t = m.tables[r.t];
  const gone = r.parent ? 'served no more' : '';
  const replica = r.replica ? 'a replica follows its region' : '';
  const neighbour = next(r);
  return [
    { key: 'm', text: 'Move…', not: gone || (m.servers.length < 2 ? 'there is one server only' : ''), run: () => !gone && move(r) },
    { key: 's', text: 'Split…', not: gone || replica || (t.virtual ? 'a system table is not split' : ''), run: () => !gone && split(r) },
    { key: 'g', text: 'Merge with the next', not: gone || replica || (neighbour ? '' : 'no region follows'), run: () => neighbour && act(`Merge ${describe(r)} with the next`, '/merge', { regions: [r.id, neighbour.id] }) },
    { key: 'o', text: 'Rows', not: '', run: () => { location.hash = `tables?table=${encodeURIComponent(t.name)}&from=${encodeURIComponent(r.start)}`; } },
  ];
}

async function move(r) {
  const others = world.map.servers.filter((x) => x.index !== r.s);
  const to = select([['', 'the master chooses'], ...others.map((x) => [x.index, `rs ${x.index} (${x.address}, ${x.state}, ${x.regions} regions)`])], (others.find((x) => x.state === 'running') ?? {}).index);
  if (await dialog(`Move a region`, [h('p', { class: 'mono' }, describe(r)), field('To', to)], [{ text: 'Cancel', value: '' }, { text: 'Move', value: 'yes', class: 'primary' }], { focus: to }) !== 'yes') return;
  await act(`Move ${describe(r)}${to.value === '' ? '' : ` to rs ${to.value}`}`, '/move', to.value === '' ? { region: r.id } : { region: r.id, to: to.value });
}

async function split(r) {
  const at = h('input', { placeholder: 'empty: in its middle', autocomplete: 'off', spellcheck: 'false' });
  if (await dialog('Split a region', [h('p', { class: 'mono' }, describe(r)), field('At row (bytes that are not printable as \\xHH)', at)], [{ text: 'Cancel', value: '' }, { text: 'Split', value: 'yes', class: 'primary' }], { focus: at }) !== 'yes') return;
  await act(`Split ${describe(r)}`, '/split', at.value ? { region: r.id, at: at.value } : { region: r.id });
}

const one = (verb, text) => (x) => act(`${text} rs ${x.index}`, `/${verb}`, { server: String(x.index) });

/** serverActions lists the buttons below a server. */
export function serverActions(x) {
  switch (x.state) {
    case 'dead': case 'stopped':
      return [{ text: 'Start', run: one('start', 'Start') }];
    case 'paused': case 'hung':
      return [{ text: 'Resume', run: one('resume', 'Resume') }, { text: 'Kill', danger: true, run: one('kill', 'Kill') }];
    default:
      return [{ text: 'Kill', danger: true, run: one('kill', 'Kill') }, { text: 'Stop', run: one('stop', 'Stop') }, { text: 'Pause', run: one('pause', 'Pause') },
        { text: 'Hang', run: one('hang', 'Hang') }, { text: 'More…', run: serverMore }];
  }
}

/** serverMore asks for the rarer things. */
export async function serverMore(x) {
  const delay = h('input', { value: '200ms', autocomplete: 'off', spellcheck: 'false' });
  const how = await dialog(`rs ${x.index}`, [h('p', { class: 'soft' }, `${x.name}`), h('div', { class: 'row' }, field('Delay of every answer (0 ends it)', delay))],
    [{ text: 'Cancel', value: '' }, { text: 'Reset connections', value: 'reset-connections' }, { text: 'Expire its session', value: 'expire', class: 'danger' }, { text: 'Kill, losing what is not synced', value: 'lose', class: 'danger' }, { text: 'Slow', value: 'slow', class: 'primary' }], { focus: delay });
  if (!how) return;
  const body = { server: String(x.index) };
  if (how === 'lose') {
    if (await confirm(`Kill rs ${x.index} and lose writes?`, 'Acknowledged writes that HBase would lose are lost: ASYNC_WAL ones that were not synced, SKIP_WAL ones that were not flushed.', 'Kill it')) {
      await act(`Kill rs ${x.index}, losing writes`, '/kill', { ...body, loseUnsynced: true });
    }
    return;
  }
  if (how === 'slow') body.delay = /^[0-9.]+$/.test(delay.value) ? Number(delay.value) : delay.value;
  await act(`${{ slow: 'Slow', expire: 'Expire the session of', 'reset-connections': 'Reset the connections of' }[how]} rs ${x.index}`, `/${how}`, body);
}
