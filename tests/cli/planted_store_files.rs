//! Tests of links and pipes that someone else has put in the place of the files next to a store.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::project_files::Cloned;

#[test]
fn a_pipe_or_link_in_the_place_of_the_log_of_a_store_is_refused_without_waiting() {
    for end in ["-wal", "-shm", "-journal"] {
        for link in [false, true] {
            let cloned = Cloned::new();
            assert_eq!(cloned.run(&["run", "scripts/talk.yaml"]).code, Some(0));
            let (planted, victim) = (cloned.at(&format!(".bcc/sessions.db{end}")), cloned.at("victim"));
            fs::write(&victim, "precious").unwrap();
            let _ = fs::remove_file(&planted);
            if link {
                symlink(&victim, &planted).unwrap();
            } else {
                assert!(Command::new("mkfifo").arg(&planted).status().unwrap().success());
            }
            for arguments in [&["run", "scripts/talk.yaml"][..], &["sessions", "list"], &["doctor"]] {
                let finished = cloned.run(arguments);
                let all = format!("{}{}", finished.out, finished.err);
                assert!(all.contains("is not a regular file"), "{end} {arguments:?}: {all}");
            }
            assert_eq!(fs::read(&victim).unwrap(), b"precious");
            // Without the store, its log would be copied.
            fs::remove_file(cloned.at(".bcc/sessions.db")).unwrap();
            let finished = cloned.run(&["run", "scripts/talk.yaml"]);
            assert!(finished.err.contains("is not a regular file"), "{end}: {}", finished.err);
            let names = fs::read_dir(cloned.at(".bcc")).unwrap().map(|entry| entry.unwrap().file_name());
            assert!(names.into_iter().all(|name| !name.to_string_lossy().contains("damaged")));
        }
    }
}

#[test]
fn a_link_in_the_place_of_the_folder_of_locks_is_refused_by_every_command() {
    for arguments in [&["run", "scripts/talk.yaml"][..], &["sessions", "prune", "--older-than", "0s"]] {
        let cloned = Cloned::new();
        assert_eq!(cloned.run(&["run", "scripts/talk.yaml"]).code, Some(0));
        let (locks, outside) = (cloned.at(".bcc/sessions.db.locks"), cloned.home.path().join("elsewhere"));
        fs::remove_dir_all(&locks).unwrap();
        fs::create_dir(&outside).unwrap();
        symlink(&outside, &locks).unwrap();
        let finished = cloned.run(arguments);
        assert!(finished.err.contains("is a link, or something else than a lock"), "{}", finished.err);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }
}
