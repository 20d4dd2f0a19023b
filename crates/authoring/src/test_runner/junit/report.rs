//! The report: a suite for each file, a test case for each conversation.

use std::time::Duration;

use bcc_lang::message::msg;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::test_runner::result::{TestResult, TestStatus, TranscriptLine};
use bcc_engine::error::EngineError;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::render::visible::visible;
use bcc_runtime::program::event::Speaker;

/// The maximum length of a `message` in characters, because viewers show it on one line; the element contains the full text.
const MAX_MESSAGE_CHARACTERS: usize = 300;

/// The JUnit report of these cases, which are in the order of their files. `unreadable` are the errors of files in which no test could be
/// found; `describe` returns the readable text of a failure.
///
/// Elements and attributes are those that GitHub, GitLab and Jenkins have in common: `testsuites`, `testsuite` (`name`,
/// `tests`, `failures`, `errors`, `skipped`, `time`), `testcase` (`name`, `classname`, `file`, `time`) with at most one
/// of `failure` (not as expected), `error` (it could not be run) and `skipped`, each with its `message`, then
/// `system-out` (the transcript) and `system-err` (notes).
pub fn junit(
    ran: &[TestResult],
    unreadable: &[&Diagnostic],
    describe: &dyn Fn(&TestResult) -> String,
) -> Result<String, EngineError> {
    let mut report = Report::new("bcc-script test");
    report.set_time(ran.iter().map(|ran| ran.took).sum());
    for ran in ran.chunk_by(|one, other| one.file.name() == other.file.name()) {
        let mut suite = TestSuite::new(attribute(ran.first().map_or("", |ran| ran.file.name())));
        suite.set_time(ran.iter().map(|ran| ran.took).sum());
        suite.add_test_cases(ran.iter().map(|ran| case(ran, describe)));
        report.add_test_suite(suite);
    }
    for errors in unreadable.chunk_by(|one, other| one.file.name() == other.file.name()) {
        let file = errors.first().map_or("", |error| error.file.name());
        let mut case = TestCase::new(attribute(file), error_status(errors, None));
        case.set_classname(attribute(&class(file))).set_time(Duration::ZERO);
        case.extra.insert("file".into(), attribute(file).into());
        let mut suite = TestSuite::new(attribute(file));
        suite.set_time(Duration::ZERO).add_test_case(case);
        report.add_test_suite(suite);
    }
    let xml = report.to_string().map_err(|error| EngineError::failed(msg!("the report cannot be created: {error}")))?;
    Ok(CHARACTER_REFERENCES.iter().fold(xml, |xml, (placeholder, reference)| xml.replace(*placeholder, reference)))
}

