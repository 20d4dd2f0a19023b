//! Near misses: the known names that a wrong one was probably meant to be.

/// How many names are compared at most; a scope with more is searched in its first ones.
const MAX_CANDIDATES: usize = 2_000;

/// How many suggestions a message carries at most.
const MAX_SUGGESTIONS: usize = 3;

/// Names longer than this (in characters) are not compared: the distance costs the product of the lengths.
const MAX_LENGTH: usize = 64;

/// The candidates that look like `name`, nearest first, at most three, each once.
pub fn near<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let length = name.chars().count();
    if length > MAX_LENGTH {
        return Vec::new();
    }
    // A third of the name may differ, never all of it.
    let allowed = (length / 3).max(1);
    let lowered = name.to_lowercase();
    let mut found: Vec<(usize, &str)> = Vec::new();
    for candidate in candidates.into_iter().take(MAX_CANDIDATES) {
        let other = candidate.chars().count();
        if candidate == name || other > MAX_LENGTH || found.iter().any(|(_, seen)| *seen == candidate) {
            continue;
        }
        let distance = strsim::osa_distance(&lowered, &candidate.to_lowercase());
        if distance <= allowed && distance < length.max(other).min(length + 1) {
            found.push((distance, candidate));
        }
    }
    found.sort_by_key(|(distance, _)| *distance);
    found.truncate(MAX_SUGGESTIONS);
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

/// `did you mean …?`, or nothing when nothing is near.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    asked(&near(name, candidates))
}

/// The question alone, with what is near.
pub fn asked(found: &[&str]) -> Option<String> {
    let (last, rest) = found.split_last()?;
    Some(match rest {
        [] => format!("did you mean `{last}`?"),
        rest => format!("did you mean `{}` or `{last}`?", rest.join("` or `")),
    })
}

/// The only one of them; `None` when there are several or none, so that nothing is changed on a guess.
pub fn only<'a>(found: &[&'a str]) -> Option<&'a str> {
    match found {
        [only] => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_name_as_long_as_a_book_is_not_compared() {
        let long = "n".repeat(100_000);
        assert!(near(&long, [long.as_str(), "n"]).is_empty());
    }
}
