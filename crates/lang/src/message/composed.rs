//! Texts that the code puts together: sentences behind one another, remarks in brackets, lists.

use crate::message::catalogue::is_prose;

/// What stands between parts, and what stands there in Chinese, in the order in which they are looked for. Every part
/// must be known, or be no prose: words of others, as the name of a file, may hold a sentence of ours.
const JOINTS: [(&str, &str); 6] =
    [("; ", "；"), (". ", "。"), (": ", "："), (", ", "，"), (" or ", "或"), (" and ", "和")];

/// `text` said part by part, where it is several; `said` knows a part or does not.
pub(crate) fn joined(text: &str, said: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    if let Some((before, inside)) = bracket(text) {
        let (told, remark) = (said(before), said(inside));
        let known = |said: &Option<String>, part: &str| said.is_some() || !is_prose(part);
        if (told.is_some() || remark.is_some()) && known(&told, before) && known(&remark, inside) {
            let told = told.unwrap_or_else(|| before.to_owned());
            return Some(format!("{told}（{}）", remark.unwrap_or_else(|| inside.to_owned())));
        }
    }
    JOINTS.iter().find_map(|(joint, chinese)| {
        let parts = split(text, joint);
        if parts.len() < 2 {
            return None;
        }
        let known: Vec<Option<String>> = parts.iter().map(|part| said(part)).collect();
        // A single word may be a key of a file as well: `action: greet` is no sentence.
        let sentence = known.iter().zip(&parts).any(|(known, part)| known.is_some() && is_prose(part));
        let any = sentence || known.iter().all(Option::is_some);
        let all = || known.iter().zip(&parts).all(|(known, part)| known.is_some() || !is_prose(part));
        if !any || !all() {
            return None;
        }
        let told = known.into_iter().zip(&parts).map(|(known, part)| known.unwrap_or_else(|| (*part).to_owned()));
        Some(told.collect::<Vec<_>>().join(chinese))
    })
}

/// A list of names in backticks: "`a`, `b` or `c`".
pub(crate) fn enumeration(text: &str) -> Option<String> {
    let parts = split(text, ", ");
    let count = parts.len();
    let mut told = String::new();
    let mut items = 0;
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            told.push('、');
        }
        let last = number + 1 == count;
        let joint = [(" or ", " 或 "), (" and ", " 和 ")].into_iter().find(|(joint, _)| split(part, joint).len() > 1);
        let (inner, chinese) = match joint {
            Some((joint, chinese)) if last || count == 1 => (split(part, joint), chinese),
            _ => (vec![*part], ""),
        };
        if !inner.iter().all(|item| item.len() > 2 && item.starts_with('`') && item.ends_with('`')) {
            return None;
        }
        items += inner.len();
        told.push_str(&inner.join(chinese));
    }
    (items > 1).then_some(told)
}

/// `before (inside)`, when the text ends so.
fn bracket(text: &str) -> Option<(&str, &str)> {
    let open = text.strip_suffix(')')?;
    let mut depth = 0_usize;
    for (at, c) in open.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth == 0 => {
                let before = open.get(..at)?.strip_suffix(' ')?;
                return Some((before, open.get(at + 1..)?));
            }
            '(' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The parts between `joint`s that stand outside of backticks.
fn split<'t>(text: &'t str, joint: &str) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(joint) {
        let code = text.get(..at).is_some_and(|before| before.bytes().filter(|byte| *byte == b'`').count() % 2 == 1);
        if !code && at >= start {
            parts.extend(text.get(start..at));
            start = at + joint.len();
        }
    }
    parts.extend(text.get(start..));
    parts
}
