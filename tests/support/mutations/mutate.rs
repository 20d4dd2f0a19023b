//! Mutates seeds: bytes, lines, indentation, words, nesting. The result depends only on the given random numbers.

use fastrand::Rng;

use crate::seeds::Seed;

/// The maximum size of a mutant; larger ones only take longer.
const MAX_BYTES: usize = 60_000;

/// Words that caused problems before, used to replace other words.
const TROUBLESOME: [&str; 115] = [
    "session",
    "session_id",
    "phases",
    "topics",
    "actions",
    "action_type",
    "action_id",
    "config",
    "declare",
    "output",
    "get",
    "define",
    "condition",
    "on_exit",
    "goto",
    "insert",
    "triggers",
    "skills",
    "skill",
    "test",
    "use_skill",
    "ai_ask",
    "ai_say",
    "ai_think",
    "set",
    "values",
    "cases",
    "when",
    "max_rounds",
    "required",
    "template_scheme",
    "maxRounds",
    "exitCriteria",
    "content_template",
    "target_variable",
    "extraction_prompt",
    "technique_id",
    "sessions",
    "phase",
    "steps",
    "topic",
    "type",
    "name",
    "goal",
    "scope",
    "global",
    "append",
    "enum",
    "history",
    "budget",
    "for_each",
    "version",
    "fallback",
    "delivery: verbatim",
    "strategy",
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "{{ x }}",
    "{% if x %}",
    "{% endif %}",
    "{x}",
    "${x}",
    "${",
    "{",
    "}",
    "[",
    "]",
    "*a",
    "&a",
    "&a x",
    "!!int",
    "!!str",
    "!",
    "!x",
    "<<",
    "<<: *a",
    "? ",
    ": ",
    "- ",
    "-",
    "---",
    "...",
    "%YAML 1.2",
    "|",
    ">",
    "|2",
    ">-",
    "|+9",
    "\"",
    "'",
    "\\",
    "# bcc: allow(unknown-key)",
    "# bcc: allow(",
    "~",
    "null",
    "true",
    "yes",
    ".inf",
    "1e999",
    "99999999999999999999999",
    "-9223372036854775808",
    "0x",
    "0o8",
    "2026-02-30",
    "",
    " ",
    "\t",
    "\r",
    "\n",
    "@",
    "`",
];

/// Characters with several bytes, without width, or invisible.
const UNUSUAL_CHARACTERS: [&str; 18] = [
    "你",
    "称呼",
    "，",
    "：",
    "“",
    "😀",
    "e\u{301}",
    "\u{200d}",
    "\u{feff}",
    "\u{0}",
    "\u{1b}[31m",
    "\u{85}",
    "\u{a0}",
    "\u{2028}",
    "\u{202e}",
    "\u{fffd}",
    "\u{10ffff}",
    "ﷺ",
];

/// Operators, filters and tests for conditions and texts.
const OPERATIONS: [&str; 44] = [
    " + ",
    " - ",
    " * ",
    " / ",
    " // ",
    " % ",
    " ** ",
    " ~ ",
    " == ",
    " != ",
    " < ",
    " <= ",
    " > ",
    " >= ",
    " and ",
    " or ",
    "not ",
    " in ",
    " not in ",
    " is ",
    " is not ",
    " if ",
    " else ",
    "|upper",
    "|default('x')",
    "|sort",
    "|map('int')",
    "|join(',')",
    "|length",
    "|round(99)",
    "|slice(3)",
    "|batch(0)",
    "|truncate(1)",
    "|format(1)",
    " is defined",
    " is none",
    " is regex('(')",
    " is divisibleby 0",
    "[0]",
    "[-1]",
    "[1:2:3]",
    ".x",
    "(1)",
    "|tojson",
];

pub(crate) fn mutant(rng: &mut Rng, seed: &Seed, seeds: &[Seed]) -> Vec<u8> {
    let mut bytes = seed.bytes.clone();
    // Most mutants have few changes, because strongly changed ones are rejected early.
    let changes = 1 + (rng.u32(..).trailing_zeros() as usize).min(6);
    for _ in 0..changes {
        change(rng, &mut bytes, seeds);
        bytes.truncate(MAX_BYTES);
    }
    bytes
}

fn change(rng: &mut Rng, bytes: &mut Vec<u8>, seeds: &[Seed]) {
    match rng.u32(0..24) {
        0 => insert(rng, bytes, |rng| vec![rng.u8(..)]),
        1 => {
            let at = rng.usize(0..=bytes.len());
            bytes.truncate(at);
        }
        2 => {
            if let Some(at) = position(rng, bytes) {
                bytes[at] ^= 1 << rng.u32(0..8);
            }
        }
        3 => {
            let (from, to) = range(rng, bytes.len(), 40);
            bytes.drain(from..to);
        }
        4 => insert(rng, bytes, |rng| pick(rng, &UNUSUAL_CHARACTERS).as_bytes().to_vec()),
        5 => insert(rng, bytes, |rng| pick(rng, &TROUBLESOME).as_bytes().to_vec()),
        6 => insert(rng, bytes, |rng| pick(rng, &OPERATIONS).as_bytes().to_vec()),
        7 => {
            let (from, to) = range(rng, bytes.len(), 200);
            let piece = bytes[from..to].to_vec();
            insert(rng, bytes, |_| piece);
        }
        8 => splice(rng, bytes, seeds),
        9 => insert(rng, bytes, |rng| {
            let depth = rng.usize(1..200);
            pick(rng, &["[", "{", "{a: ", "- ", "? ", "(", "not ", "-", "{{", "{% if x %}", "[[", "'", "!!str "])
                .repeat(depth)
                .into_bytes()
        }),
        10 => insert(rng, bytes, |rng| {
            pick(rng, &["x", "长", " ", "ab ", "- ", "\n", "{x}"]).repeat(rng.usize(1..6_000)).into_bytes()
        }),
        11 => {
            let unix = String::from_utf8_lossy(bytes).into_owned();
            *bytes = unix.replace('\n', pick(rng, &["\r\n", "\r", "\n\n", "\u{2028}"])).into_bytes();
        }
        12..=14 => words(rng, bytes),
        _ => lines(rng, bytes, seeds),
    }
}

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.usize(0..from.len())]
}

