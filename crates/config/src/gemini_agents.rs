//! The keys that mean nothing to agents of the kind `gemini`: there Gemini CLI asks nobody, and is given no servers.

use towline_agent::Kind;

use crate::schema::KeyPath;
use crate::settings::Settings;

/// The way out, for whatever is refused.
const OTHER_KIND: &str =
    "Gemini CLI keeps to it with `kind = \"acp\"` and `command = [\"gemini\", \"--acp\"]`";

/// Reports what it could not be held to: it would be a promise that nobody keeps. None when there is such a thing.
pub(crate) fn check(settings: &mut Settings, name: &str, kind: Kind) -> Option<()> {
    if kind != Kind::Gemini {
        return Some(());
    }
    let permission: Option<String> = settings.get(&["agents", name, "permission"]);
    let deny: Vec<String> = settings.get(&["agents", name, "deny"]).unwrap_or_default();
    let mut refused = Vec::new();
    if let Some(mode) = permission.filter(|mode| mode != "bypass") {
        let place = settings.place(&["agents", name, "permission"]).cloned();
        refused.extend(place.map(|place| ("permission", format!("cannot be \"{mode}\""), place)));
    }
    if !deny.is_empty() {
        let place = settings.place(&["agents", name, "deny"]).cloned();
        refused.extend(place.map(|place| ("deny", "does not go".to_owned(), place)));
    }
    if let Some((_, place)) = settings.names_below(&["agents", name, "mcp"]).into_iter().next() {
        refused.push(("mcp", "does not go".to_owned(), place));
    }
    let is_good = refused.is_empty();
    for (key, what, place) in refused {
        let path = KeyPath::of(&["agents", name, key]);
        let what = format!("`{path}` {what} with the kind `{}`", kind.name());
        settings.report(what, place, OTHER_KIND.to_owned());
    }
    is_good.then_some(())
}
