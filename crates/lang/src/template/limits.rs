//! What is looked at before minijinja's parser is: it recurses without a bound of its own on some shapes (`not not …`,
//! `a + a + …`, `{% elif %}` after `{% elif %}`), and a stack that overflows cannot be caught.

use crate::message::message::Message;
use crate::message::msg;
use std::ops::Range;

use minijinja::machinery::{Span, Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use crate::template::features::FeatureKind;

/// How many operators, names and brackets one `{{ … }}` or `{% … %}` may hold; constants are not counted.
pub const MAX_OPERATORS: usize = 200;

/// How many `{% elif %}` one text may hold.
pub const MAX_ELIFS: usize = 100;

/// What to do about an expression that is too large.
const ADVICE: &str = "split it into several steps with `{% set %}`";

/// Something that is refused before it is parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlSyntaxError {
    pub message: Message,
    /// Where, in bytes.
    pub range: Range<usize>,
    pub help: Option<Message>,
    /// The one text that was probably meant in the place of `range`.
    pub instead: Option<String>,
    /// For a filter, test or function that does not exist: which of them it is.
    pub unknown: Option<FeatureKind>,
}

/// Says whether minijinja's parser may be given `source`.
/// Errors: The first tag that is too deep, or the first `{% elif %}` too many. A source that is not lexically right passes: the
/// parser says what is wrong with it.
pub fn admit(source: &str, in_expression: bool) -> Result<(), YamlSyntaxError> {
    let mut operators = 0_usize;
    let mut elifs = 0_usize;
    let mut opened = false;
    for token in tokenize(source, in_expression, SyntaxConfig::default()) {
        let Ok((token, span)) = token else { return Ok(()) };
        match token {
            Token::VariableStart | Token::BlockStart => {
                operators = 0;
                opened = true;
                continue;
            }
            Token::Ident("elif") if opened => {
                elifs += 1;
                if elifs > MAX_ELIFS {
                    return Err(refused(msg!("more than {MAX_ELIFS} `elif` tags in one text"), span, None));
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
                    return Err(refused(message, span, Some(Message::word(ADVICE))));
                }
            }
        }
        opened = false;
    }
    Ok(())
}

/// The bytes that a span of minijinja covers.
pub fn bytes(span: Span) -> Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}

fn refused(message: Message, span: Span, help: Option<Message>) -> YamlSyntaxError {
    YamlSyntaxError { message, range: bytes(span), help, instead: None, unknown: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_that_would_overflow_the_parser_are_refused() {
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
            assert!(admit(&shape, false).is_err(), "{}", &shape[..30]);
        }
        assert!(admit(&"-".repeat(3_000), true).is_err());
    }

    #[test]
    fn long_lists_of_constants_pass() {
        let list = format!("{{% set x = [{}] %}}", "'一', 2, 3.5, ".repeat(2_000));
        assert_eq!(admit(&list, false), Ok(()));
        assert_eq!(admit(&"{{ x }}".repeat(5_000), false), Ok(()));
    }
}
