//! Whether a prompt is the one that was recorded, and where it is not.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::LazyLock;

use regex::Regex;

use crate::model::message::{ChatMessage, Role};

/// What stands in a recording in the place of a sensitive value, where its line does not say otherwise: it may have been
/// anything.
pub const MASK: &str = "***";

/// The time as the engine tells it to prompts (`{{ time }}`): a replay comes later than its recording.
static TIME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d \((?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\)").ok());

const MOST_LINES: usize = 40;

const MOST_CHARS: usize = 160;

const AROUND: usize = 2;

/// The most pairs of lines that are compared one by one; of longer parts, all that was and all that is now is shown.
const MOST_PAIRS: usize = 250_000;

/// What is different between the messages that were recorded and those that are sent now, as unified lines; `None` when
/// nothing is. What stands under `mark`, a masked value of the recording, is like any text, and one time of the engine is like any other.
pub fn differences(recorded: &[ChatMessage], now: &[ChatMessage], mark: &str) -> Option<Message> {
    let same = |(recorded, now): (&ChatMessage, &ChatMessage)| {
        recorded.role == now.role && alike(&recorded.content, &now.content, mark)
    };
    if recorded.len() == now.len() && recorded.iter().zip(now).all(same) {
        return None;
    }
    let mut told = Told::default();
    for (place, pair) in recorded.iter().zip(now).enumerate().filter(|(_, pair)| !same(*pair)) {
        let (then, now) = pair;
        let number = place + 1;
        match then.role == now.role {
            true => told.line(msg!("message {number} ({}):", name(now.role))),
            false => told.line(msg!(
                "message {number} was recorded with the role {} and now has the role {}:",
                name(then.role),
                name(now.role)
            )),
        }
        told.message(&then.content, &now.content, mark);
    }
    for (number, message) in recorded.iter().enumerate().skip(now.len()) {
        told.line(msg!("message {} ({}) is no longer present:", number + 1, name(message.role)));
        message.content.lines().for_each(|line| told.marked('-', line));
    }
    for (number, message) in now.iter().enumerate().skip(recorded.len()) {
        told.line(msg!("message {} ({}) is new:", number + 1, name(message.role)));
        message.content.lines().for_each(|line| told.marked('+', line));
    }
    Some(told.end())
}

const fn name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

fn alike(recorded: &str, now: &str, mark: &str) -> bool {
    if recorded == now {
        return true;
    }
    let timeless =
        |text: &str| TIME.as_ref().map_or_else(|| text.to_owned(), |time| time.replace_all(text, "time").into_owned());
    let (recorded, now) = (timeless(recorded), timeless(now));
    let Some((first, rest)) = recorded.split_once(mark) else { return recorded == now };
    let Some(mut left) = now.strip_prefix(first) else { return false };
    let mut pieces = rest.split(mark).peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return left.ends_with(piece);
        }
        let Some((_, after)) = left.split_once(piece) else { return false };
        left = after;
    }
    true
}

/// What is told, up to its most lines.
#[derive(Default)]
struct Told {
    lines: Vec<Message>,
    left_out: usize,
}

impl Told {
    fn line(&mut self, line: Message) {
        if self.lines.len() >= MOST_LINES {
            self.left_out += 1;
        } else {
            self.lines.push(line);
        }
    }

    fn marked(&mut self, mark: char, line: &str) {
        let mut characters = line.chars();
        let shown: String = characters.by_ref().take(MOST_CHARS.saturating_sub(2)).collect();
        let more = if characters.next().is_some() { "…" } else { "" };
        self.line(Message::text(format!("{mark} {shown}{more}")));
    }

    fn message(&mut self, then: &str, now: &str, mark: &str) {
        let (then, now): (Vec<&str>, Vec<&str>) = (then.lines().collect(), now.lines().collect());
        let steps = steps(&then, &now, mark);
        let changed: Vec<usize> =
            steps.iter().enumerate().filter(|(_, (mark, _))| *mark != ' ').map(|(place, _)| place).collect();
        let mut last = None;
        for (place, (mark, line)) in steps.iter().enumerate() {
            if changed.iter().any(|changed| changed.abs_diff(place) <= AROUND) {
                if last.is_some_and(|last| last + 1 != place) || (last.is_none() && place > 0) {
                    self.line(Message::text("  …"));
                }
                self.marked(*mark, line);
                last = Some(place);
            }
        }
    }

    fn end(mut self) -> Message {
        if self.left_out > 0 {
            self.lines.push(msg!("… {} more lines", self.left_out));
        }
        Message::list(Joint::Line, self.lines)
    }
}

