//! Which types the values of a column have, and the type of the column that follows.

use bcc_lang::value::declared::DeclaredType;
use serde_json::Value;

use crate::data_set::table::ColumnType;

/// The types of the values that were seen or declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObservedTypes {
    boolean: bool,
    integer: bool,
    /// Also an integer of more than 64 bits.
    number: bool,
    text: bool,
    date: bool,
    time: bool,
    object: bool,
    pub(crate) list: bool,
}

impl ObservedTypes {
    pub(crate) fn declare(&mut self, declared: DeclaredType) {
        match declared {
            DeclaredType::String => self.text = true,
            DeclaredType::Number => self.number = true,
            DeclaredType::Integer => self.integer = true,
            DeclaredType::Boolean => self.boolean = true,
            DeclaredType::List => self.list = true,
            DeclaredType::Object => self.object = true,
            // A date may have a time: its values tell.
            DeclaredType::Date => {}
        }
    }

    /// `is_date`: the value was declared to be a date.
    pub(crate) fn observe(&mut self, value: &Value, is_date: bool) {
        match value {
            Value::Null => {}
            Value::Bool(_) => self.boolean = true,
            Value::Number(number) if number.is_i64() => self.integer = true,
            Value::Number(_) => self.number = true,
            Value::String(text) if is_date && text.parse::<jiff::civil::Date>().is_ok() && is_day(text) => {
                self.date = true;
            }
            Value::String(text) if is_date && text.parse::<jiff::Timestamp>().is_ok() => self.time = true,
            Value::String(_) => self.text = true,
            Value::Array(_) => self.list = true,
            Value::Object(_) => self.object = true,
        }
    }

    /// Whether all values are lists, so that they get a table of their own.
    pub(crate) fn is_list(self) -> bool {
        self == Self { list: true, ..Self::default() }
    }

    /// The type that has a place for all of these values.
    pub(crate) fn column(self, declared_date: bool) -> ColumnType {
        let Self { boolean, integer, number, text, date, time, object, list } = self;
        let nested = object || list;
        match (boolean, integer || number, text, date || time) {
            _ if nested => ColumnType::Json,
            (true, false, false, false) => ColumnType::Boolean,
            (false, true, false, false) if number => ColumnType::Number,
            (false, true, false, false) => ColumnType::Integer,
            (false, false, false, true) if date != time => {
                if date {
                    ColumnType::Date
                } else {
                    ColumnType::Time
                }
            }
            (false, false, false, false) if declared_date => ColumnType::Date,
            _ => ColumnType::Text,
        }
    }
}

/// Whether a text that is a date has no time.
fn is_day(text: &str) -> bool {
    !text.contains([':', 'T', 't', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_column_has_a_place_for_all_values() {
        let table = [
            (vec![json!(true), Value::Null], false, ColumnType::Boolean),
            (vec![json!(1), json!(2)], false, ColumnType::Integer),
            (vec![json!(1), json!(2.5)], false, ColumnType::Number),
            (vec![json!(18_446_744_073_709_551_615_u64)], false, ColumnType::Number),
            (vec![json!(1), json!("2")], false, ColumnType::Text),
            (vec![json!(true), json!(2)], false, ColumnType::Text),
            (vec![json!("2026-11-21")], true, ColumnType::Date),
            (vec![json!("2026-11-21")], false, ColumnType::Text),
            (vec![json!("2026-11-21T20:00:00Z")], true, ColumnType::Time),
            (vec![json!("2026-11-21"), json!("2026-11-21T20:00:00Z")], true, ColumnType::Text),
            (vec![json!({}), json!(1)], false, ColumnType::Json),
            (vec![json!([1]), json!(1)], false, ColumnType::Json),
            (vec![], true, ColumnType::Date),
            (vec![], false, ColumnType::Text),
        ];
        for (values, is_date, expected) in table {
            let mut observed = ObservedTypes::default();
            values.iter().for_each(|value| observed.observe(value, is_date));
            assert_eq!(observed.column(is_date), expected, "{values:?}");
        }
        let mut observed = ObservedTypes::default();
        observed.declare(DeclaredType::Number);
        observed.observe(&json!(1), false);
        assert_eq!(observed.column(false), ColumnType::Number);
    }
}
