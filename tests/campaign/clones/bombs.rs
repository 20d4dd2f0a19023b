//! Documents, templates and schemas that want too much time, memory or stack; and whether they can be interrupted.

use std::fmt::Write;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::ROOT;
use crate::attack::{Case, ensure};
use crate::clones::project::Project;
use crate::process::{POLL_INTERVAL, TIMEOUT};

/// How long a command may run after it was interrupted.
const AFTER_INTERRUPT: Duration = Duration::from_secs(15);

/// A document that is too large or too deep in one way.
fn document(case: &mut Case) -> (&'static str, String) {
    let n = 1 << case.rng.u32(6..18);
    match case.rng.u8(..11) {
        0 => ("nested lists", "[".repeat(n)),
        1 => ("closed nested lists", format!("session: {}{}\n", "[".repeat(n), "]".repeat(n))),
        2 => ("nested mappings", format!("session: {}1{}\n", "{a: ".repeat(n), "}".repeat(n))),
        3 => {
            let mut text = String::new();
            for depth in 0..n.min(3_000) {
                writeln!(text, "{}a:", " ".repeat(depth)).unwrap();
            }
            ("nested blocks", text)
        }
        4 => {
            let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
            for level in 1..n.ilog2() as usize * 2 {
                let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
                writeln!(text, "a{level}: &a{level} [{aliases}]").unwrap();
            }
            writeln!(text, "session: *a{}", n.ilog2() * 2 - 1).unwrap();
            ("aliases of aliases", text)
        }
        5 => {
            let mut text = "session:\n  session_id: s\n  declare:\n".to_owned();
            for number in 0..n.min(50_000) {
                writeln!(text, "    - {{ var: v{number}, value: {number} }}").unwrap();
            }
            ("many declarations", text)
        }
        6 => {
            let head = "session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n";
            let mut text = head.to_owned();
            for number in 0..n.min(5_000) {
                let config = "{ content: \"{{ x }}\", exit: \"{{ y }}\" }";
                writeln!(text, "            - {{ action_type: ai_ask, action_id: a{number}, config: {config} }}")
                    .unwrap();
            }
            ("many actions", text)
        }
        7 => ("a long line", format!("session: \"{}\"\n", "好".repeat(n * 20))),
        8 => ("a long key", format!("? \"{}\"\n: 1\n", "k".repeat(n * 20))),
        9 => ("merges", format!("a: &a {{ <<: *a }}\nsession: *a\n{}", "<<: *a\n".repeat(n.min(20_000)))),
        _ => {
            let conditions = "not ".repeat(n);
            let brackets = format!("{}1{}", "(".repeat(n), ")".repeat(n));
            let when = if case.rng.bool() { conditions } else { brackets };
            (
                "a deep condition",
                script(&format!(
                    "{{ action_type: ai_say, action_id: a, condition: \"{when}x\", config: {{ content: x }} }}"
                )),
            )
        }
    }
}

/// A script with this action.
fn script(action: &str) -> String {
    format!(
        "session:\n  session_id: talk\n  declare: [{{ var: x, value: abc }}, {{ var: n, value: 3 }}]\n  phases:\n    - phase_id: p\n      \
         topics:\n        - topic_id: t\n          actions:\n            - {action}\n"
    )
}

pub fn documents(case: &mut Case) -> Result<String, String> {
    let mut clone = Project::new(case);
    let (what, text) = document(case);
    let place = *case.one_of(&[
        "scripts/talk.yaml",
        "skills/calm.yaml",
        "tests/t.yaml",
        "bcc-script.toml",
        "tests/snapshots/t.yaml",
    ]);
    clone.put(place, text);
    clone.is_ready();
    clone.explore(case, 2).map_err(|problem| format!("{what} in {place}: {problem}"))?;
    Ok(what.to_owned())
}

