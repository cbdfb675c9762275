// Rules, ZooKeeper, masters, the clock.
import { act, get, world } from './api.js';
import { button, clock, field, h, number, replace, select } from './dom.js';

let ui;

const actions = [['fail', 'answer an exception instead'], ['fail-after', 'do it, then answer an exception'], ['delay', 'delay the call'], ['delay-reply', 'delay the answer'], ['hold', 'hold it until released'],
  ['drop-request', 'swallow the request'], ['drop-reply', 'do it, swallow the answer'], ['close', 'close the connection'], ['close-after', 'do it, close the connection'], ['truncate', 'half an answer, then the end'],
  ['throttle', 'the answer trickles'], ['corrupt-cells', 'the answer\'s cells are damaged'], ['oversize', 'an answer too large to be one'],
  ['meta-hole', 'hbase:meta lacks the region'], ['meta-no-server', 'hbase:meta names no server'], ['meta-stale', 'hbase:meta names another server'], ['meta-overlap', 'in hbase:meta the region ends elsewhere']];
const classes = ['NotServingRegionException', 'RegionMovedException', 'RegionTooBusyException', 'CallQueueTooBigException', 'RegionServerStoppedException', 'RpcThrottlingException', 'MultiActionResultTooLarge', 'UnknownScannerException', 'java.io.IOException'];
const modes = ['healthy', 'frozen', 'refuse', 'black hole', 'hangup', 'silent', 'leaderless', 'electing', 'read-only'];

const text = (placeholder, props) => h('input', { placeholder, autocomplete: 'off', spellcheck: 'false', ...props });
const count = (placeholder) => text(placeholder, { type: 'number', min: '0' });

/** duration is what a person writes: 150ms, 2s, or milliseconds. */
const duration = (v) => (/^[0-9.]+$/.test(v) ? Number(v) : v);

export function enter(root) {
  ui = { open: true, rules: h('div', { class: 'wide' }), sessions: h('div', { class: 'wide' }), masters: h('div', { class: 'stack' }), now: h('p', {}), zk: h('p', {}) };
  root.append(h('h2', { class: 'row center spread' }, h('span', {}, 'Rules'), button('Remove all rules', () => act('Remove all rules', '/rule', undefined, 'DELETE').then(look), { class: 'small' })), ui.rules, ruleForm(),
    h('div', { class: 'two' }, h('div', {}, h('h2', {}, 'ZooKeeper'), zookeeper(), h('h2', {}, 'Sessions'), ui.sessions), h('div', {}, h('h2', {}, 'Masters'), masters(), h('h2', {}, 'Clock'), clocks(), h('h2', {}, 'Replicas'), replicas())));
  loop(ui);
  changed('map');
}

export function leave() { ui.open = false; }

export function changed(what) {
  const m = world.map;
  if (!m) return;
  ui.now.textContent = `${new Date(m.clock.now).toISOString().slice(0, 10)} ${clock(m.clock.now)}${m.clock.frozen ? ', frozen' : ''}`;
  if (what !== 'map') return;
  ui.zk.replaceChildren('It is ', h('b', { class: m.zkFault === 'healthy' ? 'good' : 'badtext' }, m.zkFault), '.');
  const mark = JSON.stringify(m.masters);
  if (mark === ui.mark) return;
  ui.mark = mark;
  const one = (verb, name, x, cls) => button(name, () => act(`${name} master ${x.index}`, `/${verb}`, { server: `master:${x.index}` }), { class: `small ${cls ?? ''}`, 'aria-label': `${name} master ${x.index}` });
  replace(ui.masters, m.masters.map((x) => h('div', { class: 'row center' }, h('b', {}, `master ${x.index}`), h('span', { class: 'mono soft' }, x.address), h('span', { class: `badge ${x.active ? '' : x.running ? 'plain' : 'off'}` }, x.active ? 'active' : x.running ? 'waiting' : 'down'),
    x.running ? [one('kill', 'Kill', x, 'danger'), one('stop', 'Stop', x)] : one('start', 'Start', x))),
  m.masters.filter((x) => x.running).length > 1 ? h('p', { class: 'note' }, 'Kill the active one, and a waiting one takes over.') : h('p', { class: 'note' }, 'There is no backup: without a master tables are served, but nothing moves. ', h('code', {}, 'holdfast up --backup-masters 1'), ' has one.'));
}

async function loop(mine) {
  while (mine.open) {
    if (document.visibilityState === 'visible') await look();
    await new Promise((resolve) => { setTimeout(resolve, 1500); });
  }
}

