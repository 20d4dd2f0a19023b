//! Finds common mistakes in expressions that do not parse: syntax of other languages, full-width punctuation, Chinese words for
//! operators. All mistakes are found in one pass, so that one repair can correct them together.

use crate::message::message::Message;
use crate::message::msg;
use std::ops::Range;

use crate::expr::signs::{FULL_WIDTH, INFIX, OPERATORS, WORDS};
use crate::template::unknown::SourceRepair;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprMistake {
    pub message: Message,
    pub range: Range<usize>,
    pub help: Message,
    /// The edits that correct it; `None` if there is no replacement.
    edits: Option<Vec<(Range<usize>, String)>>,
    /// Whether the edits are the only possible correction.
    sure: bool,
}

/// The mistakes in `source` outside quoted texts, in source order. Only for a source that does not parse.
pub fn mistakes(source: &str) -> Vec<ExprMistake> {
    let mut scanner = Scanner { source, brackets: 0, dollars: 0, found: Vec::new() };
    let mut at = 0;
    while let Some(character) = scanner.rest(at).chars().next() {
        at = scanner.step(at, character).max(at + character.len_utf8());
    }
    scanner.found
}

/// The repair that corrects all of `mistakes`, if each of them has edits.
pub fn repair(source: &str, mistakes: &[ExprMistake]) -> Option<SourceRepair> {
    let edits: Option<Vec<_>> = mistakes.iter().map(|mistake| mistake.edits.clone()).collect();
    let edits: Vec<_> = edits?.into_iter().flatten().collect();
    let repair = SourceRepair { title: Message::default(), edits, sure: false };
    let after = repair.apply(source)?;
    let sure = mistakes.iter().all(|mistake| mistake.sure) && !has_lone_value(&after);
    Some(SourceRepair { title: msg!("write `{}`", after.trim()), sure, ..repair })
}

/// Whether an operand of a logical operator is only a number or a text, as in `age == 5 or 6`: the author probably meant a comparison.
fn has_lone_value(expression: &str) -> bool {
    let mut scanner = Scanner { source: expression, brackets: 0, dollars: 0, found: Vec::new() };
    let (mut at, mut start) = (0, 0);
    let mut parts = Vec::new();
    while let Some(character) = scanner.rest(at).chars().next() {
        let end = scanner.step(at, character).max(at + character.len_utf8());
        if matches!(expression.get(at..end), Some("and" | "or" | "not")) {
            parts.push(expression.get(start..at));
            start = end;
        }
        at = end;
    }
    let is_single = parts.is_empty();
    parts.push(expression.get(start..));
    let is_lone = |part: &str| {
        let part = part.trim_matches(|c: char| c.is_whitespace() || matches!(c, '(' | ')'));
        let quoted = part.starts_with(['"', '\'']);
        let inner = part.trim_matches(['"', '\'']);
        part.parse::<f64>().is_ok() || (quoted && inner.len() + 2 == part.len() && !inner.contains(['"', '\'']))
    };
    !is_single && parts.into_iter().flatten().any(is_lone)
}

struct Scanner<'s> {
    source: &'s str,
    brackets: usize,
    /// The number of open `${`.
    dollars: usize,
    found: Vec<ExprMistake>,
}