/// Texts of templates that grow, loop or recurse.
const GROWING: [&str; 24] = [
    "{{ x | indent(20000000000) }}",
    "{{ 'x' * 20000000000 }}",
    "{{ ('x' * 100000) * 100000 }}",
    "{{ '%2000000000s' | format(x) }}",
    "{{ x | replace('', 'y' * 100000) | replace('y', 'z' * 100000) }}",
    "{% set s = 'xxxxxxxx' %}{% for i in range(10000) %}{% set s = s ~ s %}{% endfor %}{{ s }}",
    "{% set n = namespace(s='xx') %}{% for i in range(100) %}{% set n.s = n.s ~ n.s %}{% endfor %}{{ n.s }}",
    "{% set n = namespace(l=[1]) %}{% for i in range(100) %}{% set n.l = n.l + n.l %}{% endfor %}{{ n.l }}",
    "{% set n = namespace(l=[]) %}{% for i in range(100000) %}{% set n.l = n.l + ['x' * 100000] %}{% endfor %}{{ n.l }}",
    "{{ range(2000000000) | list }}",
    "{{ range(2000000000) | join('x') }}",
    "{{ range(100000) | map('string') | join('x' * 100000) }}",
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "{% for a in range(10000) %}{{ 'x' * 100000 }}{% endfor %}",
    "{% macro m(a) %}{{ m(a ~ a) }}{% endmacro %}{{ m('x') }}",
    "{% macro m() %}x{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "{% include 'ai_ask_v1.md' %}{% include 'ai_ask_v1.md' %}",
    "{% for a in [[[]]] recursive %}{{ loop([[[a]]]) }}{% endfor %}",
    "{{ [1] | batch(2000000000, 0) | list }}",
    "{{ [1] | slice(2000000000, 0) | list }}",
    "{{ x | tojson(indent=2000000000) }}",
    "{{ x | wordwrap(1) | center(2000000000) }}",
    "{{ '\\\\U0001F600' * 300000000 }}",
    "{{ 9 ** 9 ** 9 ** 9 }}",
];

/// A text that is nested deeper or longer than anything that a person writes.
fn nested(case: &mut Case) -> String {
    let n = 1 << case.rng.u32(6..16);
    match case.rng.u8(..5) {
        0 => format!("{{{{ {}1{} }}}}", "(".repeat(n), ")".repeat(n)),
        1 => format!("{{{{ {}1 }}}}", "-".repeat(n)),
        2 => format!("{}x{}", "{% if x %}".repeat(n), "{% endif %}".repeat(n)),
        3 => format!("{{{{ x{} }}}}", " | upper".repeat(n)),
        _ => format!("{{{{ x{} }}}}", " ~ x".repeat(n)),
    }
}

/// Puts a bomb into a template or an author's text of the clone.
fn plant(case: &mut Case, clone: &Project) -> String {
    let text = if case.rng.u8(..4) == 0 { nested(case) } else { (*case.one_of(&GROWING)).to_owned() };
    let quoted = serde_json::to_string(&text).unwrap();
    match case.rng.u8(..4) {
        0 => clone.put("_system/config/default/ai_ask_v1.md", format!("{{{{ content }}}}\n{text}\n")),
        1 => clone.put("skills/calm.yaml", format!(
            "skill:\n  skill_id: calm\n  actions:\n    - {{ action_type: set, action_id: a, config: {{ values: {{ y: {quoted} }} }} }}\n"
        )),
        2 => {
            // As a condition: without its braces.
            let when = text.trim_start_matches("{{").trim_end_matches("}}").trim().to_owned();
            let when = serde_json::to_string(&when).unwrap();
            let action = format!("{{ action_type: ai_say, action_id: ask, condition: {when}, config: {{ content: x }} }}");
            clone.put("scripts/talk.yaml", script(&action));
        }
        _ => {
            let action = format!("{{ action_type: ai_ask, action_id: ask, config: {{ content: {quoted}, max_rounds: 1 }} }}");
            clone.put("scripts/talk.yaml", script(&action));
        }
    }
    text.chars().take(120).collect()
}

pub fn templates(case: &mut Case) -> Result<String, String> {
    let mut clone = Project::new(case);
    let text = plant(case, &clone);
    clone.is_ready();
    let render = ["templates", "render", "--script", "scripts/talk.yaml", "--action", "ask"];
    let commands: [&[&str]; 5] =
        [&["run", "scripts/talk.yaml"], &render, &["validate"], &["test"], &["graph", "scripts/talk.yaml"]];
    let context = |problem| format!("{text}: {problem}");
    let mut failed = false;
    for words in [*case.one_of(&commands[..2]), *case.one_of(&commands)] {
        failed |= clone.run(words).map_err(context)?.code != Some(0);
    }
    Ok(if failed { "an error" } else { "rendered" }.to_owned())
}

