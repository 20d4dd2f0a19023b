//! Replaces the expressions of a text or template by calls of our evaluation, so that the rules of docs/language.md "Expressions" hold
//! in them, too: `{{ n + 1 }}` becomes `{{ 7|evaluate_operation }}`.
//!
//! minijinja calculates the operators of a template itself and has no hook for them. Names alone and calls of macros stay as they are.
//! A long literal text gets a call that counts it, because a loop can capture it many times.

use std::ops::Range;

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use crate::expr::parse::parse_in_template;
use crate::expr::reach::free_names;
use crate::expr::tree::{ExprKind, ExprNode};
use crate::template::features::FUNCTIONS;
use crate::template::limits::{RejectedSyntax, bytes};
use crate::template::native_calls::{calls_if_needed, has_unbounded_operator, rejected};

/// The filter that evaluates an expression, by its number. Authors cannot write it.
pub(crate) const EVALUATE: &str = "evaluate_operation";

/// The filter that counts the length of a literal text and returns no text. Authors cannot write it.
pub(crate) const COUNT: &str = "count_literal";

/// The length from which a literal text is counted, in bytes. The number of steps limits what shorter ones take.
const MIN_COUNTED: usize = 256;

/// What the value of an expression is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueUse {
    Any,
    /// A loop iterates over it.
    Items,
    /// It is stored in a `namespace`.
    Stored,
}

/// An expression that is replaced.
#[derive(Debug)]
pub(crate) struct FoundExpression {
    pub root: ExprNode,
    /// The byte range in the template.
    pub range: Range<usize>,
    pub used_for: ValueUse,
    /// The names that a macro around it must pass on; empty outside of macros.
    enclosed: Vec<String>,
    /// The byte ranges in the template of its calls that only minijinja can make.
    pub native_calls: Vec<Range<usize>>,
}

/// The range of a replaced expression in the template, and of its replacement in the new text.
#[derive(Clone, Debug)]
pub(crate) struct Replacement {
    pub before: Range<usize>,
    pub after: Range<usize>,
}

type Piece<'s> = (Token<'s>, Range<usize>);

/// The expressions of a template to which our rules apply, in source order; none if it has a lexical error.
pub(crate) fn find_expressions(source: &str) -> Vec<FoundExpression> {
    find(source).map(|finder| finder.found).unwrap_or_default()
}

/// The expressions that cannot be evaluated by our rules, nor by those of minijinja in bounded memory.
pub(crate) fn rejected_expressions(source: &str) -> Vec<RejectedSyntax> {
    find(source).map(|finder| finder.rejected).unwrap_or_default()
}

fn find(source: &str) -> Option<Finder<'_>> {
    let mut finder = Finder { source, found: Vec::new(), rejected: Vec::new(), macro_depth: 0 };
    let mut inside: Option<Vec<Piece<'_>>> = None;
    for token in tokenize(source, false, SyntaxConfig::default()) {
        let (token, span) = token.ok()?;
        match token {
            Token::VariableStart | Token::BlockStart => inside = Some(Vec::new()),
            Token::VariableEnd => finder.expression(&inside.take().unwrap_or_default(), ValueUse::Any),
            Token::BlockEnd => finder.block(&inside.take().unwrap_or_default()),
            other => {
                if let Some(pieces) = &mut inside {
                    pieces.push((other, bytes(span)));
                }
            }
        }
    }
    Some(finder)
}

/// The template with the expressions replaced; the `n`th becomes number `first + n`. The lines stay the same.
pub(crate) fn replace(source: &str, found: &[FoundExpression], first: usize) -> (String, Vec<Replacement>) {
    let mut edits = count_calls(source);
    edits.extend(evaluation_calls(source, found, first, &(0..source.len()), None));
    apply(source, &(0..source.len()), edits)
}

/// The part of `source` with the edits, and their places in it.
fn apply(source: &str, part: &Range<usize>, mut edits: Vec<(Range<usize>, String)>) -> (String, Vec<Replacement>) {
    edits.sort_by_key(|(range, _)| range.start);
    let mut output = String::with_capacity(part.len());
    let mut replacements = Vec::with_capacity(edits.len());
    let mut end = part.start;
    for (before, text) in edits {
        output.push_str(source.get(end..before.start).unwrap_or_default());
        let start = output.len();
        output.push_str(&text);
        end = before.end;
        replacements.push(Replacement { before, after: start..output.len() });
    }
    output.push_str(source.get(end..part.end).unwrap_or_default());
    (output, replacements)
}

