// Mermaid's own parser reads every drawing that is named: node mermaid.mjs FILE…
// Run where `mermaid` and `jsdom` are installed.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.cwd()}/`);
const load = async (name) => import(pathToFileURL(require.resolve(name)));

const { JSDOM } = await load('jsdom');
const { window } = new JSDOM('<!doctype html><body></body>');
globalThis.window = window;
globalThis.document = window.document;
const { default: mermaid } = await load('mermaid');
mermaid.initialize({ startOnLoad: false, securityLevel: 'strict' });

// A parser that takes anything would prove nothing.
const nonsense = await mermaid.parse('flowchart TB\n  a["x" --> b', { suppressErrors: true });
if (nonsense !== false) throw new Error('the parser of Mermaid takes nonsense');

let failed = 0;
const files = process.argv.slice(2);
for (const file of files) {
  try {
    const { diagramType } = await mermaid.parse(readFileSync(file, 'utf8'));
    if (!diagramType.startsWith('flowchart')) throw new Error(`it is read as ${diagramType}`);
  } catch (error) {
    failed += 1;
    console.error(`${file}: ${error.message}`);
  }
}
console.log(`Mermaid reads ${files.length - failed} of ${files.length} drawings`);
process.exit(failed === 0 && files.length > 0 ? 0 : 1);