/// A schema of replies that doubles, recurses, or has patterns that backtrack.
fn schema(case: &mut Case) -> (&'static str, String) {
    let n = case.rng.usize(10..45);
    // The schema of the program, with one more field.
    let wrap = |definitions: &str, field: &str| {
        let base = fs::read_to_string(format!("{ROOT}/schemas/replies/ai_ask.json")).unwrap();
        let more =
            format!(r#""$defs": {{{definitions}}}, "properties": {{"x": {{"allOf": [{field}], "default": "a"}}, "#);
        let start = base.find(r#""properties": {"#).expect("the fields of the schema");
        format!("{}{more}{}", &base[..start], &base[start + r#""properties": {"#.len()..])
    };
    match case.rng.u8(..6) {
        0 => {
            let level = |number: usize| {
                let next = format!("{{\"$ref\": \"#/$defs/d{}\"}}", number + 1);
                format!("\"d{number}\": {{\"allOf\": [{next}, {next}]}}, ")
            };
            let all: String = (0..n).map(level).collect();
            ("doubled references", wrap(&format!("{all}\"d{n}\": {{}}"), r##"{"$ref": "#/$defs/d0"}"##))
        }
        1 => ("a reference to itself", wrap(r##""d": {"$ref": "#/$defs/d"}"##, r##"{"$ref": "#/$defs/d"}"##)),
        2 => ("a pattern", wrap("", r#"{"type": "string", "pattern": "^(a+)+$(a|aa)+(.*)*\\1"}"#)),
        3 => (
            "a large pattern",
            wrap("", r#"{"type": "string", "pattern": "((((a{1,1000}){1,1000}){1,1000}){1,1000})"}"#),
        ),
        4 => {
            let depth = 1 << case.rng.u32(6..16);
            ("a deep schema", wrap("", &format!("{}{{}}{}", "{\"not\": ".repeat(depth), "}".repeat(depth))))
        }
        _ => ("a remote reference", wrap("", r#"{"$ref": "http://127.0.0.1:9/x.json"}"#)),
    }
}

pub fn schemas(case: &mut Case) -> Result<String, String> {
    let mut clone = Project::new(case);
    let (what, text) = schema(case);
    clone.put("schemas/replies/ai_ask.json", text);
    // A model that fills the field.
    let reply = json!({ "content": "Good.", "EXIT": "YES", "name": "Ann", "x": "a".repeat(60) });
    clone.put("replies.json", json!({ "replies": { "ask": [reply, reply], "bye": [reply] } }).to_string());
    clone.is_ready();
    let commands: [&[&str]; 5] = [
        &["run", "scripts/talk.yaml", "--model", "replay:replies.json"],
        &["run", "scripts/talk.yaml"],
        &["validate"],
        &["test"],
        &["templates", "render", "--script", "scripts/talk.yaml", "--action", "ask"],
    ];
    for _ in 0..2 {
        let words = *case.one_of(&commands);
        clone.run(words).map_err(|problem| format!("{what}: {problem}"))?;
    }
    Ok(what.to_owned())
}

/// A command that works on a bomb ends when it is interrupted, if it has not ended by itself.
pub fn interrupt(case: &mut Case) -> Result<String, String> {
    let mut clone = Project::new(case);
    let what = match case.rng.u8(..3) {
        0 => plant(case, &clone),
        1 => {
            let (what, text) = schema(case);
            clone.put("schemas/replies/ai_ask.json", text);
            what.to_owned()
        }
        _ => {
            let (what, text) = document(case);
            clone.put("skills/calm.yaml", text);
            what.to_owned()
        }
    };
    clone.is_ready();
    let commands: [&[&str]; 5] = [
        &["run", "scripts/talk.yaml"],
        &["validate"],
        &["validate", "--format", "json"],
        &["test"],
        &["templates", "render", "--script", "scripts/talk.yaml", "--action", "ask"],
    ];
    let words = *case.one_of(&commands);
    let mut command = clone.command(words);
    // Sometimes nobody reads what it writes.
    let output = if case.rng.bool() { Stdio::piped() } else { Stdio::null() };
    command.stdin(Stdio::piped()).stdout(output).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let pid = Pid::from_child(&child);
    // The input stays open: a session waits for an answer until it is interrupted.
    let moment = Instant::now() + Duration::from_millis(case.rng.u64(100..1500));
    let signal = *case.one_of(&[Signal::INT, Signal::TERM]);
    let mut interrupted: Option<Instant> = None;
    let problem = |text: &str| Err(format!("{what}: `{}` {text}", words.join(" ")));
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let now = Instant::now();
        if interrupted.is_none() && now > moment {
            kill_process(pid, signal).unwrap();
            interrupted = Some(now);
        }
        let too_late = interrupted.is_some_and(|at| now > at + AFTER_INTERRUPT) || now > began + TIMEOUT;
        if too_late {
            child.kill().unwrap();
            child.wait().unwrap();
            return problem(&format!("does not end {AFTER_INTERRUPT:?} after {signal:?}"));
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    // A command that keeps nothing may die of the signal, as any program does.
    let of_signal = interrupted.is_some() && status.signal() == Some(signal.as_raw());
    let orderly = of_signal || status.code().is_some_and(|code| code != 101);
    ensure(orderly, || problem(&format!("ended with {status}")).unwrap_err())?;
    Ok(if interrupted.is_some() { "interrupted" } else { "ended by itself" }.to_owned())
}
