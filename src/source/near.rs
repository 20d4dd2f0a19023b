//! "Did you mean …?": the nearest of a set of names to one that was typed.

/// Longer names are not compared (in characters): nobody mistypes an essay, and the comparison is quadratic.
const MAX_NAME_CHARS: usize = 64;

/// At most this many candidates are looked at, in their order.
const MAX_CANDIDATES: usize = 1_000;

/// At most this many pairs of characters are compared in one call: a file may make a hundred calls.
const MAX_COMPARISONS: usize = 200_000;

/// Two keys next to each other, or one of them twice, are a slip of the hand; more is another word.
const MOST_SLIPS: usize = 2;

/// The nearest of the candidates to what was typed, or `None` when none is near.
///
/// Differences of case, of `_` and `-`, of full-width letters and of the order of words count as nothing; otherwise about one
/// character in three may differ, and never all of them. A candidate that equals `typed` is not a near miss. Of equally near
/// ones the first is taken.
pub fn near_miss<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = near_ones(typed, candidates);
    near.into_iter().min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// The candidate that can be meant and no other: the only near one, by [`near_miss`], and a slip of one key, or of two in a
/// longer name.
pub fn sole_near_miss<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut near = near_ones(typed, candidates);
    near.sort_by_key(|(_, name)| *name);
    near.dedup_by_key(|(_, name)| *name);
    match near.as_slice() {
        [(distance, name)] if *distance <= MOST_SLIPS => Some(name),
        _ => None,
    }
}

/// All near ones with how far they are, in their order.
fn near_ones<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<(usize, &'a str)> {
    let Some(plain) = plain_form(typed) else { return Vec::new() };
    let words = sorted_words(typed);
    let length = plain.chars().count();
    let limit = length.max(3) / 3;
    let mut found = Vec::new();
    let mut comparisons = 0;
    for candidate in candidates.into_iter().take(MAX_CANDIDATES) {
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
        let distance =
            if other == plain || sorted_words(candidate) == words { 0 } else { strsim::osa_distance(&plain, &other) };
        // At least one character must be shared, or two one-letter names would be near.
        let near = distance <= limit && distance < length.max(other_length);
        if near {
            found.push((distance, candidate));
        }
    }
    found
}

/// The name without what people mistake for one another; `None` for an empty or a very long one.
fn plain_form(name: &str) -> Option<String> {
    if name.chars().nth(MAX_NAME_CHARS).is_some() {
        return None;
    }
    let plain: String = name.chars().map(half_width).filter(|c| !is_joint(*c)).flat_map(char::to_lowercase).collect();
    if plain.is_empty() { None } else { Some(plain) }
}

fn sorted_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = name.split(is_joint).map(str::to_lowercase).collect();
    words.sort();
    words
}

fn is_joint(c: char) -> bool {
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
    fn what_is_certain_has_no_other_near_it() {
        let table: [(&str, &[&str], Option<&str>); 8] = [
            ("contnet", &["config", "content", "tone"], Some("content")),
            ("max-rounds", &["max_rounds", "content"], Some("max_rounds")),
            ("max-rounds", &["max_rounds", "content", "max_rounds"], Some("max_rounds")),
            ("topic_idd", &["topic_id", "topic_ids"], None),
            ("ge", &["get", "set"], Some("get")),
            ("fet", &["get", "set"], None),
            ("template_skemaaa", &["template_scheme"], None),
            ("budget", &["tone"], None),
        ];
        for (typed, candidates, expected) in table {
            assert_eq!(sole_near_miss(typed, candidates.iter().copied()), expected, "{typed}");
        }
    }

    #[test]
    fn very_long_names_are_skipped() {
        let long = "好".repeat(1_000_000);
        assert_eq!(near_miss(&long, ["好"]), None);
        assert_eq!(near_miss("tonee", [long.as_str(), "tone"]), Some("tone"));
    }
}
