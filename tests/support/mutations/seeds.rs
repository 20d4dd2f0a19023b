//! The seeds of mutants: every script, page and template of this repository, and some hostile texts.

use std::fs;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A script, skill or test, or a file that looks like one.
    Script,
    Template,
    /// A text of an author, with placeholders.
    Text,
    Expression,
    Reply,
}

pub(crate) struct Seed {
    pub(crate) form: Form,
    pub(crate) bytes: Vec<u8>,
}

/// Folders of scripts, with the suffix of their file names.
const FOLDERS: [(&str, &str, Form); 11] = [
    ("tests/scripts/ok", "yaml", Form::Script),
    ("tests/scripts/err", "yaml", Form::Script),
    ("tests/scripts/validate", "yaml", Form::Script),
    ("tests/legacy", "yaml", Form::Script),
    ("tests/people", "yaml", Form::Script),
    ("tests/replies", "yaml", Form::Reply),
    ("tests/fixtures/yaml", "txt", Form::Script),
    ("scripts", "yaml", Form::Script),
    ("examples", "yaml", Form::Script),
    ("_system", "md", Form::Template),
    ("tests/mutations", "yaml", Form::Script),
];

const EXPRESSIONS: [&str; 14] = [
    "age >= 18 and name is defined",
    "not (a or b) and c in ['x', 'y']",
    "称呼 is not none and 分数 | default(3) > 2",
    "items | length > 0 and items[0].name == 'x'",
    "list[1:3] | join(', ') == 'b, c'",
    "(a + b * 2 - 3) // 2 % 5 ** 2 ~ 'x' != none",
    "x if y else z",
    "{'a': 1, 'b': [1, 2, {'c': none}]}.b[2].c is none",
    "name is regex('^张') or name is startingwith '王'",
    "range(3) | map('string') | list == ['0', '1', '2']",
    "list | sort(reverse=true) | first <= list | max",
    "text | replace('a', 'b') | upper | trim | truncate(10)",
    "-9223372036854775808 // -1 == 1e308 * 10",
    "dict(a=1) | items | list | tojson",
];

const TEXTS: [&str; 8] = [
    "你好，{{ 称呼 | default('朋友') }}！",
    "{% if a > 1 %}一{% elif b %}二{% else %}三{% endif %}",
    "{% for x in list %}{{ loop.index }}. {{ x }}\n{% else %}无{% endfor %}",
    "{% set ns = namespace(n=0) %}{% for x in list %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
    "很好,{用户称呼}! ${x} {{ '{{' }} {# 注 #} {% raw %}{{ x }}{% endraw %}",
    "{% macro m(a, b=1) %}{{ a }}{{ caller() }}{% endmacro %}{% call m(1) %}x{% endcall %}",
    "{% with a = 1, b = 2 %}{{ a ~ b }}{% endwith %}{% filter upper %}x{% endfilter %}",
    "{{ list | map(attribute='a') | select('odd') | join }}{{ text[::2] }}",
];

/// Replies as models write them, valid or not.
const REPLIES: [&str; 5] = [
    "{\"content\": \"你好\\n\\\"x\\\"\", \"EXIT\": false, \"BRIEF\": \"b\", \"metrics\": {\"a\": 1.5e3}}",
    "好的：\n```json\n{\"content\": \"x\", \"list\": [1, 2, {\"a\": null}]}\n```\n",
    "<think>…</think>{'content': 'x', 'EXIT': True,}",
    "{\"content\": \"\\ud83d\\ude00 \\u4f60\", // x\n \"EXIT\": \"yes\"",
    "{\"a\": {\"b\": {\"content\": \"inner\"}}} {\"content\": \"outer\"}",
];

/// Inputs that no person writes on purpose.
const HOSTILE: [&str; 16] = [
    "",
    "\u{feff}",
    "session: &s { phases: *s }",
    "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nsession: *c\n",
    "session: {{ x }}\n  phases: [\n",
    "session:\n  session_id: s\n  phases:\n   - {phase_id: p, topics: [{topic_id: t, actions: [{action_type: condition, action_id: c, config: {cases: [{when: x, actions: [{action_type: set, action_id: s, config: {values: {a: 1}}}]}]}}]}]}\n",
    "? [a, b]\n: {? c : d}\n",
    "%YAML 1.2\n---\nsession: !!map {session_id: !!str 1}\n...\n---\nsession: x\n",
    "\tsession:\n\t\tphases: x\n",
    "session: |2+\n   \n  x\n\n\n",
    "session: >-\n\n\n  x\n   y\n  z",
    "session: \"\\x41\\u4f60\\U0001F600\\\n   x\"\n",
    "session:\r  session_id: s\r  phases: []\r",
    "- - - - - - x\n- ? - ? - ?\n",
    "skill:\n  skill_id: s\n  input: [x]\n  actions: []\n",
    "test: x\nscript: y\nsteps: [{say: x}]\n",
];

/// All seeds, in the same order on every machine.
pub(crate) fn all() -> Vec<Seed> {
    crate::at_root();
    let mut seeds = Vec::new();
    for (folder, ending, form) in FOLDERS {
        files(Path::new(folder), ending, &mut |bytes| seeds.push(Seed { form, bytes }));
    }
    // The examples on the pages of diagnostics.
    files(Path::new("docs/diagnostics"), "md", &mut |bytes| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for fence in text.split("\n```").skip(1).step_by(2) {
            let body = fence.split_once('\n').map_or("", |(_, body)| body);
            seeds.push(Seed { form: Form::Script, bytes: format!("{body}\n").into_bytes() });
        }
    });
    let written = [
        (Form::Script, HOSTILE.as_slice()),
        (Form::Expression, EXPRESSIONS.as_slice()),
        (Form::Text, TEXTS.as_slice()),
        (Form::Template, TEXTS.as_slice()),
        (Form::Reply, REPLIES.as_slice()),
    ];
    for (form, texts) in written {
        seeds.extend(texts.iter().map(|text| Seed { form, bytes: text.as_bytes().to_vec() }));
    }
    seeds
}

fn files(folder: &Path, ending: &str, add: &mut dyn FnMut(Vec<u8>)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, ending, add);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            add(fs::read(&path).unwrap());
        }
    }
}
