//! What code puts out, as nbformat has it, and how much of it.

use bcc_runtime::notebook::cell::CellEnd;
use serde_json::json;

use crate::kernel::bench::{Bench, text};

#[tokio::test]
async fn streams_of_one_name_that_follow_each_other_are_one() {
    let Some(bench) = Bench::new() else { return };
    let ran = bench
        .run("import sys\nprint('一')\nprint('two', flush=True)\nprint('drei', file=sys.stderr, flush=True)\nprint('four')")
        .await;
    assert_eq!(
        ran.outputs,
        [
            json!({ "output_type": "stream", "name": "stdout", "text": "一\ntwo\n" }),
            json!({ "output_type": "stream", "name": "stderr", "text": "drei\n" }),
            json!({ "output_type": "stream", "name": "stdout", "text": "four\n" }),
        ]
    );
    assert_eq!((ran.ended, ran.execution_count, ran.left_out), (CellEnd::Ok, Some(1), 0));
    assert_eq!(bench.run("6 * 7").await.execution_count, Some(2));
}

#[tokio::test]
async fn results_and_rich_data_keep_every_form() {
    let Some(bench) = Bench::new() else { return };
    let ran = bench.run("from IPython.display import display, HTML\ndisplay(HTML('<b>富</b>'))\n{'表': [1, 2]}").await;
    assert_eq!(
        ran.outputs,
        [
            json!({
                "output_type": "display_data",
                "data": { "text/plain": "<IPython.core.display.HTML object>", "text/html": "<b>富</b>" },
                "metadata": {},
            }),
            json!({
                "output_type": "execute_result",
                "execution_count": 1,
                "data": { "text/plain": "{'表': [1, 2]}" },
                "metadata": {},
            }),
        ]
    );
}

#[tokio::test]
async fn a_display_is_updated_where_it_stands_and_cleared_when_asked() {
    let Some(bench) = Bench::new() else { return };
    let ran = bench.run("h = display('old', display_id=True)\nprint('between')\nh.update('new')").await;
    assert_eq!(ran.outputs[0]["data"]["text/plain"], "'new'");
    assert_eq!(ran.outputs.len(), 2, "{:?}", ran.outputs);
    let cleared = bench
        .run(
            "from IPython.display import clear_output\nprint('a')\nclear_output()\nprint('b')\nclear_output(wait=True)",
        )
        .await;
    assert_eq!(text(&cleared.outputs), "b\n");
    let cleared = bench.run("print('a')\nclear_output(wait=True)\nprint('b')").await;
    assert_eq!(text(&cleared.outputs), "b\n");
}

#[tokio::test]
async fn an_error_keeps_its_traceback_with_colours_and_the_kernel_goes_on() {
    let Some(bench) = Bench::new() else { return };
    let ran = bench.run("x = 5\ndef deep():\n    raise ValueError('坏了')\ndeep()").await;
    let error = &ran.outputs[0];
    assert_eq!(ran.ended, CellEnd::Error);
    assert_eq!(
        (&error["output_type"], &error["ename"], &error["evalue"]),
        (&json!("error"), &json!("ValueError"), &json!("坏了"))
    );
    let traceback: Vec<&str> = error["traceback"].as_array().unwrap().iter().filter_map(|line| line.as_str()).collect();
    assert!(traceback.len() > 1 && traceback.concat().contains("\u{1b}["), "{traceback:?}");
    assert_eq!(bench.said("print(x)").await, "5\n");
}

#[tokio::test]
async fn a_syntax_error_is_an_error_too() {
    let Some(bench) = Bench::new() else { return };
    let ran = bench.run("for in").await;
    assert_eq!((ran.ended, &ran.outputs[0]["ename"]), (CellEnd::Error, &json!("SyntaxError")));
}

#[tokio::test]
async fn code_that_writes_for_ever_is_interrupted_and_most_of_it_left_out() {
    let Some(bench) = Bench::new() else { return };
    let ran = bench.run("line = 'x' * 999_999\nfor _ in range(1_000):\n    print(line)").await;
    assert_eq!(ran.ended, CellEnd::Interrupted);
    assert!(ran.left_out > 60 * 1024 * 1024, "{}", ran.left_out);
    let kept: usize = ran.outputs.iter().map(|output| output.to_string().len()).sum();
    assert!(kept < 1_200_000, "{kept}");
    let note = ran.outputs.last().unwrap()["text"].as_str().unwrap();
    assert!(note.contains("left out"), "{note}");
    assert_eq!(bench.said("print('alive', len(line))").await, "alive 999999\n");
}

#[tokio::test]
async fn one_print_of_much_is_left_out_and_what_follows_is_kept() {
    let Some(bench) = Bench::new() else { return };
    let ran = bench.run("print('x' * 50_000_000, flush=True)\nprint('end')").await;
    assert_eq!((ran.ended, text(&ran.outputs).as_str()), (CellEnd::Ok, "end\n"));
    assert!(ran.left_out >= 50_000_000);
}

#[tokio::test]
async fn an_error_is_shown_however_much_was_written_before() {
    let Some(bench) = Bench::new() else { return };
    let ran = bench.run("for _ in range(3_000):\n    print('y' * 999)\nraise KeyError('z' * 5_000_000)").await;
    assert_eq!(ran.ended, CellEnd::Error);
    assert!(ran.outputs.iter().any(|output| output["output_type"] == "error"), "{}", ran.left_out);
    assert!(ran.left_out > 1_900_000);
}

#[tokio::test]
async fn too_many_outputs_and_too_large_pictures_are_left_out() {
    let Some(bench) = Bench::new() else { return };
    let ran = bench.run("for n in range(1_500):\n    display(n)").await;
    assert_eq!(ran.outputs.len(), 1_001);
    let large = "from IPython.display import HTML\nHTML('h' * 2_000_000)";
    let ran = bench.run(large).await;
    assert_eq!(ran.outputs[0]["data"], json!({ "text/plain": "<IPython.core.display.HTML object>" }));
    assert!(ran.left_out >= 2_000_000);
}
