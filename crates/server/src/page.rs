//! The page, as it is embedded in the program, and signing in to it. Its files need no token: they hold nothing but code.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};
use towline_api::{EndedSessions, NewSignIn, PageSession};
use towline_engine::{sign_in as spend_code, sign_out as end_session, sign_out_all};

use crate::app::Shared;
use crate::authority::{self, refuse_guess};
use crate::problem::Problem;
use crate::query;
use crate::reply::{self, Handled};

/// Scripts and styles of the page's own files alone, and requests to this server alone.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The built page.
#[derive(RustEmbed)]
#[folder = "../../web/dist"]
struct Files;

/// Files of the page as gzip, by their paths. The build script makes them.
const COMPRESSED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/compressed.rs"));

/// The file of the page at this path.
fn file_at(path: &str) -> Option<EmbeddedFile> {
    Files::get(if path == "/" { "index.html" } else { path.strip_prefix('/')? })
}

/// Whether a request is for a file of the page.
pub(crate) fn is_for_page(method: &Method, path: &str) -> bool {
    (*method == Method::GET || *method == Method::HEAD) && file_at(path).is_some()
}

/// The file at this path as gzip, for a client that takes it.
fn compressed(path: &str, headers: &HeaderMap) -> Option<&'static [u8]> {
    let accepted =
        headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|codings| codings.to_str().ok());
    let takes_it = accepted.flat_map(|codings| codings.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = weight.trim().strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0_f32));
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    });
    COMPRESSED.iter().find(|(known, _)| takes_it && *known == path).map(|(_, bytes)| *bytes)
}

/// A file of the page, or nothing new if the browser has it.
pub(crate) async fn file(uri: Uri, headers: HeaderMap) -> Handled {
    let path = uri.path();
    let file = file_at(path).ok_or_else(|| Problem::not_found("there is no such page"))?;
    let compressed = compressed(path, &headers);
    let form = if compressed.is_some() { "-gzip" } else { "" };
    let tag = format!("\"{}{form}\"", towline_core::hexadecimal(&file.metadata.sha256_hash()));
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut reply = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Response::new(compressed.map_or_else(|| Body::from(file.data.into_owned()), Body::from))
    };
    let tag = HeaderValue::from_str(&tag).map_err(|error| Problem::internal(error.to_string()))?;
    let fixed = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type(path))),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::ETAG, tag),
    ];
    reply.headers_mut().extend(fixed);
    reply.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if compressed.is_some() {
        reply.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(reply)
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        None | Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some(_) => "application/octet-stream",
    }
}

/// Spends the code of a link for a session.
pub(crate) async fn sign_in(State(app): Shared, body: Bytes) -> Handled {
    let NewSignIn { code } = query::json(&body)?;
    let session = spend_code(&app.state.home, &code, app.now());
    let session = session.map_err(|error| Problem::internal(format!("cannot sign in: {error}")))?;
    match session {
        Some(session) => reply::json(&app.context(), StatusCode::OK, &PageSession { session }),
        None => {
            Err(refuse_guess(&app, "the link is not valid, was used before, or is older than 10 minutes")
                .hint("run `towline open` for a new link"))
        }
    }
}

/// Ends the session that asks for it; all of them if the operator's token does.
pub(crate) async fn sign_out(State(app): Shared, headers: HeaderMap) -> Handled {
    let token = authority::token(&headers)?;
    let ended = if app.token.fits(token) {
        sign_out_all(&app.state.home)
    } else {
        end_session(&app.state.home, token).map(|()| 1)
    };
    let sessions = ended.map_err(|error| Problem::internal(format!("cannot sign out: {error}")))?;
    reply::json(&app.context(), StatusCode::OK, &EndedSessions { sessions: sessions as u64 })
}
