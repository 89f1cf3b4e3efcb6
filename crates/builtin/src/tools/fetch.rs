//! `fetch`: one web page as text.
//!
//! A redirect is followed only on the same host, because the permission was for that host.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url, redirect};
use tokio::time::timeout;

use super::arguments::{Arguments, Field, Form, Tool, Work};
use super::html;
use super::output::HeadAndTail;
use super::{Reach, ToolKind};

/// The timeout of a request.
const LONGEST: Duration = Duration::from_secs(30);
/// The most that is loaded.
const MOST_LOADED: usize = 1024 * 1024;
/// The most that is shown.
const MOST_SHOWN: usize = 100 * 1024;
/// The most of an error page that is shown.
const MOST_OF_ERROR: usize = 2 * 1024;
/// How many redirects are followed.
const MOST_REDIRECTS: usize = 5;

pub(super) const TOOL: Tool = Tool {
    name: "fetch",
    about: "Loads a page or a text file from the web (GET) and answers with its text; HTML is reduced to its text. \
            At most 1 MB is loaded and 100 KB are shown. Redirects to another host are not followed but named.",
    fields: &[Field::required("url", Form::Text, "The URL, starting with http:// or https://.")],
    kind: ToolKind::Fetch,
    reach: Reach::Acts,
    work: Work::Fetch,
};

pub(super) async fn fetch(arguments: &Arguments) -> Result<String, String> {
    let url = address(arguments.required("url"))?;
    match timeout(LONGEST, load(url.clone())).await {
        Ok(loaded) => loaded,
        Err(_) => Err(format!("{url} did not answer within {} s", LONGEST.as_secs())),
    }
}

fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("`url` is not a URL ({error}): {text}"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!("`url` starts with {other}: and must start with http:// or https://")),
    }
}

async fn load(mut url: Url) -> Result<String, String> {
    let client = client()?;
    for _ in 0..=MOST_REDIRECTS {
        let response = client.get(url.clone()).send().await.map_err(|error| not_reached(&url, &error))?;
        let target = response.status().is_redirection().then(|| response.headers().get(LOCATION)).flatten();
        let Some(target) = target else { return answer(response, &url).await };
        let target =
            target.to_str().map_err(|_| format!("{url} redirects to something that is not a URL"))?;
        let target = url.join(target).map_err(|error| format!("{url} redirects to {target}: {error}"))?;
        let target = address(target.as_str())?;
        if target.host_str() != url.host_str() {
            return Err(format!(
                "{url} redirects to another host: {target}. Fetch that address if you want it."
            ));
        }
        url = target;
    }
    Err(format!("there are more than {MOST_REDIRECTS} redirects, the last one to {url}"))
}

