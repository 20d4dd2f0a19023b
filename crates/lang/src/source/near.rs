//! "Did you mean …?": finds the names nearest to a misspelled one.

use crate::message::message::Message;
use crate::message::msg;

/// Longer names are not compared (in characters), because the comparison is quadratic.
const MAX_NAME_CHARS: usize = 64;

/// The maximum number of candidates that are compared, in their order.
const MAX_CANDIDATES: usize = 1_000;

const MAX_SUGGESTIONS: usize = 3;

/// The maximum number of character pairs that are compared in one call: a file may cause a hundred calls.
const MAX_COMPARISONS: usize = 200_000;

/// The candidate that is nearest to `typed`, or `None` if none is near.
///
/// Case, `_` and `-`, full-width letters and the order of words are ignored; otherwise about one character in three may differ,
/// but never all of them. A candidate that equals `typed` is not a near miss. Of equally near ones the first is returned.
pub fn near_miss<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = near_candidates(typed, &mut candidates.into_iter());
    near.into_iter().min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// All candidates that are near as defined by [`near_miss`], nearest first, at most three, without duplicates.
pub fn near<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = near_candidates(typed, &mut candidates.into_iter());
    found.sort_by_key(|(distance, _)| *distance);
    let mut names: Vec<&str> = Vec::with_capacity(MAX_SUGGESTIONS);
    for (_, name) in found {
        if names.len() < MAX_SUGGESTIONS && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// `did you mean …?`, or `None` if nothing is near.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<Message> {
    suggestion(&near(name, candidates))
}

/// The question alone, for the near names that were found.
pub fn suggestion(found: &[&str]) -> Option<Message> {
    let (last, rest) = found.split_last()?;
    Some(match rest {
        [] => msg!("did you mean `{last}`?"),
        _ => msg!("did you mean {}?", Message::any_of(found.iter().map(|name| Message::text(format!("`{name}`"))))),
    })
}

/// The only name; `None` if there are several or none, so that nothing is changed on a guess.
pub fn single<'a>(found: &[&'a str]) -> Option<&'a str> {
    match found {
        [only] => Some(only),
        _ => None,
    }
}

/// The edit distance of two texts: letters left out, added, replaced, or exchanged with the next one.
pub fn distance(one: &str, other: &str) -> usize {
    strsim::osa_distance(one, other)
}

/// Whether `typed` is `name` with a typing error, and not another word: two adjacent letters exchanged, one doubled, one inside
/// left out, in a word of at least five letters; or case, `-` and `_`, and full-width letters. A replaced letter makes other
/// words (`context`, `zone`), and so does one at the end (`types`).
pub(crate) fn is_typing_error(typed: &str, name: &str) -> bool {
    const MIN_CHARS: usize = 5;
    let (Some(plain), Some(other)) = (plain_form(typed), plain_form(name)) else { return false };
    let (a, b): (Vec<char>, Vec<char>) = (plain.chars().collect(), other.chars().collect());
    if typed == name || a.len() < MIN_CHARS {
        return false;
    }
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (rest, expected) = (a.get(common..).unwrap_or_default(), b.get(common..).unwrap_or_default());
    match (rest, expected) {
        ([], []) => true,
        // Two letters exchanged.
        ([x, y, rest @ ..], [p, q, expected @ ..]) if a.len() == b.len() => (x, y) == (q, p) && rest == expected,
        // One letter doubled.
        ([x, rest @ ..], expected) if a.len() == b.len() + 1 => {
            rest == expected && common.checked_sub(1).and_then(|last| a.get(last)) == Some(x)
        }
        // One letter left out, neither the first nor the last.
        (rest, [_, expected @ ..]) if a.len() + 1 == b.len() => rest == expected && common > 0 && !rest.is_empty(),
        _ => false,
    }
}

/// Whether `name` is the plural of `typed`.
pub(crate) fn is_plural(typed: &str, name: &str) -> bool {
    name.strip_suffix('s') == Some(typed)
}

/// All near candidates with their distances, in their order.
fn near_candidates<'a>(typed: &str, candidates: &mut dyn Iterator<Item = &'a str>) -> Vec<(usize, &'a str)> {
    let Some(plain) = plain_form(typed) else { return Vec::new() };
    let words = sorted_words(typed);
    let length = plain.chars().count();
    let limit = length.max(3) / 3;
    let mut found = Vec::new();
    let mut comparisons = 0;
    for candidate in candidates.take(MAX_CANDIDATES) {
        if candidate == typed {
            continue;
        }
        let Some(other) = plain_form(candidate) else { continue };
        let other_length = other.chars().count();
        if length.abs_diff(other_length) > limit {
            continue;
        }
        comparisons += length * other_length;
        if comparisons > MAX_COMPARISONS {
            break;
        }
        let distance = if other == plain || sorted_words(candidate) == words { 0 } else { distance(&plain, &other) };
        // At least one character must be shared, or two one-letter names would be near.
        let near = distance <= limit && distance < length.max(other_length);
        if near {
            found.push((distance, candidate));
        }
    }
    found
}

