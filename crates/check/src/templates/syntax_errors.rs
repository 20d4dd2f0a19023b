//! Explains the errors of minijinja, which provides only their text and place, in templates and in the texts of scripts.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::ops::Range;

use crate::templates::openers::{OpenTag, STATEMENTS, innermost};
use bcc_lang::source::near::near_miss;

/// The tags that need no end.
pub(crate) const OTHER_TAGS: [&str; 9] =
    ["else", "elif", "include", "extends", "import", "from", "do", "break", "continue"];

/// Chinese words that authors write instead of a tag.
const CHINESE_TAGS: [(&str, &str); 6] =
    [("如果", "if"), ("否则", "else"), ("否则如果", "elif"), ("循环", "for"), ("结束", "endif"), ("结束如果", "endif")];

/// The tag that an author means who writes it as a Chinese word.
pub(crate) fn tag_of_chinese_word(word: &str) -> Option<&'static str> {
    CHINESE_TAGS.iter().find(|(chinese, _)| *chinese == word).map(|(_, tag)| *tag)
}

/// What is wrong in a text, with byte ranges of it.
pub(crate) struct Explanation {
    pub message: Message,
    pub range: Range<usize>,
    pub help: Message,
    /// Another place that explains the error.
    pub related: Option<(Message, Range<usize>)>,
    /// The replacement for the range.
    pub instead: Option<String>,
}

/// Explains a tag that is never closed, and one that does not exist or belong there. `message` is the English error of minijinja
/// at `range` of `text`.
pub(crate) fn explain(text: &str, message: &str, range: &Range<usize>) -> Option<Explanation> {
    let at_end = is_at_end(message);
    let before = if at_end { text } else { text.get(..range.start)? };
    if at_end {
        let OpenTag { name, range, .. } = innermost(before)?;
        let is_closed = |(open, close): (&str, &str)| before.rfind(close) >= before.rfind(open);
        return [("{%", "%}"), ("{{", "}}")].into_iter().all(is_closed).then(|| Explanation {
            message: msg!("the `{name}` that opens here is never closed"),
            range,
            help: msg!("close it with `{{% end{name} %}}`"),
            related: None,
            instead: None,
        });
    }
    let word = message.strip_prefix("unknown statement ")?;
    Some(unknown_tag(text, word, innermost(before), range))
}

fn unknown_tag(text: &str, word: &str, open: Option<OpenTag>, range: &Range<usize>) -> Explanation {
    let range = range.clone();
    let is_known =
        STATEMENTS.iter().any(|name| word.strip_prefix("end") == Some(name)) || ["else", "elif"].contains(&word);
    if is_known {
        let message = msg!("`{{% {word} %}}` does not belong here");
        let (help, related) = match open {
            Some(OpenTag { last: Some(at), .. }) if ["else", "elif"].contains(&word) => (
                msg!("`{{% else %}}` is the last branch: write every other branch before it"),
                Some((msg!("the last branch starts here"), at)),
            ),
            Some(OpenTag { name, range: at, .. }) => (
                msg!("the innermost open tag is `{name}`; close it first with `{{% end{name} %}}`"),
                Some((msg!("this `{name}` is still open"), at)),
            ),
            None => (msg!("no tag is open here: remove this tag, or add the opening tag before it"), None),
        };
        return Explanation { message, range, help, related, instead: None };
    }
    let ends: Vec<String> = STATEMENTS.iter().map(|name| format!("end{name}")).collect();
    let chinese = tag_of_chinese_word(word);
    let known = || STATEMENTS.iter().copied().chain(OTHER_TAGS).chain(ends.iter().map(String::as_str));
    let near = chinese.or_else(|| near_miss(word, known()));
    let message = msg!("there is no tag `{{% {word} %}}`");
    match near {
        Some(near) => {
            // Of a Chinese word, the end of the tag is usually written in Chinese, too, so that this change alone would not help.
            let is_replaceable = chinese.is_none() && text.get(range.clone()) == Some(word);
            let instead = is_replaceable.then(|| near.to_owned());
            Explanation { message, range, help: msg!("did you mean `{near}`?"), related: None, instead }
        }
        None => {
            let help = "a value is written with two braces, `{{ name }}`; tags are `if`, `for`, `set`, `include` and a few more";
            let help = Message::word(help);
            Explanation { message, range, help, related: None, instead: None }
        }
    }
}

/// The help for the other errors, by the English error of minijinja at `range` of `text`, if there is a specific one.
pub(crate) fn advice(text: &str, message: &str, range: &Range<usize>) -> Option<&'static str> {
    let before = text.get(..range.start).unwrap_or_default().trim_end().trim_end_matches(['-', '+']);
    let ends =
        ["unexpected `}`", "unexpected end of variable block", "unexpected end of block", "unexpected end of input"];
    let expects_bracket =
        [", expected `)`", ", expected `]`", ", expected `}`"].iter().any(|part| message.contains(part));
    // Before anything else, the bracket may be closed later: `(user tone)`.
    if expects_bracket && ends.iter().any(|end| message.starts_with(end)) {
        return Some("close the bracket that is still open");
    }
    if message.contains("unexpected end of variable block") && !before.ends_with("{{") {
        return Some("write what is missing before `}}`, as in `{{ age + 1 }}`");
    }
    if message.contains("unexpected end of block") && !before.ends_with("{%") {
        return Some("write what is missing before `%}`, as in `{% if age > 18 %}`");
    }
    let lacks_end = is_at_end(message) || message.starts_with("unexpected `}`");
    if lacks_end && message.contains("end of variable block") {
        return Some("close the placeholder with `}}`");
    }
    if lacks_end && message.ends_with("end of block") {
        return Some("close the tag with `%}`, and `{% if … %}` with `{% endif %}`, `{% for … %}` with `{% endfor %}`");
    }
    let table = [
        ("unexpected `:`", "in JSON that the model should read, put a space between two opening braces: `{ {`"),
        ("unexpected end of variable block", "put a name between the braces, as in `{{ user }}`"),
        ("expected end of variable block", "a placeholder is one name or expression between `{{` and `}}`"),
        ("end of comment", "a comment goes from `{#` to `#}`; to have the model read `{#`, write `{{ '{#' }}`"),
        ("end of raw block", "close `{% raw %}` with `{% endraw %}`"),
        ("end of string", "close the text with the quote that opens it"),
        ("defined twice", "give each `block` of a template its own name"),
        ("must be placed inside a loop", "`break` and `continue` must be between `{% for … %}` and `{% endfor %}`"),
    ];
    table.iter().find(|(part, _)| message.contains(part)).map(|(_, help)| *help)
}

fn is_at_end(message: &str) -> bool {
    message.starts_with("unexpected end of input")
}