async function look() {
  const mine = ui;
  try {
    const [rules, sessions] = await Promise.all([get('/rule'), get('/zk/sessions')]);
    if (!mine.open) return;
    drawRules(rules);
    drawSessions(sessions);
  } catch { /* the head of the page says that the cluster is gone */ }
}

/** once draws only if what is shown would differ, so that the focus stays. */
function once(e, data, make) {
  const mark = JSON.stringify(data);
  if (e.dataset.mark === mark) return;
  const kept = e.contains(document.activeElement) ? document.activeElement.getAttribute('aria-label') : undefined;
  e.dataset.mark = mark;
  replace(e, make());
  if (kept) [...e.querySelectorAll('button')].find((b) => b.getAttribute('aria-label') === kept)?.focus();
}

function drawRules(rules) {
  once(ui.rules, rules, () => (rules.length ? h('table', {}, h('thead', {}, h('tr', {}, ['rule', 'which calls', 'how often', 'what happens', 'hits', ''].map((t) => h('th', { scope: 'col' }, t)))),
    h('tbody', {}, rules.map((r) => h('tr', {}, h('td', {}, `${r.id} `, r.name && h('b', {}, r.name)),
      h('td', { class: 'mono' }, ['server', 'service', 'method', 'table', 'region', 'startRow', 'stopRow', 'user'].filter((k) => r[k]).map((k) => `${k}=${r[k]}`).join(' ') || 'all'),
      h('td', {}, [r.skip && `after ${r.skip}`, r.every > 1 && `every ${r.every}`, r.times ? `${r.times} in all` : '', r.probability > 0 && r.probability < 1 && `${100 * r.probability} %`].filter(Boolean).join(', ') || 'always'),
      h('td', {}, r.action, r.delay && r.delay !== '0s' ? ` ${r.delay}` : '', r.exception && h('span', { class: 'mono' }, ` ${r.exception.class}`), [r.bytesPerSecond && `${number(r.bytesPerSecond)} bytes a second`, r.size && `${number(r.size)} bytes`, r.location, r.end].filter(Boolean).map((x) => h('span', { class: 'mono' }, ` ${x}`))), h('td', { class: 'n' }, number(r.hits), r.resting && h('span', { class: 'soft' }, ' resting')),
      h('td', {}, h('div', { class: 'row' }, r.action === 'hold' && button('Release', () => act(`Release rule ${r.id}`, `/rule/${r.id}/release`).then(look), { class: 'small', 'aria-label': `Release rule ${r.id}` }),
        button('Remove', () => act(`Remove rule ${r.id}`, `/rule/${r.id}`, undefined, 'DELETE').then(look), { class: 'small', 'aria-label': `Remove rule ${r.id}` }))))))) : h('p', { class: 'note' }, 'No rules: every call goes its way.')));
}