/// The calls that replace the outermost expressions in a part of the template. `within`: the number of the expression to which the part
/// belongs.
fn evaluation_calls(
    source: &str,
    found: &[FoundExpression],
    first: usize,
    part: &Range<usize>,
    within: Option<usize>,
) -> Vec<(Range<usize>, String)> {
    let inside = |inner: &Range<usize>, outer: &Range<usize>| outer.start <= inner.start && inner.end <= outer.end;
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    // An expression stands before those in its calls.
    for (number, expression) in found.iter().enumerate() {
        let is_in_part = inside(&expression.range, part) && within != Some(number);
        if !is_in_part || edits.last().is_some_and(|(last, _)| inside(&expression.range, last)) {
            continue;
        }
        let mut arguments = expression.enclosed.clone();
        for call in &expression.native_calls {
            let edits = evaluation_calls(source, found, first, call, Some(number));
            arguments.push(apply(source, call, edits).0);
        }
        let arguments = if arguments.is_empty() { String::new() } else { format!("({})", arguments.join(", ")) };
        let text = format!(" {}|{EVALUATE}{arguments} ", first + number);
        let lines = source.get(expression.range.clone()).unwrap_or_default().matches('\n').count();
        let missing = lines.saturating_sub(text.matches('\n').count());
        edits.push((expression.range.clone(), text + &"\n".repeat(missing)));
    }
    edits
}

/// The calls that count the long literals of a template, with their positions. Each stands after the first visible character of its
/// literal that is no `{`, so that tags which remove white space before or after them have the same effect.
fn count_calls(source: &str) -> Vec<(Range<usize>, String)> {
    let mut calls = Vec::new();
    for token in tokenize(source, false, SyntaxConfig::default()) {
        let Ok((token, span)) = token else { return Vec::new() };
        let Token::TemplateData(text) = token else { continue };
        if text.len() < MIN_COUNTED {
            continue;
        }
        let span = bytes(span);
        let literal = source.get(span.clone()).unwrap_or_default();
        // Directly after a `{`, the call would begin with that one.
        let visible = literal.char_indices().skip_while(|(_, c)| c.is_whitespace()).find(|(_, c)| *c != '{');
        let at = span.start + visible.map_or(0, |(at, c)| at + c.len_utf8());
        let call = format!("{{{{ {}|{COUNT} }}}}", text.len());
        let call = if is_raw(source, span.start) { format!("{{% endraw %}}{call}{{% raw %}}") } else { call };
        calls.push((at..at, call));
    }
    calls
}

/// Whether the literal at `start` is the content of a `{% raw %}` block.
fn is_raw(source: &str, start: usize) -> bool {
    let before = source.get(..start).and_then(|before| before.strip_suffix("%}"));
    let tag = before.and_then(|before| before.rsplit_once("{%")).map(|(_, tag)| tag);
    tag.is_some_and(|tag| tag.trim_matches(['-', '+']).trim() == "raw")
}

/// The range in the template for a range in the text that [`replace`] made of it.
pub(crate) fn original_range(replacements: &[Replacement], range: &Range<usize>) -> Range<usize> {
    let original = |at: usize, is_end: bool| {
        let before = replacements.iter().take_while(|replacement| replacement.after.start < at + usize::from(!is_end));
        match before.last() {
            None => at,
            Some(last) if at < last.after.end => {
                if is_end {
                    last.before.end
                } else {
                    last.before.start
                }
            }
            Some(last) => last.before.end + (at - last.after.end),
        }
    };
    let start = original(range.start, false);
    start..original(range.end, true).max(start)
}

struct Finder<'s> {
    source: &'s str,
    found: Vec<FoundExpression>,
    rejected: Vec<RejectedSyntax>,
    /// The number of macros and call blocks around the current position.
    macro_depth: usize,
}

