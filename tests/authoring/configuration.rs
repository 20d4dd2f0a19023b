//! `bcc-script.toml`: `run` and `validate` report every wrong value with its place and help, and no report contains a secret.

use std::collections::BTreeSet;

use bcc_authoring::validate::request::ValidateRequest;
use bcc_authoring::validate::validate::validate;
use bcc_engine::config::config::{Config, message, parse, read};
use bcc_engine::config::values::TextOrEnv;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_lang::message::language::Language;
use bcc_lang::schema::compiled::Compiled;
use bcc_lang::schema::embedded::CONFIG;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::render::json::json;
use bcc_llm::providers::http::config::Structured;
use serde_json::Value;

const SCRIPT: &str = "session: { session_id: s, phases: [{ phase_id: p, topics: [{ topic_id: t, actions: [{ action_type: ai_say, \
                      action_id: a, config: { content: hello } }] }] }] }\n";

/// A configuration with a model that has every key.
const COMPLETE: &str = "
    [project]
    scheme = \"english\"
    allow = []
    [models.main]
    provider = \"anthropic\"
    base_url = \"https://llm.example\"
    model = \"m\"
    api_key_env = \"EXAMPLE_KEY\"
    temperature = 1
    max_tokens = 2000
    timeout = \"60s\"
    first_token_timeout = \"20s\"
    idle_timeout = \"1m 30s\"
    max_attempts = 2
    headers = { X-Team = \"counsel\", Authorization = { env = \"EXAMPLE_HEADER\" } }
    extra = { top_p = 0.9, stop_sequences = [\"###\"], thinking = { type = \"disabled\" } }
    proxy = \"http://proxy.example:8080\"
    structured = \"tool\"
    repair = \"on\"
    reask = 1
    concurrency = 4
    requests_per_minute = 60
    tokens_per_minute = 100_000
    price = { input = 0.5, output = 1.5, cached = 0.05, currency = \"CNY\", per = 1000 }
    fallback = [\"local\", \"offline\"]
    [models.local]
    provider = \"replay\"
    file = \"replies.yaml\"
    [rules]
    unused-variable = \"off\"
    [tools.web_search]
    provider = \"searxng\"
    url = \"http://localhost:8888\"
    max_results = 7
    locale = \"zh-CN\"
    timeout = \"9s\"
    [[tools.web_search.more]]
    provider = \"brave\"
    api_key_env = \"BRAVE_KEY\"
    [tools.graph_rag]
    sources = [\"knowledge/**/*.csv\"]
    top_k = 3
    hops = 0
";

const SECRET: &str = "q7-geheim";

/// The diagnostics of `validate` for a configuration.
fn findings(configuration: &str) -> Vec<Diagnostic> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bcc-script.toml"), configuration).unwrap();
    std::fs::write(folder.path().join("talk.yaml"), SCRIPT).unwrap();
    let request = ValidateRequest { paths: vec![folder.path().join("talk.yaml")], ..ValidateRequest::default() };
    let report = validate(&request, &Environment::default()).unwrap();
    report.diagnostics.into_iter().filter(|diagnostic| diagnostic.rule == "broken-configuration").collect()
}

fn rejection(configuration: &str) -> EngineError {
    parse("bcc-script.toml", configuration).expect_err(configuration)
}

/// A configuration with a model that has these lines, starting at line 3.
fn model(lines: &str) -> String {
    format!("[models.main]\nprovider = \"openai\"\n{lines}\nmodel = \"m\"\n[models.local]\nprovider = \"offline\"\n")
}

/// Lines of a model; the text that `validate` marks; a part of the message; a part of the help.
const MISTAKES: [(&str, &str, &str, &str); 67] = [
    ("temperature = -0.5", "-0.5", "expected a non-negative number", "`bcc-script schema config`"),
    ("temperature = nan", "nan", "expected a non-negative number", "`bcc-script schema config`"),
    ("temperature = \"warm\"", "\"warm\"", "invalid type", "`bcc-script schema config`"),
    ("max_tokens = 0", "0", "a whole number from 1 to", "`bcc-script schema config`"),
    ("max_tokens = 1.5", "1.5", "a whole number from 1 to", "`bcc-script schema config`"),
    ("max_token = 5", "max_token", "unknown field `max_token`", "did you mean `max_tokens`?"),
    ("timeout = \"soon\"", "\"soon\"", "`soon` is not a valid duration", "`bcc-script schema config`"),
    ("timeout = \"0s\"", "\"0s\"", "more than zero and at most one day", "`bcc-script schema config`"),
    ("idle_timeout = \"2 days\"", "\"2 days\"", "more than zero and at most one day", "`bcc-script schema config`"),
    ("first_token_timeout = 20", "20", "invalid type", "`bcc-script schema config`"),
    ("max_attempts = 0", "0", "from 1 to 20", "`bcc-script schema config`"),
    ("max_attempts = 21", "21", "from 1 to 20", "`bcc-script schema config`"),
    ("repair = \"yes\"", "\"yes\"", "true, false, \"on\" or \"off\"", "`bcc-script schema config`"),
    ("repair = 1", "1", "true, false, \"on\" or \"off\"", "`bcc-script schema config`"),
    ("reask = 6", "6", "from 0 to 5", "`bcc-script schema config`"),
    ("reask = -1", "-1", "from 0 to 5", "`bcc-script schema config`"),
    ("reask = true", "true", "from 0 to 5", "`bcc-script schema config`"),
    ("concurrency = 0", "0", "from 1 to 10000", "`bcc-script schema config`"),
    ("requests_per_minute = 0", "0", "from 1 to", "`bcc-script schema config`"),
    ("tokens_per_minute = -3", "-3", "from 1 to", "`bcc-script schema config`"),
    ("token_per_minute = 3", "token_per_minute", "unknown field", "did you mean `tokens_per_minute`?"),
    ("request_per_minute = 3", "request_per_minute", "unknown field", "did you mean `requests_per_minute`?"),
    ("structured = \"json_schem\"", "\"json_schem\"", "there is no form `json_schem`", "did you mean `json_schema`?"),
    ("structured = true", "true", "invalid type", "`bcc-script schema config`"),
    ("price = { input = -1, output = 2 }", "-1", "expected a non-negative number", "`bcc-script schema config`"),
    ("price = { input = 1, output = inf }", "inf", "expected a non-negative number", "`bcc-script schema config`"),
    ("price = { input = 1 }", "{ input = 1 }", "missing field `output`", "`bcc-script schema config`"),
    ("price = { input = 1, output = 2, chached = 3 }", "chached", "unknown field", "did you mean `cached`?"),
    ("price = { input = 1, output = 2, per = 0 }", "0", "from 1 to", "`bcc-script schema config`"),
    ("price = { input = 1, output = 2, currency = \"\" }", "\"\"", "a single short word", "`bcc-script schema config`"),
    (
        "price = { input = 1, output = 2, currency = \"US dollars\" }",
        "\"US dollars\"",
        "a single short word",
        "`bcc-script schema config`",
    ),
    ("price = 3", "3", "invalid type", "`bcc-script schema config`"),
    ("fallback = \"local\"", "\"local\"", "invalid type", "`bcc-script schema config`"),
    ("fallback = [\"locl\"]", "\"locl\"", "names `locl`, but there is no such model", "did you mean `local`?"),
    ("fallback = [\"local\", \"elsewhere\"]", "\"elsewhere\"", "no such model", "[models.elsewhere]"),
    ("fallback = [\"offline\", \"offline\"]", "\"offline\"", "names `offline` twice", "keep the first"),
    ("fallback = [\"main\"]", "\"main\"", "form a cycle: `main` → `main`", "remove one"),
    ("base_url = \"localhost:11434\"", "\"localhost:11434\"", "must start with http://", "http://localhost"),
    ("base_url = \"somewhere\"", "\"somewhere\"", "is not a valid URL", "http://localhost"),
    ("base_url = \"ftp://h/v1\"", "\"ftp://h/v1\"", "must start with http://", "http://localhost"),
    ("base_url = \"http://ann:q7-geheim@h/v1\"", "http", "contains a user name or a password", "api_key_env"),
    ("api_key = \"q7-geheim\"", "api_key", "unknown field `api_key`", "api_key_env = "),
    ("api_key_env = \"A\"\napi_key_file = \"b\"", "\"b\"", "`api_key_env` and `api_key_file` are both set", "keep one"),
    ("api_key_env = \"q7-geheim\"", "***", "not a valid environment variable name", "put the key in"),
    ("api_key_file = \"sk-q7geheimq7geheim84JskWQ\"", "***", "is not a file name", "put the key in"),
    ("proxy = { env = \"http://q7-geheim\" }", "proxy", "not a valid environment variable name", "put the address"),
    ("headers = { X-A = { env = \"q7-geheim\" } }", "X-A", "not a valid environment variable name", "put the whole"),
    ("proxy = \"proxy.example\"", "\"proxy.example\"", "`proxy` is not a valid URL", "\"none\""),
    ("proxy = \"socks5://h:1\"", "\"socks5://h:1\"", "`proxy` must start with", "\"none\""),
    ("proxy = \"http://ann:q7-geheim@h:1\"", "http", "contains a user name or a password", "{ env = \"NAME\" }"),
    ("proxy = 8080", "8080", "expected a string, or { env", "`bcc-script schema config`"),
    ("headers = { Authorization = \"Bearer q7-geheim\" }", "***", "contains a secret", "Authorization = { env ="),
    ("headers = { X-Api-Key = \"q7-geheim\" }", "***", "contains a secret", "X-Api-Key = { env ="),
    ("headers = { x-portkey-api-key = \"q7-geheim\" }", "***", "contains a secret", "x-portkey-api-key = { env ="),
    ("headers = { Cookie = \"s=q7-geheim\" }", "***", "contains a secret", "Cookie = { env ="),
    ("headers = { Authorization = 7743 }", "****", "expected a string, or { env", "`bcc-script schema config`"),
    ("headers = { X-Team = { en = \"A\" } }", "{ en", "unknown field `en`", "did you mean `env`?"),
    ("headers = { X-Team = {} }", "{}", "missing field `env`", "`bcc-script schema config`"),
    ("headers = { \"X Team\" = \"a\" }", "\"a\"", "is not a valid header name", "letters, digits"),
    ("headers = { X-Team = \"咨询\\n\" }", "\"咨询", "cannot be sent as a header", "ASCII"),
    ("headers = { Content-Type = \"text/plain\" }", "\"text/plain\"", "set by the program", "remove it"),
    ("headers = { x-a = \"1\", X-A = \"2\" }", "\"1\"", "appears twice", "keep one"),
    ("extra = { messages = [] }", "[]", "`extra` cannot set `messages`", "they contain the prompt"),
    ("extra = { response_format = { type = \"text\" } }", "response_format", "cannot set", "`structured`"),
    ("extra = { since = 2026-01-01 }", "{", "`since` is a date", "`bcc-script schema config`"),
    ("extra = { top_p = nan }", "{", "`top_p` is a number that JSON cannot represent", "`bcc-script schema config`"),
    ("extra = [1]", "[1]", "invalid type", "`bcc-script schema config`"),
];

#[test]
fn every_wrong_value_is_reported_by_validate_with_its_place_and_help() {
    for (lines, marked, message, help) in MISTAKES {
        let found = findings(&model(lines));
        let [found] = found.as_slice() else { panic!("{lines}: {found:?}") };
        let span = found.file.slice(found.span);
        assert!(span.contains(marked), "{lines}: {span:?} is marked");
        assert!(found.message.to_string().contains(message), "{lines}: {}", found.message);
        assert!(
            found.help.as_ref().map(ToString::to_string).as_deref().unwrap().contains(help),
            "{lines}: {:?}",
            found.help
        );
        let shown = json(1, std::slice::from_ref(found)) + found.file.text();
        assert!(!shown.contains(SECRET) && !shown.contains("7743") && !shown.contains("q7geheim"), "{lines}: {shown}");
    }
}

#[test]
fn a_header_whose_name_only_contains_key_is_no_secret() {
    assert!(findings(&model("headers = { x-portkey-custom-host = \"https://gateway.example\" }")).is_empty());
}

#[test]
fn every_wrong_value_prevents_a_session_with_the_same_message() {
    for (lines, _, message, help) in MISTAKES {
        let error = rejection(&model(lines));
        let shown = error.to_string();
        assert!(shown.contains(message), "{lines}: {shown}");
        assert!(shown.contains("line 3") || shown.contains("line 4"), "{lines}: {shown}");
        assert!(error.help().unwrap().to_string().contains(help), "{lines}: {:?}", error.help());
        assert!(!shown.contains(SECRET) && !shown.contains("7743"), "{lines}: {shown}");
    }
}

#[test]
fn missing_keys_of_a_model_are_reported_at_its_name() {
    for (table, message, help) in [
        ("provider = \"opnai\"", "there is no provider `opnai`", "did you mean `openai`?"),
        ("provider = \"\"", "there is no provider ``", "`bcc-script schema config`"),
        ("model = \"m\"", "missing field `provider`", "`bcc-script schema config`"),
        ("provider = \"openai\"", "needs `model`", "add `model = \"…\"`"),
        ("provider = \"anthropic\"", "needs `model`", "add `model = \"…\"`"),
        ("provider = \"anthropic\"\nmodel = \" \"", "`model` is empty", "the model's name on the server"),
        (
            "provider = \"anthropic\"\nmodel = \"m\"\nstructured = \"json_schema\"",
            "cannot be \"json_schema\" for a model with provider `anthropic`",
            "write \"auto\", \"tool\", \"off\"",
        ),
        ("provider = \"replay\"", "needs `file`", "add `file = \"…\"`"),
    ] {
        let text = format!("[models.\"咨询\"]\n{table}\n");
        let found = findings(&text);
        let [found] = found.as_slice() else { panic!("{table}: {found:?}") };
        assert!(found.message.to_string().contains(message), "{table}: {}", found.message);
        assert!(
            found.help.as_ref().map(ToString::to_string).as_deref().unwrap().contains(help),
            "{table}: {:?}",
            found.help
        );
        assert!(rejection(&text).to_string().contains(message));
    }
}

#[test]
fn full_width_quotes_and_names_without_quotes_are_explained_in_the_language_of_the_reader() {
    let table = [
        ("[project]\nscheme = “own”\n", "文本必须加引号", "半角引号"),
        ("[项目]\nscheme = \"own\"\n", "字母、数字、`-`、`_`", "加引号"),
    ];
    for (configuration, message, help) in table {
        let found = findings(configuration);
        let [found] = found.as_slice() else { panic!("{configuration}: {found:?}") };
        let words = [found.message.clone(), found.help.clone().unwrap()].map(|words| words.render(Language::Chinese));
        assert!(words[0].contains(message) && words[1].contains(help), "{words:?}");
    }
}

#[test]
fn the_name_offline_is_reserved() {
    let text = "[models.offline]\nprovider = \"openai\"\nmodel = \"m\"\n";
    assert!(rejection(text).to_string().contains("`offline` is reserved for the built-in responder"));
    assert_eq!(findings("[models.offline]\nprovider = \"offline\"\n").len(), 0);
}

#[test]
fn a_name_that_needs_quotes_is_shown_in_quotes() {
    let found = findings("[models.咨询]\nprovider = \"offline\"\n");
    assert!(
        found[0].help.as_ref().map(ToString::to_string).as_deref().unwrap().contains("[models.\"咨询\"]"),
        "{found:?}"
    );
    let found = findings("[models.\"咨询\"]\nprovider = \"openai\"\n");
    assert!(found[0].message.to_string().starts_with("[models.\"咨询\"]: "), "{found:?}");
}

#[test]
fn a_cycle_of_fallbacks_is_reported_once_and_a_diamond_is_no_cycle() {
    let tables = |chains: &[(&str, &str)]| -> String {
        let table = |(name, fallback): &(&str, &str)| {
            format!("[models.{name}]\nprovider = \"offline\"\nfallback = [{fallback}]\n")
        };
        chains.iter().map(table).collect()
    };
    let circle = tables(&[("a", "\"b\""), ("b", "\"d\", \"c\""), ("c", "\"a\""), ("d", "")]);
    let found = findings(&circle);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message.to_string().contains("[models.c]: the fallbacks form a cycle: `a` → `b` → `c` → `a`"));
    assert_eq!((found[0].file.slice(found[0].span), found[0].file.line_column(found[0].span.start).0), ("\"a\"", 9));
    let diamond = tables(&[("a", "\"b\", \"c\""), ("b", "\"d\""), ("c", "\"d\""), ("d", "\"offline\"")]);
    assert!(findings(&diamond).is_empty());
    parse("bcc-script.toml", &diamond).unwrap();
}

#[test]
fn several_mistakes_are_reported_together() {
    let both = model("fallback = [\"nobody\"]\nheaders = { Cookie = \"q7-geheim\" }");
    assert_eq!(findings(&both).len(), 2);
    assert!(rejection(&both).to_string().contains("(1 more: `bcc-script validate` shows them all)"));
    assert_eq!(findings(&model("reask = 9\nconcurrency = 0\nfallback = [\"nobody\"]")).len(), 3);
}

#[test]
fn every_key_of_a_model_is_read() {
    let config: Config = parse("bcc-script.toml", COMPLETE).unwrap();
    let main = &config.models["main"];
    assert_eq!(main.temperature, Some(1.0));
    assert_eq!(main.headers["Authorization"], TextOrEnv::Env("EXAMPLE_HEADER".into()));
    assert_eq!(main.extra["stop_sequences"], serde_json::json!(["###"]));
    assert_eq!(main.structured, Some(Structured::Tool));
    assert!(main.reply_policy().repair && main.reply_policy().reask == 1);
    assert_eq!(main.limits().tokens_per_minute, Some(100_000));
    let price = main.price().unwrap();
    assert_eq!((price.cached, price.currency.as_str(), price.per), (Some(0.05), "CNY", 1_000));
    assert_eq!(config.models["local"].price(), None);
    let defaults = read("[models.a]\nprovider=\"offline\"\nprice = { input = 1, output = 2 }").unwrap();
    let defaults = defaults.models["a"].price().unwrap();
    assert_eq!((defaults.currency.as_str(), defaults.per), ("USD", 1_000_000));
}

/// The rules of the findings in the script, for this configuration.
fn findings_of_script(configuration: &str, script: &str) -> Vec<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bcc-script.toml"), configuration).unwrap();
    std::fs::write(folder.path().join("talk.yaml"), script).unwrap();
    let request = ValidateRequest { paths: vec![folder.path().join("talk.yaml")], ..ValidateRequest::default() };
    let report = validate(&request, &Environment::default()).unwrap();
    report.diagnostics.iter().map(|found| found.rule).collect()
}

#[test]
fn errors_of_the_rules_and_models_of_a_configuration_do_not_hide_those_of_scripts() {
    let script = SCRIPT.replace("session: { session_id: s,", "session: { session_id: s, model: mian,");
    let needy = script.replace(
        "[{ action_type: ai_say,",
        "[{ action_type: add, action_id: c, config: { content: '1', shot_type: action, metadata: { should_execute: true } }}, { action_type: ai_say,",
    );
    let model = "[models.main]\nprovider = \"offline\"\n";
    for rules in ["unused-varible = \"off\"", "unused-variable = \"quiet\"", "unused-variable = 3"] {
        let found = findings_of_script(&format!("{model}[rules]\n{rules}\n"), &needy);
        assert_eq!(found, ["broken-configuration", "unknown-model", "code-not-allowed"], "{rules}");
        let allowed = format!("[project]\nallow = [\"exec\"]\n{model}[rules]\n{rules}\n");
        assert!(!findings_of_script(&allowed, &needy).contains(&"code-not-allowed"), "{rules}");
        // The other levels apply.
        let off = format!("{model}[rules]\nunknown-model = \"off\"\n{rules}\n");
        assert_eq!(findings_of_script(&off, &script), ["broken-configuration"], "{rules}");
        let known = script.replace("mian", "main");
        assert_eq!(findings_of_script(&format!("{model}[rules]\n{rules}\n"), &known), ["broken-configuration"]);
    }
    // A model that is defined with errors is known. What a configuration with other errors permits is not.
    for lines in ["reask = 9", "fallback = [\"nobody\"]"] {
        assert_eq!(findings_of_script(&format!("{model}{lines}\n"), &needy), ["broken-configuration", "unknown-model"]);
        let known = needy.replace("mian", "main");
        assert_eq!(findings_of_script(&format!("{model}{lines}\n"), &known), ["broken-configuration"]);
    }
    assert_eq!(findings_of_script("[models.main\n", &needy), ["broken-configuration"]);
}

fn schema() -> Compiled {
    Compiled::new(&serde_json::from_str(CONFIG).unwrap()).unwrap()
}

/// A configuration as a JSON value, as editors validate it.
fn value(configuration: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Table>(configuration).unwrap()).unwrap()
}

#[test]
fn the_schema_for_editors_has_the_keys_that_are_read() {
    let schema: Value = serde_json::from_str(CONFIG).unwrap();
    let described = |pointer: &str| -> BTreeSet<String> {
        schema.pointer(pointer).unwrap()["properties"].as_object().unwrap().keys().cloned().collect()
    };
    // The error for an unknown key lists the known keys.
    let known_keys = |text: &str| -> BTreeSet<String> {
        let message = read(text).unwrap_err().message().to_owned();
        message.split('`').skip(3).step_by(2).map(str::to_owned).collect()
    };
    assert_eq!(described(""), known_keys("nothing = 1"));
    assert_eq!(described("/properties/project"), known_keys("[project]\nnothing = 1"));
    assert_eq!(described("/$defs/model"), known_keys("[models.a]\nnothing = 1"));
    assert_eq!(described("/$defs/behavior_server"), known_keys("[behavior_servers.a]\nnothing = 1"));
    assert_eq!(described("/properties/tools"), known_keys("[tools]\nnothing = 1"));
    assert_eq!(described("/$defs/web_search"), known_keys("[tools.web_search]\nnothing = 1"));
    assert_eq!(described("/$defs/graph_rag"), known_keys("[tools.graph_rag]\nnothing = 1"));
    let more = "[tools.web_search]\nprovider = \"brave\"\n[[tools.web_search.more]]\nnothing = 1";
    assert_eq!(described("/$defs/search_server"), known_keys(more));
    assert_eq!(described("/$defs/mcp_server"), known_keys("[mcp_servers.a]\nnothing = 1"));
    let price = "[models.a]\nprovider = \"offline\"\nprice = { nothing = 1 }";
    assert_eq!(described("/$defs/model/properties/price"), known_keys(price));
}

#[test]
fn the_schema_for_editors_accepts_and_rejects_what_the_reader_does() {
    /// What only the reader can check: durations, and values that JSON cannot represent.
    const READER_ONLY: [&str; 3] = ["`0s`", "`2 days`", "is a number that JSON cannot represent"];
    let schema = schema();
    for text in [COMPLETE, "", "[models.a]\nprovider = \"offline\"\nrepair = true\nproxy = \"none\"\n"] {
        assert!(schema.is_valid(&value(text)), "{text}");
    }
    let mut rejected = 0;
    for (lines, ..) in MISTAKES {
        let text = model(lines);
        let Err(error) = read(&text) else { continue };
        let error_message = message(&error, &text).to_string();
        if READER_ONLY.iter().any(|part| error_message.contains(part)) || lines.contains("2026-01-01") {
            continue;
        }
        assert!(!schema.is_valid(&value(&text)), "{lines}: {}", error.message());
        rejected += 1;
    }
    assert!(rejected > 30, "only {rejected} were looked at");
}
