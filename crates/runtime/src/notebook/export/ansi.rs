//! Converts text to what a terminal would show: colors of tracebacks and overwritten lines. Other control characters are visible.

use std::borrow::Cow;

use bcc_lang::source::render::visible::visible;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// One of the eight colors: black, red, green, yellow, blue, magenta, cyan, white.
    pub color: Option<u8>,
    pub bold: bool,
}

/// The text as shown by a terminal: without colors, with the last state of overwritten lines, and with visible control characters.
pub fn plain(text: &str) -> String {
    spans(text).into_iter().map(|(_, piece)| piece).collect()
}

/// The same with its colors. Adjacent pieces of the same style are merged and empty pieces are omitted, so that repeated style
/// switches cost nothing.
pub fn spans(text: &str) -> Vec<(Style, String)> {
    let mut spans: Vec<(Style, String)> = Vec::new();
    let mut style = Style::default();
    let mut rest = &*apply_carriage_returns(text);
    let mut from = 0;
    while let Some(at) = rest.get(from..).and_then(|text| text.find('\u{1b}')).map(|at| from + at) {
        let (before, sequence) = rest.split_at(at);
        let previous = style;
        match apply_sequence(sequence, &mut style) {
            Some(after) => {
                push(&mut spans, previous, before);
                rest = after;
                from = 0;
            }
            None => from = at + 1,
        }
    }
    push(&mut spans, style, rest);
    spans
}

fn push(spans: &mut Vec<(Style, String)>, style: Style, text: &str) {
    if text.is_empty() {
        return;
    }
    let shown = visible(text);
    match spans.last_mut() {
        Some((last, piece)) if *last == style => piece.push_str(&shown),
        _ => spans.push((style, shown)),
    }
}

/// Applies carriage returns: lines end with `\n`, and of a line that is overwritten, as progress bars are, the last state remains.
fn apply_carriage_returns(text: &str) -> Cow<'_, str> {
    if !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    let last_state = |line: &str| {
        let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
        let body = body.trim_end_matches('\r');
        format!("{}{end}", body.rsplit('\r').next().unwrap_or_default())
    };
    Cow::Owned(text.split_inclusive('\n').map(last_state).collect())
}

/// Reads the escape sequence at the start of `text` and returns the rest. Colors change `style`; a movement of the cursor and the
/// address of a link show nothing. `None` if it is no complete sequence, or one that contains a text, such as the title of a window:
/// it is shown, so that nothing can be hidden in it.
fn apply_sequence<'t>(text: &'t str, style: &mut Style) -> Option<&'t str> {
    let after = text.get(1..).unwrap_or_default();
    if let Some(body) = after.strip_prefix('[') {
        let end = body.find(|c: char| !matches!(c, '0'..='9' | ';' | ':' | '<'..='?' | ' '..='/'));
        let end = end?;
        let last = body.get(end..).and_then(|rest| rest.chars().next());
        match last {
            Some('m') => apply_colors(body.get(..end).unwrap_or_default(), style),
            Some('\u{40}'..='\u{7e}') => {}
            _ => return None,
        }
        return body.get(end + 1..);
    }
    if let Some(body) = after.strip_prefix("]8;") {
        // The address of a link, up to its end.
        let bell = body.find('\u{7}').map(|at| (at, 1));
        let string = body.find("\u{1b}\\").map(|at| (at, 2));
        let end = [bell, string].into_iter().flatten().min();
        return end.and_then(|(at, length)| body.get(at + length..));
    }
    // Other sequences, such as the choice of a character set, are one character after any of these.
    let end = after.trim_start_matches(|c| matches!(c, ' '..='/'));
    end.starts_with(|c| matches!(c, '0'..='~') && !matches!(c, 'P' | 'X' | ']' | '^' | '_'))
        .then(|| end.get(1..))
        .flatten()
}