impl<'s> Scanner<'s> {
    fn rest(&self, at: usize) -> &'s str {
        self.source.get(at..).unwrap_or_default()
    }

    fn end_of(&self, at: usize, is_part: impl Fn(char) -> bool) -> usize {
        self.rest(at).find(|c: char| !is_part(c)).map_or(self.source.len(), |length| at + length)
    }

    fn report(
        &mut self,
        range: Range<usize>,
        message: impl Into<Message>,
        help: Message,
        edits: Option<Vec<(Range<usize>, String)>>,
    ) -> usize {
        let end = range.end;
        self.found.push(ExprMistake { message: message.into(), range, help, edits, sure: true });
        end
    }

    /// Sets `sure` of the last mistake. `!a == b` negates `a`, but `not a == b` negates the comparison, so such a repair needs a review.
    fn set_last_sure(&mut self, sure: bool) {
        if let Some(mistake) = self.found.last_mut() {
            mistake.sure = sure;
        }
    }

    /// Checks the token that starts at `at` and returns the position after it.
    fn step(&mut self, at: usize, character: char) -> usize {
        match character {
            '"' | '\'' => self.end_of_text(at, character),
            '“' | '”' | '‘' | '’' | '＂' | '＇' => self.wide_text(at, character),
            _ if character.is_alphabetic() || character == '_' => self.word(at),
            _ if character.is_ascii_digit() => self.end_of(at, |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_')),
            '０'..='９' => self.wide_number(at),
            '{' | '}' | '$' | '%' => self.brace(at),
            _ => match FULL_WIDTH.iter().find(|(wide, _)| *wide == character) {
                Some((_, meant)) => self.wide(at, character, meant),
                None => self.operator(at, character),
            },
        }
    }

    /// The end of the quoted text that starts at `at`.
    fn end_of_text(&self, at: usize, quote: char) -> usize {
        let mut escaped = false;
        for (offset, character) in self.rest(at).char_indices().skip(1) {
            if !escaped && character == quote {
                return at + offset + character.len_utf8();
            }
            escaped = !escaped && character == '\\';
        }
        self.source.len()
    }

    /// A text in full-width quotes.
    fn wide_text(&mut self, at: usize, open: char) -> usize {
        let closing: &[char] = match open {
            '“' | '”' => &['”', '“'],
            '‘' | '’' => &['’', '‘'],
            '＂' => &['＂'],
            _ => &['＇'],
        };
        let inside = at + open.len_utf8();
        let close = self.rest(inside).char_indices().find(|(_, c)| closing.contains(c));
        let (end, edits) = match close {
            None => (inside, None),
            Some((length, close)) => {
                let text = self.rest(inside).get(..length).unwrap_or_default();
                // Single quotes need no escaping inside a double-quoted YAML text.
                let quote = if !text.contains(['\'', '\\']) {
                    Some("'")
                } else {
                    (!text.contains(['"', '\\'])).then_some("\"")
                };
                let end = inside + length + close.len_utf8();
                let edits =
                    quote.map(|quote| vec![(at..inside, quote.to_owned()), (inside + length..end, quote.to_owned())]);
                (end, edits)
            }
        };
        let message = msg!("`{open}` is a full-width quote, which means nothing in an expression");
        self.report(at..inside, message, msg!("write ' or \" (half-width)"), edits);
        end
    }

    fn word(&mut self, at: usize) -> usize {
        let end = self.end_of(at, |c| c.is_alphanumeric() || c == '_');
        let word = self.source.get(at..end).unwrap_or_default();
        let lower = word.to_ascii_lowercase();
        if matches!(lower.as_str(), "and" | "or" | "not") && lower != word {
            let edits = vec![(at..end, lower.clone())];
            return self.report(
                at..end,
                msg!("`{word}` is not an operator"),
                msg!("write `{lower}` in lower case"),
                Some(edits),
            );
        }
        if let Some((_, meant)) = WORDS.iter().find(|(other, _)| *other == word) {
            let edits = vec![(at..end, (*meant).to_owned())];
            return self.report(at..end, msg!("`{word}` is not an operator"), msg!("write `{meant}`"), Some(edits));
        }
        if word == "is" {
            return self.is(at, end);
        }
        let before = self.source.get(..at).unwrap_or_default().trim_end();
        if matches!(lower.as_str(), "if" | "when" | "如果" | "当") && before.is_empty() {
            let edits = vec![(at..self.end_of(end, char::is_whitespace), String::new())];
            let message = msg!("an expression is written without `{word}`");
            return self.report(at..end, message, msg!("remove it"), Some(edits));
        }
        if let Some((_, help)) = INFIX.iter().find(|(other, _)| *other == lower)
            && follows_value(before)
        {
            return self.report(at..end, msg!("`{word}` is not an operator"), Message::word(help), None);
        }
        end
    }

    /// Full-width digits.
    fn wide_number(&mut self, at: usize) -> usize {
        let end = self.end_of(at, |c| matches!(c, '０'..='９' | '．'));
        let half: String = self.source.get(at..end).unwrap_or_default().chars().map(half_digit).collect();
        let message = "these digits are full-width, which means nothing in an expression";
        self.report(at..end, message, msg!("write `{half}` (half-width)"), Some(vec![(at..end, half)]))
    }

    /// `x is 'a'`: only a test may follow `is`.
    fn is(&mut self, at: usize, end: usize) -> usize {
        let mut next = self.end_of(end, char::is_whitespace);
        let negated = self.rest(next).strip_prefix("not").is_some_and(|rest| rest.starts_with(char::is_whitespace));
        if negated {
            next = self.end_of(next + 3, char::is_whitespace);
        }
        if !self.rest(next).starts_with(|c: char| c.is_ascii_digit() || matches!(c, '"' | '\'' | '“' | '‘')) {
            return end;
        }
        let operator = if negated { "!=" } else { "==" };
        let until = self.source.get(..next).map_or(next, |before| before.trim_end().len());
        let operator_text = if negated { "is not" } else { "is" };
        let message =
            msg!("`{said}` tests the kind of a value, as in `x is none`; it does not compare", said = operator_text);
        self.report(at..until, message, msg!("write `{operator}`"), Some(vec![(at..until, operator.to_owned())]))
    }

    /// `{{ x }}`, `${x}`, `{% if x %}`: an expression has no delimiters.
    fn brace(&mut self, at: usize) -> usize {
        let rest = self.rest(at);
        // The white space inside the delimiters is removed too.
        let before = self.source.get(..at).map_or(at, |before| before.trim_end().len());
        let behind = at..self.end_of(at + 2, char::is_whitespace);
        let remove = |range: Range<usize>| Some(vec![(range, String::new())]);
        if rest.starts_with("{{") {
            let edits = remove(behind);
            return self.report(
                at..at + 2,
                "an expression is written without `{{ }}`",
                msg!("remove the braces"),
                edits,
            );
        }
        if rest.starts_with("{%") {
            let inner = self.end_of(at + 2, |c| c.is_whitespace() || c == '-');
            let word = if self.rest(inner).starts_with("if ") { inner + 3 } else { inner };
            let edits = remove(at..self.end_of(word, char::is_whitespace));
            return self.report(at..at + 2, "an expression is written without `{% %}`", msg!("remove them"), edits);
        }
        if rest.starts_with("${") {
            self.dollars += 1;
            let edits = remove(behind);
            return self.report(at..at + 2, "an expression is written without `${ }`", msg!("remove them"), edits);
        }
        if rest.strip_prefix('$').is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '_')) {
            let edits = remove(at..at + 1);
            return self.report(at..at + 1, "a name is written without `$`", msg!("remove it"), edits);
        }
        let closes = |found: &ExprMistake, open: &str| found.message.to_string().contains(open);
        let pair = if rest.starts_with("}}") { Some("{{") } else { rest.starts_with("%}").then_some("{%") };
        if let Some(open) = pair
            && let Some(mistake) = self.found.iter_mut().rev().find(|found| closes(found, open))
        {
            mistake.edits.iter_mut().for_each(|edits| edits.push((before..at + 2, String::new())));
            return at + 2;
        }
        if rest.starts_with('}') && self.dollars > 0 {
            self.dollars -= 1;
            if let Some(mistake) = self.found.iter_mut().rev().find(|found| closes(found, "${")) {
                mistake.edits.iter_mut().for_each(|edits| edits.push((before..at + 1, String::new())));
            }
        }
        at + 1
    }

    /// A full-width punctuation character, or several that form one operator (`＝＝`, `！＝`).
    fn wide(&mut self, at: usize, first: char, meant: &str) -> usize {
        let message = msg!("`{first}` is full-width punctuation, which means nothing in an expression");
        let name = if meant == " " { msg!("a space") } else { Message::text(meant) };
        let help = msg!("write {name} (half-width)");
        let half = |c: char| {
            FULL_WIDTH.iter().find(|(wide, _)| *wide == c).map_or(String::from(c), |(_, meant)| (*meant).to_owned())
        };
        if !matches!(meant, "=" | "!" | "<" | ">" | "&" | "|") {
            match meant {
                "(" => self.brackets += 1,
                ")" => self.brackets = self.brackets.saturating_sub(1),
                _ => {}
            }
            let end = at + first.len_utf8();
            let edits = (meant != "&").then(|| vec![(at..end, meant.to_owned())]);
            self.report(at..end, message, help, edits);
            return end;
        }
        let end = self.end_of(at, |c| matches!(half(c).as_str(), "=" | "!" | "<" | ">" | "&" | "|"));
        let operator: String = self.source.get(at..end).unwrap_or_default().chars().map(half).collect();
        let known = OPERATORS.iter().find(|(other, _)| *other == operator);
        let replacement = known.map_or(operator.as_str(), |(_, replacement)| replacement);
        let replacement = match replacement {
            "=" if self.brackets == 0 => "==",
            "!" => "not ",
            other => other,
        };
        self.report(at..at + first.len_utf8(), message, help, Some(vec![(at..end, replacement.to_owned())]));
        self.set_last_sure(operator != "!");
        end
    }

    fn operator(&mut self, at: usize, character: char) -> usize {
        let rest = self.rest(at);
        if rest.starts_with("=~") || rest.starts_with("~=") {
            let message = msg!("`{}` is not an operator here", rest.get(..2).unwrap_or_default());
            return self.report(at..at + 2, message, msg!("write `x is regex('…')`"), None);
        }
        if rest.trim_end() == ";" {
            let edits = vec![(at..self.source.len(), String::new())];
            let message = "an expression does not end with `;`";
            return self.report(at..at + 1, message, msg!("remove it"), Some(edits));
        }
        if let Some((other, replacement)) = OPERATORS.iter().find(|(other, _)| rest.starts_with(other)) {
            let end = at + other.len();
            let adjoins = |adjacent: Option<char>| adjacent.is_some_and(|c| !c.is_whitespace());
            let word = replacement.starts_with(char::is_alphabetic);
            let left = word && adjoins(self.source.get(..at).and_then(|before| before.chars().next_back()));
            let right = word && adjoins(self.rest(end).chars().next());
            let text = format!("{}{replacement}{}", if left { " " } else { "" }, if right { " " } else { "" });
            return self.report(
                at..end,
                msg!("`{other}` is not an operator here"),
                msg!("write `{today}`", today = replacement),
                Some(vec![(at..end, text)]),
            );
        }
        if ["==", "!=", "<=", ">="].iter().any(|known| rest.starts_with(known)) {
            return at + 2;
        }
        match character {
            '(' => self.brackets += 1,
            ')' => self.brackets = self.brackets.saturating_sub(1),
            '!' => {
                let until = self.end_of(at + 1, char::is_whitespace);
                let edits = vec![(at..until, "not ".to_owned())];
                let end = self.report(at..at + 1, "`!` is not an operator here", msg!("write `not`"), Some(edits));
                self.set_last_sure(false);
                return end;
            }
            '?' => {
                return self.report(
                    at..at + 1,
                    "`?` is not an operator here",
                    msg!("write `x if condition else y`"),
                    None,
                );
            }
            '=' if self.brackets == 0 => {
                let edits = vec![(at..at + 1, "==".to_owned())];
                return self.report(
                    at..at + 1,
                    "`=` is an assignment, which an expression cannot contain",
                    msg!("did you mean `==`?"),
                    Some(edits),
                );
            }
            _ => {}
        }
        at + character.len_utf8()
    }
}

