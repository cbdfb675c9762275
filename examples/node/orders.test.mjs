import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { Cluster } from './holdfast.mjs';

let c;
before(async () => { c = await Cluster.start(); });
after(() => c.close());

beforeEach(async () => {
  await c.post('/reset'); // under 5 ms, whatever the test before has broken
  await c.post('/create', { table: 'orders', families: ['o'], splits: ['m'] });
  await c.shell(...['a-1', 'a-2', 'user-1', 'user-2'].map((row) => `put 'orders', '${row}', 'o:state', 'open'`));
});

test('orders survive a move and a kill', async () => {
  const [first] = await c.get('/regions?table=orders');
  const to = (first.index + 1) % 3;
  assert.equal((await c.post('/move', { table: 'orders', row: 'a-1', to: String(to) })).index, to);
  await c.post('/kill', { server: String(to) });
  assert.match(await c.shell("count 'orders'"), /4 row\(s\)/);
});

test('an order counts once though the answer is lost', async () => {
  const rule = await c.post('/rule', { method: 'Mutate', table: 'orders', action: 'drop-reply', times: 1 });
  await c.shell("incr 'orders', 'user-1', 'o:count', 1");
  assert.equal((await c.post(`/rule/${rule.id}/wait?hits=1&timeout=10s`)).hits, 1);
  assert.match(await c.shell("get_counter 'orders', 'user-1', 'o:count'"), /COUNTER VALUE = 1/);
});

test('a lookup finds a hole in hbase:meta, until it is mended', async () => {
  const rule = await c.post('/rule', { table: 'orders', startRow: 'm', action: 'meta-hole' });
  const waiting = c.shell("get 'orders', 'user-1'");
  await c.post(`/rule/${rule.id}/wait?hits=2&timeout=10s`);
  await c.control('DELETE', `/rule/${rule.id}`);
  assert.match(await waiting, /value=open/);
});

test('a reset leaves nothing', async () => {
  await c.post('/kill', { server: 'meta' });
  await c.post('/reset');
  assert.equal((await c.get('/status')).tables, 2); // HBase's own
  await assert.rejects(c.get('/regions?table=orders'), /no table orders/);
});