fn position(rng: &mut Rng, bytes: &[u8]) -> Option<usize> {
    (!bytes.is_empty()).then(|| rng.usize(0..bytes.len()))
}

fn range(rng: &mut Rng, length: usize, max: usize) -> (usize, usize) {
    let from = rng.usize(0..=length);
    (from, (from + rng.usize(0..=max)).min(length))
}

fn insert(rng: &mut Rng, bytes: &mut Vec<u8>, make: impl FnOnce(&mut Rng) -> Vec<u8>) {
    let at = rng.usize(0..=bytes.len());
    let content = make(rng);
    bytes.splice(at..at, content);
}

fn splice(rng: &mut Rng, bytes: &mut Vec<u8>, seeds: &[Seed]) {
    let other = &seeds[rng.usize(0..seeds.len())].bytes;
    let (from, to) = range(rng, other.len(), 2_000);
    insert(rng, bytes, |_| other[from..to].to_vec());
}

fn words(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let Some(at) = position(rng, bytes) else { return };
    let Some(start) = (at..bytes.len()).find(|at| is_word(bytes[*at])) else { return };
    let end = (start..bytes.len()).find(|at| !is_word(bytes[*at])).unwrap_or(bytes.len());
    let new: Vec<u8> = match rng.u32(0..5) {
        0 => pick(rng, &UNUSUAL_CHARACTERS).into(),
        1 => pick(rng, &OPERATIONS).into(),
        2 => {
            // A word of the same text: a known name in a place where it is unknown.
            let other = position(rng, bytes).unwrap_or(0);
            let from = (other..bytes.len()).find(|at| is_word(bytes[*at])).unwrap_or(start);
            let to = (from..bytes.len()).find(|at| !is_word(bytes[*at])).unwrap_or(bytes.len());
            bytes[from..to].to_vec()
        }
        _ => pick(rng, &TROUBLESOME).into(),
    };
    bytes.splice(start..end, new);
}

fn lines(rng: &mut Rng, bytes: &mut Vec<u8>, seeds: &[Seed]) {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return;
    }
    let (one, other) = (rng.usize(0..lines.len()), rng.usize(0..lines.len()));
    let end = (one + rng.usize(1..8)).min(lines.len());
    match rng.u32(0..10) {
        0 => {
            lines.drain(one..end);
        }
        1 => {
            let copy = lines[one..end].to_vec();
            lines.splice(other..other, copy);
        }
        2 => lines.swap(one, other),
        3 => (one..end).for_each(|at| {
            lines[at].splice(0..0, *b"  ");
        }),
        4 => (one..end).for_each(|at| {
            let spaces = lines[at].iter().take_while(|byte| **byte == b' ').count();
            lines[at].drain(..spaces.min(2));
        }),
        5 => {
            lines[one].insert(0, b'\t');
        }
        6 => {
            let from = &seeds[rng.usize(0..seeds.len())].bytes;
            let from: Vec<&[u8]> = from.split_inclusive(|byte| *byte == b'\n').collect();
            if let Some(at) = (!from.is_empty()).then(|| rng.usize(0..from.len())) {
                let piece = from[at..(at + rng.usize(1..12)).min(from.len())].iter().map(|line| line.to_vec());
                lines.splice(one..one, piece);
            }
        }
        7 => {
            // Another value for the same key.
            if let Some(colon) = lines[one].windows(2).position(|pair| pair == b": ") {
                lines[one].truncate(colon + 2);
                let value = match rng.u32(0..3) {
                    0 => pick(rng, &UNUSUAL_CHARACTERS),
                    1 => {
                        pick(rng, &["[]", "{}", "[1, {a: b}]", "{a: {b: [c]}}", "|\n  x", "\"", "-1", "0", "1.5", "*a"])
                    }
                    _ => pick(rng, &TROUBLESOME),
                };
                lines[one].extend_from_slice(value.as_bytes());
                lines[one].push(b'\n');
            }
        }
        8 => {
            let times = rng.usize(2..60);
            let block = lines[one..end].to_vec();
            for _ in 0..times {
                lines.splice(one..one, block.iter().cloned());
            }
        }
        _ => {
            let end = lines[one].len();
            lines[one].insert(end.saturating_sub(1), b'#');
            lines[one].truncate(end);
        }
    }
    *bytes = lines.concat();
}
