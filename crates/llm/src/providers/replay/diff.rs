//! Compares a prompt with the recorded one.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

use crate::model::message::{ChatMessage, Role};
use crate::prompt_time::without_times;

/// The default replacement for sensitive values in recordings. It matches any text.
pub const MASK: &str = "***";

const MAX_LINES: usize = 40;

const MAX_CHARS: usize = 160;

/// Of a long line whose difference is far behind its start, how many characters before the difference are shown.
const CHARS_BEFORE: usize = 60;

/// How many characters after a mask tell where the masked value ends.
const ANCHOR_CHARS: usize = 20;

const CONTEXT_LINES: usize = 2;

/// The maximum number of pairs of lines that are compared; for longer texts, all old and all new lines are shown.
const MAX_PAIRS: usize = 250_000;

/// The differences between the recorded and the current messages as a unified diff; `None` if there are none. `mask`, which replaces
/// sensitive values in the recording, matches any text, and all times of the engine are equal.
pub fn differences(recorded: &[ChatMessage], new: &[ChatMessage], mask: &str) -> Option<Message> {
    let same = |(recorded, new): (&ChatMessage, &ChatMessage)| {
        recorded.role == new.role && matches(&recorded.content, &new.content, mask)
    };
    if recorded.len() == new.len() && recorded.iter().zip(new).all(same) {
        return None;
    }
    let mut output = DiffOutput::default();
    for (place, pair) in recorded.iter().zip(new).enumerate().filter(|(_, pair)| !same(*pair)) {
        let (old, new) = pair;
        let number = place + 1;
        match old.role == new.role {
            true => output.line(msg!("message {number} ({}):", name(new.role))),
            false => output.line(msg!(
                "message {number} was recorded with the role {} and now has the role {}:",
                name(old.role),
                name(new.role)
            )),
        }
        output.message(&old.content, &new.content, mask);
    }
    for (number, message) in recorded.iter().enumerate().skip(new.len()) {
        output.line(msg!("message {} ({}) is no longer present:", number + 1, name(message.role)));
        message.content.lines().for_each(|line| output.prefixed('-', line));
    }
    for (number, message) in new.iter().enumerate().skip(recorded.len()) {
        output.line(msg!("message {} ({}) is new:", number + 1, name(message.role)));
        message.content.lines().for_each(|line| output.prefixed('+', line));
    }
    Some(output.finish())
}

const fn name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// A text in which no line that begins with the mask is quoted. The mask looks like markup, and what it stands for usually does not: a message
/// that begins with it is quoted when it is replayed, and was not when it was recorded.
fn without_quotes(text: &str, mask: &str) -> String {
    text.replace(&format!("\n> {mask}"), &format!("\n{mask}")).replace(&format!(":\n{mask}"), &format!(": {mask}"))
}

fn matches(recorded: &str, new: &str, mask: &str) -> bool {
    if recorded == new {
        return true;
    }
    let (recorded, new) = (without_times(recorded), without_times(new));
    let (recorded, new) = (without_quotes(&recorded, mask), without_quotes(&new, mask));
    let Some((first, rest)) = recorded.split_once(mask) else { return recorded == new };
    let Some(mut left) = new.strip_prefix(first) else { return false };
    let mut pieces = rest.split(mask).peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return left.ends_with(piece);
        }
        let Some((_, after)) = left.split_once(piece) else { return false };
        left = after;
    }
    true
}

/// The lines of the diff, up to [`MAX_LINES`].
#[derive(Default)]
struct DiffOutput {
    lines: Vec<Message>,
    omitted: usize,
}

impl DiffOutput {
    fn line(&mut self, line: Message) {
        if self.lines.len() >= MAX_LINES {
            self.omitted += 1;
        } else {
            self.lines.push(line);
        }
    }

    fn prefixed(&mut self, sign: char, line: &str) {
        self.excerpt(sign, line, 0);
    }

    /// The part of a line around its character `differing`.
    fn excerpt(&mut self, sign: char, line: &str, differing: usize) {
        let skipped = if differing > MAX_CHARS - CHARS_BEFORE { differing - CHARS_BEFORE } else { 0 };
        let before = if skipped > 0 { "…" } else { "" };
        let mut characters = line.chars().skip(skipped);
        let shown: String = characters.by_ref().take(MAX_CHARS - 2 - before.chars().count()).collect();
        let more = if characters.next().is_some() { "…" } else { "" };
        self.line(Message::text(format!("{sign} {before}{shown}{more}")));
    }

    fn message(&mut self, old: &str, new: &str, mask: &str) {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let diff_lines = diff_lines(&old, &new, mask);
        let changed: Vec<usize> =
            diff_lines.iter().enumerate().filter(|(_, (sign, _))| *sign != ' ').map(|(place, _)| place).collect();
        let differing = differing_characters(&diff_lines, mask);
        let mut last = None;
        for ((place, (sign, line)), differing) in diff_lines.iter().enumerate().zip(differing) {
            if changed.iter().any(|changed| changed.abs_diff(place) <= CONTEXT_LINES) {
                if last.is_some_and(|last| last + 1 != place) || (last.is_none() && place > 0) {
                    self.line(Message::text("  …"));
                }
                self.excerpt(*sign, line, differing);
                last = Some(place);
            }
        }
    }

