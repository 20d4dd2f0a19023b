//! Tests of the frames.

use crate::run::branch_state::BranchRules;
use crate::run::frames::{self, Frame, Frames, ROOT, child, lineage, parent, public_path};

#[test]
fn the_leaf_is_the_innermost_frame_of_the_chain() {
    let mut frames = Frames::new();
    let mut key = ROOT.to_owned();
    for component in ["phase", "topic#2", "check", "=case.0", "ask"] {
        key = child(&key, component);
        frames.put(key.clone(), Frame::default());
        assert_eq!(frames.leaf(), key);
        assert_eq!(frames::component(&key), component);
    }
    let above: Vec<&str> = lineage("phase/topic#2/check").collect();
    assert_eq!(above, ["phase", "phase/topic#2", "phase/topic#2/check"]);
    assert_eq!(lineage(ROOT).count(), 0);
    assert_eq!(public_path(&key), "topic#2/check/ask");
    assert_eq!(parent(&key), "phase/topic#2/check/=case.0");
    assert_eq!(parent("phase"), ROOT);
}

#[test]
fn each_branch_has_an_innermost_frame_of_its_own() {
    let mut frames = Frames::new();
    for key in ["p", "p/t", "p/t/all", "p/t/all/=branch.a", "p/t/all/=branch.a/one", "p/t/all/=branch.a-2"] {
        frames.put(key.to_owned(), Frame::default());
    }
    frames.set_branches("p/t/all", Some(BranchRules::default()));
    assert_eq!(frames.leaf(), "p/t/all");
    frames.set_focus(Some("p/t/all/=branch.a".into()));
    assert_eq!(frames.leaf(), "p/t/all/=branch.a/one");
    frames.set_focus(Some("p/t/all/=branch.a-2".into()));
    assert_eq!(frames.leaf(), "p/t/all/=branch.a-2");
    // An action with branches inside a branch.
    frames.put("p/t/all/=branch.a/one/=branch.b".into(), Frame::default());
    frames.set_branches("p/t/all/=branch.a/one", Some(BranchRules::default()));
    frames.set_focus(Some("p/t/all/=branch.a".into()));
    assert_eq!(frames.leaf(), "p/t/all/=branch.a/one");
    assert_eq!(frames.parallel_within("p/t/all/=branch.a").len(), 1);
}

#[test]
fn what_is_inserted_below_an_action_with_branches_is_innermost() {
    let mut frames = Frames::new();
    let inserted = "p/t/all/+help/both";
    for key in ["p", "p/t", "p/t/all", "p/t/all/=branch.a", "p/t/all/+help", inserted] {
        frames.put(key.to_owned(), Frame::default());
    }
    frames.set_branches("p/t/all", Some(BranchRules::default()));
    assert_eq!(frames.leaf(), inserted);
    frames.put(format!("{inserted}/=branch.b"), Frame::default());
    frames.set_branches(inserted, Some(BranchRules::default()));
    assert_eq!(frames.leaf(), inserted);
    frames.set_branches(inserted, None);
    assert_eq!(frames.leaf(), format!("{inserted}/=branch.b"));
}

#[test]
fn only_what_changed_becomes_rows() {
    let mut frames = Frames::new();
    frames.put("a".into(), Frame::default());
    frames.take_changes().unwrap();
    frames.change("a").unwrap().next = 3;
    let (put, removed) = frames.take_changes().unwrap();
    assert_eq!(put.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(removed.is_empty());
    frames.remove("a");
    let (put, removed) = frames.take_changes().unwrap();
    assert!(put.is_empty());
    assert_eq!(removed, ["a"]);
}
