//! Tests of outputs of code: their nbformat form and their size limits.

use bcc_runtime::notebook::cell::CellEnd;
use serde_json::json;

use crate::kernel::bench::{Bench, text};

#[tokio::test]
async fn consecutive_streams_with_the_same_name_are_merged() {
    let Some(bench) = Bench::new() else { return };
    let execution = bench
        .run("import sys\nprint('一')\nprint('two', flush=True)\nprint('drei', file=sys.stderr, flush=True)\nprint('four')")
        .await;
    assert_eq!(
        execution.outputs,
        [
            json!({ "output_type": "stream", "name": "stdout", "text": "一\ntwo\n" }),
            json!({ "output_type": "stream", "name": "stderr", "text": "drei\n" }),
            json!({ "output_type": "stream", "name": "stdout", "text": "four\n" }),
        ]
    );
    assert_eq!((execution.ended, execution.execution_count, execution.omitted_bytes), (CellEnd::Ok, Some(1), 0));
    assert_eq!(bench.run("6 * 7").await.execution_count, Some(2));
}

#[tokio::test]
async fn results_and_rich_data_keep_every_format() {
    let Some(bench) = Bench::new() else { return };
    let execution =
        bench.run("from IPython.display import display, HTML\ndisplay(HTML('<b>富</b>'))\n{'表': [1, 2]}").await;
    assert_eq!(
        execution.outputs,
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
async fn a_display_is_updated_in_place_and_cleared_on_request() {
    let Some(bench) = Bench::new() else { return };
    let execution = bench.run("h = display('old', display_id=True)\nprint('between')\nh.update('new')").await;
    assert_eq!(execution.outputs[0]["data"]["text/plain"], "'new'");
    assert_eq!(execution.outputs.len(), 2, "{:?}", execution.outputs);
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
async fn an_error_keeps_its_colored_traceback_and_the_kernel_continues() {
    let Some(bench) = Bench::new() else { return };
    let execution = bench.run("x = 5\ndef deep():\n    raise ValueError('坏了')\ndeep()").await;
    let error = &execution.outputs[0];
    assert_eq!(execution.ended, CellEnd::Error);
    assert_eq!(
        (&error["output_type"], &error["ename"], &error["evalue"]),
        (&json!("error"), &json!("ValueError"), &json!("坏了"))
    );
    let traceback: Vec<&str> = error["traceback"].as_array().unwrap().iter().filter_map(|line| line.as_str()).collect();
    assert!(traceback.len() > 1 && traceback.concat().contains("\u{1b}["), "{traceback:?}");
    assert_eq!(bench.stdout_of("print(x)").await, "5\n");
}

#[tokio::test]
async fn a_syntax_error_is_an_error_too() {
    let Some(bench) = Bench::new() else { return };
    let execution = bench.run("for in").await;
    assert_eq!((execution.ended, &execution.outputs[0]["ename"]), (CellEnd::Error, &json!("SyntaxError")));
}

#[tokio::test]
async fn endless_output_is_interrupted_and_mostly_dropped() {
    let Some(bench) = Bench::new() else { return };
    let execution = bench.run("line = 'x' * 999_999\nfor _ in range(1_000):\n    print(line)").await;
    assert_eq!(execution.ended, CellEnd::Interrupted);
    assert!(execution.omitted_bytes > 60 * 1024 * 1024, "{}", execution.omitted_bytes);
    let size: usize = execution.outputs.iter().map(|output| output.to_string().len()).sum();
    assert!(size < 1_200_000, "{size}");
    // The kernel sends what was printed in pieces of any size.
    let all: String = execution.outputs.iter().filter_map(|output| output["text"].as_str()).collect();
    let note = all.lines().find(|line| line.starts_with("[bcc-script left out text, ")).unwrap();
    assert!(note.contains("`max_text`"), "{note}");
    assert_eq!(bench.stdout_of("print('alive', len(line))").await, "alive 999999\n");
}

#[tokio::test]
async fn a_large_print_is_dropped_where_it_was_and_later_output_is_stored() {
    let Some(bench) = Bench::new() else { return };
    let execution = bench.run("print('x' * 50_000_000, flush=True)\nprint('end')").await;
    assert_eq!((execution.ended, text(&execution.outputs).as_str()), (CellEnd::Ok, "end\n"));
    let note = execution.outputs[0]["text"].as_str().unwrap();
    assert!(note.starts_with("[bcc-script left out text, 500000"), "{note}");
    assert!(execution.omitted_bytes >= 50_000_000);
}

#[tokio::test]
async fn an_error_is_shown_after_any_amount_of_output() {
    let Some(bench) = Bench::new() else { return };
    let execution = bench.run("for _ in range(3_000):\n    print('y' * 999)\nraise KeyError('z' * 5_000_000)").await;
    assert_eq!(execution.ended, CellEnd::Error);
    assert!(execution.outputs.iter().any(|output| output["output_type"] == "error"), "{}", execution.omitted_bytes);
    assert!(execution.omitted_bytes > 1_900_000);
}

#[tokio::test]
async fn too_many_outputs_and_too_large_displays_are_dropped() {
    let Some(bench) = Bench::new() else { return };
    let execution = bench.run("for n in range(1_500):\n    display(n)").await;
    assert_eq!(execution.outputs.len(), 1_001);
    let note = execution.outputs[1_000]["text"].as_str().unwrap();
    assert_eq!(
        note,
        "[bcc-script left out outputs, 500 with 2000 bytes: a cell can have at most 1000 outputs, whatever the settings are]\n"
    );
    // What is printed one after the other is one output.
    let prints = "for n in range(1_000):\n    display(n)\nfor n in range(9):\n    print(n, flush=True)\ndisplay(9)";
    let execution = bench.run(prints).await;
    let note = execution.outputs[1_000]["text"].as_str().unwrap();
    assert!(note.starts_with("[bcc-script left out outputs, 2 with 19 bytes: "), "{note}");
    let large = "from IPython.display import HTML\nHTML('h' * 17_000_000)";
    let execution = bench.run(large).await;
    let plain = "<IPython.core.display.HTML object>\n[bcc-script left out text/html, 17000000 bytes: `max_display` of \
        `[kernel]` in bcc-script.toml sets the limit]";
    assert_eq!(execution.outputs[0]["data"], json!({ "text/plain": plain }));
    assert!(execution.omitted_bytes >= 17_000_000);
}
