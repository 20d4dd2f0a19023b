//! Checks a source before the parser of minijinja runs: the parser recurses without a limit on some inputs (`not not …`,
//! `a + a + …`, `{% elif %}` after `{% elif %}`), and a stack overflow cannot be caught.

use crate::message::message::Message;
use crate::message::msg;
use std::ops::Range;

use minijinja::machinery::{Span, Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use crate::template::features::FeatureKind;

/// The maximum number of operators, names and brackets in one `{{ … }}` or `{% … %}`; constants are not counted.
pub(crate) const MAX_OPERATORS: usize = 200;

/// The maximum number of `{% elif %}` in one text.
pub(crate) const MAX_ELIFS: usize = 100;

/// The help for an expression that is too large.
const ADVICE: &str = "split it into several steps with `{% set %}`";

/// Syntax that is rejected: it exceeds a limit, or texts and templates may not use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedSyntax {
    pub message: Message,
    /// The byte range in the source.
    pub range: Range<usize>,
    pub help: Option<Message>,
    /// The suggested replacement for `range`, if there is only one.
    pub instead: Option<String>,
    /// Whether an unknown feature is a filter, a test or a function; `None` for other errors.
    pub unknown: Option<FeatureKind>,
}

/// Checks that the parser of minijinja can parse `source` without a stack overflow.
/// Returns its first lexical error, if there is one: the parser overlooks one after a complete expression, as in `a && b`.
/// Errors: The first expression that is too large, or the first `{% elif %}` over the limit.
pub(crate) fn check_limits(source: &str, in_expression: bool) -> Result<Option<minijinja::Error>, RejectedSyntax> {
    let mut operators = 0_usize;
    let mut elifs = 0_usize;
    let mut opened = false;
    for token in tokenize(source, in_expression, SyntaxConfig::default()) {
        let (token, span) = match token {
            Ok(token) => token,
            Err(error) => return Ok(Some(error)),
        };
        match token {
            Token::VariableStart | Token::BlockStart => {
                operators = 0;
                opened = true;
                continue;
            }
            Token::Ident("elif") if opened => {
                elifs += 1;
                if elifs > MAX_ELIFS {
                    return Err(rejected(msg!("more than {MAX_ELIFS} `elif` tags in one text"), span, None));
                }
            }
            Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_)
            | Token::Comma
            | Token::Colon
            | Token::TemplateData(_)
            | Token::VariableEnd
            | Token::BlockEnd => {}
            _ => {
                operators += 1;
                if operators > MAX_OPERATORS {
                    let message = msg!("more than {MAX_OPERATORS} operators, names and brackets in one expression");
                    return Err(rejected(message, span, Some(Message::word(ADVICE))));
                }
            }
        }
        opened = false;
    }
    Ok(None)
}

/// The byte range of a span of minijinja.
pub fn bytes(span: Span) -> Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}

fn rejected(message: Message, span: Span, help: Option<Message>) -> RejectedSyntax {
    RejectedSyntax { message, range: bytes(span), help, instead: None, unknown: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_would_overflow_the_parser_are_rejected() {
        let shapes = [
            format!("{{{{ {}x }}}}", "-".repeat(100_000)),
            format!("{{{{ {}x }}}}", "not ".repeat(100_000)),
            format!("{{{{ x{} }}}}", " + x".repeat(100_000)),
            format!("{{{{ x{} }}}}", "|upper".repeat(100_000)),
            format!("{{{{ x{} }}}}", ".x".repeat(100_000)),
            format!("{{{{ {}1{} }}}}", "[".repeat(100_000), "]".repeat(100_000)),
            format!("{{% if x %}}{}{{% endif %}}", "{% elif x %}".repeat(100_000)),
        ];
        for shape in shapes {
            assert!(check_limits(&shape, false).is_err(), "{}", &shape[..30]);
        }
        assert!(check_limits(&"-".repeat(3_000), true).is_err());
    }

    #[test]
    fn long_lists_of_constants_pass() {
        let list = format!("{{% set x = [{}] %}}", "'一', 2, 3.5, ".repeat(2_000));
        assert!(matches!(check_limits(&list, false), Ok(None)));
        assert!(matches!(check_limits(&"{{ x }}".repeat(5_000), false), Ok(None)));
    }
}
