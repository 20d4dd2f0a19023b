//! Finds where code failed in an error output of nbformat.

use serde_json::Value;

use crate::notebook::export::ansi::plain;

/// The maximum size of a traceback that is searched, in bytes.
const MAX_TRACEBACK_BYTES: usize = 64 * 1024;

/// The last of `outputs` that is an error.
pub(crate) fn error_output(outputs: &[Value]) -> Option<&Value> {
    outputs.iter().rev().find(|output| output.get("output_type").and_then(Value::as_str) == Some("error"))
}

/// The error in one line: its name and its value. `None` if it has neither.
pub(crate) fn error_text(error: &Value) -> Option<String> {
    let field = |name| error.get(name).and_then(Value::as_str).map(plain).unwrap_or_default();
    let (name, value) = (field("ename"), field("evalue"));
    let value = value.trim();
    Some(match (name.trim(), value) {
        ("", "") => return None,
        ("", value) => value.to_owned(),
        (name, "") => name.to_owned(),
        (name, value) => format!("{name}: {value}"),
    })
}

/// The line of the cell in which the error occurred, according to a traceback of IPython: the innermost one of the cell that ran as
/// number `count`. A cell calls code of other cells and of libraries, whose lines say nothing about its own.
pub(crate) fn cell_line(error: &Value, count: Option<u64>) -> Option<u64> {
    let traceback = error.get("traceback")?.as_array()?;
    let mut text = String::new();
    for part in traceback.iter().filter_map(Value::as_str) {
        if text.len() + part.len() > MAX_TRACEBACK_BYTES {
            break;
        }
        text.push_str(part);
        text.push('\n');
    }
    let text = plain(&text);
    let (mut of_cell, mut first) = (None, None);
    // The older form has the line below the name of its frame: `----> 3 f()`.
    let mut frame: Option<u64> = None;
    for line in text.lines() {
        let found = match frame_of(line) {
            Some((number, Some(found))) => {
                frame = None;
                Some((number, found))
            }
            Some((number, None)) => {
                frame = Some(number);
                None
            }
            None => frame.zip(arrow(line)),
        };
        let Some((number, found)) = found else { continue };
        frame = None;
        first.get_or_insert(found);
        if Some(number) == count {
            of_cell = Some(found);
        }
    }
    of_cell.or(first)
}

/// The number of the cell in the head of a frame, with the line if it is there: `Cell In[2], line 3`, `Input In [2], in <cell line:
/// 3>()`, `<ipython-input-2-0a1b> in <module>`.
fn frame_of(line: &str) -> Option<(u64, Option<u64>)> {
    for (before, is_older) in
        [("Cell In[", false), ("Cell In [", false), ("Input In [", false), ("<ipython-input-", true)]
    {
        let Some((_, rest)) = line.split_once(before) else { continue };
        let (number, rest) = leading_number(rest)?;
        if is_older {
            return Some((number, None));
        }
        let found = rest.split_once("line").and_then(|(_, rest)| leading_number(rest.trim_start_matches([':', ' '])));
        return Some((number, found.map(|(found, _)| found)));
    }
    None
}

/// The number behind the arrow of a line: `----> 3 f()`.
fn arrow(line: &str) -> Option<u64> {
    let (dashes, rest) = line.trim_start().split_once("> ")?;
    let is_arrow = dashes.len() >= 2 && dashes.chars().all(|c| c == '-');
    leading_number(rest.trim_start()).filter(|_| is_arrow).map(|(number, _)| number)
}

fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_line_is_that_of_the_cell_in_each_form_of_a_traceback() {
        let current = "\u{1b}[0;31mKeyError\u{1b}[0m  Traceback (most recent call last)\nCell \u{1b}[0;32mIn[3], line 4\u{1b}[0m\n      2 x = 1\n----> 4 f()\n";
        for (traceback, count, line) in [
            (json!([current]), Some(3), Some(4)),
            // The innermost line of the cell, not that of the function of another cell that it calls.
            (
                json!([
                    "Cell In[3], line 9\n----> 9 g()\n",
                    "Cell In[3], line 2, in g()\n----> 2 h()\n",
                    "Cell In[1], line 7, in h()\n",
                    "File /usr/lib/x.py:30, in y()\n---> 30 z\n"
                ]),
                Some(3),
                Some(2),
            ),
            (json!(["Cell In[1], line 7, in h()"]), Some(3), Some(7)),
            (json!(["  Cell In[5], line 2\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n"]), Some(5), Some(2)),
            (json!(["Input \u{1b}[0;32mIn [2]\u{1b}[0m, in <cell line: 1>()\n----> 1 1/0"]), Some(2), Some(1)),
            (
                json!([
                    "<ipython-input-2-0a1b> in <module>\n      1 a\n----> 2 b\n",
                    "/usr/lib/c.py in d()\n---> 50 e\n"
                ]),
                Some(2),
                Some(2),
            ),
            (json!(["Error in f() : no such object\n1. f()"]), Some(1), None),
            (json!([7, null]), None, None),
            (json!("Cell In[1], line 1"), Some(1), None),
        ] {
            assert_eq!(cell_line(&json!({ "traceback": traceback }), count), line, "{traceback}");
        }
        assert_eq!(cell_line(&json!({}), None), None);
    }

    #[test]
    fn an_error_is_one_text_with_its_name_and_its_value() {
        for (error, text) in [
            (json!({ "ename": "KeyError", "evalue": "'rows'" }), Some("KeyError: 'rows'")),
            (json!({ "ename": "KeyboardInterrupt", "evalue": "" }), Some("KeyboardInterrupt")),
            (json!({ "ename": "", "evalue": "\u{1b}[31mbad\u{1b}[0m\n" }), Some("bad")),
            (json!({ "ename": 7 }), None),
        ] {
            assert_eq!(error_text(&error).as_deref(), text, "{error}");
        }
        let outputs = [json!({ "output_type": "error", "ename": "A" }), json!({ "output_type": "stream" })];
        assert_eq!(error_output(&outputs), Some(&outputs[0]));
        assert_eq!(error_output(&[]), None);
    }
}