fn apply_colors(codes: &str, style: &mut Style) {
    let mut codes = codes.split([';', ':']).map(|code| code.parse::<u16>().unwrap_or_default());
    while let Some(code) = codes.next() {
        match code {
            0 => *style = Style::default(),
            1 => style.bold = true,
            22 => style.bold = false,
            30..=37 => style.color = u8::try_from(code - 30).ok(),
            90..=97 => style.color = u8::try_from(code - 90).ok(),
            39 => style.color = None,
            38 | 48 => {
                let color = match codes.next() {
                    Some(5) => codes.next().and_then(palette_color),
                    Some(2) => match (codes.next(), codes.next(), codes.next()) {
                        (Some(red), Some(green), Some(blue)) => nearest_color(red, green, blue),
                        _ => None,
                    },
                    _ => None,
                };
                if code == 38 {
                    style.color = color;
                }
            }
            _ => {}
        }
    }
}

/// Converts one of 256 colors to one of the eight.
fn palette_color(index: u16) -> Option<u8> {
    match index {
        0..=7 => u8::try_from(index).ok(),
        8..=15 => u8::try_from(index - 8).ok(),
        16..=231 => {
            let cube = index - 16;
            nearest_color(cube / 36, cube / 6 % 6, cube % 6)
        }
        _ => None,
    }
}

/// The color with the same dominant components; `None` for gray, which is most readable in the default text color.
fn nearest_color(red: u16, green: u16, blue: u16) -> Option<u8> {
    let max = red.max(green).max(blue);
    let part = |amount: u16, bit: u8| if u32::from(amount) * 2 > u32::from(max) { bit } else { 0 };
    let color = part(red, 1) + part(green, 2) + part(blue, 4);
    (max > 0 && color != 7).then_some(color)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_of_a_traceback_are_read_and_other_sequences_are_ignored() {
        let text =
            "\u{1b}[0;31mName\u{1b}[39;01mError\u{1b}[0m: \u{1b}[38;5;28mok\u{1b}[0m\u{1b}[2J\u{1b}]0;title\u{7}!";
        let red = Style { color: Some(1), bold: false };
        let bold = Style { color: None, bold: true };
        let green = Style { color: Some(2), bold: false };
        let expected: Vec<(Style, String)> = [
            (red, "Name"),
            (bold, "Error"),
            (Style::default(), ": "),
            (green, "ok"),
            (Style::default(), "␛]0;title␇!"),
        ]
        .map(|(style, text)| (style, text.to_owned()))
        .into();
        assert_eq!(spans(text), expected);
        assert_eq!(plain(text), "NameError: ok␛]0;title␇!");
    }

    #[test]
    fn of_an_overwritten_line_the_last_state_remains() {
        let table = [
            ("10%\r50%\r100%\n完成\r\n", "100%\n完成\n"),
            ("a\r", "a"),
            ("a\u{8}\u{0}\u{7f}\u{85}b\t", "a␈␀␡\\u{85}b\t"),
            ("\u{1b}[", "␛["),
            ("\u{1b}[12", "␛[12"),
            ("\u{1b}[1中", "␛[1中"),
            ("\u{1b}", "␛"),
            ("\u{1b}中", "␛中"),
            ("\u{1b}(B\u{1b}[mx\u{1b}[Ky", "xy"),
            ("\u{1b}]0;never ends", "␛]0;never ends"),
            ("\u{1b}]8;;never ends", "␛]8;;never ends"),
            ("\u{1b}_hidden\u{1b}\\", "␛_hidden"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}[38;5m\u{1b}[38;2;9m\u{1b}[38mx", "x"),
        ];
        for (text, expected) in table {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }

    #[test]
    fn repeated_style_switches_cost_nothing() {
        let bomb = "\u{1b}[31m\u{1b}[0m".repeat(100_000);
        assert!(spans(&bomb).is_empty());
        assert_eq!(spans(&format!("a{bomb}b")).len(), 1);
    }
}
