// How to connect: addresses and lines to copy.
import { world } from './api.js';
import { copyButton, copyLine, h, replace } from './dom.js';

let root;
let mark;

export function enter(e) {
  root = e;
  mark = '';
  changed('map');
}

export function changed(what) {
  const m = world.map;
  if (what !== 'map') return;
  if (!m) {
    replace(root, h('p', { class: 'empty' }, 'Looking at the cluster…'));
    return;
  }
  const now = JSON.stringify([m.address, m.clusterId, m.servers.map((x) => x.address), m.masters]);
  if (now === mark) return;
  mark = now;
  const port = m.zookeeper.split(':').at(-1);
  const host = m.zookeeper.slice(0, -port.length - 1);
  const control = location.origin;
  const block = (title, text) => h('section', {}, h('h3', { class: 'row center spread' }, h('span', {}, title), copyButton(text, title)), h('pre', {}, text));
  replace(root, h('h2', {}, 'Addresses'), h('div', { class: 'panel' },
    copyLine('Cluster', m.address), copyLine('ZooKeeper', m.zookeeper), copyLine('Control port', control), m.masters.map((x) => copyLine(`Master ${x.index}${x.active ? ' (active)' : ''}`, x.address)),
    m.servers.map((x) => copyLine(`Region server ${x.index}`, x.address)), copyLine('Cluster id', m.clusterId)),
  h('p', { class: 'note' }, h('code', {}, 'holdfast up --ready-file ready.json'), ' writes all of this into a file, at once, when clients can connect; it is removed at the end.'),
  h('h2', {}, 'Clients'), h('div', { class: 'two broad' },
    block('Our shell', `holdfast shell ${m.address}`),
    block('Go', `client, err := hbase.Open(ctx, "${m.address}")`),
    block('Java, HBase\'s own client', `Configuration conf = HBaseConfiguration.create();\nconf.set("hbase.zookeeper.quorum", "${host}");\nconf.set("hbase.zookeeper.property.clientPort", "${port}");\nconf.set("zookeeper.znode.parent", "${m.znode}");\nConnection connection = ConnectionFactory.createConnection(conf);`),
    block('hbase-site.xml', `<configuration>\n  <property><name>hbase.zookeeper.quorum</name><value>${host}</value></property>\n  <property><name>hbase.zookeeper.property.clientPort</name><value>${port}</value></property>\n  <property><name>zookeeper.znode.parent</name><value>${m.znode}</value></property>\n</configuration>`),
    block('Python, the controls', `import json, urllib.request\n\ndef control(path, body=None):\n    data = None if body is None else json.dumps(body).encode()\n    with urllib.request.urlopen("${control}" + path, data) as r:\n        return json.load(r)\n\ncontrol("/kill", {"server": "0"})`),
    block('curl, the controls', `curl -s ${control}/status\ncurl -s ${control}/kill -d '{"server":"0"}'`)));
}
