//! Tests of `graph`: the content of a drawing, how it is folded, and its Mermaid and Graphviz output. `.ci/tools/run` checks that both
//! tools can read it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use bcc_authoring::graph::build::build_graph;
use bcc_authoring::graph::drawing::{Drawing, DrawingItem};
use bcc_authoring::graph::fold::{Depth, fold};
use bcc_authoring::graph::request::{GraphFormat, GraphRequest, graph};
use bcc_authoring::graph::script_graph::{GraphNodeKind, ScriptGraph};
use bcc_engine::engine::RunRequest;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::project::Project;

use crate::process::{Finished, finished};

const DEPTHS: [Depth; 4] = [Depth::Phases, Depth::Topics, Depth::Actions, Depth::All];

fn folder(path: &str) -> PathBuf {
    Path::new(crate::ROOT).join(path)
}

fn request(file: &Path, format: GraphFormat, depth: Option<Depth>) -> GraphRequest {
    GraphRequest { file: file.to_path_buf(), project: None, format, depth, only: vec![], session: None }
}

fn full_graph(file: &Path) -> ScriptGraph {
    let project = Project::of(file, None, false, &Environment::default()).unwrap();
    let loaded =
        LoadedProgram::of(&project, &RunRequest { file: file.to_path_buf(), ..RunRequest::default() }).unwrap();
    build_graph(&loaded.into_parts().1)
}

/// A script with this number of topics of five actions, in phases of five topics; the last action of each phase routes to the last phase.
fn large_script(topics: usize) -> (tempfile::TempDir, PathBuf) {
    let mut text = String::from("session:\n  session_id: crowd\n  phases:\n");
    let last = (topics - 1) / 5;
    for topic in 0..topics {
        let phase = topic / 5;
        if topic % 5 == 0 {
            let _ = write!(text, "    - phase_id: phase_{phase}\n      topics:\n");
        }
        let _ = write!(text, "        - topic_id: topic_{topic}\n          actions:\n");
        for action in 0..5 {
            let route =
                if action == 4 { format!(" on_exit: {{ error: {{ goto: phase_{last} }} }},") } else { String::new() };
            let _ = writeln!(
                text,
                "            - {{ action_type: ai_say, action_id: say_{topic}_{action},{route} config: {{ content: 好 }} }}"
            );
        }
    }
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("crowd.yaml");
    std::fs::write(&file, text).unwrap();
    (home, file)
}

#[test]
fn drawings_are_as_they_were_read() {
    for name in ["routes", "choices", "names", "cleanup", "tasks", "branches"] {
        let file = folder("tests/drawings").join(format!("{name}.yaml"));
        for (format, shown) in [(GraphFormat::Mermaid, "mermaid"), (GraphFormat::Dot, "dot")] {
            for (number, depth) in DEPTHS.into_iter().enumerate() {
                // The formats differ in syntax and the depths in content, so a few combinations are enough.
                if depth != Depth::All
                    && (format == GraphFormat::Dot || ["names", "cleanup", "tasks", "branches"].contains(&name))
                {
                    continue;
                }
                let drawn = graph(&request(&file, format, Some(depth)), &Environment::default()).unwrap();
                insta::assert_snapshot!(format!("graph_{name}_{}_{shown}", number + 1), drawn.text);
            }
        }
    }
}

fn boxes(items: &[DrawingItem], found: &mut Vec<usize>) {
    for item in items {
        match item {
            DrawingItem::Box(node) => found.push(node.number),
            DrawingItem::Group(group) => {
                assert!(!group.items.is_empty(), "a frame around nothing");
                boxes(&group.items, found);
            }
        }
    }
}

/// Asserts that every arrow connects two boxes, every box is drawn once, and no two arrows are the same.
fn check_drawing(drawing: &Drawing, label: &str) {
    let mut numbers = Vec::new();
    boxes(&drawing.items, &mut numbers);
    let all: BTreeSet<usize> = numbers.iter().copied().collect();
    assert_eq!(all.len(), numbers.len(), "{label}: a box is drawn twice");
    let mut seen = BTreeSet::new();
    for arrow in &drawing.arrows {
        assert!(all.contains(&arrow.from) && all.contains(&arrow.to), "{label}: an arrow without its box: {arrow:?}");
        assert!(seen.insert((arrow.from, arrow.to, arrow.kind)), "{label}: two arrows for one: {arrow:?}");
    }
}