fn case(ran: &TestResult, describe: &dyn Fn(&TestResult) -> String) -> TestCase {
    let reason = &*ran.reason.as_ref().map(ToString::to_string).unwrap_or_default();
    let not_passed = |kind, message: &str, name: &str| {
        let mut status = TestCaseStatus::non_success(kind);
        status.set_message(attribute(&shortened(message))).set_type(name).set_description(text(&describe(ran)));
        status
    };
    let status = match ran.status {
        TestStatus::Passed => TestCaseStatus::success(),
        TestStatus::Failed => {
            let message = match ran.failures.as_slice() {
                [] => reason.to_owned(),
                [only] => only.message.to_string(),
                [first, others @ ..] => format!("{} (and {} more)", first.message, others.len()),
            };
            not_passed(NonSuccessKind::Failure, &message, "failed")
        }
        TestStatus::Broken if ran.errors.is_empty() => not_passed(NonSuccessKind::Error, reason, "broken"),
        TestStatus::Broken => error_status(&ran.errors.iter().collect::<Vec<_>>(), Some(&describe(ran))),
        TestStatus::Skipped => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(attribute(&shortened(reason)));
            status
        }
    };
    let file = ran.file.name();
    let mut case = TestCase::new(attribute(&ran.title()), status);
    case.set_classname(attribute(&class(file))).set_time(ran.took);
    case.extra.insert("file".into(), attribute(file).into());
    if !ran.transcript.is_empty() {
        case.set_system_out(text(&transcript(&ran.transcript)));
    }
    if !ran.notes.is_empty() {
        case.set_system_err(text(&ran.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")));
    }
    case
}

/// The status of what could not be run because of these errors: the first one is the message, and all of them are in the text.
fn error_status(errors: &[&Diagnostic], description: Option<&str>) -> TestCaseStatus {
    let lines: Vec<String> = errors.iter().map(|error| error_line(error)).collect();
    let message = match lines.as_slice() {
        [first, others @ ..] if !others.is_empty() => format!("{} (and {} more)", first, others.len()),
        lines => lines.concat(),
    };
    let description = description.into_iter().chain(lines.iter().map(String::as_str));
    let description: Vec<&str> = description.map(str::trim_end).collect();
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status
        .set_message(attribute(&shortened(&message)))
        .set_type("broken")
        .set_description(text(&description.join("\n")));
    status
}

/// An error with its place and what to do, on one line.
fn error_line(error: &Diagnostic) -> String {
    let (line, _) = error.file.line_column(error.span.start);
    let help = error.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    format!("{}:{line}: {}{help}", error.file.name(), error.message)
}

/// Characters that quick-junit would drop or a parser would normalize to a space are written as references. Until then,
/// characters that no visible text contains are their placeholders.
const CHARACTER_REFERENCES: [(char, &str); 2] = [('\u{fffe}', "&#9;"), ('\u{7f}', "&#10;")];

/// The text as it is shown ([`visible`]), which contains no character that is invalid in XML 1.0 and survives a round trip.
fn text(text: &str) -> String {
    visible(text).replace('\t', "\u{fffe}")
}

/// [`text`] for an attribute value, where a line feed would be read as a space.
fn attribute(value: &str) -> String {
    text(value).replace('\n', "\u{7f}")
}

/// The messages, one per line; continuation lines are indented.
pub fn transcript(lines: &[TranscriptLine]) -> String {
    let line = |line: &TranscriptLine| {
        let speaker = match line.speaker {
            Speaker::Ai => "ai",
            Speaker::User => "user",
        };
        format!("{speaker}: {}\n", line.text.replace('\n', "\n    "))
    };
    lines.iter().map(line).collect()
}

/// `tests/intake/greets.yaml` as a class name, by which viewers group: `tests.intake.greets`.
fn class(file: &str) -> String {
    let name = file.rsplit_once('.').map_or(file, |(name, _)| name);
    let parts = name.split(['/', '\\']).filter(|part| !matches!(*part, "" | "." | ".."));
    parts.map(|part| part.replace('.', "_")).collect::<Vec<_>>().join(".")
}

fn shortened(text: &str) -> String {
    let line = text.lines().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_MESSAGE_CHARACTERS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::sync::Arc;

    use proptest::prelude::*;
    use quick_xml::events::{BytesStart, Event};
    use quick_xml::{Reader, XmlVersion};

    use super::*;
    use crate::test_runner::result::TestFailure;
    use bcc_lang::message::message::Message;
    use bcc_lang::source::span::Span;
    use bcc_lang::source::text::SourceFile;

    fn ran(file: &str, test: &str, case: Option<&str>, status: TestStatus, why: Option<&str>) -> TestResult {
        TestResult {
            file: Arc::new(SourceFile::new(file, "")),
            real: PathBuf::from(file),
            test: test.to_owned(),
            case: case.map(str::to_owned),
            number: 0,
            status,
            reason: why.map(bcc_lang::message::message::Message::text),
            errors: vec![],
            failures: vec![],
            notes: vec![],
            snapshot: None,
            transcript: vec![],
            journal: vec![],
            program: None,
            script: None,
            turns: 0,
            model_calls: 0,
            sessions: 0,
            took: Duration::from_millis(12),
        }
    }

    fn failure(message: &str) -> TestFailure {
        let (expected, found) = (Message::text("称呼"), Message::text("名字"));
        TestFailure {
            span: Span::default(),
            line: 3,
            message: bcc_lang::message::message::Message::text(message.to_owned()),
            expected,
            found,
            help: None,
            transcript_lines: 0,
            exact: None,
        }
    }

    fn line_of(speaker: Speaker, text: &str) -> TranscriptLine {
        TranscriptLine { speaker, text: text.to_owned(), action_id: "a".to_owned(), seq: 1 }
    }

    fn four() -> Vec<TestResult> {
        let passed = TestResult {
            transcript: vec![line_of(Speaker::Ai, "您好。\n怎么称呼您？"), line_of(Speaker::User, "小林 <3")],
            notes: vec![bcc_lang::message::message::Message::text("a reply was not asked for")],
            ..ran("tests/a.yaml", "greets", Some("小林"), TestStatus::Passed, None)
        };
        let failed = TestResult {
            failures: vec![failure("the AI said something else"), failure("another")],
            ..ran("tests/a.yaml", "greets", Some("小李"), TestStatus::Failed, None)
        };
        let broken = ran("tests/b c.yaml", "其他", None, TestStatus::Broken, Some("the script has an error"));
        let skipped = ran("tests/b c.yaml", "a person", None, TestStatus::Skipped, Some("it needs a configured model"));
        vec![passed, failed, broken, skipped]
    }

    fn unreadable() -> Diagnostic {
        let file = Arc::new(SourceFile::new("tests/d.yaml", "test: d\nscript:\n"));
        Diagnostic::error("missing-key", "it needs a script", &file, Span::point(9)).with_help("add one")
    }

    fn describe(ran: &TestResult) -> String {
        ran.failures.iter().map(|failure| format!("{}\n]]>", failure.message)).collect()
    }

    #[test]
    fn a_report_has_a_suite_for_each_file_and_a_case_for_each_conversation() {
        insta::assert_snapshot!(junit(&four(), &[&unreadable()], &describe).unwrap());
    }

    #[derive(Debug)]
    struct Element {
        name: String,
        attributes: BTreeMap<String, String>,
        text: String,
        children: Vec<Element>,
    }

    fn utf8(name: &[u8]) -> String {
        String::from_utf8(name.to_vec()).unwrap()
    }

    fn element(start: &BytesStart<'_>) -> Element {
        let attribute = |attribute: Result<quick_xml::events::attributes::Attribute<'_>, _>| {
            let attribute = attribute.unwrap();
            let value = attribute.normalized_value(XmlVersion::Explicit1_0).unwrap().into_owned();
            (utf8(attribute.key.as_ref()), value)
        };
        Element {
            name: utf8(start.name().as_ref()),
            attributes: start.attributes().map(attribute).collect(),
            text: String::new(),
            children: vec![],
        }
    }

    /// Parses a document with another library than the one that wrote it.
    fn read(text: &str) -> Element {
        let mut reader = Reader::from_str(text);
        reader.config_mut().check_end_names = true;
        let mut open = vec![];
        loop {
            match reader.read_event().unwrap() {
                Event::Start(start) => open.push(element(&start)),
                Event::Empty(start) => {
                    open.last_mut().map(|above: &mut Element| above.children.push(element(&start))).unwrap()
                }
                Event::Text(text) => {
                    if let Some(here) = open.last_mut() {
                        here.text += &text.xml10_content().unwrap();
                    }
                }
                Event::GeneralRef(reference) => {
                    let c = reference.resolve_char_ref().unwrap().map(String::from);
                    let name = reference.decode().unwrap();
                    let c = c.or_else(|| quick_xml::escape::resolve_xml_entity(&name).map(str::to_owned));
                    open.last_mut().unwrap().text += &c.unwrap();
                }
                Event::End(_) => {
                    let done = open.pop().unwrap();
                    match open.last_mut() {
                        Some(above) => above.children.push(done),
                        None => return done,
                    }
                }
                Event::Eof => panic!("the document has no end"),
                _ => {}
            }
        }
    }

    /// Checks what the schemas of Jenkins, GitLab and other tools have in common.
    fn check(suites: &Element) {
        let number = |element: &Element, name: &str| element.attributes[name].parse::<usize>().unwrap();
        assert_eq!(suites.name, "testsuites");
        let mut all = 0;
        for suite in &suites.children {
            assert_eq!(suite.name, "testsuite");
            assert!(!suite.attributes["name"].is_empty());
            assert!(suite.attributes["time"].parse::<f64>().unwrap() >= 0.0);
            assert_eq!(number(suite, "tests"), suite.children.len());
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for case in &suite.children {
                assert_eq!(case.name, "testcase");
                let known = ["name", "classname", "file", "time"];
                assert!(case.attributes.keys().all(|key| known.contains(&key.as_str())), "{case:?}");
                assert!(!case.attributes["classname"].is_empty());
                let parts: Vec<&str> = case.children.iter().map(|child| child.name.as_str()).collect();
                let order = ["skipped", "error", "failure", "system-out", "system-err"];
                let places: Vec<usize> =
                    parts.iter().map(|part| order.iter().position(|known| known == part).unwrap()).collect();
                assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{parts:?}");
                assert!(places.iter().filter(|place| **place < 3).count() <= 1, "{parts:?}");
                parts.iter().for_each(|part| *counts.entry(part).or_default() += 1);
            }
            for (attribute, part) in [("failures", "failure"), ("errors", "error"), ("skipped", "skipped")] {
                assert_eq!(number(suite, attribute), counts.get(part).copied().unwrap_or(0), "{attribute}");
            }
            all += suite.children.len();
        }
        assert_eq!(number(suites, "tests"), all);
    }

    #[test]
    fn a_report_follows_the_common_junit_schema() {
        let suites = read(&junit(&four(), &[&unreadable()], &describe).unwrap());
        check(&suites);
        let failure = &suites.children[0].children[1].children[0];
        assert_eq!(failure.attributes["message"], "the AI said something else (and 1 more)");
        assert_eq!(failure.text, "the AI said something else\n]]>another\n]]>");
        assert_eq!(suites.children[0].children[0].children[0].text, "ai: 您好。\n    怎么称呼您？\nuser: 小林 <3\n");
        check(&read(&junit(&[], &[], &describe).unwrap()));
    }

    proptest! {
        #[test]
        fn every_text_is_read_back_from_the_report_as_it_is_shown(text in any::<String>(), message in any::<String>()) {
            let ran = TestResult {
                failures: vec![failure(&message)],
                transcript: vec![line_of(Speaker::Ai, &text)],
                ..ran("t.yaml", &message, None, TestStatus::Failed, None)
            };
            let report = junit(&[ran], &[], &|_| text.clone()).unwrap();
            prop_assert!(!report.contains("]]>"));
            let suites = read(&report);
            check(&suites);
            let case = &suites.children[0].children[0];
            prop_assert_eq!(&case.attributes["name"], &visible(&message));
            if !text.is_empty() {
                prop_assert_eq!(&case.children[0].text, &visible(&text));
            }
        }
    }
}
