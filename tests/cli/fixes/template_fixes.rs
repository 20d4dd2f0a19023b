//! Fixes of templates.

use std::fs;

use crate::fixes::{NEW, run};
use crate::process::Home;

#[test]
fn a_template_is_fixed_too() {
    let home = Home::new();
    home.put("scripts/a.yaml", NEW);
    let part = home.put("_system/config/default/rules.md", "Be kind.\n");
    let template = home.put(
        "_system/config/default/ai_say_v1.md",
        "Say it.\r\n{% include rules.md %}\r\n<!-- user -->\r\n{{ content }}\r\n",
    );
    let finished = run(&home, &["validate", "--fix", "--rule", "template-lacks-field=off"]);
    assert!(
        finished.err.starts_with("_system/config/default/ai_say_v1.md: 1 finding fixed\n"),
        "{}{}",
        finished.out,
        finished.err
    );
    assert_eq!(
        fs::read_to_string(template).unwrap(),
        "Say it.\r\n{% include \"rules.md\" %}\r\n<!-- user -->\r\n{{ content }}\r\n"
    );
    assert_eq!(fs::read_to_string(part).unwrap(), "Be kind.\n");
}

#[test]
fn a_template_with_several_syntax_errors_is_fixed_at_once() {
    let home = Home::new();
    home.put("scripts/a.yaml", NEW);
    let template = home.put(
        "_system/config/default/ai_say_v1.md",
        "{% if round == 1 %}a{% else if round == 2 %}b{% endif %}\n\
         {% if round == 3 %}c{% elseif round == 4 %}d{% endif %}\n{{ content }}\n",
    );
    let finished = run(&home, &["validate", "--fix", "--rule", "template-lacks-field=off"]);
    assert!(
        finished.err.starts_with("_system/config/default/ai_say_v1.md: 2 findings fixed\n"),
        "{}{}",
        finished.out,
        finished.err
    );
    assert_eq!(
        fs::read_to_string(template).unwrap(),
        "{% if round == 1 %}a{% elif round == 2 %}b{% endif %}\n\
         {% if round == 3 %}c{% elif round == 4 %}d{% endif %}\n{{ content }}\n"
    );
}
