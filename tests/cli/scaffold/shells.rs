//! Tests of `completions`, `man` and `--version`.

use super::*;

use std::process::{Command, Stdio};

/// The completions that bash offers for a line, with the completions of `script` loaded.
fn offered(home: &Home, script: &Path, words: &[&str]) -> Vec<String> {
    let last = words.len() - 1;
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    // `compopt` works only in an interactive shell, and only changes how files are shown.
    let ask = format!(
        "compopt() {{ :; }}; source '{}'; COMP_WORDS=({}); COMP_CWORD={last}; _bcc__script bcc-script '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        quoted.join(" "),
        words[last],
        words[last.saturating_sub(1)],
    );
    let output = Command::new("bash").args(["-c", &ask]).current_dir(home.path()).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_choices_and_names() {
    let home = Home::new();
    let table: [(&[&str], &[&str]); 11] = [
        // The shell completes files itself, and an id has no completions.
        (&["bcc-script", "run", "compl"], &[""]),
        (&["bcc-script", "run", "x.yaml", "--session", "c"], &["c"]),
        (&["bcc-script", "val"], &["validate"]),
        (&["bcc-script", "templ"], &["templates"]),
        (&["bcc-script", "run", "--ses"], &["--session"]),
        (&["bcc-script", "new", "s"], &["script", "skill", "scheme"]),
        (&["bcc-script", "validate", "--format", ""], &["human", "json", "sarif", "github"]),
        (&["bcc-script", "schema", "ai_"], &["ai_say", "ai_ask", "ai_think", "ai_act"]),
        (&["bcc-script", "explain", "unused-v"], &["unused-variable"]),
        (&["bcc-script", "completions", "z"], &["zsh"]),
        (&["bcc-script", "sessions", "ex"], &["export"]),
    ];
    let script = home.file("completions.bash", &home.finish(["completions", "bash"], "").out);
    for (words, expected) in table {
        assert_eq!(offered(&home, &script, words), *expected, "{words:?}");
    }
}

#[test]
fn every_installed_shell_can_read_its_completions() {
    let home = Home::new();
    // The options with which each shell checks a file without running it.
    let shells: [(&str, &[&str]); 5] = [
        ("bash", &["-n"]),
        ("zsh", &["-n"]),
        ("fish", &["--no-execute"]),
        ("elvish", &["-compileonly"]),
        ("powershell", &[]),
    ];
    for (shell, options) in shells {
        let finished = home.finish(["completions", shell], "");
        assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""), "{shell}");
        // The completions for fish and elvish do not contain these words separately.
        let names = ["unused-variable", "ai_think"].into_iter().filter(|_| matches!(shell, "bash" | "zsh"));
        for part in ["validate", "templates"].into_iter().chain(names) {
            assert!(finished.out.contains(part), "{shell}: {part}");
        }
        let script = home.file("completions", &finished.out);
        let command = Command::new(shell).args(options).arg(script).stdin(Stdio::null()).output();
        if let (false, Ok(output)) = (options.is_empty(), command) {
            assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    fails_in(&home, home.path(), &["completions", "tcsh"], 2, &["tcsh", "bash"]);
}

#[test]
fn every_command_has_a_manual_page_with_all_its_options() {
    let home = Home::new();
    let out = output_in(&home, home.path(), &["man", "pages/man1"]);
    let pages = tree(&home.path().join("pages/man1"));
    assert_eq!(out, format!("{} pages written to pages/man1\n", pages.len()));
    for name in ["", "-run", "-new", "-new-test", "-sessions-export", "-completions", "-man"] {
        assert!(pages.contains_key(&format!("bcc-script{name}.1")), "{name}: {:?}", pages.keys());
    }
    // Each page names its subpages, and those exist.
    for (name, page) in &pages {
        let page = String::from_utf8(page.clone()).unwrap().replace('\\', "");
        assert!(page.contains(&format!(".TH {} 1", name.strip_suffix(".1").unwrap())), "{name}");
        for below in page.lines().filter_map(|line| line.strip_suffix("(1)")) {
            assert!(pages.contains_key(&format!("{below}.1")), "{name} names {below}");
        }
    }
    let run = String::from_utf8(pages["bcc-script-run.1"].clone()).unwrap().replace('\\', "");
    assert!(run.contains("--session") && run.contains("--replay-by"), "{run}");
    assert_eq!(home.finish(["man"], "").out.as_bytes(), pages["bcc-script.1"]);
    // Existing pages are overwritten, and no other file is changed.
    fs::write(home.path().join("pages/man1/bcc-script.1"), "\n.TH bcc-script 1 old").unwrap();
    output_in(&home, home.path(), &["man", "pages/man1"]);
    assert_eq!(tree(&home.path().join("pages/man1")), pages);
    home.file("file", "");
    fails_in(&home, home.path(), &["man", "file"], 2, &["file is a file, but"]);
}

#[test]
fn groff_reads_the_manual_pages_without_warnings() {
    let home = Home::new();
    output_in(&home, home.path(), &["man", "pages"]);
    for name in tree(&home.path().join("pages")).keys() {
        let page = home.path().join("pages").join(name);
        let read = Command::new("groff").args(["-k", "-man", "-ww", "-z", "-Tutf8"]).arg(&page).output();
        if let Ok(output) = read {
            assert!(
                output.status.success() && output.stderr.is_empty(),
                "{name}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

#[test]
fn the_version_is_one_line_and_the_long_one_says_what_is_built_in() {
    let home = Home::new();
    assert_eq!(home.finish(["-V"], "").out, format!("bcc-script {}\n", env!("CARGO_PKG_VERSION")));
    let long = home.finish(["--version"], "").out;
    assert_eq!(long.lines().next(), Some(concat!("bcc-script ", env!("CARGO_PKG_VERSION"))));
    for part in ["ai_ask", "anthropic", "minijinja", "english", "SQLite 3.", "layout ", std::env::consts::ARCH] {
        assert!(long.contains(part), "{part}: {long}");
    }
    // The text contains nothing about the build machine.
    assert!(!long.contains('/') && !long.contains(crate::ROOT), "{long}");
}
