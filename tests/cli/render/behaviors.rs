//! Tests of the prompts of kinds with more than one prompt: a loop of behaviors has two, code has one for its failure.

use crate::render::RenderFixture;

const SCRIPT: &str = r#"
session:
  session_id: notes
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          topic_goal: three sections
          actions:
            - { action_type: behavior_loop, action_id: write, config: { todo_list: [Sleep] } }
            - { action_type: behavior_loop, action_id: unjudged, config: { target: x, reflection: off } }
            - { action_type: behavior_loop, action_id: far, config: { target: x, server: analysis } }
            - { action_type: add, action_id: code, config: { content: print(1), shot_type: action } }
            - { action_type: exec, action_id: run, config: { codecell_id: lastAddedCellId, auto_debug: true } }
"#;

#[test]
fn both_prompts_of_a_loop_are_shown() {
    let fixture = RenderFixture::new(SCRIPT);
    for (options, file, expected) in [
        (&[][..], "behavior_v1.md", "Sleep"),
        (&["behavior"], "behavior_v1.md", "three sections"),
        (&["reflection_v1"], "reflection_v1.md", "three sections"),
    ] {
        let prompt = fixture.action("write", options);
        assert!(prompt["template"].to_string().contains(file), "{options:?}: {}", prompt["template"]);
        assert!(prompt["messages"].to_string().contains(expected), "{options:?}: {}", prompt["messages"]);
    }
}

#[test]
fn the_reason_is_printed_where_there_is_no_prompt() {
    let fixture = RenderFixture::new(SCRIPT);
    for (options, expected) in [
        (&["--action", "run"][..], "only after its code has failed"),
        (&["exec", "--action", "run"], "`bcc-script templates render exec` shows only the template"),
        (&["--action", "code"], "asks no model"),
        (&["--action", "far"], "the behavior server `analysis` is asked here, not a model"),
        (&["reflection", "--action", "unjudged"], "`unjudged` does not use the template `reflection`"),
        (&["behavior", "--action", "write", "--answer", "x"], "`write` takes no answer"),
        (&["ai_ask", "--action", "write"], "its templates are `behavior` and `reflection`"),
    ] {
        let finished = fixture.render(&[&["--script", "script.yaml"], options].concat());
        assert!(matches!(finished.code, Some(1 | 2)), "{options:?}: {:?}", finished.code);
        assert!(finished.err.contains(expected) && finished.out.is_empty(), "{options:?}: {}", finished.err);
    }
}