impl<'s> Finder<'s> {
    fn block(&mut self, pieces: &[Piece<'s>]) {
        let Some(((Token::Ident(keyword), _), rest)) = pieces.split_first() else { return };
        match *keyword {
            "if" | "elif" => self.expression(rest, ValueUse::Any),
            "for" => self.for_loop(rest),
            "set" => match position(rest, |token| matches!(token, Token::Assign)) {
                Some(at) => {
                    let target = rest.get(..at).unwrap_or_default();
                    if target.iter().any(|(token, _)| matches!(token, Token::Dot)) {
                        return self.expression(rest.get(at + 1..).unwrap_or_default(), ValueUse::Stored);
                    }
                    for part in split(rest.get(at + 1..).unwrap_or_default()) {
                        self.expression(part, ValueUse::Any);
                    }
                }
                None => self.groups(rest),
            },
            "with" => {
                for part in split(rest) {
                    let value = position(part, |token| matches!(token, Token::Assign)).map_or(0, |at| at + 1);
                    self.expression(part.get(value..).unwrap_or_default(), ValueUse::Any);
                }
            }
            "macro" => {
                self.macro_depth += 1;
                self.groups(rest);
            }
            "call" => {
                self.groups(rest);
                self.macro_depth += 1;
            }
            "endmacro" | "endcall" => self.macro_depth = self.macro_depth.saturating_sub(1),
            "do" | "filter" => self.groups(rest),
            _ => {}
        }
    }

    fn for_loop(&mut self, pieces: &[Piece<'s>]) {
        let Some(at) = position(pieces, |token| matches!(token, Token::Ident("in"))) else { return };
        let mut rest = pieces.get(at + 1..).unwrap_or_default();
        if let [before @ .., last] = rest
            && matches!(last.0, Token::Ident("recursive"))
            && before.last().is_some_and(|(token, _)| !matches!(token, Token::Dot))
        {
            rest = before;
        }
        let test = position(rest, |token| matches!(token, Token::Ident("if")));
        self.expression(rest.get(..test.unwrap_or(rest.len())).unwrap_or_default(), ValueUse::Items);
        if let Some(test) = test {
            self.expression(rest.get(test + 1..).unwrap_or_default(), ValueUse::Any);
        }
    }

    /// Replaces a complete expression, or else the expressions in its brackets.
    fn expression(&mut self, pieces: &[Piece<'s>], used_for: ValueUse) {
        let (Some((_, first)), Some((_, last))) = (pieces.first(), pieces.last()) else { return };
        let range = first.start..last.end;
        match self.source.get(range.clone()).and_then(parse_in_template) {
            Some((root, calls)) if !calls.is_empty() && calls_if_needed(&root) => {
                if !self.branches(pieces) {
                    if has_unbounded_operator(&root) {
                        self.rejected.push(rejected(range));
                    }
                    self.groups(pieces);
                }
            }
            Some((root, calls))
                if has_rules(&root)
                    || used_for == ValueUse::Stored
                    || (used_for == ValueUse::Items && !is_call(&root)) =>
            {
                let enclosed = if self.macro_depth > 0 { names_in(&root) } else { Vec::new() };
                let native_calls: Vec<Range<usize>> =
                    calls.iter().map(|call| range.start + call.start..range.start + call.end).collect();
                self.found.push(FoundExpression {
                    root,
                    range,
                    used_for,
                    enclosed,
                    native_calls: native_calls.clone(),
                });
                for call in native_calls {
                    let from = pieces.partition_point(|(_, range)| range.start < call.start);
                    let to = pieces.partition_point(|(_, range)| range.end <= call.end);
                    self.groups(pieces.get(from..to).unwrap_or_default());
                }
            }
            _ => self.groups(pieces),
        }
    }

    /// Replaces the operands of `and`, `or`, `not` and `if`, which minijinja evaluates only if they are needed. Returns false if the
    /// expression has none of these operators outside brackets.
    fn branches(&mut self, pieces: &[Piece<'s>]) -> bool {
        let is_keyword = |(token, _): &Piece<'s>| matches!(token, Token::Ident("and" | "or" | "if" | "else"));
        let mut depth = 0_usize;
        let mut start = 0;
        for (at, piece) in pieces.iter().enumerate() {
            match nesting(&piece.0) {
                Some(true) => depth += 1,
                Some(false) => depth = depth.saturating_sub(1),
                None => {}
            }
            if depth == 0 && is_keyword(piece) {
                self.operand(pieces.get(start..at).unwrap_or_default());
                start = at + 1;
            }
        }
        if start > 0 {
            self.operand(pieces.get(start..).unwrap_or_default());
        }
        start > 0
    }

    fn operand(&mut self, pieces: &[Piece<'s>]) {
        match pieces {
            [(Token::Ident("not"), _), rest @ ..] => self.operand(rest),
            pieces => self.expression(pieces, ValueUse::Any),
        }
    }

    /// Replaces the expressions between brackets: arguments, items, defaults of macros.
    fn groups(&mut self, pieces: &[Piece<'s>]) {
        let mut depth = 0_usize;
        let mut start = 0;
        for (at, (token, _)) in pieces.iter().enumerate() {
            match nesting(token) {
                Some(true) => {
                    depth += 1;
                    if depth == 1 {
                        start = at + 1;
                    }
                }
                Some(false) => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        split(pieces.get(start..at).unwrap_or_default()).for_each(|part| self.element(part));
                    }
                }
                None => {}
            }
        }
    }

    fn element(&mut self, pieces: &[Piece<'s>]) {
        match pieces {
            [(Token::Ident(_), _), (Token::Assign, _), value @ ..] => self.expression(value, ValueUse::Any),
            _ if position(pieces, |token| matches!(token, Token::Colon)).is_some() => self.groups(pieces),
            _ => self.expression(pieces, ValueUse::Any),
        }
    }
}

/// Whether a token opens (`true`) or closes a bracket.
fn nesting(token: &Token<'_>) -> Option<bool> {
    match token {
        Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => Some(true),
        Token::ParenClose | Token::BracketClose | Token::BraceClose => Some(false),
        _ => None,
    }
}

/// The first token outside brackets that matches.
fn position(pieces: &[Piece<'_>], matches: impl Fn(&Token<'_>) -> bool) -> Option<usize> {
    let mut depth = 0_usize;
    pieces.iter().position(|(token, _)| {
        match nesting(token) {
            Some(true) => depth += 1,
            Some(false) => depth = depth.saturating_sub(1),
            None => {}
        }
        depth == 0 && matches(token)
    })
}

/// The parts between the commas outside brackets.
fn split<'p, 's>(pieces: &'p [Piece<'s>]) -> impl Iterator<Item = &'p [Piece<'s>]> {
    let mut depth = 0_usize;
    pieces.split(move |(token, _)| {
        match nesting(token) {
            Some(true) => depth += 1,
            Some(false) => depth = depth.saturating_sub(1),
            None => {}
        }
        depth == 0 && matches!(token, Token::Comma)
    })
}

/// Whether our rules concern the expression: it is more than a name or a call.
fn has_rules(root: &ExprNode) -> bool {
    match &root.kind {
        ExprKind::Name(_) | ExprKind::Constant(_) | ExprKind::Call(..) | ExprKind::NativeCall(_) => false,
        // The loop variable is never null.
        ExprKind::Attribute(of, _) => !matches!(&of.kind, ExprKind::Name(name) if name == "loop" || name == "self"),
        // A new list or object of values is counted.
        ExprKind::List(items) => !items.iter().all(is_constant),
        ExprKind::Map(pairs) => !pairs.iter().all(|(key, value)| is_constant(key) && is_constant(value)),
        _ => true,
    }
}

fn is_constant(node: &ExprNode) -> bool {
    match &node.kind {
        ExprKind::Constant(_) => true,
        ExprKind::List(items) => items.iter().all(is_constant),
        ExprKind::Map(pairs) => pairs.iter().all(|(key, value)| is_constant(key) && is_constant(value)),
        _ => false,
    }
}

fn is_call(root: &ExprNode) -> bool {
    matches!(root.kind, ExprKind::Call(..) | ExprKind::NativeCall(_))
}

/// The names and macros that an expression uses.
fn names_in(root: &ExprNode) -> Vec<String> {
    fn calls(node: &ExprNode, names: &mut Vec<String>) {
        if let ExprKind::Call(name, _) = &node.kind {
            names.push(name.clone());
        }
        node.each_part(&mut |part| calls(part, names));
    }
    let mut names: Vec<String> = free_names(root).into_iter().map(|used| used.name).collect();
    calls(root, &mut names);
    names.retain(|name| !FUNCTIONS.contains(&name.as_str()));
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(source: &str) -> String {
        let found = find_expressions(source);
        replace(source, &found, 0).0.replace("|evaluate_operation", "!")
    }

    #[test]
    fn a_long_literal_is_counted_after_its_first_visible_character() {
        let long = "x".repeat(300);
        for (start, counted) in [(" a", " a"), ("\n{\n", "\n{\n"), ("{", "{x"), ("{{'a'}}", "{{'a'}}x")] {
            let source = format!("{start}{long}");
            let (text, _) = replace(&source, &[], 0);
            assert!(text.starts_with(&format!("{counted}{{{{ ")), "{text}");
        }
    }

    #[test]
    fn expressions_are_replaced_and_names_are_not() {
        let table = [
            ("plain {{ x }} {{ 'a' }} {{ loop.index }}", "plain {{ x }} {{ 'a' }} {{ loop.index }}"),
            ("a {{ n + 1 }} b {{- -n -}}", "a {{  0!  }} b {{-  1!  -}}"),
            ("{% if(n>1) %}{% elif not n %}{% endif %}", "{% if 0!  %}{% elif  1!  %}{% endif %}"),
            ("{% for x in xs %}{% endfor %}", "{% for x in  0!  %}{% endfor %}"),
            (
                "{% for k, v in m | items if v > 1 recursive %}{{ loop(v.x) }}{% endfor %}",
                "{% for k, v in  0!  if  1!  recursive %}{{ loop( 2! ) }}{% endfor %}",
            ),
            (
                "{% set a, b = 1 + 1, x %}{% set y | upper %}t{% endset %}",
                "{% set a, b =  0! , x %}{% set y | upper %}t{% endset %}",
            ),
            ("{% with a = n + 1, b = [n, 2] %}{% endwith %}", "{% with a =  0! , b =  1!  %}{% endwith %}"),
            ("{% set ns.a = n %}{% set ns.b = [1, 'a'] %}", "{% set ns.a =  0!  %}{% set ns.b =  1!  %}"),
            (
                "{% macro m(a, b=n + 1) %}{{ a ~ b ~ other(a) }}{% endmacro %}{{ m(n * 2, b=n) }}",
                "{% macro m(a, b= 0!(n) ) %}{{  1!(a, b, other)  }}{% endmacro %}{{ m( 2! , b=n) }}",
            ),
            (
                "{% include 'a.md' %}{% raw %}{{ n + 1 }}{% endraw %}{# {{ n + 1 }} #}",
                "{% include 'a.md' %}{% raw %}{{ n + 1 }}{% endraw %}{# {{ n + 1 }} #}",
            ),
            ("{{ super() ~ (n + 1) }}{{ super() }}", "{{  0!(super())  }}{{ super() }}"),
            ("{{ m.a(n * 2, b(n + 1)) ~ self.c() }}", "{{  0!(m.a( 1! , b( 2! )), self.c())  }}"),
            ("{{ 'x' ~ loop(n) if n > 1 else not n }}", "{{  0!(loop(n))  if  1!  else not n }}"),
            ("{{ n +\n 1 }}\n{{ m }}", "{{  0! \n }}\n{{ m }}"),
            ("{{ {'a': n}['a'] }} {{ x[n:] }}", "{{  0!  }} {{  1!  }}"),
        ];
        for (source, expected) in table {
            assert_eq!(replaced(source), expected, "{source}");
        }
    }

    #[test]
    fn ranges_are_mapped_back() {
        let source = "您好 {{ n + 1 }} {{ x }} {{ m * 2 }}{{ y }}";
        let (after, replacements) = replace(source, &find_expressions(source), 0);
        for text in ["x", "y", "您好"] {
            let (at, expected) = (after.find(text).unwrap(), source.find(text).unwrap());
            let range = original_range(&replacements, &(at..at + text.len()));
            assert_eq!(range, expected..expected + text.len(), "{text}");
        }
        let at = after.find("1|").unwrap();
        assert_eq!(source.get(original_range(&replacements, &(at..at + 2))), Some("m * 2"));
    }
}