function ruleForm() {
  const m = world.map;
  const f = {
    action: select(actions.map(([v, t]) => [v, `${v}: ${t}`]), 'fail', { 'data-first': '' }), delay: text('200ms'), class: text('NotServingRegionException', { list: 'classes' }), message: text('in plain words'),
    doNotRetry: h('input', { type: 'checkbox' }), overloaded: h('input', { type: 'checkbox' }), wait: text('for RpcThrottlingException'), host: text('for RegionMovedException'), port: count('16020'), startCode: count(''), seqNum: count(''),
    server: select([['', 'any'], ...(m?.servers ?? []).map((x) => [x.address, `rs ${x.index}`])], ''), service: text('ClientService'), method: text('Mutate,Multi', { list: 'methods' }), table: text('t'), region: text('encoded name'), startRow: text('a'), stopRow: text('m'), user: text('root'),
    bytesPerSecond: count('1000'), size: count('67108864'), location: select([['', 'the one before'], ...(m?.servers ?? []).map((x) => [x.name, `rs ${x.index}`])], ''), end: text('m'),
    name: text('for you'), skip: count('0'), every: count('1'), times: count('0: no end'), probability: text('0.1', { inputmode: 'decimal' }), seed: count('1'),
  };
  const exception = h('fieldset', {}, h('legend', {}, 'The exception'), h('div', { class: 'form' }, field('Class', f.class), field('Message', f.message), h('label', { class: 'check' }, f.doNotRetry, 'not to be retried'), h('label', { class: 'check' }, f.overloaded, 'server overloaded'), field('Wait', f.wait),
    field('Moved to host', f.host), field('port', f.port), field('start code', f.startCode), field('seqnum', f.seqNum)));
  // What belongs to some actions only.
  const extra = { delay: field('Delay', f.delay), bytesPerSecond: field('Bytes a second', f.bytesPerSecond), size: field('Size in bytes', f.size), location: field('Server that it names', f.location), end: field('Key where it ends', f.end) };
  const needs = { delay: 'delay', 'delay-reply': 'delay', throttle: 'bytesPerSecond', oversize: 'size', 'meta-stale': 'location', 'meta-overlap': 'end' };
  const fit = () => {
    exception.hidden = !f.action.value.startsWith('fail');
    for (const [k, e] of Object.entries(extra)) e.hidden = needs[f.action.value] !== k;
  };
  f.action.addEventListener('change', fit);
  fit();
  const add = async (e) => {
    e.preventDefault();
    const rule = { action: f.action.value };
    for (const k of ['server', 'service', 'method', 'table', 'region', 'startRow', 'stopRow', 'user', 'name']) if (f[k].value) rule[k] = f[k].value;
    for (const k of ['skip', 'every', 'times', 'seed', 'probability']) if (f[k].value) rule[k] = Number(f[k].value);
    switch (needs[rule.action]) {
      case 'delay': rule.delay = duration(f.delay.value || '200ms'); break;
      case 'bytesPerSecond': case 'size': rule[needs[rule.action]] = Number(f[needs[rule.action]].value || f[needs[rule.action]].placeholder); break;
      case 'location': case 'end': if (f[needs[rule.action]].value) rule[needs[rule.action]] = f[needs[rule.action]].value; break;
      default:
    }
    if (!exception.hidden) {
      rule.exception = { class: f.class.value || 'NotServingRegionException' };
      for (const k of ['message', 'host']) if (f[k].value) rule.exception[k] = f[k].value;
      for (const k of ['port', 'startCode', 'seqNum']) if (f[k].value) rule.exception[k] = Number(f[k].value);
      for (const k of ['doNotRetry', 'overloaded']) if (f[k].checked) rule.exception[k] = true;
      if (f.wait.value) rule.exception.wait = duration(f.wait.value);
    }
    const made = await act('Add a rule', '/rule', rule);
    if (made) look();
  };
  return h('details', { open: true }, h('summary', {}, 'Add a rule'), h('form', { class: 'stack', onsubmit: add },
    h('div', { class: 'two' },
      h('fieldset', {}, h('legend', {}, 'Which calls; what is empty matches everything'), h('div', { class: 'form' }, field('Server', f.server), field('Service', f.service), field('Method, several with commas', f.method), field('Table', f.table), field('Region', f.region), field('From row', f.startRow), field('To row, not included', f.stopRow), field('User', f.user))),
      h('div', { class: 'stack' }, h('fieldset', {}, h('legend', {}, 'What happens'), h('div', { class: 'form' }, h('div', { class: 'all' }, field('Action', f.action)), Object.values(extra))), exception)),
    h('fieldset', {}, h('legend', {}, 'How often'), h('div', { class: 'form' }, field('Let so many pass first', f.skip), field('Then every n-th', f.every), field('So many in all', f.times), field('By chance, 0 to 1', f.probability), field('Seed of the chance', f.seed), field('Name', f.name))),
    h('datalist', { id: 'classes' }, classes.map((c) => h('option', { value: c }))), h('datalist', { id: 'methods' }, ['Get', 'Mutate', 'Multi', 'Scan', 'ExecService', 'OpenRegion', 'CreateTable', 'MoveRegion'].map((c) => h('option', { value: c }))),
    h('p', {}, h('button', { type: 'submit', class: 'primary' }, 'Add the rule'))));
}

function zookeeper() {
  const mode = select(modes, 'frozen');
  const latency = text('0');
  const stall = h('input', { type: 'checkbox' });
  const half = h('input', { type: 'checkbox' });
  const member = count('all');
  const hang = count('0');
  const cut = count('0');
  const set = (e) => {
    e.preventDefault();
    const fault = { mode: mode.value };
    if (member.value) fault.member = Number(member.value);
    if (latency.value) fault.latency = duration(latency.value);
    if (stall.checked) fault.stallPings = true;
    if (half.checked) fault.halfHandshake = true;
    if (hang.value) fault.hangAfter = Number(hang.value);
    if (cut.value) fault.truncate = Number(cut.value);
    return act(`Make ZooKeeper ${mode.value}`, '/zk/fault', fault);
  };
  return h('form', { class: 'panel stack', onsubmit: set }, ui.zk, h('div', { class: 'form' }, field('Mode', mode), field('Member of the ensemble', member), field('Latency', latency), field('Hang after so many requests', hang), field('Cut answers to so many bytes', cut), h('label', { class: 'check' }, stall, 'pings are not answered'), h('label', { class: 'check' }, half, 'half a handshake')),
    h('p', { class: 'row' }, h('button', { type: 'submit' }, 'Break it'), button('Mend it', () => act('Mend ZooKeeper', '/zk/mend'), { class: 'primary' }), button('Stall the leader', () => act('Stall ZooKeeper\'s leader', '/zk/stall-leader')), button('Drop connections', () => act('Drop ZooKeeper connections', '/zk/drop')), button('Restore HBase\'s znodes', () => act('Restore znodes', '/zk/restore'))));
}

