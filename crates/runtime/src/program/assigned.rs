//! Variables and the values that a program assigns to them.

use serde_json::Value;

use bcc_lang::expr::parse::Expr;
use bcc_lang::template::text::Text;

pub struct Assignment {
    pub name: String,
    pub value: Assigned,
}

pub enum Assigned {
    /// A string that consists of one `{{ expression }}`: the value of the expression, with its type.
    Expression(Expr),
    /// Another string with placeholders.
    Text(Text),
    Literal(Value),
}
