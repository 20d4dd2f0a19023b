//! Variables and the values that a program assigns to them.

use bcc_lang::expr::parse::Expr;
use bcc_lang::template::text::Text;
use bcc_lang::value::exact::ExactValue;

pub struct Assignment {
    pub name: String,
    pub value: Assigned,
}

pub enum Assigned {
    /// A string that consists of one `{{ expression }}`: the value of the expression, with its type.
    Expression(Expr),
    /// Another string with placeholders.
    Text(Text),
    Literal(ExactValue),
}