#[test]
fn every_arrow_leads_from_a_box_to_a_box_however_a_script_is_folded() {
    let (_home, large_script) = large_script(40);
    let large = full_graph(&large_script);
    for depth in DEPTHS {
        check_drawing(&fold(&large, depth, &BTreeSet::new()), &format!("two hundred actions at {depth:?}"));
    }
    let mut files = vec![];
    for place in ["scripts", "tests/drawings"] {
        let entries = std::fs::read_dir(folder(place)).unwrap().map(|entry| entry.unwrap().path());
        files.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")));
    }
    assert!(files.len() >= 7);
    for file in files {
        let full_graph = full_graph(&file);
        for depth in DEPTHS {
            check_drawing(&fold(&full_graph, depth, &BTreeSet::new()), &format!("{} at {depth:?}", file.display()));
            let places = full_graph
                .parts
                .iter()
                .enumerate()
                .filter(|(_, part)| matches!(part.kind, GraphNodeKind::Phase | GraphNodeKind::Topic));
            for (only, _) in places {
                check_drawing(
                    &fold(&full_graph, depth, &BTreeSet::from([only])),
                    &format!("{} only {only}", file.display()),
                );
            }
        }
    }
}

#[test]
fn the_default_depth_depends_on_the_size_and_is_reported() {
    let environment = Environment::default();
    for (topics, depth, part) in [
        (2, Depth::All, None),
        (10, Depth::Actions, Some("`--depth 4` draws every action")),
        (40, Depth::Topics, Some("200 actions are folded into the topics")),
        (90, Depth::Phases, Some("450 actions in 90 topics are folded into phases")),
    ] {
        let (_home, file) = large_script(topics);
        let drawn = graph(&request(&file, GraphFormat::Mermaid, None), &environment).unwrap();
        assert_eq!(drawn.depth, depth, "{topics}");
        match part {
            Some(part) => assert!(drawn.notices[0].to_string().contains(part), "{:?}", drawn.notices),
            None => assert!(drawn.notices.is_empty(), "{:?}", drawn.notices),
        }
    }
}

#[test]
fn a_drawing_of_two_hundred_actions_has_no_arrow_across_phases() {
    let (_home, file) = large_script(40);
    let full_graph = full_graph(&file);
    let drawing = fold(&full_graph, Depth::Topics, &BTreeSet::new());
    assert!(drawing.refers());
    assert!(drawing.boxes() < 80, "{}", drawing.boxes());
    let phase = |number: usize| {
        drawing.items.iter().position(|item| match item {
            DrawingItem::Group(group) => {
                let mut inside = Vec::new();
                boxes(&group.items, &mut inside);
                inside.contains(&number)
            }
            DrawingItem::Box(node) => node.number == number,
        })
    };
    let crossing = drawing.arrows.iter().filter(|arrow| {
        let both = [arrow.from, arrow.to].map(|number| drawing.items[phase(number).unwrap()].group());
        both[0] != both[1]
    });
    assert_eq!(crossing.count(), 0);
}

#[test]
fn a_sequence_of_actions_without_routes_is_one_box() {
    let drawn = graph(
        &request(&folder("tests/drawings/choices.yaml"), GraphFormat::Dot, Some(Depth::Actions)),
        &Environment::default(),
    );
    let text = drawn.unwrap().text;
    assert!(text.contains(r"5 actions\none_of_five\n… five_of_five\n1 × ai_ask\n4 × ai_say"), "{text}");
    assert!(!text.contains("three_of_five") && text.contains("by_mood"), "{text}");
}

#[test]
fn one_part_alone_is_unfolded() {
    let file = folder("scripts/cbt_intake.yaml");
    let request = GraphRequest { only: vec!["safety_topic".into()], ..request(&file, GraphFormat::Mermaid, None) };
    let text = graph(&request, &Environment::default()).unwrap().text;
    assert!(text.contains("say_crisis_help") && !text.contains("ask_father_relation"), "{text}");
    assert!(text.contains("3 topics, 7 actions"), "{text}");
    let wrong = GraphRequest { only: vec!["safety_topik".into()], ..request };
    let error = graph(&wrong, &Environment::default()).unwrap_err();
    assert_eq!(error.to_string(), "the script has no phase or topic `safety_topik`");
    assert_eq!(error.help().map(ToString::to_string).as_deref(), Some("did you mean `safety_topic`?"));
}