    fn finish(mut self) -> Message {
        if self.omitted > 0 {
            self.lines.push(msg!("… {} more lines", self.omitted));
        }
        Message::list(Joint::Line, self.lines)
    }
}

/// For each line of a diff, its first character that differs from the line that took its place, or whose place it took; 0 if there is none.
fn differing_characters(diff_lines: &[(char, &str)], mask: &str) -> Vec<usize> {
    let mut all = Vec::with_capacity(diff_lines.len());
    for block in diff_lines.chunk_by(|one, next| (one.0 == ' ') == (next.0 == ' ')) {
        let with = |sign: char| block.iter().filter(move |line| line.0 == sign).map(|line| line.1);
        let pairs: Vec<(usize, usize)> =
            with('-').zip(with('+')).map(|(old, new)| first_difference(old, new, mask)).collect();
        let mut old = pairs.iter().map(|(old, _)| *old);
        let mut new = pairs.iter().map(|(_, new)| *new);
        all.extend(block.iter().map(|(sign, _)| match sign {
            '-' => old.next().unwrap_or(0),
            '+' => new.next().unwrap_or(0),
            _ => 0,
        }));
    }
    all
}

/// The number of the first character of each line with which they differ. A mask in the old line stands for any text.
fn first_difference(old: &str, new: &str, mask: &str) -> (usize, usize) {
    let (old, new, mask): (Vec<char>, Vec<char>, Vec<char>) =
        (old.chars().collect(), new.chars().collect(), mask.chars().collect());
    let rest = |line: &[char], from: usize| line.get(from..).unwrap_or_default().to_vec();
    let (mut in_old, mut in_new) = (0, 0);
    loop {
        if !mask.is_empty() && old.get(in_old..).is_some_and(|old| old.starts_with(&mask)) {
            let mut anchor = rest(&old, in_old + mask.len());
            anchor.truncate(ANCHOR_CHARS);
            if let Some(next) = anchor.windows(mask.len()).position(|part| part == mask) {
                anchor.truncate(next);
            }
            let found = match anchor.is_empty() {
                true => None,
                false => rest(&new, in_new).windows(anchor.len()).position(|part| part == anchor),
            };
            let Some(found) = found else { return (in_old, in_new) };
            in_old += mask.len() + anchor.len();
            in_new += found + anchor.len();
        } else if old.get(in_old).is_some() && old.get(in_old) == new.get(in_new) {
            in_old += 1;
            in_new += 1;
        } else {
            return (in_old, in_new);
        }
    }
}

/// The lines of both texts in order: common lines (` `), old lines (`-`) and new lines (`+`).
fn diff_lines<'t>(old: &[&'t str], new: &[&'t str], mask: &str) -> Vec<(char, &'t str)> {
    let prefix = old.iter().zip(new).take_while(|(old, new)| matches(old, new, mask)).count();
    let (head, old) = old.split_at(prefix);
    let (same, new) = new.split_at(prefix);
    debug_assert_eq!(head.len(), same.len());
    let suffix = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| matches(old, new, mask)).count();
    let (old, tail) = old.split_at(old.len() - suffix);
    let (new, _) = new.split_at(new.len() - suffix);
    let mut diff_lines: Vec<(char, &str)> = head.iter().map(|line| (' ', *line)).collect();
    diff_lines.extend(middle(old, new, mask));
    diff_lines.extend(tail.iter().map(|line| (' ', *line)));
    diff_lines
}

