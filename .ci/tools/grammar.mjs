// How an editor colours a template: VS Code's own tokeniser reads our grammar, put into one of Markdown.
//   node grammar.mjs REPOSITORY
// Run where `vscode-textmate` and `vscode-oniguruma` are installed.
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [repository] = process.argv.slice(2);
const require = createRequire(`${process.cwd()}/`);
const { Registry, parseRawGrammar, INITIAL } = require('vscode-textmate');
const { loadWASM, OnigScanner, OnigString } = require('vscode-oniguruma');

await loadWASM(readFileSync(require.resolve('vscode-oniguruma/release/onig.wasm')));
const editor = join(repository, 'editors', 'vscode');
const [{ scopeName, path, injectTo }] = JSON.parse(readFileSync(join(editor, 'package.json'), 'utf8')).contributes.grammars;
// Markdown as far as it could be in the way: headings, emphasis, comments of HTML, and code in fences.
const markdown = {
  scopeName: 'text.html.markdown',
  patterns: [
    { name: 'markup.fenced_code.block.markdown', begin: '^```', end: '^```' },
    { name: 'comment.block.html', begin: '<!--', end: '-->' },
    { name: 'markup.heading.markdown', begin: '^#+ ', end: '$' },
    { name: 'markup.italic.markdown', match: '_[^_]+_' },
  ],
};
const registry = new Registry({
  onigLib: Promise.resolve({ createOnigScanner: (sources) => new OnigScanner(sources), createOnigString: (text) => new OnigString(text) }),
  loadGrammar: async (scope) => {
    if (scope === scopeName) return parseRawGrammar(readFileSync(join(editor, path), 'utf8'), 'grammar.json');
    return scope === markdown.scopeName ? parseRawGrammar(JSON.stringify(markdown), 'markdown.json') : null;
  },
  getInjections: (scope) => (injectTo.includes(scope) ? [scopeName] : []),
});
const grammar = await registry.loadGrammar(markdown.scopeName);
const tokens = (text) => {
  let stack = INITIAL;
  return text.split('\n').flatMap((line) => {
    const read = grammar.tokenizeLine(line, stack);
    stack = read.ruleStack;
    return read.tokens.map((token) => ({ text: line.slice(token.startIndex, token.endIndex), scopes: token.scopes.join(' ') }));
  });
};

const failures = [];
let checks = 0;
const check = (text, part, scope, holds = true) => {
  checks += 1;
  const found = tokens(text).filter((token) => token.text.trim() === part);
  if (found.length === 0 || found.some((token) => token.scopes.includes(scope) !== holds)) {
    failures.push(`${JSON.stringify(part)} in ${JSON.stringify(text)} is ${holds ? 'not ' : ''}${scope}: ${JSON.stringify(found)}`);
  }
};
check('<!-- system -->', 'system', 'entity.name.section.role');
check('text <!-- system -->', 'system', 'entity.name.section.role', false);
check('<!-- System -->', 'System', 'entity.name.section.role', false);
check('您好 {{ 用户名 }}', '用户名', 'variable.other');
check('{{ chat | length }}', 'length', 'support.function.filter');
check('{% if age >= 18 %}', 'if', 'keyword.control.jinja');
check('{% if age >= 18 %}', '18', 'constant.numeric');
check('{%- for x in outputs -%}', 'in', 'keyword.control.jinja');
check("{{ 'a }} b' }} c", "a }} b", 'string.quoted.single');
check('{{ a_b_c }} and _so_', 'a_b_c', 'variable.other');
check('{{ a_b_c }} and _so_', '_so_', 'markup.italic');
check('# {{ topic_goal }} now', 'topic_goal', 'variable.other');
check('{# {{ x }} #} y', 'y', 'comment.block.jinja', false);
check('{# a\n{{ b }} #}', '{{ b }}', 'comment.block.jinja');
check('```\n{{ x }}\n```', '{{ x }}', 'markup.fenced_code');

// Whatever a template of ours opens, it closes: nothing is coloured to the end of the file.
const folders = ['_system/config/default', '_system/config/custom/english'];
for (const folder of folders) {
  for (const name of readdirSync(join(repository, folder)).filter((name) => name.endsWith('.md'))) {
    checks += 1;
    const text = readFileSync(join(repository, folder, name), 'utf8');
    const last = tokens(`${text}\nlast words`).at(-1);
    if (last.scopes !== markdown.scopeName) failures.push(`${folder}/${name} ends in ${last.scopes}`);
    if (!/\{\{/.test(text)) continue;
    checks += 1;
    if (!tokens(text).some((token) => token.scopes.includes('variable.other'))) failures.push(`${folder}/${name} has no name`);
  }
}
for (const failure of failures) console.error(`failed: ${failure}`);
console.log(`grammar of templates: ${checks - failures.length} of ${checks} checks hold`);
process.exit(failures.length === 0 ? 0 : 1);