#[test]
fn a_script_with_errors_gives_its_findings_and_one_with_warnings_is_drawn() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("s.yaml");
    let script = |extra: &str| {
        format!(
            "session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            \
             - {{ action_type: ai_say, action_id: a, config: {{ {extra} }} }}\n"
        )
    };
    std::fs::write(&file, script("content: 好, tune: x")).unwrap();
    let error = graph(&request(&file, GraphFormat::Mermaid, None), &Environment::default()).unwrap_err();
    let EngineError::Invalid(found) = error else { panic!("{error}") };
    assert_eq!(found[0].rule, "unknown-key");
    std::fs::write(&file, script("content_template: 好")).unwrap();
    let drawn = graph(&request(&file, GraphFormat::Mermaid, None), &Environment::default()).unwrap();
    assert_eq!(drawn.diagnostics[0].rule, "deprecated-field");
    assert!(drawn.text.contains("ai_say"));
}

fn program(arguments: &[&str], directory: &Path) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bcc-script"));
    command.args(arguments).current_dir(directory).env_clear().env("XDG_CONFIG_HOME", directory);
    finished(command, "")
}

#[test]
fn the_command_writes_to_a_file_in_the_form_of_its_name_or_to_standard_output() {
    let home = tempfile::tempdir().unwrap();
    let script = folder("tests/drawings/choices.yaml");
    let script = script.to_str().unwrap();
    let output = program(&["graph", script, "--depth", "1"], home.path());
    assert_eq!(output.code, Some(0));
    assert!(output.out.starts_with("flowchart TB\n"));
    assert_eq!(output.err, "");
    let output = program(&["graph", script, "-o", "drawing.dot"], home.path());
    assert!(output.code == Some(0) && output.out.is_empty());
    let written = std::fs::read_to_string(home.path().join("drawing.dot")).unwrap();
    assert!(written.starts_with("digraph script {"), "{written}");
    // A drawing needs only the script: no store and no other file is created.
    let files: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["drawing.dot"]);
    assert_eq!(program(&["graph", "nothing.yaml"], home.path()).code, Some(2));
    assert_eq!(program(&["graph", script, "--depth", "9"], home.path()).code, Some(2));
}

#[test]
fn a_drawing_never_overwrites_a_script_or_a_folder() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let text = std::fs::read_to_string(folder("tests/drawings/choices.yaml")).unwrap();
    std::fs::create_dir(at("folder")).unwrap();
    std::fs::write(at("s.yaml"), &text).unwrap();
    std::os::unix::fs::symlink("s.yaml", at("link.yaml")).unwrap();
    std::fs::hard_link(at("s.yaml"), at("second.yaml")).unwrap();
    let own = at("s.yaml");
    for name in ["s.yaml", "./folder/../s.yaml", "link.yaml", "second.yaml", own.to_str().unwrap()] {
        for (script, output) in [("s.yaml", name), (name, "s.yaml")] {
            let finished = program(&["graph", script, "-o", output], home.path());
            let stderr = finished.err;
            assert_eq!(finished.code, Some(2), "{name}: {stderr}");
            assert!(stderr.contains("is the script itself"), "{stderr}");
            assert_eq!(std::fs::read_to_string(at("s.yaml")).unwrap(), text, "{name}");
        }
    }
    let finished = program(&["graph", "s.yaml", "-o", "folder"], home.path());
    assert_eq!(finished.code, Some(2));
    assert!(finished.err.contains("folder is a directory, but the graph is a single file"));
}

#[test]
fn a_drawing_can_go_to_standard_output_and_through_a_link() {
    let home = tempfile::tempdir().unwrap();
    let script = folder("tests/drawings/choices.yaml");
    let script = script.to_str().unwrap();
    let output = program(&["graph", script, "-o", "/dev/stdout"], home.path());
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(output.out.starts_with("flowchart TB\n"));
    let earlier = output.out.replace("classDef act", "classDef other");
    std::fs::write(home.path().join("kept.mmd"), &earlier).unwrap();
    std::os::unix::fs::symlink("kept.mmd", home.path().join("link.mmd")).unwrap();
    assert!(program(&["graph", script, "-o", "link.mmd"], home.path()).code == Some(0));
    assert!(home.path().join("link.mmd").is_symlink());
    assert_eq!(std::fs::read_to_string(home.path().join("kept.mmd")).unwrap(), output.out);
}