/// The name without the differences that are ignored; `None` for an empty or a very long one.
fn plain_form(name: &str) -> Option<String> {
    if name.chars().nth(MAX_NAME_CHARS).is_some() {
        return None;
    }
    let plain: String =
        name.chars().map(half_width).filter(|c| !is_separator(*c)).flat_map(char::to_lowercase).collect();
    if plain.is_empty() { None } else { Some(plain) }
}

fn sorted_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = name.split(is_separator).map(str::to_lowercase).collect();
    words.sort();
    words
}

fn is_separator(c: char) -> bool {
    matches!(c, '_' | '-' | ' ' | '.')
}

/// The ASCII character that a full-width one looks like.
fn half_width(c: char) -> char {
    match u32::from(c) {
        code @ 0xff01..=0xff5e => char::from_u32(code - 0xfee0).unwrap_or(c),
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let table: [(&str, &[&str], Option<&str>); 16] = [
            ("contnet", &["config", "content", "tone"], Some("content")),
            ("maxRounds", &["max_rounds", "max_round_s2"], Some("max_rounds")),
            ("name_user", &["user_name", "username2"], Some("user_name")),
            ("用户名字", &["用户年龄", "用户名"], Some("用户名")),
            ("年纪", &["年龄", "姓名"], Some("年龄")),
            ("父亲信息", &["母亲信息", "年龄"], Some("母亲信息")),
            ("ｃｏｎｔｅｎｔ", &["content"], Some("content")),
            ("x", &["y", "z"], None),
            ("名", &["字"], None),
            ("tone", &["budget"], None),
            ("tone", &["tone"], None),
            ("tone", &["tone", "tones"], Some("tones")),
            ("", &["a"], None),
            ("a", &[""], None),
            ("ai_asks", &["ai_ask", "ai_say"], Some("ai_ask")),
            ("tone", &[], None),
        ];
        for (typed, candidates, expected) in table {
            assert_eq!(near_miss(typed, candidates.iter().copied()), expected, "{typed}");
        }
    }

    #[test]
    fn typing_errors_are_distinguished_from_other_words() {
        for (typed, name) in [
            ("contnet", "content"),
            ("max-rounds", "max_rounds"),
            ("maxRounds", "max_rounds"),
            ("ｃｏｎｔｅｎｔ", "content"),
            ("contennt", "content"),
            ("contentt", "content"),
            ("topc_goal", "topic_goal"),
            ("sesion", "session"),
            ("session_nmae", "session_name"),
        ] {
            assert!(is_typing_error(typed, name), "{typed}");
        }
        for (typed, name) in [
            ("use", "user"),
            ("mode", "model"),
            ("topic_no", "topic_id"),
            ("action_name", "action_type"),
            ("context", "content"),
            ("zone", "tone"),
            ("tnoe", "tone"),
            ("types", "type"),
            ("version", "session"),
            ("max_round", "max_rounds"),
            ("ontent", "content"),
            ("causes", "cases"),
            ("name_user", "user_name"),
            ("content", "content"),
            ("", "content"),
        ] {
            assert!(!is_typing_error(typed, name), "{typed}");
        }
        assert!(is_plural("max_round", "max_rounds") && !is_plural("types", "type") && !is_plural("type", "type"));
    }

    #[test]
    fn very_long_names_are_skipped() {
        let long = "好".repeat(1_000_000);
        assert_eq!(near_miss(&long, ["好"]), None);
        assert_eq!(near_miss("tonee", [long.as_str(), "tone"]), Some("tone"));
    }

    #[test]
    fn near_names_are_found_in_any_script() {
        let known = ["user_name", "用户名", "年龄", "content", "x"];
        let table: [(&str, &[&str]); 7] = [
            ("user_nmae", &["user_name"]),
            ("User_Name", &["user_name"]),
            ("用户命", &["用户名"]),
            ("年纪", &["年龄"]),
            ("contents", &["content"]),
            ("weather", &[]),
            ("y", &[]),
        ];
        for (name, expected) in table {
            assert_eq!(near(name, known), expected, "{name}");
        }
    }

    #[test]
    fn suggestions_are_few_and_nearest_first() {
        let known = ["abcdef1", "abcdeX1", "abcdef", "abcdef2", "abcdef3", "abcdef"];
        assert_eq!(near("abcdef0", known).len(), 3);
        assert_eq!(did_you_mean("abcdfe", ["abcdef"]).unwrap(), "did you mean `abcdef`?");
        assert_eq!(did_you_mean("zzz", ["abcdef"]), None);
    }

    #[test]
    fn a_name_of_many_characters_is_not_compared() {
        let long = "n".repeat(100_000);
        assert!(near(&long, [long.as_str(), "n"]).is_empty());
    }
}