fn client() -> Result<Client, String> {
    // Another part of the process may have installed one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .redirect(redirect::Policy::none())
        .user_agent(concat!("towline/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| format!("nothing can be fetched: {error}"))
}

fn not_reached(url: &Url, error: &reqwest::Error) -> String {
    let mut words = format!("{url} cannot be reached");
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        words.push_str(&format!(": {error}"));
        cause = error.source();
    }
    words
}

async fn answer(response: Response, url: &Url) -> Result<String, String> {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !is_text(&kind) {
        return Err(format!("{url} is {kind}, not text (status {status}); use `run` if you need the file"));
    }
    let (bytes, more) = body(response).await.map_err(|error| not_reached(url, &error))?;
    if kind.is_empty() && bytes.contains(&0) {
        return Err(format!("{url} is not text (status {status}); use `run` if you need the file"));
    }
    let text = String::from_utf8_lossy(&bytes);
    let is_page = kind == "text/html" || kind == "application/xhtml+xml";
    let text = if is_page { html::text_of(&text) } else { text.into_owned() };
    if !status.is_success() {
        return Err(format!(
            "{url} answers with status {status}:\n{}",
            HeadAndTail::of(&text, MOST_OF_ERROR)
        ));
    }
    let mut shown = HeadAndTail::of(&text, MOST_SHOWN);
    if shown.is_empty() {
        shown.push_str("(nothing to read there)");
    }
    if more {
        shown.push_str("\n(there is more; only the first 1 MB was loaded)");
    }
    Ok(shown)
}

fn is_text(kind: &str) -> bool {
    kind.is_empty()
        || kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || ["json", "xml", "javascript", "toml", "yaml", "x-yaml", "x-ndjson", "x-sh"]
            .iter()
            .any(|text| kind.strip_prefix("application/") == Some(text))
}

/// The loaded part of the body, and whether there is more.
async fn body(mut response: Response) -> reqwest::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await? {
        let room = MOST_LOADED - bytes.len();
        if piece.len() > room {
            bytes.extend_from_slice(&piece[..room]);
            return Ok((bytes, true));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok((bytes, false))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Fetches `path` from a server with these `pages`: (path, head lines, body).
    async fn get(path: &str, pages: &[(&str, &str, &str)]) -> Result<String, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serve = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = vec![0; 4096];
                let length = stream.read(&mut asked).await.unwrap();
                let asked = String::from_utf8_lossy(&asked[..length]).into_owned();
                let asked = asked.split(' ').nth(1).unwrap();
                let (_, head, body) = pages.iter().find(|(path, ..)| *path == asked).expect(asked);
                let head = head.replace("HOST", &address);
                let answer = format!(
                    "HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                // The client may hang up early.
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        };
        let arguments = TOOL.parse(&json!({"url": format!("http://{address}{path}")})).unwrap();
        let got = tokio::select! {
            got = fetch(&arguments) => got,
            () = serve => unreachable!(),
        };
        got.map_err(|words| words.replace(&address, "HOST"))
    }

    #[tokio::test]
    async fn pages_are_read_and_redirects_on_the_same_host_followed() {
        let pages = [
            ("/", "302 Found\r\nlocation: /a", ""),
            ("/a", "301 Moved\r\nlocation: http://HOST/b", ""),
            ("/b", "200 OK\r\ncontent-type: Text/HTML; charset=utf-8", "<p>Hello <b>you</b></p><p>there</p>"),
            ("/raw", "200 OK\r\ncontent-type: application/json", "{\"a\": \"<p>\"}"),
            ("/empty", "200 OK", ""),
        ];
        assert_eq!(get("/", &pages).await, Ok("Hello you\nthere\n".to_owned()));
        assert_eq!(get("/raw", &pages).await, Ok("{\"a\": \"<p>\"}".to_owned()));
        assert_eq!(get("/empty", &pages).await, Ok("(nothing to read there)".to_owned()));
    }

    #[tokio::test]
    async fn failures_are_reported() {
        let pages = [
            ("/away", "302 Found\r\nlocation: http://other.invalid/x", ""),
            ("/file", "302 Found\r\nlocation: file:///etc/passwd", ""),
            ("/round", "302 Found\r\nlocation: /round", ""),
            ("/none", "404 Not Found\r\ncontent-type: text/plain", "no such page"),
            ("/png", "200 OK\r\ncontent-type: image/png", "x"),
            ("/zero", "200 OK", "a\0b"),
        ];
        for (path, words) in [
            (
                "/away",
                "http://HOST/away redirects to another host: http://other.invalid/x. Fetch that address if you \
                 want it.",
            ),
            ("/file", "`url` starts with file: and must start with http:// or https://"),
            ("/round", "there are more than 5 redirects, the last one to http://HOST/round"),
            ("/none", "http://HOST/none answers with status 404 Not Found:\nno such page"),
            (
                "/png",
                "http://HOST/png is image/png, not text (status 200 OK); use `run` if you need the file",
            ),
            ("/zero", "http://HOST/zero is not text (status 200 OK); use `run` if you need the file"),
        ] {
            assert_eq!(get(path, &pages).await, Err(words.to_owned()));
        }
        let arguments = TOOL.parse(&json!({"url": "no address"})).unwrap();
        let words = fetch(&arguments).await.unwrap_err();
        assert!(words.starts_with("`url` is not a URL ("), "{words}");
    }

    #[tokio::test]
    async fn the_loaded_size_is_limited() {
        let body = "x".repeat(2 * MOST_LOADED);
        let got = get("/", &[("/", "200 OK\r\ncontent-type: text/plain", &body)]).await.unwrap();
        assert!(got.ends_with("\n(there is more; only the first 1 MB was loaded)"));
        assert!(got.contains(&format!("[… {} bytes left out …]", MOST_LOADED - MOST_SHOWN)));
    }
}
