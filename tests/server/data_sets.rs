//! Data sets over HTTP (docs/data-sets.md).

use std::io::{Cursor, Read};

use bcc_llm::http::client::plain_client;
use zip::ZipArchive;

use crate::access::tokens;
use crate::process::Home;
use crate::served::{Serving, TALK};

/// A server whose temporary files are in `temporary` of the home.
fn serving(home: &Home, arguments: &[&str]) -> Serving {
    std::fs::create_dir_all(home.path().join("temporary")).unwrap();
    let mut command = home.command([&["serve", "--addr", "127.0.0.1:0"], arguments].concat());
    command.env("TMPDIR", home.path().join("temporary"));
    Serving::of(crate::process::Running::start(command))
}

fn temporary_files(home: &Home) -> usize {
    std::fs::read_dir(home.path().join("temporary")).unwrap().count()
}

/// A data set: the headers of the response, and its files with their content.
struct Downloaded {
    headers: reqwest::header::HeaderMap,
    files: Vec<(String, Vec<u8>)>,
}

impl Downloaded {
    async fn of(serving: &Serving, query: &str, token: Option<&str>) -> Self {
        let client = plain_client(&serving.url.parse().unwrap(), Some("none"), None).unwrap();
        let mut request = client.get(format!("{}/v1/data-set{query}", serving.url));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{query}");
        let headers = response.headers().clone();
        let bytes = response.bytes().await.unwrap();
        assert_eq!(headers["content-length"], bytes.len().to_string(), "{query}");
        let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut files = vec![];
        for index in 0..archive.len() {
            let mut file = archive.by_index(index).unwrap();
            let name = file.name().unwrap().into_owned();
            let mut content = vec![];
            file.read_to_end(&mut content).unwrap();
            files.push((name, content));
        }
        Self { headers, files }
    }

    fn names(&self) -> Vec<&str> {
        self.files.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn bytes(&self, name: &str) -> &[u8] {
        &self.files.iter().find(|(file, _)| file == name).unwrap_or_else(|| panic!("{name}: {:?}", self.names())).1
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name).to_vec()).unwrap()
    }
}

fn project() -> Home {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    home.put("scripts/other.yaml", TALK.replace("session_id: talk", "session_id: other"));
    home
}

#[tokio::test]
async fn the_sessions_of_a_filter_are_one_archive_in_every_format() {
    let home = project();
    let serving = serving(&home, &[]);
    let id = serving.session("talk").await;
    serving.say(&id, "Ann").await;
    serving.say(&id, "tea").await;
    serving.session("talk").await;
    serving.session("other").await;
    let csv = Downloaded::of(&serving, "", None).await;
    assert_eq!(csv.headers["content-type"], "application/zip");
    assert_eq!(csv.headers["content-disposition"], "attachment; filename=\"data-set.zip\"");
    assert_eq!(
        (&csv.headers["x-sessions"], &csv.headers["x-sessions-left-out"]),
        (&"3".parse().unwrap(), &"0".parse().unwrap())
    );
    let interviews = csv.text("talk/interviews.csv");
    assert!(
        interviews.contains("Ann") && interviews.contains("completed") && !interviews.contains("classified"),
        "{interviews}"
    );
    assert!(csv.text(&format!("talk/transcripts/{id}.txt")).contains("Ann likes tea."));
    assert!(csv.names().contains(&"other/codebook.md") && csv.text("talk/codebook.csv").contains("secret"));
    // The list names every other file, with its hash.
    let list = csv.text("files.sha256");
    assert_eq!(list.lines().count(), csv.files.len() - 1, "{list}");
    for (format, file, start) in [
        ("jsonl", "talk/interviews.jsonl", "{\"session_id\"".as_bytes()),
        ("parquet", "talk/interviews.parquet", b"PAR1"),
        ("qdpx", "talk/interviews.qdpx", b"PK"),
    ] {
        let set =
            Downloaded::of(&serving, &format!("?format={format}&script=talk&status=completed&since="), None).await;
        assert_eq!(set.headers["x-sessions"], "1", "{format}");
        assert!(set.bytes(file).starts_with(start), "{format}");
        assert!(!set.names().iter().any(|name| name.starts_with("other/")), "{:?}", set.names());
    }
    assert_eq!(temporary_files(&home), 0);
}

#[tokio::test]
async fn a_data_set_is_for_authors_and_with_sensitive_values_for_admins() {
    let home = project();
    let tokens = tokens(&home);
    let serving = serving(&home, &["--trust"]);
    let author = serving.as_caller(&tokens[2].1);
    author.post("/v1/sessions", serde_json::json!({ "script": "talk" })).await;
    for (number, path) in [(0, "/v1/data-set"), (1, "/v1/data-set"), (2, "/v1/data-set?include_sensitive=true")] {
        let reply = serving.as_caller(&tokens[number].1).get(path).await;
        assert_eq!((reply.status, reply.header("content-type")), (403, "application/problem+json"), "{path}");
    }
    let masked = Downloaded::of(&serving, "?include_sensitive=false", Some(&tokens[2].1)).await;
    let whole = Downloaded::of(&serving, "?include_sensitive=true", Some(&tokens[3].1)).await;
    let columns = |set: &Downloaded| set.text("talk/interviews.csv").lines().next().unwrap().to_owned();
    assert!(!columns(&masked).contains("secret") && !columns(&masked).contains("user"), "{}", columns(&masked));
    assert!(columns(&whole).contains("secret") && columns(&whole).contains("user"), "{}", columns(&whole));
    assert!(whole.text("talk/interviews.csv").contains("classified"));
}

#[tokio::test]
async fn a_data_set_that_cannot_be_is_a_problem() {
    let home = project();
    let serving = serving(&home, &[]);
    let none = serving.get("/v1/data-set").await;
    assert!(none.status == 400 && none.text.contains("no session is selected"), "{none:?}");
    serving.session("talk").await;
    for wrong in [
        "format=xml",
        "status=done",
        "since=yesterday",
        "include_sensitive=maybe",
        "script=none",
        "since=9999-01-01",
        "format=csv&format=jsonl",
    ] {
        let reply = serving.get(&format!("/v1/data-set?{wrong}")).await;
        assert_eq!((reply.status, reply.header("content-type")), (400, "application/problem+json"), "{wrong}");
    }
    let chinese = [("accept-language", "zh")];
    let reply = serving.send(reqwest::Method::GET, "/v1/data-set?status=done", &chinese, None).await;
    assert!(reply.text.contains("会话没有状态 `done`"), "{reply:?}");
    assert_eq!(temporary_files(&home), 0);
}

#[tokio::test]
async fn interviews_that_are_forks_are_counted() {
    let home = project();
    let serving = serving(&home, &[]);
    let id = serving.session("talk").await;
    serving.say(&id, "Ann").await;
    let fork = serving.post(&format!("/v1/sessions/{id}/fork"), serde_json::json!({})).await;
    assert_eq!(fork.status, 201, "{fork:?}");
    let text = Downloaded::of(&serving, "", None).await.text("README.md");
    assert!(text.contains("- 1 of the interviews are forks of another session"), "{text}");
    assert!(!text.contains("replay a recording"), "{text}");
}