function drawSessions(list) {
  // The time left changes all the time: it is shown in steps of five seconds.
  const seen = list.filter((x) => !x.internal).map((x) => ({ ...x, expiresIn: `${Math.ceil(seconds(x.expiresIn) / 5) * 5} s` }));
  once(ui.sessions, seen.slice(0, 50), () => (seen.length ? h('table', { class: 'flat' }, h('thead', {}, h('tr', {}, ['session', 'from', 'timeout', 'left', 'ephemerals', ''].map((t) => h('th', { scope: 'col' }, t)))),
    h('tbody', {}, seen.slice(0, 50).map((x) => h('tr', {}, h('td', { class: 'mono' }, x.id), h('td', { class: 'mono' }, x.remoteAddr ?? ''), h('td', {}, x.timeout), h('td', {}, x.expiresIn), h('td', { class: 'n' }, String(x.ephemerals)),
      h('td', {}, button('Expire', () => act(`Expire session ${x.id}`, '/zk/expire', { id: x.id }).then(look), { class: 'small danger', 'aria-label': `Expire session ${x.id}` })))))) : h('p', { class: 'note' }, 'No client has a session. (Region servers\' own sessions end with Expire below a server\'s More….)')));
}

/** seconds reads Go's notation: 1m2.5s, 800ms. */
function seconds(d) {
  let sum = 0;
  for (const [, n, unit] of String(d).matchAll(/([\d.]+)(ms|h|m|s|µs|ns)/g)) sum += Number(n) * { h: 3600, m: 60, s: 1, ms: 0.001, 'µs': 1e-6, ns: 1e-9 }[unit];
  return sum;
}

function masters() {
  const gap = text('0');
  const delay = text('0');
  const init = h('input', { type: 'checkbox' });
  const set = (e) => {
    e.preventDefault();
    return act('Disturb the master', '/master', { transitionGap: duration(gap.value || '0'), procedureDelay: duration(delay.value || '0'), initializing: init.checked });
  };
  const fail = h('form', { class: 'row', onsubmit: (e) => { e.preventDefault(); return act('Fail the next procedure', '/master', { failNext: { class: kind.value || 'java.io.IOException' } }); } });
  const kind = text('java.io.IOException', { list: 'classes' });
  fail.append(field('Exception of the next procedure', kind), h('button', { type: 'submit' }, 'Let it fail'));
  return h('div', { class: 'panel stack' }, ui.masters, h('form', { class: 'row', onsubmit: set }, field('Regions stay closed in a move for', gap), field('Procedures take longer by', delay), h('label', { class: 'check' }, init, 'says it is initializing'), h('button', { type: 'submit' }, 'Set')), fail);
}

function clocks() {
  const by = text('1h', { value: '1h' });
  const set = (what, body) => act(what, '/clock', body);
  return h('form', { class: 'panel stack', onsubmit: (e) => { e.preventDefault(); set(`Advance the clock by ${by.value}`, { advance: duration(by.value) }); } }, ui.now, h('div', { class: 'row' }, field('By', by), h('button', { type: 'submit' }, 'Advance'),
    button('Freeze', () => set('Freeze the clock', { freeze: true })), button('Resume', () => set('Resume the clock', { resume: true })), button('Reset', () => set('Reset the clock', { reset: true }), { class: 'primary' })),
  h('p', { class: 'note' }, 'Of timestamps, TTLs and ZooKeeper sessions. Advancing it may expire sessions.'));
}

function replicas() {
  const lag = text('0', { value: '1s' });
  return h('form', { class: 'panel row', onsubmit: (e) => { e.preventDefault(); act('Replica lag', '/replica-lag', { lag: duration(lag.value || '0') }); } }, field('Secondary replicas lag by (0 ends it)', lag), h('button', { type: 'submit' }, 'Set'));
}