/// The lines of both texts in order: those that both have, those that were (`-`) and those that are now (`+`).
fn steps<'t>(then: &[&'t str], now: &[&'t str], mark: &str) -> Vec<(char, &'t str)> {
    let before = then.iter().zip(now).take_while(|(then, now)| alike(then, now, mark)).count();
    let (head, then) = then.split_at(before);
    let (same, now) = now.split_at(before);
    debug_assert_eq!(head.len(), same.len());
    let behind = then.iter().rev().zip(now.iter().rev()).take_while(|(then, now)| alike(then, now, mark)).count();
    let (then, tail) = then.split_at(then.len() - behind);
    let (now, _) = now.split_at(now.len() - behind);
    let mut steps: Vec<(char, &str)> = head.iter().map(|line| (' ', *line)).collect();
    steps.extend(middle(then, now, mark));
    steps.extend(tail.iter().map(|line| (' ', *line)));
    steps
}

/// The same by the longest common sequence of lines.
fn middle<'t>(then: &[&'t str], now: &[&'t str], mark: &str) -> Vec<(char, &'t str)> {
    let replaced = || then.iter().map(|line| ('-', *line)).chain(now.iter().map(|line| ('+', *line))).collect();
    if then.len().saturating_mul(now.len()) > MOST_PAIRS {
        return replaced();
    }
    // How many lines both have in common from here on, by place in `then` and `now`.
    let width = now.len() + 1;
    let mut common = vec![0_usize; (then.len() + 1) * width];
    let get = |common: &[usize], i: usize, j: usize| common.get(i * width + j).copied().unwrap_or(0);
    for (i, was) in then.iter().enumerate().rev() {
        for (j, is) in now.iter().enumerate().rev() {
            let length = match alike(was, is, mark) {
                true => get(&common, i + 1, j + 1) + 1,
                false => get(&common, i + 1, j).max(get(&common, i, j + 1)),
            };
            if let Some(place) = common.get_mut(i * width + j) {
                *place = length;
            }
        }
    }
    let (mut i, mut j, mut steps) = (0, 0, Vec::new());
    loop {
        match (then.get(i), now.get(j)) {
            (Some(was), Some(is)) if alike(was, is, mark) => {
                steps.push((' ', *was));
                (i, j) = (i + 1, j + 1);
            }
            (Some(was), is) if is.is_none() || get(&common, i + 1, j) >= get(&common, i, j + 1) => {
                steps.push(('-', *was));
                i += 1;
            }
            (_, Some(is)) => {
                steps.push(('+', *is));
                j += 1;
            }
            _ => return steps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(content: &str) -> ChatMessage {
        ChatMessage { role: Role::User, content: content.to_owned() }
    }

    fn differ(then: &str, now: &str) -> Option<String> {
        differences(&[user(then)], &[user(now)], MASK).map(|told| told.to_string())
    }

    #[test]
    fn a_masked_value_is_like_any_text_and_a_time_like_any_other() {
        let same = [
            ("", ""),
            ("a\nb", "a\nb"),
            ("电话 *** 。", "电话 13800001111 。"),
            ("***", "any\nthing"),
            ("a *** b *** c", "a 1 b 2 b 3 c"),
            ("x ***", "x "),
            ("It is 2026-11-21 20:00 (Saturday).", "It is 2027-01-01 00:01 (Friday)."),
        ];
        for (then, now) in same {
            assert_eq!(differ(then, now), None, "{then}");
        }
        let other = [
            ("a", "b"),
            ("a", "a\n"),
            ("电话 *** 。", "电邮 13800001111 。"),
            ("a *** b", "a 1"),
            ("ab***bc", "abc"),
            ("x 13800001111", "x ***"),
            ("2026-11-21", "2026-11-22"),
        ];
        for (then, now) in other {
            assert!(differ(then, now).is_some(), "{then}");
        }
    }

    #[test]
    fn under_another_mark_three_asterisks_are_nothing_but_themselves() {
        let differ = |then: &str, now: &str| differences(&[user(then)], &[user(now)], "<***>").is_some();
        assert!(!differ("*** 电话 <***> ***", "*** 电话 5 ***"));
        assert!(differ("*** 电话 <***> ***", "一 电话 5 二"));
    }

    #[test]
    fn what_differs_is_shown_as_unified_lines_by_message() {
        let then = [
            ChatMessage { role: Role::System, content: "规则".into() },
            user("一\n二\n三\n四\n五\n六\n七\n八\n九"),
            user("电话 ***"),
        ];
        let now = [
            ChatMessage { role: Role::System, content: "规则".into() },
            user("一\n二\n三\n四\n伍\n五点五\n六\n七\n八\n九\n十"),
            ChatMessage { role: Role::Assistant, content: "电话 5".into() },
            user("more"),
        ];
        insta::assert_snapshot!(differences(&then, &now, MASK).unwrap(), @"
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
    fn long_prompts_are_cut() {
        let long: String = (0..2000).map(|number| format!("{number} {}\n", "x".repeat(300))).collect();
        let told = differ(&long, &long.replace('x', "y")).unwrap();
        assert!(told.lines().count() <= MOST_LINES + 1 && told.contains("more lines"), "{told}");
        assert!(told.lines().all(|line| line.chars().count() <= MOST_CHARS + 1));
    }
}
