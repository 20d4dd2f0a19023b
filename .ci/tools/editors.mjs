// What an author sees in an editor: the real yaml-language-server, driven over its standard input and output, with our schemas.
//   node editors.mjs REPOSITORY PROGRAM WORKSPACE
// Run where `yaml-language-server` is installed. WORKSPACE is an empty folder, in which a project is laid out.
import { spawn, execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [repository, program, workspace] = process.argv.slice(2);
const require = createRequire(`${process.cwd()}/`);
// The bounds of this check, in milliseconds.
const FOR_AN_ANSWER = 30_000;

let checks = 0;
const failures = [];
function check(what, holds, seen) {
  checks += 1;
  if (!holds) failures.push(`${what}${seen === undefined ? '' : `\n    but: ${JSON.stringify(seen)}`}`);
}

// ---- the project -------------------------------------------------------------------------------------------------------

const lay = (path, text) => {
  mkdirSync(dirname(join(workspace, path)), { recursive: true });
  writeFileSync(join(workspace, path), text);
  return path;
};
// A project as a newcomer has it.
execFileSync(program, ['init', workspace], { stdio: ['ignore', 'ignore', 'inherit'] });
const all = (folder) =>
  readdirSync(join(workspace, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.yaml'))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(join(workspace, '/').length));
const begun = ['scripts', 'skills', 'tests'].flatMap(all);
const schemas = {};
for (const name of ['script', 'skill', 'test']) {
  const text = readFileSync(join(workspace, `schemas/${name}.schema.json`), 'utf8');
  check(`${name} has the schema that the program prints`, text === execFileSync(program, ['schema', name], { encoding: 'utf8' }));
  schemas[name] = JSON.parse(text);
}
const copied = (from, to) =>
  readdirSync(join(repository, from))
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => {
      mkdirSync(join(workspace, to), { recursive: true });
      copyFileSync(join(repository, from, name), join(workspace, to, name));
      return `${to}/${name}`;
    });
const good = [...begun, ...copied('scripts', 'scripts'), ...copied('scripts/tests', 'tests')];
good.push(lay('skills/breathe.yaml', `skill:
  skill_id: breathe
  skill_name: 呼吸
  inputs:
    - { var: minutes, type: integer, value: 2, define: 练习几分钟 }
  outputs: [calmer]
  actions:
    - action_type: ai_ask
      action_id: ask_calmer
      config:
        content: 我们一起慢慢呼吸。现在感觉怎么样？
        output:
          - { get: calmer, define: 是否平静了一些, type: boolean }
`));

// A line that ends in "# error" is one that must be marked, and no other.
const broken = [
  lay('scripts/broken.yaml', `session:
  session_id: broken
  template_schem: x # error
  budget: { turns: many } # error
  phases:
    - phase_id: one
      topics:
        - topic_id: a
          priority: urgent # error
          on_exit:
            max_rounds_reached: skip_topik # error
          actions:
            - action_type: ai_ask
              action_id: ask
              config:
                content: 您好？
                max_rounds: 70 # error
                tune: 温和 # error
            - action_type: condition
              action_id: choose
              config:
                cases:
                  - when: "true"
                    actions:
                      - action_type: ai_say
                        action_id: inner
                        config: { content: 好, tone: 1, deliver: verbatim } # error
`),
  lay('skills/broken.yaml', `skill:
  skill_id: s
  output: [x] # error
  actions:
    - action_type: ai_say
      action_id: say
      config: { content: 好, max_rounds: 0 } # error
`),
  lay('tests/broken.yaml', `test: greets
script: ../scripts/welcome.yaml
dialogue:
  - usr: 你好 # error
  - expect: { variables: { user_name: 小林 }, locatoin: ask } # error
`),
  // No folder of this name is mapped: the comment alone says which schema it is.
  lay('elsewhere/commented.yaml', `# yaml-language-server: $schema=../schemas/script.schema.json
session:
  session_id: c
  sesion_name: 名字 # error
  phases: [{ phase_id: p, topics: [{ topic_id: t, actions: [{ action_type: ai_say, action_id: a, config: { content: 好 } }] }] }]
`),
];

// What VS Code is told in a new project, and what the documentation says that it be told: the same.
const settings = JSON.parse(readFileSync(join(workspace, '.vscode/settings.json'), 'utf8'));
const page = readFileSync(join(repository, 'docs/editors.md'), 'utf8');
const blocks = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map((block) => JSON.parse(block[1]));
const told = blocks.find((block) => block['yaml.schemas']);
for (const [key, value] of Object.entries(told ?? { 'docs/editors.md': null })) {
  check(`a new project has the ${key} of docs/editors.md`, JSON.stringify(settings[key]) === JSON.stringify(value), settings[key]);
}

// ---- the server --------------------------------------------------------------------------------------------------------

const yaml = { validate: true, hover: true, completion: true, schemaStore: { enable: false }, schemas: {} };
for (const [key, value] of Object.entries(settings)) {
  if (key.startsWith('yaml.')) yaml[key.slice('yaml.'.length)] = value;
}
const main = join(dirname(require.resolve('yaml-language-server/package.json')), 'bin', 'yaml-language-server');
const server = spawn(process.execPath, [main, '--stdio'], { stdio: ['pipe', 'pipe', 'inherit'], cwd: workspace });
server.on('exit', (code) => {
  if (!closing) fail(`the language server ended with ${code}`);
});
let closing = false;
const fail = (why) => {
  console.error(why);
  closing = true;
  server.kill();
  process.exit(1);
};

const waiting = new Map();
const marks = new Map();
const wanted = new Map();
let numbers = 0;
let unread = Buffer.alloc(0);
const send = (message) => {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
  server.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
  server.stdin.write(body);
};
const bounded = (promise, what) => {
  const bound = new Promise((_, reject) => setTimeout(() => reject(new Error(`no answer: ${what}`)), FOR_AN_ANSWER).unref());
  return Promise.race([promise, bound]);
};
const ask = (method, params) => {
  const id = ++numbers;
  send({ id, method, params });
  return bounded(new Promise((resolve) => waiting.set(id, resolve)), method);
};
const handle = (message) => {
  if (message.method === 'workspace/configuration') {
    const result = message.params.items.map(({ section }) => (section === 'yaml' ? yaml : section ? {} : { yaml }));
    send({ id: message.id, result });
  } else if (message.method === 'textDocument/publishDiagnostics') {
    const { uri, diagnostics } = message.params;
    marks.set(uri, diagnostics);
    wanted.get(uri)?.(diagnostics);
  } else if (message.method && message.id !== undefined) {
    send({ id: message.id, result: null });
  } else if (message.id !== undefined) {
    waiting.get(message.id)?.(message.error ? { failed: message.error } : message.result);
  }
};
server.stdout.on('data', (bytes) => {
  unread = Buffer.concat([unread, bytes]);
  for (;;) {
    const head = unread.indexOf('\r\n\r\n');
    if (head < 0) return;
    const length = Number(/Content-Length: (\d+)/i.exec(unread.subarray(0, head).toString())[1]);
    if (unread.length < head + 4 + length) return;
    const body = unread.subarray(head + 4, head + 4 + length).toString();
    unread = unread.subarray(head + 4 + length);
    handle(JSON.parse(body));
  }
});

const uri = (path) => pathToFileURL(join(workspace, path)).href;
// Opens a text under a path of the workspace, and gives what is marked in it.
const open = (path, text) => {
  const at = uri(path);
  const seen = new Promise((resolve) => wanted.set(at, resolve));
  send({ method: 'textDocument/didOpen', params: { textDocument: { uri: at, languageId: 'yaml', version: 1, text } } });
  return bounded(seen, `what is marked in ${path}`);
};
const read = (path) => readFileSync(join(workspace, path), 'utf8');
const position = (text, offset) => {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length - 1, character: before.at(-1).length };
};
const hover = async (path, text, word) => {
  const found = await ask('textDocument/hover', { textDocument: { uri: uri(path) }, position: position(text, text.indexOf(word) + 1) });
  return JSON.stringify(found?.contents ?? '');
};
let opened = 0;
// What is offered at the `|` of a text.
const offered = async (folder, marked) => {
  const offset = marked.indexOf('|');
  const text = marked.slice(0, offset) + marked.slice(offset + 1);
  const path = `${folder}/completion_${++opened}.yaml`;
  await open(path, text);
  const found = await ask('textDocument/completion', { textDocument: { uri: uri(path) }, position: position(text, offset) });
  return (found?.items ?? found ?? []).map((item) => item.label);
};

try {
  await ask('initialize', {
    processId: process.pid,
    rootUri: uri(''),
    workspaceFolders: [{ uri: uri(''), name: 'project' }],
    capabilities: {
      workspace: { configuration: true, didChangeConfiguration: { dynamicRegistration: true }, workspaceFolders: true },
      textDocument: { completion: { completionItem: { snippetSupport: true } }, hover: {}, publishDiagnostics: {} },
    },
  });
  send({ method: 'initialized', params: {} });
  send({ method: 'workspace/didChangeConfiguration', params: { settings: { yaml } } });

  // Marks.
  for (const path of good) {
    const found = await open(path, read(path));
    check(`${path} has no mark`, found.length === 0, found.slice(0, 3));
  }
  for (const path of broken) {
    const text = read(path);
    const lines = text.split('\n');
    const expected = lines.flatMap((line, number) => (line.endsWith('# error') ? [number + 1] : []));
    const found = await open(path, text);
    const marked = [...new Set(found.map((one) => one.range.start.line + 1))].sort((a, b) => a - b);
    check(`${path} is marked in the lines ${expected}`, JSON.stringify(marked) === JSON.stringify(expected), found.map((one) => [one.range.start.line + 1, one.message]));
  }

  // What a field means is what its schema says.
  const defs = schemas.script.$defs;
  const text_of = (schema) => schema.markdownDescription ?? schema.description ?? text_of(defs[schema.$ref.split('/').at(-1)]);
  const begins = (schema) => JSON.stringify(text_of(schema).split('\n')[0].slice(0, 24)).slice(1, -1);
  const said = [
    ['scripts/welcome.yaml', 'global_goal', defs.session.properties.global_goal],
    ['scripts/welcome.yaml', 'topic_goal', defs.topic.properties.topic_goal],
    ['scripts/welcome.yaml', 'max_rounds:', defs.config_ai_ask.properties.max_rounds],
    ['scripts/cbt_anxiety.yaml', 'for_each', defs.topic.properties.for_each],
    ['skills/breathe.yaml', 'outputs', (schemas.skill.$defs.skill ?? schemas.skill.properties.skill).properties.outputs],
    ['tests/welcome.scripted.yaml', 'dialogue', schemas.test.properties.dialogue],
  ];
  for (const [path, word, schema] of said) {
    const text = read(path);
    const shown = await hover(path, text.replace(/(^| )#.*$/gm, (line) => ' '.repeat(line.length)), word);
    check(`resting on ${word} in ${path} tells what it means`, shown.includes(begins(schema)), { shown, begins: begins(schema) });
  }

  // What is offered.
  const inside = (config) => `session:
  session_id: s
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: ${config}
`;
  const offers = async (what, folder, text, some, none = []) => {
    const labels = await offered(folder, text);
    const missing = some.filter((label) => !labels.includes(label));
    const strange = none.filter((label) => labels.includes(label));
    check(`${what}: ${some} are offered${none.length ? `, and not ${none}` : ''}`, missing.length + strange.length === 0, labels);
  };
  await offers('kinds', 'scripts', inside('|'), ['ai_ask', 'ai_say', 'ai_think', 'condition', 'set', 'use_skill']);
  await offers('fields of ai_ask', 'scripts', inside('ai_ask\n              action_id: a\n              config:\n                content: 好\n                |'),
    ['tone', 'exit', 'output', 'max_rounds'], ['cases', 'understanding_threshold']);
  await offers('fields of condition', 'scripts', inside('condition\n              action_id: a\n              config:\n                |'), ['cases', 'else'], ['tone']);
  await offers('fields of a topic', 'scripts', 'session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          |\n',
    ['topic_goal', 'for_each', 'on_exit', 'actions'], ['phase_goal']);
  await offers('exit reasons', 'scripts', inside('ai_ask\n              action_id: a\n              on_exit:\n                |'),
    ['max_rounds_reached', 'user_blocked', 'off_topic', 'error']);
  await offers('routes', 'scripts', inside('ai_ask\n              action_id: a\n              on_exit:\n                off_topic: |'),
    ['next', 'skip_topic', 'retry', 'end', 'fail']);
  await offers('choices', 'scripts', 'session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          priority: |\n',
    ['high', 'medium', 'low']);
  await offers('choices of a config', 'scripts', inside('ai_say\n              action_id: a\n              config:\n                content: 好\n                delivery: |'),
    ['model', 'verbatim']);
  await offers('fields of a skill', 'skills', 'skill:\n  skill_id: s\n  |\n', ['inputs', 'outputs', 'actions']);
  await offers('fields of a test', 'tests', 'test: x\nscript: ../scripts/welcome.yaml\n|\n', ['dialogue', 'model']);
} catch (error) {
  fail(`${error.stack ?? error}`);
}

closing = true;
send({ id: ++numbers, method: 'shutdown' });
send({ method: 'exit' });
server.kill();
for (const failure of failures) console.error(`failed: ${failure}`);
console.log(`yaml-language-server: ${checks - failures.length} of ${checks} checks hold`);
process.exit(failures.length === 0 ? 0 : 1);
