//! Tests of the acceptance page of requirements 004 (docs/acceptance-004.md): every test and page that it names exists, and every item
//! has at least one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(crate::ROOT)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The anchor that GitHub makes for a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Resolves a name of the page (`tests/x.rs::a_test`, `src/x.rs::Name`, a conversation, a file); returns an error if it does not exist.
fn missing(reference: &str) -> Option<String> {
    if let Some((file, name)) = reference.split_once("::") {
        let text = read(file);
        let defined = ["fn ", "struct ", "trait ", "enum "].iter().any(|keyword| {
            text.match_indices(&format!("{keyword}{name}"))
                .any(|(at, found)| !text[at + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        return (!defined).then(|| format!("{file} has no {name}"));
    }
    let conversation = root().join("tests/conversations").join(format!("{reference}.yaml"));
    let exists = conversation.is_file() || (reference.contains('/') && root().join(reference).exists());
    (!exists).then(|| format!("{reference} is neither a conversation nor a file"))
}

#[test]
fn every_item_of_004_names_tests_and_pages_that_exist() {
    let page = read("docs/acceptance-004.md");
    let mut problems = Vec::new();
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
            problems.push(format!("nothing shows: {item}"));
        }
        problems.extend(names.iter().filter_map(|name| missing(name)));
        for link in links {
            let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target = Path::new("docs").join(file);
            let text = read(target.to_str().unwrap());
            let exists =
                fragment.is_empty() || text.lines().any(|line| line.starts_with('#') && anchor(line) == fragment);
            if !exists {
                problems.push(format!("{file} has no part {fragment}"));
            }
        }
    }
    assert_eq!(problems, Vec::<String>::new());
    // The number of items in each list of requirements 004, which the page describes.
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
