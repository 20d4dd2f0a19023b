//! The page of 004's acceptance (`docs/acceptance-004.md`): every test and page that it names is there, and every item has at
//! least one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(crate::ROOT)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The words of GitHub's link to a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// What a name of the page points at: `tests/x.rs::a_test`, `src/x.rs::Name`, a conversation by its name, a file.
fn missing(named: &str) -> Option<String> {
    if let Some((file, name)) = named.split_once("::") {
        let text = read(file);
        let defined = ["fn ", "struct ", "trait ", "enum "].iter().any(|what| {
            text.match_indices(&format!("{what}{name}"))
                .any(|(at, found)| !text[at + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        return (!defined).then(|| format!("{file} has no {name}"));
    }
    let conversation = root().join("tests/conversations").join(format!("{named}.yaml"));
    let there = conversation.is_file() || (named.contains('/') && root().join(named).exists());
    (!there).then(|| format!("{named} is neither a conversation nor a file"))
}

#[test]
fn every_item_of_004_names_tests_and_pages_that_exist() {
    let page = read("docs/acceptance-004.md");
    let mut wrong = Vec::new();
    let mut items: BTreeMap<&str, usize> = BTreeMap::new();
    let mut section = "";
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading;
        }
        let Some(row) = line.strip_prefix("| ").filter(|row| !row.starts_with("---") && !row.starts_with("004 "))
        else {
            continue;
        };
        let Some((item, shown)) = row.trim_end_matches('|').split_once(" | ") else { panic!("{line}") };
        *items.entry(section).or_default() += 1;
        let names: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        let links: Vec<&str> = shown.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
        if names.is_empty() && links.is_empty() {
            wrong.push(format!("nothing shows: {item}"));
        }
        wrong.extend(names.iter().filter_map(|name| missing(name)));
        for link in links {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = Path::new("docs").join(file);
            let text = read(target.to_str().unwrap());
            let there = place.is_empty() || text.lines().any(|line| line.starts_with('#') && anchor(line) == place);
            if !there {
                wrong.push(format!("{file} has no part {place}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    // As many as 004 has.
    let counts: Vec<(&str, usize)> = [
        ("数据结构验收", 4),
        ("Action主线程层验收", 10),
        ("通用调度层验收", 4),
        ("Topic监控线程层验收", 11),
        ("Topic动作编排扩展点验收", 6),
        ("模板验收", 7),
        ("测试验收", 15),
        ("文档验收", 10),
        ("单元测试", 11),
        ("集成测试", 6),
        ("E2E测试与异常场景", 12),
    ]
    .into();
    for (section, count) in counts {
        assert_eq!(items.get(section), Some(&count), "{section}");
    }
}
