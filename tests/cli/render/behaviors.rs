//! The prompts of kinds that do not simply ask: a loop of behaviors has two, code has one that follows its failure.

use crate::render::Desk;

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
    let desk = Desk::new(SCRIPT);
    for (options, file, told) in [
        (&[][..], "behavior_v1.md", "Sleep"),
        (&["behavior"], "behavior_v1.md", "three sections"),
        (&["reflection_v1"], "reflection_v1.md", "three sections"),
    ] {
        let prompt = desk.action("write", options);
        assert!(prompt["template"].to_string().contains(file), "{options:?}: {}", prompt["template"]);
        assert!(prompt["messages"].to_string().contains(told), "{options:?}: {}", prompt["messages"]);
    }
}

#[test]
fn where_there_is_no_prompt_it_is_said_why() {
    let desk = Desk::new(SCRIPT);
    for (options, told) in [
        (&["--action", "run"][..], "only after its code has failed"),
        (&["exec", "--action", "run"], "`bcc-script templates render exec` shows only the template"),
        (&["--action", "code"], "asks no model"),
        (&["--action", "far"], "the behavior server `analysis` is asked here, not a model"),
        (&["reflection", "--action", "unjudged"], "`unjudged` does not use the template `reflection`"),
        (&["behavior", "--action", "write", "--answer", "x"], "`write` takes no answer"),
        (&["ai_ask", "--action", "write"], "its templates are `behavior` and `reflection`"),
    ] {
        let done = desk.render(&[&["--script", "script.yaml"], options].concat());
        assert!(matches!(done.code, Some(1 | 2)), "{options:?}: {:?}", done.code);
        assert!(done.err.contains(told) && done.out.is_empty(), "{options:?}: {}", done.err);
    }
}