/// The same, computed with the longest common subsequence of lines.
fn middle<'t>(old: &[&'t str], new: &[&'t str], mask: &str) -> Vec<(char, &'t str)> {
    let replaced = || old.iter().map(|line| ('-', *line)).chain(new.iter().map(|line| ('+', *line))).collect();
    if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        return replaced();
    }
    // The number of common lines from each pair of positions in `old` and `new`.
    let width = new.len() + 1;
    let mut common_lengths = vec![0_usize; (old.len() + 1) * width];
    let get = |common_lengths: &[usize], i: usize, j: usize| common_lengths.get(i * width + j).copied().unwrap_or(0);
    for (i, old_line) in old.iter().enumerate().rev() {
        for (j, new_line) in new.iter().enumerate().rev() {
            let length = match matches(old_line, new_line, mask) {
                true => get(&common_lengths, i + 1, j + 1) + 1,
                false => get(&common_lengths, i + 1, j).max(get(&common_lengths, i, j + 1)),
            };
            if let Some(place) = common_lengths.get_mut(i * width + j) {
                *place = length;
            }
        }
    }
    let (mut i, mut j, mut diff_lines) = (0, 0, Vec::new());
    loop {
        match (old.get(i), new.get(j)) {
            (Some(old_line), Some(new_line)) if matches(old_line, new_line, mask) => {
                diff_lines.push((' ', *old_line));
                (i, j) = (i + 1, j + 1);
            }
            (Some(old_line), new_line)
                if new_line.is_none() || get(&common_lengths, i + 1, j) >= get(&common_lengths, i, j + 1) =>
            {
                diff_lines.push(('-', *old_line));
                i += 1;
            }
            (_, Some(new_line)) => {
                diff_lines.push(('+', *new_line));
                j += 1;
            }
            _ => return diff_lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(content: &str) -> ChatMessage {
        ChatMessage { role: Role::User, content: content.to_owned() }
    }

    fn differ(old: &str, new: &str) -> Option<String> {
        differences(&[user(old)], &[user(new)], MASK).map(|output| output.to_string())
    }

    #[test]
    fn masked_values_match_any_text_and_times_are_equal() {
        let same = [
            ("", ""),
            ("a\nb", "a\nb"),
            ("电话 *** 。", "电话 13800001111 。"),
            ("***", "any\nthing"),
            ("a *** b *** c", "a 1 b 2 b 3 c"),
            ("x ***", "x "),
            ("It is 2026-11-21 20:00 (Saturday).", "It is 2027-01-01 00:01 (Friday)."),
            ("咨询师: ***，你好", "咨询师:\n> ***，你好"),
            ("好\n咨询师:\n> 小林，你好\n> 坐", "好\n咨询师:\n> 小林，你好\n> 坐"),
            ("说\n***，你好", "说\n> ***，你好"),
            ("现在是 2026-11-22 20:00（星期日）。", "现在是 2027-01-01 00:01（星期五）。"),
        ];
        for (old, new) in same {
            assert_eq!(differ(old, new), None, "{old}");
        }
        let other = [
            ("a", "b"),
            ("a", "a\n"),
            ("a: ***\nb", "a:\n> ***\n> b"),
            ("电话 *** 。", "电邮 13800001111 。"),
            ("a *** b", "a 1"),
            ("ab***bc", "abc"),
            ("x 13800001111", "x ***"),
            ("2026-11-21", "2026-11-22"),
        ];
        for (old, new) in other {
            assert!(differ(old, new).is_some(), "{old}");
        }
    }

    #[test]
    fn with_another_mask_asterisks_are_plain_text() {
        let differ = |old: &str, new: &str| differences(&[user(old)], &[user(new)], "<***>").is_some();
        assert!(!differ("*** 电话 <***> ***", "*** 电话 5 ***"));
        assert!(differ("*** 电话 <***> ***", "一 电话 5 二"));
    }

    #[test]
    fn differences_are_shown_as_a_unified_diff_per_message() {
        let old = [
            ChatMessage { role: Role::System, content: "规则".into() },
            user("一\n二\n三\n四\n五\n六\n七\n八\n九"),
            user("电话 ***"),
        ];
        let new = [
            ChatMessage { role: Role::System, content: "规则".into() },
            user("一\n二\n三\n四\n伍\n五点五\n六\n七\n八\n九\n十"),
            ChatMessage { role: Role::Assistant, content: "电话 5".into() },
            user("more"),
        ];
        insta::assert_snapshot!(differences(&old, &new, MASK).unwrap(), @"
        message 2 (user):
          …
          三
          四
        - 五
        + 伍
        + 五点五
          六
          七
          八
          九
        + 十
        message 3 was recorded with the role user and now has the role assistant:
        message 4 (user) is new:
        + more
        ");
    }

    #[test]
    fn long_lines_are_cut_around_the_first_character_that_differs() {
        let (head, tail) = ("ab ".repeat(200), " yz".repeat(200));
        let shown = |old: &str, new: &str| {
            let output = differ(&format!("same\n{old}"), &format!("same\n{new}")).unwrap();
            assert!(output.lines().all(|line| line.chars().count() <= MAX_CHARS + 1), "{output}");
            output.lines().filter(|line| line.starts_with(['-', '+'])).map(str::to_owned).collect::<Vec<_>>()
        };
        let lines = shown(&format!("{head}17{tail}"), &format!("{head}4711{tail}"));
        let before = "ab ".repeat(CHARS_BEFORE / 3);
        assert!(lines[0].starts_with(&format!("- …{before}17 yz")) && lines[0].ends_with('…'), "{lines:#?}");
        assert!(lines[1].starts_with(&format!("+ …{before}4711 yz")) && lines[1].ends_with('…'), "{lines:#?}");
        // What is masked is no difference, and may be longer or shorter.
        let lines = shown(&format!("pin *** {head}17"), &format!("pin {} {head}28", "0".repeat(90)));
        assert!(
            lines[0].ends_with(&format!("- …{before}17")) && lines[1].ends_with(&format!("{before}28")),
            "{lines:#?}"
        );
        // A difference near the start needs no cut there.
        assert!(shown(&format!("17{tail}"), &format!("18{tail}"))[0].starts_with("- 17 yz"));
    }

    #[test]
    fn long_diffs_are_truncated() {
        let long: String = (0..2000).map(|number| format!("{number} {}\n", "x".repeat(300))).collect();
        let output = differ(&long, &long.replace('x', "y")).unwrap();
        assert!(output.lines().count() <= MAX_LINES + 1 && output.contains("more lines"), "{output}");
        assert!(output.lines().all(|line| line.chars().count() <= MAX_CHARS + 1));
    }
}
