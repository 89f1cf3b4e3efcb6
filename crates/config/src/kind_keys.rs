//! Which keys of an agent go with its kind. Each kind lists its own keys and those that it refuses.

use towline_agent::{Kind, RefusedSettings, agent};

use crate::layer::LayerName;
use crate::settings::Settings;

/// Reports keys of other kinds, and keys that agents of this kind cannot be held to. None when there are any.
pub(crate) fn check(settings: &mut Settings, name: &str, kind: Kind) -> Option<()> {
    let problems = settings.problems.len();
    for other in Kind::ALL.into_iter().filter(|other| *other != kind) {
        let fix = format!("it is for agents of the kind `{}`", other.name());
        for key in agent(other).own_settings() {
            refuse(settings, name, key, kind, &fix);
        }
    }
    for RefusedSettings { keys, fix } in agent(kind).refused_settings() {
        for key in *keys {
            if promises(settings, name, key) {
                refuse(settings, name, key, kind, fix);
            }
        }
    }
    let permission = settings.get::<String>(&["agents", name, "permission"]);
    let permission = permission.and_then(|permission| permission.parse().ok());
    if let Some(fix) = permission.and_then(|permission| agent(kind).refuses_permission(permission))
        && promises(settings, name, "permission")
    {
        refuse(settings, name, "permission", kind, fix);
    }
    (settings.problems.len() == problems).then_some(())
}

/// Whether it is set to something that would have to be enforced.
fn promises(settings: &Settings, name: &str, key: &str) -> bool {
    let path = ["agents", name, key];
    let is_default = settings.place(&path).is_some_and(|place| place.layer == LayerName::Defaults);
    let allows_all = settings.get::<String>(&path).as_deref() == Some("bypass");
    let is_empty = settings.get::<Vec<String>>(&path).is_some_and(|list| list.is_empty());
    !is_default && !allows_all && !is_empty
}

fn refuse(settings: &mut Settings, name: &str, key: &str, kind: Kind, fix: &str) {
    let what = format!("does not go with the kind `{}`", kind.name());
    settings.report_key(&["agents", name, key], &what, fix);
}