fn half_digit(c: char) -> char {
    u32::from(c).checked_sub(0xfee0).and_then(char::from_u32).unwrap_or(c)
}

/// Whether `before` ends with a value, so that an operator may follow.
fn follows_value(before: &str) -> bool {
    let word = before.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
    let operator = ["is", "not", "and", "or", "in", "if", "else"].contains(&word);
    !operator && before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '\'' | '"' | ')' | ']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_found_and_repaired_outside_quoted_texts() {
        let table = [
            ("年龄 = 18", "=", "did you mean `==`?", "年龄 == 18"),
            ("a && b", "&&", "write `and`", "a and b"),
            ("a||b", "||", "write `or`", "a or b"),
            ("!a && !(b)", "!", "write `not`", "not a and not (b)"),
            ("a AND b", "AND", "write `and` in lower case", "a and b"),
            ("Not a OR b", "Not", "write `not` in lower case", "not a or b"),
            ("a ? b : c", "?", "write `x if condition else y`", ""),
            ("{{ a }}", "{{", "remove the braces", "a"),
            ("{{ a }} == {{b}}", "{{", "remove the braces", "a == b"),
            ("{% if a > 1 %}", "{%", "remove them", "a > 1"),
            ("name == “小林，好”", "“", "write ' or \" (half-width)", "name == '小林，好'"),
            ("name ＝ ‘小林’", "＝", "write = (half-width)", "name == '小林'"),
            ("年龄 ＞＝ 18", "＞", "write > (half-width)", "年龄 >= 18"),
            ("年龄 ≥ 18 且 年龄 小于 65", "≥", "write >= (half-width)", "年龄 >= 18 and 年龄 < 65"),
            ("（a ＋ b）　＞ 1", "（", "write ( (half-width)", "(a + b) > 1"),
            ("${a} > 1", "${", "remove them", "a > 1"),
            ("a === b", "===", "write `==`", "a == b"),
            ("a <> b", "<>", "write `!=`", "a != b"),
            ("mood is '好'", "is", "write `==`", "mood == '好'"),
            ("mood is not '好'", "is not", "write `!=`", "mood != '好'"),
            ("if age > １８;", "if", "remove it", "age > 18"),
            ("$age > 1", "$", "remove it", "age > 1"),
            ("name =~ 'a'", "=~", "write `x is regex('…')`", ""),
            ("name contains 'a'", "contains", "write it the other way round, as in `'…' in x`", ""),
            ("age exists", "exists", "write `x is not none`", ""),
        ];
        for (source, at, help, after) in table {
            let found = mistakes(source);
            assert_eq!((&source[found[0].range.clone()], found[0].help.to_string().as_str()), (at, help), "{source}");
            let repaired = repair(source, &found).map(|repair| repair.apply(source).unwrap()).unwrap_or_default();
            assert_eq!(repaired, after, "{source}");
        }
    }

    #[test]
    fn valid_syntax_is_not_a_mistake() {
        let sound = [
            "'a = b && “c”' b",
            "'it\\'s = ' b",
            "x | default(value=1) y",
            "a == b != c >= d <= e",
            "x is none",
            "{'a': {'b': 1}}",
            "5 % 2",
            "",
        ];
        for source in sound {
            assert_eq!(mistakes(source), [], "{source}");
        }
    }
}
