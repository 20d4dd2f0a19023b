//! Tests of the variables of a kernel after code ran.

use bcc_runtime::notebook::cell::CellEnd;
use serde_json::{Value, json};

use crate::kernel::bench::Bench;

#[tokio::test]
async fn small_values_are_given_as_json_and_others_as_their_repr() {
    let Some(bench) = Bench::new() else { return };
    let execution = bench
        .run(
            "import math\nfrom os import path, getcwd\nclass Own:\n    def __repr__(self): return '我'\ndef f(): pass\n\
             n, x, ok, nothing, 名 = 3, 2.5, True, None, '小林'\nrows = [{'a': [1, 2]}, (3,)]\nown = Own()\nlazy = range(5)\n\
             nan = float('nan')\nhuge = 10**400\n_hidden = 1\nbig = list(range(10_000))\ntext = '长' * 10_000",
        )
        .await;
    let mut found = execution.variables.clone();
    let big = found.remove("big").unwrap();
    let text = found.remove("text").unwrap();
    assert_eq!(
        Value::Object(found),
        json!({
            "n": 3, "x": 2.5, "ok": true, "nothing": null, "名": "小林", "rows": [{ "a": [1, 2] }, [3]], "own": "我",
            "lazy": "range(0, 5)", "nan": "nan", "huge": "<int of 1329 bits>",
        })
    );
    assert!(big.as_str().unwrap().starts_with("[0, 1, 2") && big.as_str().unwrap().len() <= 500);
    assert!(text.as_str().unwrap().len() <= 480);
    assert_eq!(bench.run("n = 4").await.variables["n"], 4);
}

#[tokio::test]
async fn simple_values_are_the_same_whether_they_are_read_with_the_code_or_in_a_request_of_their_own() {
    let Some(bench) = Bench::new() else { return };
    let simple = "import math\ndef f(): pass\n_hidden = 1\nn, x, ok, nothing, 名 = -3, 2.5e-7, True, None, '小\"\\\\\\n林'\n\
                  edge = 2**53 - 1\nempty = ''\nlong = 'é' * 80";
    let quick = bench.run(simple).await.variables;
    let names: Vec<&str> = quick.keys().map(String::as_str).collect();
    assert_eq!(names, ["n", "x", "ok", "nothing", "名", "edge", "empty", "long"]);
    // With another kind of value, the variables are read in a request of their own; code that fails has one as well.
    let mut slow = bench.run("other = range(2)").await.variables;
    assert_eq!(slow.remove("other"), Some(json!("range(0, 2)")));
    assert_eq!(slow, quick);
    assert_eq!(bench.run("del other\nraise ValueError").await.variables, quick);
    for value in ["float('nan')", "1e300", "2**53", "'a' * 81", "[1]"] {
        let found = bench.run(&format!("value = {value}")).await.variables;
        assert_eq!(found.len(), quick.len() + 1, "{value}");
    }
}

#[tokio::test]
async fn every_change_of_a_simple_variable_is_seen_in_the_order_of_the_kernel() {
    let Some(bench) = Bench::new() else { return };
    let steps = [
        ("b, a, c = 1, 2.5, 'x'", r#"{"b":1,"a":2.5,"c":"x"}"#),
        ("pass", r#"{"b":1,"a":2.5,"c":"x"}"#),
        ("b += 1; a = True", r#"{"b":2,"a":true,"c":"x"}"#),
        ("del b", r#"{"a":true,"c":"x"}"#),
        // The same value at another place, another value at another place, and one that comes back.
        ("t = a; del a; a = t; del t", r#"{"c":"x","a":true}"#),
        ("del c; c = 'y'; b = 2", r#"{"a":true,"c":"y","b":2}"#),
        // A function is no variable; a list is one that needs a request of its own.
        ("def c(): pass", r#"{"a":true,"b":2}"#),
        ("l = [1]", r#"{"a":true,"b":2,"l":[1]}"#),
        ("l = None; c = 3", r#"{"a":true,"c":3,"b":2,"l":null}"#),
        ("raise ValueError", r#"{"a":true,"c":3,"b":2,"l":null}"#),
        ("c = 4", r#"{"a":true,"c":4,"b":2,"l":null}"#),
        // Code that changes what was remembered, or breaks it, changes no value that is shown.
        (
            "get_ipython()._bcc_script_variables.__globals__['listed'].clear(); z = 1",
            r#"{"a":true,"c":4,"b":2,"l":null,"z":1}"#,
        ),
        (
            "get_ipython()._bcc_script_variables.__globals__['sizes'].clear(); c = 5",
            r#"{"a":true,"c":5,"b":2,"l":null,"z":1}"#,
        ),
        ("get_ipython()._bcc_script_variables = print; c = 6", r#"{"a":true,"c":6,"b":2,"l":null,"z":1}"#),
        ("del get_ipython()._bcc_script_variables; c = 7", r#"{"a":true,"c":7,"b":2,"l":null,"z":1}"#),
    ];
    for (code, expected) in steps {
        let found = bench.run(code).await.variables;
        assert_eq!(Value::Object(found).to_string(), expected, "{code}");
    }
}

#[tokio::test]
async fn the_variables_are_limited_to_a_few_kilobytes() {
    let Some(bench) = Bench::new() else { return };
    let execution = bench.run("for n in range(1_000):\n    globals()[f'v{n}'] = 'w' * 300").await;
    let size = Value::Object(execution.variables.clone()).to_string().len();
    assert!((8_000..17_000).contains(&size), "{size}");
    assert!(execution.variables.contains_key("v999") && !execution.variables.contains_key("v0"), "the newest are kept");
}

#[tokio::test]
async fn reading_the_variables_changes_nothing_in_the_kernel() {
    let Some(bench) = Bench::new() else { return };
    bench.run("a = 1").await;
    let execution = bench.run("a + 1").await;
    assert_eq!(execution.execution_count, Some(2));
    assert_eq!(
        bench.stdout_of("print(_, [n for n in globals() if n in ('room', 'user', 'seen', 'shown')])").await,
        "2 []\n"
    );
}

#[tokio::test]
async fn a_repr_that_hangs_raises_or_floods_does_no_harm() {
    let Some(bench) = Bench::new() else { return };
    let raises = "class R:\n    def __repr__(self): raise RuntimeError\nr = R()\nafter = 1";
    let execution = bench.run(raises).await;
    assert_eq!(Value::Object(execution.variables), json!({ "after": 1 }));
    let floods = "class F:\n    def __repr__(self): return 'f' * 100_000_000\nf = F()";
    let execution = bench.run(floods).await;
    assert!(execution.variables["f"].as_str().unwrap().len() <= 480);
    let hangs = "class H:\n    def __repr__(self):\n        while True: pass\nh = H()";
    let execution = bench.run(hangs).await;
    assert_eq!((execution.ended, execution.variables.len()), (CellEnd::Ok, 0));
    assert_eq!(bench.stdout_of("del h\nprint('on')").await, "on\n");
}

#[tokio::test]
async fn code_that_breaks_reading_the_variables_only_loses_the_variables() {
    let Some(bench) = Bench::new() else { return };
    let execution = bench.run("def globals(): raise SystemExit\nk = 1").await;
    assert_eq!(execution.ended, CellEnd::Ok);
    assert_eq!(bench.stdout_of("print(k)").await, "1\n");
}
